"""What the parameters of estimators may be: a rule for each name, checked when `fit` is called."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sklearn.utils import check_random_state

from gramian._core.validation import check_choice, check_flag, check_number
from gramian.selection import CrossValidationSearch, LogNormalPrior

Rule = Callable[[str, Any], None]

positive: Rule = partial(check_number, strict=True)
not_negative: Rule = check_number
# squares of larger ones, and their products with coefficients, cannot be represented
variance: Rule = partial(check_number, high=1e100)
count: Rule = partial(check_number, low=1, whole=True)
flag: Rule = check_flag


def positive_or_auto(name: str, value: Any) -> None:
    """Refuse what is neither a positive number nor "auto"."""
    if not isinstance(value, str):
        positive(name, value)
    elif value != "auto":
        raise TypeError(f"{name} must be a number > 0 or 'auto', got {value!r}.")


def optional(rule: Rule) -> Rule:
    """Return the rule that a value must be None or keep to another rule."""
    return lambda name, value: None if value is None else rule(name, value)


optional_count = optional(count)


def or_auto(rule: Rule) -> Rule:
    """Return the rule that a value must be "auto" or keep to another rule."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, str) and value == "auto":
            return
        try:
            rule(name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error} 'auto' chooses.") from None

    return check


def choice(*choices: str) -> Rule:
    """Return the rule that a value must be one of the choices."""
    return partial(check_choice, choices=choices)


def seed(name: str, value: Any) -> None:
    """Refuse what scikit-learn makes no random numbers of."""
    try:
        check_random_state(value)
    except (ValueError, TypeError):
        raise ValueError(
            f"{name} must be None, a whole number from 0 to 2**32 - 1 or a RandomState, got {reprlib.repr(value)}."
        ) from None


def optional_classifier(name: str, value: Any) -> None:
    """Refuse what is neither None nor a classifier that scikit-learn could clone."""
    if value is not None and not (hasattr(value, "fit") and hasattr(value, "get_params")):
        raise TypeError(f"{name} must be a classifier or None, got {value!r}.")


def check_parameters(estimator: Any, rules: Mapping[str, Rule]) -> None:
    """Refuse the first parameter that breaks its rule, by name."""
    for name, rule in rules.items():
        rule(name, getattr(estimator, name))


def search(name: str, value: Any) -> None:
    """Refuse what does not say how hyperparameters are to be learned."""
    if value is None or (isinstance(value, str) and value in ("auto", "cv")):
        return
    if not isinstance(value, CrossValidationSearch):
        raise ValueError(
            f"{name} must be 'auto', 'cv', None or a CrossValidationSearch, got {value!r}."
        )
    positive("CrossValidationSearch(tol=...)", value.tol)
    count("CrossValidationSearch(max_evaluations=...)", value.max_evaluations)
    optional_count("CrossValidationSearch(max_samples=...)", value.max_samples)
    optional_count("CrossValidationSearch(max_products=...)", value.max_products)
    coarse = value.coarse
    if coarse is not None and not (isinstance(coarse, str) and coarse == "auto"):
        if isinstance(coarse, str):
            raise TypeError(
                f"CrossValidationSearch(coarse=...) must be None, 'auto' or a whole number, got {coarse!r}."
            )
        count("CrossValidationSearch(coarse=...)", coarse)
    if value.prior is not None and not isinstance(value.prior, LogNormalPrior):
        raise TypeError(
            f"CrossValidationSearch(prior=...) must be a LogNormalPrior or None, got {value.prior!r}."
        )
