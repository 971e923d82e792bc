"""Classes in a tree: support vector machines that decide from the root to a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian._core.validation import check_choice, check_flag, check_number, check_sample_weight
from gramian.estimators.inputs import all_or_nothing
from gramian.estimators.margin.calibration import fit_temperatures
from gramian.estimators.margin.representer import RepresenterModel
from gramian.estimators.tree.decisions import TreeDecisions
from gramian.estimators.tree.labels import label_weights, node_names, read_labels
from gramian.estimators.tree.paths import (
    descend,
    log_probabilities,
    path_margins,
    rivalries,
)
from gramian.estimators.tree.weights import checked_weights
from gramian.labels import Taxonomy
from gramian.labels.margins.tree_margins import (
    Flat,
    Independent,
    Orthogonal,
    PathSum,
    Similarity,
    TreeMargins,
)
from gramian.metrics import tree_zero_one_loss
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows, gram_is_faster
from gramian.operators.inputs.linear import linear_variance
from gramian.selection import fold_masks
from gramian.solvers import ContrastProblem, Solution, contrast_ascent

__all__ = ["HierarchicalSVC"]

METHODS: dict[str, type[TreeMargins]] = {
    "orthogonal": Orthogonal,
    "similarity": Similarity,
    "independent": Independent,
    "tree_loss": PathSum,
    "flat": Flat,
}


def _needs_probability(estimator: HierarchicalSVC) -> bool:
    if not estimator.probability:
        raise AttributeError(
            "Probabilities need HierarchicalSVC(probability=True), which calibrates scores on held-out folds."
        )
    return True


class HierarchicalSVC(ClassifierMixin, TreeDecisions, RepresenterModel):
    """Support vector machine for classes that are the leaves of a tree; its nodes learn to differ from their ancestors.

    Minimises ``Ω(W) + C Σ_k w_k ℓ_k`` over one normal w_i for each node i but the root. Decisions go from the root to
    the child with the largest score ``w_iᵀ x``, until a leaf is reached; the loss ℓ_k of an example is the most that a
    node on the way to its label lacks to beat each sibling by one. With ``method="orthogonal"`` the penalty
    ``Ω = ½ Σ_ij K_ij |w_iᵀ w_j|`` pushes the normal of each node to be orthogonal to those of its ancestors: what tells
    the children of a node apart is not what told the node from its siblings. The other methods are the rivals of the
    same paper. All are convex, and `solution_` certifies how close the fit is.

    Labels may be inner nodes: nothing is then asked of the levels below, and a prediction below such a node is right.

    Parameters
    ----------
    hierarchy : Taxonomy, mapping, networkx.DiGraph, DataFrame, or list, default=None
        The tree, or anything that `gramian.labels.as_taxonomy` reads. None has all classes of y below one root.
    method : {"orthogonal", "similarity", "independent", "tree_loss", "flat"}, default="orthogonal"
        - "orthogonal": normals orthogonal to those of ancestors;
        - "similarity": normals drawn to those of parents;
        - "independent": a multi-class SVM at each inner node;
        - "tree_loss": one among all leaves, with normals that are sums along paths, and margins scaled by half the path
          between two leaves;
        - "flat": one among all leaves, without the tree (Crammer & Singer).

        The first three decide from the root to a leaf, the last two take the leaf with the largest score.
    C : float, default=1.0
        Weight of the sum of losses, > 0. The paper averages them: its C is n_samples times ours.
    alpha : float or "auto", default=1.0
        How strongly ancestors and descendants are coupled, for "orthogonal": factor of what is off the diagonal of K; 0
        leaves normals alone. The penalty is convex up to some alpha, and an error says to which; "auto" is 1, or 0.9 of
        the largest where 1 is too large.
    kernel : str or Kernel, default="linear"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52",
        "rational_quadratic", "linear", "polynomial", "precomputed". Names take their scale from the
        training data.
    K : array of shape (n_nodes - 1, n_nodes - 1) or DataFrame, default=None
        Weights of the penalty, for "orthogonal": symmetric, not negative, with a positive diagonal, zero unless one
        node is an ancestor of the other. In the order of ``taxonomy_.names[1:]``, or a DataFrame with names of nodes.
        None has 1 between ancestors and descendants, and for K_ii the number of nodes below and including i.
    intercept_variance : float, default=0.0
        Adds a constant feature, the square root of this: intercepts are part of the normals and of the penalty. 0 means
        none.
    class_weight : dict or "balanced", default=None
        Weights of examples by their label; they multiply ``sample_weight``. Labels that are not listed have 1.
    probability : bool, default=False
        Whether to calibrate `predict_proba`: a temperature for each inner node (one for all leaves if ``method`` is
        "tree_loss" or "flat") from scores of held-out folds. It takes ``cv`` more fits.
    cv : int, splitter or iterable of splits, default=5
        Folds for ``probability``.
    tol : float, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective, and times what it has fallen from W = 0.
    max_iter : int, default=None
        Most sweeps over the examples; None is 10000.
    random_state : int or RandomState, default=None
        Order in which examples are visited. None is always the same order.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Names of the leaves, sorted.
    taxonomy_ : Taxonomy
    nodes_ : ndarray of shape (m,)
        The node of each score: all but the root in the order of ``taxonomy_.names``; the leaves, and after them inner
        nodes that occur as labels, if ``method`` is "tree_loss" or "flat".
    K_ : ndarray of shape (n_nodes - 1, n_nodes - 1)
        Weights of the penalty with ``alpha_``, for "orthogonal".
    alpha_ : float
    coef_ : ndarray of shape (m, n_features)
        Normals, for linear kernels.
    support_ : ndarray of int of shape (n_support,)
        Examples with a coefficient that is not zero, for other kernels.
    dual_coef_ : ndarray of shape (n_support, m)
        Their coefficients, for other kernels.
    X_fit_ : array or sparse array of shape (n_support, n_features)
        Their features, for other kernels that are not precomputed.
    intercept_ : ndarray of shape (m,)
    temperatures_ : ndarray of shape (n_inner,) or (1,)
        What scores are divided by before the softmax among the children of each inner node, or among all leaves; with
        ``probability=True``.
    kernel_ : Kernel
        The kernel with all its numbers.
    solution_ : Solution
        Certificate, status and history, without coefficients.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    Zhou, Xiao & Wu (2011), Hierarchical classification via orthogonal transfer, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import HierarchicalSVC
    >>> X = np.array([[1.0, 0.0, 0.2], [1.0, 0.0, -0.3], [0.0, 1.0, 0.1], [0.9, 0.1, 0.4]])
    >>> y = ["cat", "dog", "car", "animal"]
    >>> model = HierarchicalSVC({"animal": ["cat", "dog"], "car": None}, C=10.0, alpha=0.5)
    >>> model.fit(X, y).predict(X)
    array(['cat', 'dog', 'car', 'cat'], dtype='<U6')
    >>> model.score(X, y)
    1.0
    >>> model.solution_.status
    'converged'
    """

    taxonomy_: Taxonomy
    nodes_: np.ndarray
    K_: np.ndarray
    alpha_: float
    temperatures_: np.ndarray
    solution_: Solution
    _recursive: bool

    _optional = ("K_", "alpha_", "temperatures_")

    def __init__(
        self,
        hierarchy: Any = None,
        method: str = "orthogonal",
        C: float = 1.0,
        alpha: Any = 1.0,
        kernel: Any = "linear",
        *,
        K: Any = None,
        intercept_variance: float = 0.0,
        class_weight: Any = None,
        probability: bool = False,
        cv: Any = 5,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: Any = None,
    ):
        self.hierarchy = hierarchy
        self.method = method
        self.C = C
        self.alpha = alpha
        self.kernel = kernel
        self.K = K
        self.intercept_variance = intercept_variance
        self.class_weight = class_weight
        self.probability = probability
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # --- validate ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._kernel_asked_for()
        check_choice("method", self.method, tuple(METHODS))
        check_number("C", self.C, strict=True)
        check_number("intercept_variance", self.intercept_variance)
        check_number("tol", self.tol)
        if self.max_iter is not None:
            check_number("max_iter", self.max_iter, low=1, whole=True)
        check_flag("probability", self.probability)
        if self.K is not None and self.method != "orthogonal":
            raise ValueError(
                f"K is for method='orthogonal'; method={self.method!r} has a penalty of its own."
            )

    def _caps(
        self, taxonomy: Taxonomy, nodes: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """The weight of each example's loss."""
        caps = np.full(nodes.size, float(self.C))
        if weights is not None:
            caps *= weights
        if self.class_weight is not None:
            caps *= label_weights(self.class_weight, taxonomy, nodes)
        if not caps.any():
            raise ValueError(
                "class_weight × sample_weight is zero for every example: at least one must be positive."
            )
        return caps

    # --- fit --------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HierarchicalSVC:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or the Gram matrix of shape (n_samples, n_samples) for a precomputed kernel.
        y : array of shape (n_samples,)
            Names of nodes: leaves or inner nodes, not the root.
        sample_weight : array of shape (n_samples,), default=None
            Weight zero leaves an example out.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        X, y = self._validated(X, y)
        self._refuse_other_libraries(X)
        taxonomy, classes, nodes = read_labels(self.hierarchy, y)
        weights = check_sample_weight(sample_weight, np.empty((X.shape[0], 1)))
        kernel = self._kernel_asked_for().resolve(X, weights)
        labels, codes = np.unique(nodes, return_inverse=True)
        fitted: dict[str, Any] = {"classes_": classes, "taxonomy_": taxonomy, "kernel_": kernel}
        if self.method == "orthogonal":
            fitted["K_"], fitted["alpha_"] = checked_weights(taxonomy, self.K, self.alpha)
            margins = Orthogonal(taxonomy, labels, fitted["K_"])
        else:
            margins = METHODS[self.method](taxonomy, labels)
        fitted |= {"nodes_": node_names(taxonomy, margins.outputs), "_recursive": margins.recursive}
        caps = self._caps(taxonomy, nodes, weights)
        folds = fold_masks(self.cv, X, codes, classifier=True) if self.probability else None
        by_features = linear_variance(kernel) is not None and not gram_is_faster(X)
        rows_of = FeatureRows.from_kernel if by_features else GramRows
        inputs = rows_of(kernel, X, self.intercept_variance)
        problem = ContrastProblem(
            inputs,
            contrasts=margins.contrasts,
            penalty=margins.penalty,
            **margins.units(codes, caps),
        )

        def solve(problem: ContrastProblem, start: Any, callback: Any) -> Solution:
            # contrast_ascent starts from zero: a start would have to be one for each contrast
            return contrast_ascent(
                problem,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
                random_state=self._seed(),
            )

        def calibrate(rows: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
            of_rows = np.ones(rows.size) if weights is None else weights[rows]
            games = rivalries(taxonomy, nodes[rows], scores, of_rows, recursive=margins.recursive)
            return {"temperatures_": fit_temperatures(games)}

        self._solve(problem, fitted, X, y, solve, folds=folds, calibrate=calibrate)

    # --- predict ----------------------------------------------------------------------------

    def _class_leaves(self) -> np.ndarray:
        """The node of each class."""
        return self.taxonomy_.leaves[np.argsort(self.taxonomy_.leaf_names)]

    def _class_scores(self, U: np.ndarray) -> np.ndarray:
        """Scores of the classes, of a model without recursion, whose first outputs are the leaves."""
        return U[:, np.argsort(self.taxonomy_.leaf_names)]

    def _scores_on_the_way(self, X: Any) -> tuple[int, Callable[[np.ndarray, slice], np.ndarray]]:
        """The number of examples, and a function that returns scores of some rows and nodes.

        Sparse examples are multiplied with those normals only that they meet. With 75 words each and eight children at
        each node that is 9 to 18 times as fast for three levels, and costs as much as all scores for three children.
        """
        if linear_variance(self.kernel_) is None or not sp.issparse(X):
            U = self._latent(X, "predict")
            return U.shape[0], lambda rows, some: U[rows, some]
        checked = self._checked_new(X)

        def scores(rows: np.ndarray, some: slice) -> np.ndarray:
            return checked[rows] @ self.coef_[some].T + self.intercept_[some]

        return checked.shape[0], scores

    def _answers(self, n: int, scores: Callable[[np.ndarray, slice], np.ndarray]) -> np.ndarray:
        """The number of the class that each of n examples reaches from the root."""
        leaves = self._class_leaves()
        place = np.empty(self.taxonomy_.n_nodes, dtype=np.int64)
        place[leaves] = np.arange(leaves.size)
        return place[descend(self.taxonomy_, n, scores)]

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes: leaves of the hierarchy.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self._recursive:
            return self.classes_[self._answers(*self._scores_on_the_way(X))]
        return self.classes_[np.argmax(self._class_scores(self._latent(X, "predict")), axis=1)]

    def node_scores(self, X: Any) -> np.ndarray:
        """Return the score of each node, ``w_iᵀ x`` with the intercept; only those of siblings compare.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, m)
            Column i is the node ``nodes_[i]``.
        """
        check_is_fitted(self)
        return self._latent(X, "node_scores")

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how clearly each class wins or loses; the largest value is the prediction.

        For a class that is reached from the root this is its margin: the least by which a node on its path beats its
        best sibling. For all others it is zero or negative: the most by which a node on the path is beaten. With
        ``method`` "tree_loss" or "flat" it is the score of the leaf.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) if there are two classes
            For two classes: how much the second is ahead of the first.
        """
        check_is_fitted(self)
        U = self._latent(X, "decision_function")
        if not self._recursive:
            D = self._class_scores(U)
            return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D
        D = path_margins(self.taxonomy_, U)[:, self._class_leaves()]
        # after a tie the answer is positive all the same, so that values and answers agree
        rows = np.arange(U.shape[0])
        answers = self._answers(rows.size, lambda rows, some: U[rows, some])
        D[rows, answers] = np.maximum(D[rows, answers], np.finfo(D.dtype).tiny)
        return D[:, 1] if D.shape[1] == 2 else D

    @available_if(_needs_probability)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class: products of the probabilities of nodes among their siblings.

        The most probable class need not be the predicted one: several leaves of a less probable branch may each be less
        probable than the only leaf of another.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
            Or kernel values of shape (n_samples, n_training) for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if not hasattr(self, "temperatures_"):
            raise NotFittedError(
                "This HierarchicalSVC was fitted with probability=False; fit it again with True."
            )
        U = self._latent(X, "predict_proba")
        if self._recursive:
            logs = log_probabilities(self.taxonomy_, U, self.temperatures_)
            P = np.exp(logs[:, self._class_leaves()])
        else:
            P = softmax(self._class_scores(U) / self.temperatures_[0], axis=1)
        return P.astype(U.dtype, copy=False)

    predict_node_proba = available_if(_needs_probability)(TreeDecisions.predict_node_proba)
    decide = available_if(_needs_probability)(TreeDecisions.decide)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; below a label that is an inner node every prediction is right.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Names of nodes.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if self.taxonomy_.height == 1:  # no inner labels, and scikit-learn takes unknown ones
            return float(super().score(X, y, sample_weight))
        answers = self.predict(X)
        return 1.0 - tree_zero_one_loss(y, answers, self.taxonomy_, sample_weight=sample_weight)
