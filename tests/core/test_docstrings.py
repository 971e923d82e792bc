"""Shared descriptions of parameters reach the docstrings that name them."""

import doctest
import inspect
import pydoc
import subprocess
import sys
from textwrap import dedent

import pytest

from gramian._core.docstrings import described

SOURCE = """
kernel : {"rbf", "linear"}, default="rbf"
    A kernel.

    - one item
        with an indented line
cv : int
    Number of folds.
X, y : arrays
    Data.

See Also
--------
cv : Not this one.
"""


@described(SOURCE)
class Machine:
    """A machine with {"braces"} and 100 % of the rest.

    Parameters
    ----------
    |kernel|
    |cv|
        At least two.
    |X, y|

    Examples
    --------
    >>> 1 + 1
    2
    """

    def fit(self):
        """Fit."""


FULL = """A machine with {"braces"} and 100 % of the rest.

Parameters
----------
kernel : {"rbf", "linear"}, default="rbf"
    A kernel.

    - one item
        with an indented line
cv : int
    Number of folds.
    At least two.
X, y : arrays
    Data.

Examples
--------
>>> 1 + 1
2"""


def test_marks_become_full_entries_for_every_reader():
    assert inspect.getdoc(Machine) == FULL
    assert "Number of folds." in pydoc.render_doc(Machine)
    (tests,) = (test for test in doctest.DocTestFinder().find(Machine, "Machine") if test.examples)
    assert [example.source for example in tests.examples] == ["1 + 1\n"]


def test_entries_keep_the_indentation_of_their_mark():
    @described("tol : float\n    Accuracy.")
    def solve():
        """Solve.

        Nested:

            |tol|
        """

    assert inspect.getdoc(solve).endswith("Nested:\n\n    tol : float\n        Accuracy.")


def test_a_described_docstring_is_a_source_in_its_turn_and_the_last_source_counts():
    @described(Machine, "cv : float\n    Another.")
    def search():
        """Search.

        |kernel|
        |cv|
        """

    assert "A kernel." in search.__doc__
    assert search.__doc__.endswith("cv : float\n    Another.")


def test_only_lines_with_nothing_but_a_mark_are_marks():
    text = "See |cv| here.\n\n| a | b |\n| line block"

    def function():
        pass

    function.__doc__ = text
    assert described(SOURCE)(function).__doc__ == text


def test_unknown_marks_are_refused_when_the_function_is_defined():
    with pytest.raises(ValueError, match=r"\|kernl\|.*describe cv, kernel"):

        @described("kernel : str\ncv : int")
        def fit():
            """Fit.

            |kernl|
            """


@pytest.mark.slow  # Python compiles all that is imported anew
def test_nothing_happens_without_docstrings(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        dedent('''
        from gramian._core.docstrings import described

        def source():
            """cv : int"""

        @described(source)
        def function():
            """|cv|"""

        print(function.__doc__)
        ''')
    )
    done = subprocess.run(
        [sys.executable, "-OO", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
