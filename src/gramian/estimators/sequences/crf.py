"""Kernel conditional random fields: label sequences with a kernel on positions and learned transitions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.callback import with_callbacks

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.docstrings import described
from gramian.estimators.classification import KernelLogisticRegression
from gramian.estimators.examples import TrainingData
from gramian.estimators.fitting import fit_machine
from gramian.estimators.rules import choice, flag, positive_or_auto, variance
from gramian.estimators.sequences.answers import SequenceAnswers
from gramian.estimators.sequences.examples import SequenceExamples
from gramian.estimators.sequences.targets import SequenceLabels
from gramian.estimators.sequences.training import ChainTraining, kept_weights
from gramian.estimators.single import FeatureMachine
from gramian.estimators.smooth import SolverChoice, always
from gramian.operators import Operator, TransitionFunctions, Transitions, Weights
from gramian.operators.outputs.direct_sum import DirectSum

SOLVERS = {"newton": solvers.newton, "kernel_cg": solvers.kernel_cg}


@described(KernelLogisticRegression, FeatureMachine)
@dataclass(eq=False, repr=False)
class KernelCRF(SequenceAnswers, FeatureMachine):
    """Kernel conditional random field: joint probabilities of the labels of a sequence.

    The score of labels y of a sequence is ``start[y_1] + Σ_t u(x_t)[y_t] + Σ_t T[y_{t-1}, y_t] + end[y_L]`` with
    latent functions u of the positions as in `KernelLogisticRegression`, and transition scores T. Minimises
    ``Σ_s w_s (log Z_s − score_s) + (λ/2) (Σ_c ‖f_c‖² + ‖T‖² / τ²)``, where Z sums exp(score) over all labels
    that the sequence could have. The problem is convex; the optimum is unique, and `solution_` certifies how close the
    fit is. With sequences of length one it is `KernelLogisticRegression`.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name: "rbf", "matern12", "matern32", "matern52", "rational_quadratic",
        "laplacian", "linear", "polynomial". Names take their scale from the training data, and with
        ``regularization="auto"`` their parameters are learned.
    hierarchy : Taxonomy, mapping, nested dict, edge list, paths or graph, default=None
        Tree of the labels, see `as_taxonomy`. Labels of one branch then have similar latent functions and transitions,
        and y may name inner nodes: the label is one of the leaves below.
    share : {"tied", "class", "level", "subtree"} or mapping, default="tied"
        Which latent functions share kernel and variance, see `KernelLogisticRegression`.
    transition_variance : float or "auto", default="auto"
        Prior variance τ² of the scores of transitions, first and last labels. "auto" learns it together with the
        kernel, and is 1 where nothing is learned.
    input_transitions : float, default=0.0
        Above zero, scores of transitions depend on the position: ``T + G(x_t)`` with a latent function for each pair of
        labels. The number is their prior variance, relative to that of the functions u. It is not learned, and other
        parameters are learned without these functions. They take C² numbers for each position: for few labels.
    ends : bool, default=True
        Whether first and last labels have scores of their own.
    allowed_transitions : "BIO", iterable of pairs (label, next label), or None, default=None
        Which labels may follow each other. None in the place of the label before stands for the beginning, in the place
        of the one after for the end of a sequence. "BIO" lets I-x follow B-x and I-x only.
    decode : {"auto", "viterbi", "posterior"}, default="auto"
        Whether `predict` returns the most probable label sequence ("viterbi"), or the most probable label of each
        position ("posterior"). The latter has the fewest wrong positions in expectation, which is what `score` counts,
        but may break the rules of ``allowed_transitions``. "auto" is "viterbi" if there are rules and "posterior" if
        every transition is allowed.
    |optimize|
    cv : int, splitter or iterable of splits, default=5
        Folds of sequences for ``optimize``. A number means shuffled folds.
    |regularization|
    |intercept_variance|
    |operator|
    |rank|
    solver : {"auto", "newton", "kernel_cg"}, default="auto"
        "auto" is "newton". Labels that are not certain are fitted by expectation maximisation with Newton steps.
    |tol|
    |max_iter|
    |warm_start|
    |random_state|
    |copy_X|

    Attributes
    ----------
    |classes_|
    transitions_ : ndarray of shape (n_classes, n_classes)
        Score of label b (column) after label a (row); −∞ for what is not allowed.
    start_, end_ : ndarray of shape (n_classes,)
        Scores of first and last labels; zeros without ``ends``.
    transition_variance_ : float
        τ², as given or learned.
    dual_coef_ : array of shape (n_positions, n_classes)
        One row for each row of ``X_fit_``.
    intercept_ : array of shape (n_classes,)
    taxonomy_ : Taxonomy or None
        The hierarchy.
    |kernel_|
    |kernels_|
    |variances_|
    groups_ : ndarray of int of shape (n_functions,)
        Group of each class, or of each node but the root.
    cv_log_loss_ : float
        Cross-validated loss of the learned parameters, for each position.
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    X_fit_ : array or sparse array of shape (n_positions, n_features)
        The training positions; of a low-rank fit the ``rank`` positions that represent it, of a linear kernel the unit
        vectors, whose coefficients are the weights of the features.
    |n_features_in_|
    |feature_names_in_|

    See Also
    --------
    gramian.Sequences : What X is.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelCRF, Sequences
    >>> X = Sequences(np.array([[0.0], [1.0], [0.1], [0.9], [1.1], [0.2]]), lengths=[4, 2])
    >>> y = [["a", "b", "a", "b"], ["b", "a"]]
    >>> model = KernelCRF(regularization=0.1).fit(X, y)
    >>> model.predict(X)[0]
    array(['a', 'b', 'a', 'b'], dtype='<U1')
    >>> bool(np.all(model.transitions_.argmax(axis=1) == [1, 0]))  # a is followed by b, and b by a
    True
    """

    kernel: Any = "rbf"
    _: KW_ONLY
    hierarchy: Any = None
    share: Any = "tied"
    transition_variance: Any = "auto"
    input_transitions: float = 0.0
    ends: bool = True
    allowed_transitions: Any = None
    decode: str = "auto"

    _solvers = SolverChoice(SOLVERS, always("newton"))
    _cv_attribute = "cv_log_loss_"
    _rules = FeatureMachine._rules | {
        "solver": choice("auto", *SOLVERS),
        "transition_variance": positive_or_auto,
        "input_transitions": variance,
        "ends": flag,
        "decode": choice("auto", "viterbi", "posterior"),
    }

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> KernelCRF:
        """Fit the model.

        Parameters
        ----------
        X : Sequences, or list of arrays of shape (length, n_features)
        y : list of label sequences
            One list or array of labels for each sequence: numbers or strings. None is a label that is not known, a set
            or tuple of labels says that it is one of them.
        sample_weight : array of shape (n_sequences,), default=None
        groups : array of shape (n_sequences,), default=None
            Sequences of one group are held out together when hyperparameters are learned.

        Returns
        -------
        self
        """
        return fit_machine(self, X, y, sample_weight, self._training, groups)

    def _examples(self) -> SequenceExamples:
        return SequenceExamples(self.kernel, self.copy_X)

    def _targets(self) -> SequenceLabels:
        return SequenceLabels(
            self.hierarchy,
            self.share,
            self.transition_variance,
            self.ends,
            self.allowed_transitions,
            self.input_transitions,
        )

    def _training(self, data: TrainingData) -> ChainTraining:
        return ChainTraining(self, data, self._targets().read(data))

    def _kept(self, X: Any, operator: Operator, coefficients: Array) -> dict[str, Any]:
        assert isinstance(operator, DirectSum)
        parts, blocks = operator.operators, operator.blocks_of(coefficients)
        if isinstance(parts[0], Weights):
            function = kept_weights(operator, coefficients)
        else:
            function = super()._kept(X.positions, parts[0], blocks[0])
        for part, block in zip(parts, blocks, strict=True):
            if isinstance(part, Transitions):
                rows = np.asarray(part @ block)
                function["_score_rows"] = rows.reshape(rows.shape[0], -1)
                function["_score_coef"] = block.reshape(rows.shape[0], -1)
            elif isinstance(part, TransitionFunctions):
                pairs = part.compress(block)[1]
                function["_pair_coef"] = pairs.reshape(pairs.shape[0], -1)
        return function

    def _coefficients(self) -> Array:
        rows = [self.dual_coef_, self._score_coef]
        if self._chain.moving:
            rows.append(self._pair_coef.reshape(-1, self._chain.n_classes))
        elif self.operator_.name == "linear" and self.intercept_variance > 0:
            rows.insert(1, self.intercept_[None] / self.intercept_variance)
        return np.concatenate(rows)

    @property
    def transitions_(self) -> np.ndarray:
        """Scores of transitions, shape (n_classes, n_classes)."""
        C, allowed = self._chain.n_classes, self._chain.allowed
        T = self._score_rows[:C]
        return T.copy() if allowed is None else np.where(allowed[:C], T, -np.inf)

    @property
    def start_(self) -> np.ndarray:
        """Scores of first labels, shape (n_classes,)."""
        return self._end_row(0)

    @property
    def end_(self) -> np.ndarray:
        """Scores of last labels, shape (n_classes,)."""
        return self._end_row(1)

    def _end_row(self, which: int) -> np.ndarray:
        C, allowed = self._chain.n_classes, self._chain.allowed
        row = self._score_rows[C + which] if self._chain.ends else np.zeros(C)
        return row.copy() if allowed is None else np.where(allowed[C + which], row, -np.inf)

    @property
    def transition_variance_(self) -> float:
        """τ², as given or learned."""
        return self._prior.variance

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        tags.array_api_support = False
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
