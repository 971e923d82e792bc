"""What a fit found: one record that an estimator gets at the end of `fit`, all of it or nothing.

Fitting never touches the estimator before it is done, so a fit that fails or is interrupted leaves the estimator as it
was. Attributes such as ``dual_coef_`` are looked up in the record; nothing of an earlier fit can stay behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from gramian._core.arrays import Array, to_numpy
from gramian._core.validation import naming_text
from gramian.solvers import Solution
from gramian.solvers.contrast.mixed import MixedCoefficients


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fitted attributes of a model by their names."""

    values: dict[str, Any]

    def with_values(self, **values: Any) -> Fitted:
        """Return a record in which some attributes are others."""
        return Fitted(self.values | values)


class Model(BaseEstimator):
    """Base of all estimators: the fitted attributes are those of the record that `fit` sets at its end."""

    _fitted: Fitted

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def __dir__(self) -> Iterable[str]:
        names = vars(self)["_fitted"].values if self.__sklearn_is_fitted__() else ()
        return sorted({*super().__dir__(), *names})

    def __getattr__(self, name: str) -> Any:
        fitted = vars(self).get("_fitted")
        if fitted is not None and name in fitted.values:
            return fitted.values[name]
        return object.__getattribute__(self, name)  # a property raises its own error again


def refuse_overflow(solution: Solution, dtype: Any, given: str) -> None:
    """Refuse coefficients or a gap that are not finite; ``given`` names the parameter that may be to blame."""
    values = solution.coefficients
    mixed = isinstance(values, MixedCoefficients)
    finite = np.isfinite(values.latent.data if mixed else to_numpy(values)).all()
    if not (finite and np.isfinite(solution.gap) and np.isfinite(solution.objective)):
        raise ValueError(
            f"Numbers overflowed: the duality gap is {solution.gap}. Scale X, y, sample_weight or the kernel so that "
            f"products fit {dtype}, or check {given}."
        )


def validated(model: Model, X: Any, y: Any, **checks: Any) -> tuple[Array, Array, dict[str, Any]]:
    """Return X and y as scikit-learn validates them, and the attributes that describe the features.

    scikit-learn writes these attributes to the estimator that it validates for. That is a copy here, so that an error
    later in the fit leaves the model itself as it was.
    """
    shell = type(model)(**model.get_params(deep=False))
    with naming_text(X):
        X, y = validate_data(shell, X, y, accept_sparse="csr", **checks)
    names = ("n_features_in_", "feature_names_in_")
    return X, y, {name: vars(shell)[name] for name in names if name in vars(shell)}


FLOATS = [np.float64, np.float32]
