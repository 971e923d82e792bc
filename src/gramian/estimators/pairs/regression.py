"""Numbers for pairs: ridge regression and ranking (Airola & Pahikkala, Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gramian import solvers
from gramian._core.arrays import Array
from gramian._core.docstrings import described
from gramian.estimators.answers import NumberAnswers
from gramian.estimators.fitting import read_data
from gramian.estimators.pairs.machine import SOLVERS, PairwiseMachine, checked_path
from gramian.estimators.record import Fitted
from gramian.estimators.rules import check_parameters, choice, optional
from gramian.estimators.smooth import SolverChoice, always, kept_function
from gramian.estimators.targets import Numbers, Ranks, SmoothTargets
from gramian.losses import Loss, SquaredRanking
from gramian.metrics import concordance_index
from gramian.operators import OperatorRecord
from gramian.pairs import Pairs
from gramian.solvers import KroneckerRidge, Problem

RIDGE_SOLVERS = SOLVERS | {"minres": solvers.minres, "closed_form": solvers.kronecker_exact}


def _closed_form_or_minres(problem: Problem, record: OperatorRecord, watched: bool) -> str:
    return "closed_form" if not watched and solvers.has_closed_form(problem) else "minres"


@described(PairwiseMachine)
@dataclass(eq=False, repr=False)
class PairwiseRidge(NumberAnswers, PairwiseMachine):
    """Ridge regression on pairs.

    Minimises ``Σ_h w_h ½ (u_h − y_h)² + (λ/2) ‖f‖²`` over functions f of pairs, ``u = f + b``. The linear system
    ``(𝒦 + λI) a = y`` is solved by minimal residuals with one sampled vec trick for each iteration, never with an
    n × n matrix; in closed form if every pair of the objects is observed once.

    Parameters
    ----------
    |left_kernel, right_kernel|
    |pairwise_kernel|
    |left_columns, right_columns|
    |indefinite|
    |optimize|
    |cv|
    |regularization|
    intercept_variance : float, default=1e4
        Prior variance σ² of the intercepts; 0 means none. Targets are seldom centred: with 1e4, adding a number to y
        adds it to predictions and changes little else, whatever the unit of y.
    |operator|
    solver : {"auto", "minres", "kernel_cg", "newton", "closed_form"}, default="auto"
        "auto" is "closed_form" (two eigendecompositions) for complete pairs with the Kronecker kernel, without weights
        and validation pairs, else "minres".
    |tol|
    |max_iter|
    |patience|
    |warm_start|
    |random_state|

    Attributes
    ----------
    |dual_coef_|
    |intercept_|
    |kernel_|
    |variances_|
    validation_score_ : ndarray of shape (n_iterations,)
        Concordance index of the validation pairs after each iteration.
    |best_iteration_|
    |cv_loss_|
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

    See Also
    --------
    gramian.PairKFold : Folds for pairs, for four ways of being new.

    Examples
    --------
    >>> from gramian import PairwiseRidge
    >>> from gramian.datasets import make_interactions
    >>> from gramian.metrics import concordance_index
    >>> pairs, y = make_interactions(random_state=0)
    >>> model = PairwiseRidge(regularization=0.1).fit(pairs[:500], y[:500])
    >>> bool(concordance_index(y[500:], model.predict(pairs[500:])) > 0.8)
    True
    >>> model.solution_.status
    'converged'
    """

    _: KW_ONLY
    intercept_variance: float = 1e4

    _solvers = SolverChoice(RIDGE_SOLVERS, _closed_form_or_minres)
    _rules = PairwiseMachine._rules | {"solver": choice("auto", *RIDGE_SOLVERS)}

    def _targets(self) -> Numbers:
        return Numbers()

    def _score(
        self, targets: SmoothTargets, pairs: Pairs, y: np.ndarray
    ) -> Callable[[Array], float]:
        return _concordance_score(y, np.zeros(len(y), dtype=np.int64), "")

    def fit_path(
        self, X: Any, y: Any, regularizations: Sequence[float], sample_weight: Any = None
    ) -> list[PairwiseRidge]:
        """Fit a model for each λ, all of them from one Krylov space.

        The products of a single fit serve the whole path, see `solvers.minres`.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        regularizations : sequence of float
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        list of PairwiseRidge
            Fitted copies of this one, in the order of ``regularizations``; this one stays as it is. The history in
            their `solution_` is that of the whole path, with objectives and gaps summed.

        Examples
        --------
        >>> from gramian import PairwiseRidge
        >>> from gramian.datasets import make_interactions
        >>> models = PairwiseRidge().fit_path(*make_interactions(), [0.01, 0.1, 1.0])
        >>> [model.regularization for model in models]
        [0.01, 0.1, 1.0]
        """
        values = checked_path(regularizations)
        literal = self.optimize in (None, "auto")  # a number for λ is taken as it is
        if self.solver not in ("auto", "minres") or not literal or np.ndim(y) != 1:
            return super().fit_path(X, y, regularizations, sample_weight)
        check_parameters(self, self._rules)
        data = read_data(self, X, y, sample_weight)
        targets = self._targets().read(data)
        operator, record = targets.prior.operator(data.X, targets.values, self._gram())
        problem = Problem(operator, targets.loss, targets.values, values, targets.weights)
        minres = self._solvers.named["minres"]
        whole = minres(problem, tol=self.tol, **self._limits())
        A, U = (np.reshape(array, problem.shape) for array in (whole.coefficients, whole.latent))
        objectives = problem.objective(A, U)
        fitted = Fitted(
            data.described
            | targets.fitted
            | {"_prior": targets.prior, "operator_": record, "n_iter_": max(1, whole.n_iter)}
        )
        models = []
        for k, value in enumerate(values.tolist()):
            function = kept_function(self, data.X, operator, A[:, :, k])
            solution = replace(
                whole,
                coefficients=function["dual_coef_"],
                latent=None,
                objective=float(objectives[k]),
                gap=float(whole.gaps[k]),
                gaps=whole.gaps[k : k + 1],
            )
            model = clone(self).set_params(regularization=value)
            model._fitted = fitted.with_values(solution_=solution, **function)
            models.append(model)
        return models

    def held_out_predictions(
        self, setting: str = "A", left_folds: Any = None, right_folds: Any = None
    ) -> np.ndarray:
        """Predict each training pair by the model that was trained without it, without fitting again.

        For complete pairs with the Kronecker kernel, see `solvers.KroneckerRidge.held_out`.

        Parameters
        ----------
        setting : {"A", "B", "C", "D"}, default="A"
            What the model has not seen: the pair, any pair of its left object, any of its right object, or any of both.
        left_folds, right_folds : array of int of shape (n_left,), (n_right,), default=None
            Objects, in the order of ``X_fit_``, that are left out together; None leaves them out one by one.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import Pairs, PairwiseRidge
        >>> pairs = Pairs.complete(np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0]]))
        >>> y = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 4.0])
        >>> PairwiseRidge(regularization=0.1).fit(pairs, y).held_out_predictions("D").shape
        (6,)
        """
        check_is_fitted(self)
        settings = replace(self._gram(), operator="dual")
        operator, _ = self._prior.operator(self.X_fit_, self.dual_coef_, settings)
        form = operator.kronecker()
        if form is None or self.dual_coef_.shape[1] != 1 or self._weighted:
            raise ValueError(
                "held_out_predictions needs every pair of the objects exactly once, pairwise_kernel='kronecker' or "
                "'gaussian', no sample_weight and one output. Use PairKFold and fit again."
            )
        K, T, order, constant = form
        A = self.dual_coef_[order, 0].reshape(len(K), len(T)).astype(np.float64)
        # what the model was trained on
        Y = K @ A @ T + constant * A.sum() + self._strength() * A
        ridge = KroneckerRidge(K, T, constant)
        values = ridge.held_out(Y, self._strength(), setting, left_folds, right_folds)
        out = np.empty(order.size)
        out[order] = values.reshape(-1)
        return out


@described(PairwiseRidge, PairwiseMachine)
@dataclass(eq=False, repr=False)
class PairwiseRanker(NumberAnswers, PairwiseMachine):
    """Ranking of pairs: differences of scores are to be those of y.

    Minimises ``¼ Σ_h Σ_g w_h w_g (y_h − u_h − y_g + u_g)² + (λ/2) ‖f‖²`` over all pairs h, g, or over those of one
    group (Airola & Pahikkala, Table 1). Only differences within a group are learned: scores have no offset.

    Parameters
    ----------
    |left_kernel, right_kernel|
    |pairwise_kernel|
    |left_columns, right_columns|
    |indefinite|
    groups : {None, "left", "right"}, default=None
        Which pairs are compared: all of them, those of one left object, or those of one right object.
    |optimize|
    |cv|
    |regularization|
    intercept_variance : float, default=0.0
        Of no use: an intercept drops out of all differences, so that every value gives the same scores.
    |operator|
    solver : {"auto", "kernel_cg", "newton"}, default="auto"
        "auto" is "kernel_cg": conjugate gradients in the RKHS inner product.
    |tol|
    |max_iter|
    |patience|
    |warm_start|
    |random_state|

    Attributes
    ----------
    |dual_coef_|
    |intercept_|
    |kernel_|
    |variances_|
    |validation_score_|
    |best_iteration_|
    |cv_loss_|
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

    Examples
    --------
    >>> from gramian import PairwiseRanker
    >>> from gramian.datasets import make_interactions
    >>> pairs, y = make_interactions(random_state=0)
    >>> model = PairwiseRanker(groups="left", regularization=1.0).fit(pairs[:500], y[:500])
    >>> bool(model.score(pairs[500:], y[500:]) > 0.8)
    True
    """

    _: KW_ONLY
    groups: str | None = None
    intercept_variance: float = 0.0

    _solvers = SolverChoice(SOLVERS, always("kernel_cg"))
    _rules = PairwiseMachine._rules | {"groups": optional(choice("left", "right"))}

    def _targets(self) -> Ranks:
        return Ranks(self._loss)

    def _groups(self, X: Pairs) -> np.ndarray:
        """The number of the group of each pair."""
        if self.groups is None:
            return np.zeros(len(X), dtype=np.int64)
        return X.left_index if self.groups == "left" else X.right_index

    def _loss(self, X: Pairs) -> Loss:
        if self.groups is None:
            return SquaredRanking()
        return SquaredRanking(np.unique(self._groups(X), return_inverse=True)[1])

    def _score(
        self, targets: SmoothTargets, pairs: Pairs, y: np.ndarray
    ) -> Callable[[Array], float]:
        within = " within a group" if self.groups else ""
        return _concordance_score(y, self._groups(pairs), within)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the concordance index, within groups if there are any.

        Parameters
        ----------
        X : Pairs or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
            Mean over the groups that have something to compare.
        """
        check_is_fitted(self)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        pairs = self._examples().read_new(self, X, "score")
        y = np.asarray(y, dtype=float)
        return _mean_concordance(y, self.predict(pairs), self._groups(pairs), weights)


def _concordance_score(y: np.ndarray, groups: np.ndarray, within: str) -> Callable[[Array], float]:
    """The mean concordance index with y as a function of latent values, if y has something to compare."""
    if np.isnan(_mean_concordance(y, np.zeros(len(y)), groups)):
        raise ValueError(
            f"y_val must hold at least two different values{within} to be scored by the concordance index, got "
            f"{y[:3].tolist()!r}."
        )
    return lambda latent: _mean_concordance(y, latent[:, 0], groups)


def _mean_concordance(
    y: np.ndarray, scores: np.ndarray, groups: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Mean concordance index over the groups that have something to compare; nan if none has."""
    values = []
    for group in np.unique(groups):
        part = np.flatnonzero(groups == group)
        if np.ptp(y[part]) > 0:
            own = None if weights is None else weights[part]
            values.append(concordance_index(y[part], scores[part], own))
    return float(np.mean(values)) if values else float("nan")
