"""Classes in a tree: support vector machines that decide from the root to a leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gramian._core.arrays import BLOCK_BYTES, row_blocks
from gramian._core.docstrings import described
from gramian.estimators.examples import TrainingData
from gramian.estimators.margin.calibration import fit_temperatures
from gramian.estimators.margin.training import (
    MarginMachine,
    MarginTraining,
    Purpose,
    has_probability,
    not_all_zero,
    refuse_other_libraries,
)
from gramian.estimators.rules import choice
from gramian.estimators.single import FeatureMachine
from gramian.estimators.tree.decisions import TreeDecisions
from gramian.estimators.tree.labels import TreeLabels, label_weights, node_names
from gramian.estimators.tree.paths import (
    descend,
    log_probabilities,
    path_margins,
    reaches,
    rivalries,
)
from gramian.estimators.tree.weights import checked_weights
from gramian.labels import Taxonomy
from gramian.labels.margins.tree_margins import METHODS, Orthogonal, TreeMargins
from gramian.metrics import tree_zero_one_loss
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows, gram_is_faster
from gramian.solvers import ContrastProblem, Solution, contrast_ascent


@described(FeatureMachine, MarginMachine)
@dataclass(eq=False, repr=False)
class HierarchicalSVC(ClassifierMixin, TreeDecisions, MarginMachine):
    """Support vector machine for classes that are the leaves of a tree, and for labels that are any of its nodes.

    Minimises ``Ω(W) + C Σ_k w_k ℓ_k`` over the normals W of leaves or nodes; the loss ℓ_k of an example is the most
    that its label lacks to beat a rival by one. By default all leaves are rivals, and the one with the largest score
    ``w_iᵀ x`` is the answer. With ``method="orthogonal"`` every node but the root has a normal, decisions go from the
    root to the child with the largest score until a leaf is reached, and the penalty ``Ω = ½ Σ_ij K_ij |w_iᵀ w_j|``
    pushes the normal of each node to be orthogonal to those of its ancestors: what tells the children of a node apart
    is not what told the node from its siblings. The other methods are the rivals of the same paper. All are convex, and
    `solution_` certifies how close the fit is.

    Labels may be inner nodes: nothing is then asked of the levels below, and a prediction below such a node is right.

    Parameters
    ----------
    hierarchy : Taxonomy, mapping, networkx.DiGraph, DataFrame, or list, default=None
        The tree, or anything that `gramian.labels.as_taxonomy` reads. None has all classes of y below one root.
    method : {"orthogonal", "similarity", "independent", "tree_loss", "flat"}, default="flat"
        - "orthogonal": normals orthogonal to those of ancestors;
        - "similarity": normals drawn to those of parents;
        - "independent": a multi-class SVM at each inner node;
        - "tree_loss": one among all leaves, with normals that are sums along paths, and margins scaled by half the path
          between two leaves;
        - "flat": one among all leaves, without the tree (Crammer & Singer).

        The first three decide from the root to a leaf, the last two take the leaf with the largest score. "flat" was
        the best by folds of the training data on each of the trees that we measured.
    |C|
        The score is the accuracy. C weighs the sum of losses; the paper averages them: its C is n_samples times ours.
    alpha : float or "auto", default="auto"
        How strongly ancestors and descendants are coupled, for "orthogonal": factor of what is off the diagonal of K; 0
        leaves normals alone. The penalty is convex up to some alpha, and an error says to which; "auto" is 1, or 0.9 of
        the largest where 1 is too large.
    |kernel|
    K : array of shape (n_nodes - 1, n_nodes - 1) or DataFrame, default=None
        Weights of the penalty, for "orthogonal": symmetric, not negative, with a positive diagonal, zero unless one
        node is an ancestor of the other. In the order of ``taxonomy_.names[1:]``, or a DataFrame with names of nodes.
        None has ones on the diagonal, so that C means the same at every depth, and ``1 / sqrt(n_i n_j)`` between
        ancestors and descendants, n_i being the number of nodes below and including i. The paper has n_i on the
        diagonal and 1 elsewhere: ``K=gramian.labels.orthogonality_weights(taxonomy)``, with ``intercept_variance=0``.
    intercept_variance : float, default=1.0
        Adds a constant feature, the square root of this: intercepts are part of the normals and of the penalty. 0 means
        none.
    class_weight : dict or "balanced", default=None
        Weights of examples by their label; they multiply ``sample_weight``. Labels that are not listed have 1.
    probability : bool, default=False
        Whether to calibrate `predict_proba`: a temperature for each inner node (one for all leaves if ``method`` is
        "tree_loss" or "flat") from scores of held-out folds. It takes ``cv`` more fits.
    |cv|
    tol : float, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective, and times what it has fallen from W = 0.
    max_iter : int, default=None
        Most sweeps over the examples; None is 10000.
    random_state : int or RandomState, default=None
        Order in which examples are visited. None is always the same order.
    |copy_X|

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Names of the leaves, sorted.
    taxonomy_ : Taxonomy
    nodes_ : ndarray of shape (m,)
        The node of each score: all but the root in the order of ``taxonomy_.names``; the leaves, and after them inner
        nodes that occur as labels, if ``method`` is "tree_loss" or "flat".
    K_ : CSR array of shape (n_nodes - 1, n_nodes - 1)
        Weights of the penalty with ``alpha_``, for "orthogonal".
    alpha_ : float
    |C_|
    |C_path_|
    coef_ : ndarray of shape (m, n_features)
        Normals, for linear kernels.
    |support_|
    dual_coef_ : ndarray of shape (n_support, m)
        Their coefficients, for other kernels.
    |X_fit_|
    intercept_ : ndarray of shape (m,)
    temperatures_ : ndarray of shape (n_inner,) or (1,)
        What scores are divided by before the softmax among the children of each inner node, or among all leaves; with
        ``probability=True``.
    kernel_ : Kernel
        The kernel with all its numbers.
    solution_ : Solution
        Certificate, status and history, without coefficients.
    |n_iter_|
    |n_features_in_|
    |feature_names_in_|

    References
    ----------
    Zhou, Xiao & Wu (2011), Hierarchical classification via orthogonal transfer, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import HierarchicalSVC
    >>> X = np.array([[1.0, 0.0, 0.2], [1.0, 0.0, -0.3], [0.0, 1.0, 0.1], [0.9, 0.1, 0.4]])
    >>> y = ["cat", "dog", "car", "animal"]
    >>> model = HierarchicalSVC({"animal": ["cat", "dog"], "car": None}, C=10.0)
    >>> model.fit(X, y).predict(X)
    array(['cat', 'dog', 'car', 'cat'], dtype='<U6')
    >>> model.score(X, y)
    1.0
    >>> model.solution_.status
    'converged'
    """

    hierarchy: Any = None
    method: str = "flat"
    C: Any = "auto"
    alpha: Any = "auto"
    kernel: Any = "linear"
    _: KW_ONLY
    K: Any = None
    tol: float = 1e-3

    _rules = MarginMachine._rules | {"method": choice(*METHODS)}

    # --- fit --------------------------------------------------------------------------------

    def _targets(self) -> TreeLabels:
        return TreeLabels(self.hierarchy)

    def _training(self, data: TrainingData) -> MarginTraining:
        refuse_other_libraries(type(self).__name__, data.X)
        taxonomy, classes, nodes = self._targets().read(data)
        labels, codes = np.unique(nodes, return_inverse=True)
        margins, penalty = self._margins(taxonomy, labels)
        caps = self._caps(taxonomy, nodes, data.weights)

        def problem(X: Any, rows: Any = slice(None)) -> ContrastProblem:
            by_features = data.kernel.linear_variance is not None and not gram_is_faster(X)
            rows_of = FeatureRows.from_kernel if by_features else GramRows
            inputs = rows_of(data.kernel, X, self.intercept_variance)
            units = margins.units(codes[rows], caps[rows])
            return ContrastProblem(
                inputs, contrasts=margins.contrasts, penalty=margins.penalty, **units
            )

        fitted = {
            "classes_": classes,
            "taxonomy_": taxonomy,
            "nodes_": node_names(taxonomy, margins.outputs),
            "_recursive": margins.recursive,
            **penalty,
        }

        def judge(rows: np.ndarray, scores: np.ndarray) -> float:
            right = reaches(taxonomy, nodes[rows], scores, recursive=margins.recursive)
            return float(np.average(right, weights=caps[rows]))

        def calibrate(rows: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
            of_rows = np.ones(rows.size) if data.weights is None else data.weights[rows]
            games = rivalries(taxonomy, nodes[rows], scores, of_rows, recursive=margins.recursive)
            return {"temperatures_": fit_temperatures(games)}

        return MarginTraining(
            self,
            data,
            problem(data.X),
            lambda rows: problem(self._examples().take(data.X, rows), rows),
            self._solve,
            fitted,
            codes=codes,
            judge=judge,
            calibrate=calibrate,
        )

    def _margins(
        self, taxonomy: Taxonomy, labels: np.ndarray
    ) -> tuple[TreeMargins, dict[str, Any]]:
        """The objective of the method, and the weights of its penalty as fitted attributes."""
        if self.method == "orthogonal":
            K, alpha = checked_weights(taxonomy, self.K, self.alpha)
            return Orthogonal(taxonomy, labels, K), {"K_": K, "alpha_": alpha}
        if self.K is not None:
            raise ValueError(
                f"K is for method='orthogonal'; method={self.method!r} has a penalty of its own."
            )
        return METHODS[self.method](taxonomy, labels), {}

    def _solve(
        self, problem: ContrastProblem, start: Any, callback: Any, *, purpose: Purpose = "model"
    ) -> Solution:
        # contrast_ascent starts from zero: a start would have to be one for each contrast
        return contrast_ascent(
            problem, callback=callback, random_state=self._seed(), **self._limits(purpose)
        )

    def _caps(
        self, taxonomy: Taxonomy, nodes: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """The weight of each example's loss for C = 1."""
        caps = np.ones(nodes.size)
        for factor in (weights, label_weights(self.class_weight, taxonomy, nodes, weights)):
            caps = caps if factor is None else caps * factor
        return not_all_zero(caps)

    # --- predict ----------------------------------------------------------------------------

    def _class_leaves(self) -> np.ndarray:
        """The node of each class."""
        return self.taxonomy_.leaves[np.argsort(self.taxonomy_.leaf_names)]

    def _class_scores(self, U: np.ndarray) -> np.ndarray:
        """Scores of the classes, of a model without recursion, whose first outputs are the leaves."""
        return U[:, np.argsort(self.taxonomy_.leaf_names)]

    def _scores_on_the_way(self, X: Any) -> tuple[int, Callable[[Any, slice], np.ndarray]]:
        """The number of examples, and a function that returns scores of some rows and nodes.

        Sparse examples are multiplied with those normals only that they meet. With 75 words each and eight children at
        each node that is 9 to 18 times as fast for three levels, and costs as much as all scores for three children.
        """
        if self.kernel_.linear_variance is None or not sp.issparse(X):
            U = self._latent(X, "predict")
            return U.shape[0], lambda rows, some: U[rows, some]
        checked = self._examples().checked_new(self, X)
        coef, intercept = (kept.astype(checked.dtype) for kept in (self.coef_, self.intercept_))

        def scores(rows: Any, some: slice) -> np.ndarray:
            return checked[rows] @ coef[some].T + intercept[some]

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
        n, scores = self._scores_on_the_way(X)
        if self._recursive:
            return self.classes_[self._answers(n, scores)]
        best, leaves = np.empty(n, dtype=np.int64), slice(0, self.taxonomy_.n_leaves)
        for rows in row_blocks(n, 8 * leaves.stop, BLOCK_BYTES):  # scores of many classes are large
            best[rows] = np.argmax(self._class_scores(scores(rows, leaves)), axis=1)
        return self.classes_[best]

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

    @available_if(has_probability)
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
        temperatures = self._calibrated("temperatures_")
        U = self._latent(X, "predict_proba")
        if self._recursive:
            logs = log_probabilities(self.taxonomy_, U, temperatures)
            P = np.exp(logs[:, self._class_leaves()])
        else:
            P = softmax(self._class_scores(U) / temperatures[0], axis=1)
        return P.astype(U.dtype, copy=False)

    predict_node_proba = available_if(has_probability)(TreeDecisions.predict_node_proba)
    decide = available_if(has_probability)(TreeDecisions.decide)

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
