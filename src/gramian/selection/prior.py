"""The prior of a model: which kernel and variance each latent function has, and how functions make classes.

    𝒦(A) = Σ_g M_g (A Φ_L)_g v_g (Φ_Lᵀ)_g + σ² 1 1ᵀ A

Functions (classes, or all nodes of a taxonomy but the root) fall into groups g that share a kernel with matrix M_g
and a variance v_g; Φ_L adds the functions on the path to each class (without a taxonomy it is the identity). The
groups are Seeger's sharing patterns: tied and separate kernels (§8.1), F1, F2, H1, H2 (§8.2).

When the kernel has no free parameter but its variance, all groups have the same matrix, which is then stored and
multiplied once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian._core.arrays import Array, is_numpy, itemsize, to_numpy
from gramian._core.memory import working_memory
from gramian._core.validation import check_present
from gramian.kernels import Constant, Kernel
from gramian.kernels.parameters import DEFAULT_BOUNDS, is_fixed
from gramian.labels import Coupling, Diagonal, Identity, Scalar, Taxonomy, TreeStructure
from gramian.labels.coupling import Coregionalization
from gramian.labels.taxonomy.structure import CoupledTree
from gramian.labels.taxonomy.taxonomy import SHARES
from gramian.operators import (
    InputOperator,
    Intercept,
    LabelMixed,
    Lifted,
    Operator,
    OperatorRecord,
    Separate,
    choose_operator,
    cross_operator,
)
from gramian.operators.inputs.distances import Distances

# Factors on the length scales and variances that a search begins with. Smooth functions, and functions that classify
# with confidence, have variances well above one; a longer scale goes with a larger variance.
SCALES_AND_VARIANCES = ((1, 1), (1 / 3, 1), (1, 10), (1 / 3, 10), (1, 100), (3, 100))
SMOOTHER = (2, 4)  # the same, of a kernel whose functions have the slopes that they had


@dataclass(frozen=True)
class GramSettings:
    """How the Gram operator is to be made.

    Attributes
    ----------
    operator : str
        Name of an operator, or "auto".
    intercept_variance : float
        Prior variance of the intercepts; 0 means that there are none.
    rank : int or None
        Number of examples that a low-rank operator keeps.
    random_state : int, RandomState or None
        Which examples those are.
    """

    operator: str
    intercept_variance: float
    rank: int | None = None
    random_state: Any = None


@dataclass(frozen=True, eq=False)
class Prior:
    """Kernels, variances and structure of the latent functions.

    Parameters
    ----------
    kernels : tuple of Kernel
        Without their constant factor; one for all groups or one for each.
    variances : ndarray of shape (n_groups,)
        The constant factors.
    variance_bounds : pair of float or "fixed"
    groups : ndarray of int of shape (n_functions,)
    group_names : tuple of str
    taxonomy : Taxonomy or None
    order : ndarray of int or None
        Node numbers of the classes.
    only_variances : bool
        Whether the parameters of the kernels are to stay as they are when others are learned.
    coupling : Coupling, Coregionalization or None
        How outputs with one kernel are related, by each of its terms if it is a sum; with a taxonomy, what its leaves
        have for themselves.
    """

    kernels: tuple[Kernel, ...]
    variances: np.ndarray
    variance_bounds: Any
    groups: np.ndarray
    group_names: tuple[str, ...]
    taxonomy: Taxonomy | None = None
    order: np.ndarray | None = None
    only_variances: bool = False
    coupling: Coupling | Coregionalization | None = None

    @property
    def is_independent(self) -> bool:
        """Whether outputs without a loss in common are problems of their own, all with one matrix."""
        return self.is_shared and self.coupling is None

    @property
    def is_shared(self) -> bool:
        """Whether one matrix serves all groups."""
        return len(self.kernels) == 1

    @property
    def _matrices(self) -> Sequence[Kernel]:
        """The kernels whose matrices make the operator."""
        if isinstance(self.coupling, Coregionalization):
            return self.kernels[0].addends()
        return self.kernels

    @property
    def own_variances(self) -> np.ndarray:
        """Variance of what each output has for itself, which a coupling relates."""
        groups = self.groups if self.order is None else self.groups[self.order - 1]
        return self.variances[groups]

    # --- parameters -------------------------------------------------------------------------

    @property
    def theta(self) -> np.ndarray:
        """Log-parameters in the order of the operator: kernels, then variances."""
        return np.concatenate([*(kernel.theta for kernel in self.kernels), np.log(self.variances)])

    @property
    def bounds(self) -> np.ndarray:
        """Log-bounds of ``theta``; equal ones for what is fixed."""
        rows = [kernel.bounds for kernel in self.kernels]
        if self.only_variances:
            rows = [np.stack([kernel.theta, kernel.theta], axis=1) for kernel in self.kernels]
        if is_fixed(self.variance_bounds):
            return np.concatenate([*rows, np.repeat(np.log(self.variances)[:, None], 2, axis=1)])
        pair = np.log(np.asarray(self.variance_bounds, dtype=float)).reshape(1, 2)
        return np.concatenate([*rows, np.repeat(pair, self.variances.size, axis=0)])

    @property
    def names(self) -> list[str]:
        """Names of the log-parameters."""
        marks = [f" [{name}]" for name in self.group_names] if self.variances.size > 1 else [""]
        names = []
        for kernel, mark in zip(self.kernels, [""] if self.is_shared else marks, strict=True):
            names += [name + mark for name in kernel.parameter_names]
        return names + ["variance" + mark for mark in marks]

    @property
    def tied(self) -> np.ndarray | None:
        """Numbers that are the same for corresponding log-parameters of all groups and features.

        None if each stands alone, or if they start from different values.
        """
        kinds: list[int] = []
        for name in self.kernels[0].parameter_names:
            further = re.search(r"\[[1-9]\d*\]$", name)  # entry of a vector that is not its first
            kinds.append(kinds[-1] if further else len(kinds))
        kinds = kinds * len(self.kernels) + [len(kinds)] * self.variances.size
        _, first, numbers = np.unique(kinds, return_index=True, return_inverse=True)
        alike = np.array_equal(self.theta[first][numbers], self.theta)
        return numbers if alike and first.size < len(kinds) else None

    def starts(self) -> np.ndarray:
        """Log-parameters to look at before a descent, shape (n_starts, n_parameters): those given, and other scales.

        Where a kernel is far too narrow or too flat, the criterion is a plateau, and a descent would take its small
        slope for convergence.
        """
        starts = [self._scaled(*factors) for factors in SCALES_AND_VARIANCES]
        return np.array(list(dict.fromkeys(map(tuple, starts))))

    def smoother(self) -> Prior | None:
        """Return a copy with longer length scales and functions as steep as before; None where bounds forbid it."""
        theta = self._scaled(*SMOOTHER)
        return None if np.array_equal(theta, self.theta) else self.with_theta(theta)

    def _scaled(self, scale: float, variance: float) -> np.ndarray:
        """Log-parameters with length scales and variances that are so many times as large, within bounds."""
        names = np.array(self.names)
        scales = np.char.find(names, "length_scale") >= 0
        variances = np.char.startswith(names, "variance")
        theta = self.theta + np.log(scale) * scales + np.log(variance) * variances
        return np.clip(theta, *self.bounds.T)

    def with_kernel(self, kernel: Kernel) -> Prior:
        """Return a copy with another kernel, which all groups start from."""
        return replace(self, kernels=(kernel,) * len(self.kernels))

    def with_variances_only(self) -> Prior:
        """Return a copy of which only the variances are learned."""
        return replace(self, only_variances=True)

    def as_it_is(self) -> Prior:
        """Return a copy of which nothing is learned."""
        return replace(self, only_variances=True, variance_bounds="fixed")

    def in_units_of(self, X: Any) -> Prior:
        """Return a copy whose variances, unless they were chosen, are relative to the values of the kernel on X.

        Similarities and linear kernels come in any unit: with values around 100, a variance of 1 is a large one.
        """
        if is_fixed(self.variance_bounds) or np.any(self.variances != 1):
            return self
        unit = float(np.mean(to_numpy(self.kernels[0].diag(X))))
        if not (np.isfinite(unit) and unit > 0) or unit == 1:
            return self
        low, high = self.variance_bounds
        return replace(
            self, variances=self.variances / unit, variance_bounds=(low / unit, high / unit)
        )

    def with_theta(self, theta: np.ndarray) -> Prior:
        """Return a copy with other log-parameters."""
        sizes = [kernel.theta.size for kernel in self.kernels]
        *pieces, variances = np.split(np.asarray(theta, dtype=float), np.cumsum(sizes))
        kernels = [k.clone_with_theta(piece) for k, piece in zip(self.kernels, pieces, strict=True)]
        return replace(self, kernels=tuple(kernels), variances=np.exp(variances))

    def kernels_with_variances(self) -> tuple[Kernel, ...]:
        """One kernel for each group, with its variance as a constant factor."""
        kernels = self.kernels * self.variances.size if self.is_shared else self.kernels
        return tuple(
            kernel if variance == 1 else Constant(float(variance), self.variance_bounds) * kernel
            for kernel, variance in zip(kernels, self.variances, strict=True)
        )

    # --- operators --------------------------------------------------------------------------

    def operator(
        self,
        X: Array,
        like: Array,
        gram: GramSettings,
        *,
        learning: bool = False,
        dtype: Any = None,
    ) -> tuple[Operator, OperatorRecord]:
        """The Gram operator on training examples.

        ``learning`` keeps distances for other length scales; ``dtype`` is theirs, None for that of X.
        """
        copies = len(self._matrices)
        if gram.operator == "low_rank" and copies > 1:
            raise ValueError(
                f"operator='low_rank' needs one kernel for all functions, but share or coupling gives them {copies}. "
                "Use share='tied' (or a kernel without free parameters) and one coupling for all terms of the kernel, "
                "or operator='streamed'."
            )
        distances = None
        several = (learning or copies > 1) and gram.operator != "low_rank"
        metrics = [kernel.metric if kernel.is_isotropic else None for kernel in self._matrices]
        alike = len(set(metrics)) == 1
        if several and is_numpy(X) and alike and (metric := metrics[0]) is not None:
            kept = Distances(X, dtype, metric)
            nbytes = (copies + 1) * X.shape[0] ** 2 * itemsize(kept)
            if nbytes <= working_memory() or gram.operator == "dense":
                distances = kept
        records: list[OperatorRecord] = []

        def build(kernel: Kernel) -> InputOperator:
            operator, record = choose_operator(
                kernel,
                X,
                gram.operator,
                copies=copies,
                distances=distances,
                rank=gram.rank,
                random_state=gram.random_state,
                n_columns=math.prod(like.shape[1:]),
                gradients=learning,
            )
            records.append(record)
            return operator

        terms = [self._term(build)]
        if gram.intercept_variance > 0:
            terms.append((Intercept(gram.intercept_variance, like, X.shape[0]), Identity()))
        record = replace(records[0], nbytes=sum(record.nbytes for record in records))
        return LabelMixed(terms), record

    def cross(self, X_new: Array, X: Array, name: str = "auto") -> Operator:
        """The operator from training to new examples, without the intercept; ``name`` is that of training."""
        if isinstance(self.coupling, Coregionalization):
            name = "auto"  # each term has its own
        return LabelMixed([self._term(lambda kernel: cross_operator(kernel, X_new, X, name))])

    def _term(self, build: Callable[[Kernel], InputOperator]) -> tuple[Operator, Any]:
        """Operator and label structure of the functions."""
        if isinstance(self.coupling, Coregionalization):
            operators = [build(kernel) for kernel in self._matrices]
            terms = LabelMixed(list(zip(operators, self.coupling.structures, strict=True)))
            return terms, Scalar(self.variances[0])
        matrices = [build(kernel) for kernel in self.kernels]
        if self.is_shared and self.taxonomy is not None:
            tree = self.taxonomy, self.variances, np.append(-1, self.groups), self.order
            if self.coupling is None:
                return matrices[0], TreeStructure(*tree)
            return matrices[0], CoupledTree(*tree, self.coupling.matrix)
        if self.coupling is not None:
            return matrices[0], self.coupling.with_variance(float(self.variances[0]))
        if self.is_shared and self.variances.size == 1:
            return matrices[0], Scalar(self.variances[0])
        diagonal = Diagonal(self.variances, self.groups)
        if self.is_shared:
            return matrices[0], diagonal
        if self.taxonomy is None:
            return Separate(matrices, self.groups), diagonal
        nodes = LabelMixed([(Separate(matrices, self.groups), diagonal)])
        return Lifted(nodes, self.taxonomy, self.order), Identity()


def assemble_prior(
    kernel: Kernel,
    share: Any,
    functions: Sequence[Any],
    taxonomy: Taxonomy | None = None,
    order: np.ndarray | None = None,
) -> Prior:
    """Give each latent function its group, and each group its kernel and variance.

    Parameters
    ----------
    kernel : Kernel
        With numbers; its constant factor is the variance that all groups start from.
    share : {"tied", "class", "level", "subtree"} or mapping of functions to groups
    functions : sequence
        Labels of the functions: classes, or names of all nodes but the root.
    taxonomy : Taxonomy, default=None
    order : array of int, default=None
        Node numbers of the classes.
    """
    groups, names = _groups(share, list(functions), taxonomy)
    constant, base = kernel.amplitude()
    if constant is not None:
        variance, bounds = float(constant.value), constant.value_bounds
    else:
        variance, bounds = 1.0, "fixed" if base.scales_itself() else DEFAULT_BOUNDS
    size = len(names)
    kernels = (base,) * (size if base.theta.size else 1)
    return Prior(kernels, np.full(size, variance), bounds, groups, names, taxonomy, order)


def _groups(
    share: Any, functions: list[Any], taxonomy: Taxonomy | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group number of each function, and names of the groups."""
    if isinstance(share, Mapping):
        unit = "node" if taxonomy else "class"
        check_present(f"share must give a group for every {unit}", functions, share)
        labels = list(dict.fromkeys(share[label] for label in functions))
        number = {label: g for g, label in enumerate(labels)}
        groups = np.array([number[share[label]] for label in functions])
        return groups, tuple(map(str, labels))
    if not isinstance(share, str) or share not in SHARES:
        raise ValueError(
            f"share must be one of {', '.join(map(repr, SHARES))}, or a mapping of classes to groups; got {share!r}."
        )
    if share == "tied":
        return np.zeros(len(functions), dtype=np.int64), ("all",)
    if share == "class":
        return np.arange(len(functions)), tuple(map(str, functions))
    if taxonomy is None:
        raise ValueError(f"share={share!r} needs hierarchy=...; without one use 'tied' or 'class'.")
    groups = taxonomy.groups(share)[1:]
    if share == "level":
        return groups, tuple(f"level {level + 1}" for level in range(int(groups.max()) + 1))
    return groups, tuple(str(taxonomy.names[child]) for child in taxonomy.children(0))
