"""Descriptions of parameters that several functions or classes share, written once.

A parameter is described in full in one numpydoc docstring. Every other docstring names it between two bars, on a line
of its own, and `described` puts the description there when the function or class is defined. The finished text is the
``__doc__``, so `help`, Sphinx and doctest show it like any other.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from textwrap import dedent
from typing import Any, TypeVar

_Documented = TypeVar("_Documented")
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*(?:\n(?: .*)?)*", re.MULTILINE)
_MARK = re.compile(r"^( *)\|(\w+(?:, \w+)*)\|$", re.MULTILINE)


def described(*sources: Any) -> Callable[[_Documented], _Documented]:
    r"""Decorate a function or class whose docstring takes descriptions of parameters from elsewhere.

    Parameters
    ----------
    *sources : str, or any object with a docstring
        Text with numpydoc entries, ``name : type`` and indented lines below: the docstring of a function, class or
        module, or a string. If several describe the same name, the last of them counts; within one source, the first.

    Returns
    -------
    callable
        Fills the docstring in place and returns what it decorates. It does nothing where there are no docstrings
        (``python -OO``).

    Raises
    ------
    ValueError
        When the docstring names a parameter that none of the sources describes.

    Examples
    --------
    Lines below a mark continue the description.

    >>> from gramian._core.docstrings import described
    >>> def fit(kernel):
    ...     '''Fit.
    ...
    ...     Parameters
    ...     ----------
    ...     kernel : str
    ...         Name of a kernel.
    ...     '''
    >>> @described(fit, "tol : float\n    Relative accuracy.")
    ... def refit(kernel, tol):
    ...     '''Fit again.
    ...
    ...     Parameters
    ...     ----------
    ...     |kernel|
    ...         The one of the last fit by default.
    ...     |tol|
    ...     '''
    >>> print(refit.__doc__)
    Fit again.
    <BLANKLINE>
    Parameters
    ----------
    kernel : str
        Name of a kernel.
        The one of the last fit by default.
    tol : float
        Relative accuracy.
    """

    def fill(documented: _Documented) -> _Documented:
        if documented.__doc__ is None:
            return documented
        texts = (dedent(s) if isinstance(s, str) else inspect.getdoc(s) or "" for s in sources)
        entries = {name: entry for text in texts for name, entry in _entries(text).items()}

        def entry(mark: re.Match[str]) -> str:
            indentation, name = mark.groups()
            if name not in entries:
                raise ValueError(
                    f"The docstring of {documented!r} has a mark |{name}|, but the sources given to described() "
                    f"have no entry '{name} : ...'. They describe {', '.join(sorted(entries)) or 'nothing'}."
                )
            return "\n".join((indentation + line).rstrip() for line in entries[name].splitlines())

        documented.__doc__ = _MARK.sub(entry, inspect.cleandoc(documented.__doc__))
        return documented

    return fill


@cache
def _entries(text: str) -> dict[str, str]:
    """Return the numpydoc entries of a text by the names they describe; the first one for each name."""
    found = _ENTRY.finditer(text)
    return {entry[1]: entry[0].rstrip() for entry in reversed(list(found))}
