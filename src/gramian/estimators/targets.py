"""What y means to a model with a smooth loss: classes, classes in a tree, numbers, ranks of pairs.

Each reads y into `SmoothTargets`: the loss, the values that it compares latent functions with, and the prior of those
functions. Margin models have targets of their own, `margin.label_signs` and `tree.labels`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp

from gramian._core.arrays import (
    Array,
    asarray_like,
    device_of,
    in_float64,
    namespace,
    to_numpy,
)
from gramian._core.validation import check_sample_weight, naming_text
from gramian.estimators.classes import class_tree, distinct, of_examples
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import Targets
from gramian.estimators.relation import related
from gramian.labels import LearnedCoupling
from gramian.labels.taxonomy.builders import join_paths
from gramian.losses import Logistic, Loss, ObservedSquared, Softmax, Squared, SquaredHinge
from gramian.selection.chain_prior import AnyPrior
from gramian.selection.learn import LearningData
from gramian.selection.prior import Prior, assemble_prior
from gramian.solvers import Solution, expectation_maximization


@dataclass(frozen=True, eq=False)
class SmoothTargets:
    """Loss, targets and prior of one problem.

    Attributes
    ----------
    loss : Loss
    values : array of shape (n, C) or (n, C, q)
    prior : Prior or ChainPrior
        Of the latent functions, with the parameters that learning starts from.
    weights : array of shape (n,) or None
        Weights of the examples, with those of their classes.
    fitted : dict
        Fitted attributes that y determines.
    stratified : bool, default=False
        Whether y holds classes that folds should have in proportion.
    judged : array of shape (n,), default=None
        Zero for examples that hyperparameters are not learned from.
    solve : callable, default=None
        The solver that these targets need, whatever the estimator says.
    known : LearningData, default=None
        What hyperparameters are learned from, if not from the examples as they are.
    coupling : LearnedCoupling, default=None
        How outputs are to find out what they have in common.
    """

    loss: Loss
    values: Array
    prior: AnyPrior
    weights: Array | None
    fitted: dict[str, Any]
    stratified: bool = False
    judged: Array | None = None
    solve: Callable[..., Solution] | None = None
    known: LearningData | None = None
    coupling: LearnedCoupling | None = None


@dataclass(frozen=True)
class Numbers(Targets):
    """Numbers to be predicted, one column or several.

    Attributes
    ----------
    loss : callable
        Makes the loss from the examples; the squared loss by default.
    """

    loss: Callable[[Any], Loss] = field(default=lambda X: Squared())
    checks: ClassVar = {"multi_output": True, "y_numeric": True}

    def read(self, data: TrainingData) -> SmoothTargets:
        if sp.issparse(data.y):
            raise TypeError(
                "y must be a dense array of numbers, got a sparse one; use y.toarray()."
            )
        with naming_text(data.like):
            values = in_float64(data.y, data.like)
        _check_range(values, data.X.dtype)
        single = values.ndim == 1
        values = namespace(values).reshape(values, (values.shape[0], 1, -1))
        prior = assemble_prior(data.kernel, "tied", range(int(values.shape[2])))
        fitted = {"_single_output": single, "_weighted": data.weights is not None}
        return SmoothTargets(self.loss(data.X), values, prior, data.weights, fitted)


def _check_range(values: Array, dtype: Any) -> None:
    """Predictions have the precision of X, which must be able to hold numbers such as those of y."""
    xp = namespace(values)
    info, largest = xp.finfo(dtype), float(xp.max(xp.abs(values)))
    if largest > float(info.max) or 0 < largest < float(info.smallest_normal):
        raise ValueError(
            f"y has values of size {largest:.3g}, which {dtype}, the precision of X and of predictions, cannot hold. "
            "Scale y, or pass X in float64."
        )


@dataclass(frozen=True)
class SharedNumbers(Targets):
    """Numbers to be predicted, of which some may be missing (NaN) where there are several columns.

    Attributes
    ----------
    coupling : parameter of the estimator
        How columns are related.
    """

    coupling: Any = None
    checks: ClassVar = Numbers.checks

    def flattened(self, y: Any) -> Any:
        missing = _missing(y)
        return y if missing is None else np.where(missing, 0.0, np.asarray(y, dtype=float))

    def read(self, data: TrainingData) -> SmoothTargets:
        plain, missing = Numbers().read(data), _missing(data.given)
        names = getattr(data.given, "columns", range(int(plain.values.shape[2])))
        relation = related(self.coupling, cast(Prior, plain.prior), list(names))
        read = replace(
            plain,
            prior=relation.prior,
            fitted=plain.fitted | relation.fitted,
            coupling=relation.learned,
        )
        if missing is None:
            return read
        if missing.all(axis=0).any():
            column = int(np.flatnonzero(missing.all(axis=0))[0])
            raise ValueError(
                f"y must have a known target in every column, but column {column} is NaN throughout. Leave it out."
            )
        values = asarray_like(np.where(missing, np.nan, to_numpy(plain.values[:, 0, :])), data.like)
        return replace(read, values=values[:, None, :], loss=ObservedSquared())


def _missing(y: Any) -> np.ndarray | None:
    """Which targets of several columns are NaN; None if none is, or if there is one column only."""
    if not (hasattr(y, "columns") or isinstance(y, (np.ndarray, list))):
        return None
    try:
        missing = np.isnan(np.asarray(y, dtype=float))
    except (TypeError, ValueError):
        return None  # scikit-learn says what is wrong with it
    several = missing.ndim == 2 and missing.shape[1] > 1
    return missing if several and missing.any() else None


class Ranks(Numbers):
    """Numbers of which only the differences are to be predicted: a single column."""

    checks: ClassVar = {"y_numeric": True}


def softmax(indicator: Array) -> tuple[Loss, Array]:
    """Return the softmax loss over all classes and its targets; one logistic function for two classes."""
    return (Logistic(), indicator[:, 1:]) if indicator.shape[1] == 2 else (Softmax(), indicator)


def hinge(indicator: Array) -> tuple[Loss, Array]:
    """Return the squared hinge and its targets: each class against the rest, or the second of two."""
    signs = 2 * indicator - 1
    columns = signs[:, 1:] if indicator.shape[1] == 2 else signs
    return SquaredHinge(), columns[:, None, :]


@dataclass(frozen=True)
class Classes(Targets):
    """Labels of classes.

    Attributes
    ----------
    loss : callable
        Makes the loss and its targets of shape (n, C) or (n, C, q) from the n × C indicator of the classes.
    share : str or mapping
        Which classes share kernel and variance.
    class_weight : dict, "balanced" or None
    known : dict
        Fitted attributes besides ``classes_``.
    coupling : parameter of the estimator
        How classes are related.
    """

    loss: Callable[[Array], tuple[Loss, Array]]
    share: Any = "tied"
    class_weight: Any = None
    known: dict[str, Any] = field(default_factory=dict)
    coupling: Any = None

    def read(self, data: TrainingData) -> SmoothTargets:
        labels, codes = distinct(data.y)
        loss, values = self.loss(_indicator(codes, labels, data.like))
        n_outputs = values.shape[-1]
        functions = to_numpy(labels).tolist()[-n_outputs:]  # the second class if there are two
        prior = assemble_prior(data.kernel, self.share, functions)
        relation = related(self.coupling, prior, functions)
        return SmoothTargets(
            loss,
            values,
            relation.prior,
            with_class_weight(self.class_weight, data, labels, codes),
            {"classes_": labels, **self.known, **relation.fitted},
            stratified=True,
            coupling=relation.learned,
        )


@dataclass(frozen=True)
class TreeClasses(Targets):
    """Names of nodes of a tree; an inner node says that the class is one of the leaves below it.

    Attributes
    ----------
    hierarchy : anything that `gramian.labels.as_taxonomy` reads
    share, class_weight : see `Classes`
    solver, optimize : parameters of the estimator
        Not every solver and no search can do with inner nodes alone.
    coupling : parameter of the estimator
        How what the leaves have for themselves is related, beside the tree.
    """

    hierarchy: Any
    share: Any
    class_weight: Any
    solver: str
    optimize: Any
    coupling: Any = None

    def flattened(self, y: Any) -> Any:
        return join_paths(y) if np.ndim(y) == 2 else y

    def read(self, data: TrainingData) -> SmoothTargets:
        labels, codes = distinct(data.y, least=1)
        taxonomy, classes, order = class_tree(self.hierarchy)
        # which leaves each label allows, leaves in the order of the classes
        allowed = taxonomy.descends(taxonomy.index(to_numpy(labels)))[:, order]
        certain = allowed.sum(axis=1) == 1
        self._check_certainty(certain)
        indicator = _indicator(codes, labels, data.like)
        doubtful = not certain.all()
        nodes, leaves = taxonomy.names[1:].tolist(), taxonomy.leaves[order]
        prior = assemble_prior(data.kernel, self.share, nodes, taxonomy, leaves)
        relation = related(self.coupling, prior, to_numpy(classes).tolist())
        return SmoothTargets(
            Softmax(),
            indicator @ asarray_like(allowed.astype(float), indicator),
            relation.prior,
            with_class_weight(self.class_weight, data, labels, codes),
            {"classes_": classes, "taxonomy_": taxonomy, **relation.fitted},
            stratified=True,
            judged=indicator @ asarray_like(certain.astype(float), indicator) if doubtful else None,
            solve=expectation_maximization if doubtful else None,
            coupling=relation.learned,
        )

    def _check_certainty(self, certain: np.ndarray) -> None:
        if not certain.all() and self.solver not in ("auto", "newton"):
            raise ValueError(
                f"solver must be 'auto' or 'newton' when y names inner nodes of the hierarchy, got {self.solver!r}."
            )
        if self.optimize not in (None, "auto") and not certain.any():
            raise ValueError(
                f"optimize={self.optimize!r} needs examples whose class is known, but y names inner nodes only."
            )


def with_class_weight(
    class_weight: Any, data: TrainingData, labels: Array, codes: Array
) -> Array | None:
    """Return the weights of the examples times those of their classes; None if all are one."""
    given = None if data.weights is None else to_numpy(data.weights)
    of_classes = of_examples(class_weight, to_numpy(labels), to_numpy(codes), given)
    if of_classes is None:
        return data.weights
    weights = asarray_like(of_classes, data.like)
    if data.weights is None:
        return weights
    product = data.weights * weights
    return check_sample_weight(product, data.like, name="class_weight × sample_weight")


def _indicator(codes: Array, labels: Array, like: Array) -> Array:
    """Zeros and ones of shape (n, C), in the array library and dtype of ``like``."""
    codes = in_float64(codes, like)
    xp = namespace(codes)
    every = xp.arange(int(labels.shape[0]), dtype=codes.dtype, device=device_of(codes))
    return xp.astype(codes[:, None] == every[None, :], codes.dtype)
