"""Kernel classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._core.arrays import Array, asarray_like, to_numpy
from gramian.estimators.classifier import HingeClassifier, LogisticClassifier
from gramian.estimators.tree.decisions import TreeDecisions
from gramian.kernels import Kernel
from gramian.labels import as_taxonomy
from gramian.labels.taxonomy.builders import join_paths
from gramian.losses import Softmax
from gramian.selection.prior import assemble_prior
from gramian.solvers.rkhs import expectation_maximization

__all__ = ["KernelLogisticRegression", "KernelSVC"]


class KernelLogisticRegression(TreeDecisions, LogisticClassifier):
    """Kernel logistic regression: joint softmax over all classes, with probabilities.

    Minimises ``Σ_i w_i loss(u(x_i), y_i) + (λ/2) Σ_c ‖f_c‖²`` over ``u_c = f_c + b_c`` with the
    softmax loss (binary: one latent function and the logistic loss); the intercepts b are penalised
    by ``(λ/2) b² / σ²``. It is the maximum a posteriori estimate of Gaussian process
    classification. The optimum is unique, and `solution_` certifies how close the fit is.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    hierarchy : Taxonomy, mapping, nested dict, edge list, paths or graph, default=None
        Tree of the classes, see `as_taxonomy`. Every node gets a latent function and a class is the sum of
        those on its path from the root, so classes of one branch resemble each other. y may then name leaves or
        inner nodes; an inner node says that the class is one of the leaves below it.
    share : {"tied", "class", "level", "subtree"} or mapping, default="tied"
        Which latent functions share kernel and variance: all of them, none ("separate kernels"), with a
        hierarchy those of one level or of one subtree under the root, or those of one group of a mapping from classes
        (with a hierarchy: nodes) to groups. It matters when they are learned.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variances, by the gradient of the
        cross-validated loss, starting from the numbers in ``kernel``.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``.
    regularization : float, default=1.0
        λ > 0. A variance of the kernel does the same to f: ``10.0 * RBF(1.0)`` is λ divided by 10
        (exactly so if ``intercept_variance`` is divided by 10 too, or 0).
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercepts; 0 means none.
    operator : {"auto", "dense", "linear", "streamed", "tree_code", "low_rank"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice. "low_rank" approximates it, "tree_code" is
        exact up to a proven bound, the others are exact.
    rank : int, default=None
        Number of examples that "low_rank" represents the function by; None is 1000, or fewer if they take more than
        half of scikit-learn's ``working_memory``. With "auto" a number allows "low_rank" where the matrix does not fit.
    solver : {"auto", "newton", "kernel_cg", "parameter_cg", "exact"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and classes is the same. Not after a
        low-rank fit, which keeps no coefficients of examples.
    random_state : int, RandomState or None, default=None
        Which examples a low-rank fit is represented by, and which ones a coarse search for parameters takes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    taxonomy_ : Taxonomy or None
        The hierarchy.
    kernel_ : Kernel
        The kernel with all its numbers, if there is one for all.
    kernels_ : tuple of Kernel
        One for each group of latent functions, with its variance as a factor.
    variances_ : ndarray of shape (n_groups,)
    groups_ : ndarray of int of shape (n_functions,)
        Group of each class, or of each node but the root.
    cv_log_loss_ : float
        Cross-validated log loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : array or sparse array of shape (n_samples, n_features)
        The training examples; of a low-rank fit the ``rank`` examples that represent it, and so for `dual_coef_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(kernel="rbf", regularization=0.1).fit(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.99, 0.01, 0.  ]])
    >>> model.solution_.status
    'converged'
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        hierarchy: Any = None,
        share: Any = "tied",
        optimize: Any = None,
        cv: Any = 5,
        regularization: float = 1.0,
        intercept_variance: float = 1.0,
        operator: str = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            share=share,
            optimize=optimize,
            cv=cv,
            regularization=regularization,
            intercept_variance=intercept_variance,
            operator=operator,
            rank=rank,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            warm_start=warm_start,
            random_state=random_state,
        )
        self.hierarchy = hierarchy

    # --- hierarchy --------------------------------------------------------------------------

    def _knows_classes(self) -> bool:
        return self.hierarchy is not None

    def _flattened(self, y: Any) -> Any:
        if self.hierarchy is None or np.ndim(y) != 2:
            return y
        return join_paths(y)

    def _fit_classes(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        labels: Array,
        indicator: Array,
        weights: Array | None,
        **options: Any,
    ) -> None:
        if self.hierarchy is None:
            super()._fit_classes(
                kernel, X, y, labels, indicator, weights, taxonomy_=None, **options
            )
            return
        taxonomy = as_taxonomy(self.hierarchy)
        if taxonomy.leaf_names.dtype == object:
            raise ValueError(
                "hierarchy must name its leaves by strings or by integers, not both; "
                f"got {taxonomy.leaf_names.tolist()[:5]!r}."
            )
        classes, order = np.unique(taxonomy.leaf_names, return_index=True)
        if classes.size < 2:
            raise ValueError(f"hierarchy must have at least two leaves, got {classes.tolist()!r}.")
        # which leaves each label allows, leaves in the order of the classes
        allowed = taxonomy.descends(taxonomy.index(to_numpy(labels)))[:, order]
        targets = indicator @ asarray_like(allowed.astype(float), indicator)
        certain = allowed.sum(axis=1) == 1
        doubtful = not certain.all()
        if doubtful and self.solver not in ("auto", "newton"):
            raise ValueError(
                f"solver must be 'auto' or 'newton' when y names inner nodes of the hierarchy, got {self.solver!r}."
            )
        if self.optimize is not None and not certain.any():
            raise ValueError(
                f"optimize={self.optimize!r} needs examples whose class is known, but y names inner nodes only."
            )
        judged = indicator @ asarray_like(certain.astype(float), indicator) if doubtful else None
        nodes = taxonomy.names[1:].tolist()
        prior = assemble_prior(kernel, self.share, nodes, taxonomy, taxonomy.leaves[order])
        solve = expectation_maximization if doubtful else None
        state = {"classes_": classes, "taxonomy_": taxonomy}
        self._solve(prior, X, y, targets, Softmax(), weights, solve=solve, judged=judged, **state)


class KernelSVC(HingeClassifier):
    """Support vector classification with the squared hinge; one-vs-rest on one shared Gram operator.

    Minimises ``Σ_i w_i ½ max(0, 1 − y_i u(x_i))² + (λ/2) ‖f‖²`` over ``u = f + b`` for each class
    against the rest (binary: once); the intercept is penalised by ``(λ/2) b² / σ²``. All classes
    advance in lockstep, so one pass over the Gram matrix serves them all. With a linear kernel it
    is ``LinearSVC(C=1 / (2 λ))``.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    share : {"tied", "class"} or mapping, default="tied"
        Which classes share kernel and variance: all of them, none ("separate kernels"), or those of one group
        of a mapping from classes to groups. It matters when they are learned.
    optimize : None, "cv" or CrossValidationSearch, default=None
        "cv" learns all kernel parameters that are not fixed, and the variances, by the gradient of the
        cross-validated loss, starting from the numbers in ``kernel``.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``optimize``.
    regularization : float, default=1.0
        λ > 0.
    intercept_variance : float, default=1.0
        Prior variance σ² of the intercepts; 0 means none.
    operator : {"auto", "dense", "linear", "streamed", "tree_code", "low_rank"}, default="auto"
        How to multiply with the Gram matrix; see `operator_` for the choice. "low_rank" approximates it, "tree_code" is
        exact up to a proven bound, the others are exact.
    rank : int, default=None
        Number of examples that "low_rank" represents the function by; None is 1000, or fewer if they take more than
        half of scikit-learn's ``working_memory``. With "auto" a number allows "low_rank" where the matrix does not fit.
    solver : {"auto", "newton", "kernel_cg", "parameter_cg", "exact"}, default="auto"
        "auto" is "newton": truncated Newton in the RKHS inner product.
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective, for every class.
    max_iter : int, default=None
        Most iterations; None is the solver's own limit.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    warm_start : bool, default=False
        Start from the previous coefficients when the number of examples and classes is the same. Not after a
        low-rank fit, which keeps no coefficients of examples.
    random_state : int, RandomState or None, default=None
        Which examples a low-rank fit is represented by, and which ones a coarse search for parameters takes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    kernel_ : Kernel
        The kernel with all its numbers, if there is one for all.
    kernels_ : tuple of Kernel
        One for each group of classes, with its variance as a factor.
    variances_ : ndarray of shape (n_groups,)
    groups_ : ndarray of int of shape (n_classes,)
        Group of each class.
    cv_loss_ : float
        Cross-validated loss of the learned parameters.
    optimization_path_ : OptimizationPath
        How they were found.
    operator_ : OperatorRecord
        Which operator was used, and why.
    solution_ : Solution
        Certificate, status and history.
    n_iter_ : int
    X_fit_ : array or sparse array of shape (n_samples, n_features)
        The training examples; of a low-rank fit the ``rank`` examples that represent it, and so for `dual_coef_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVC(kernel="rbf").fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """
