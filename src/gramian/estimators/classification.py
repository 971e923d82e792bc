"""Kernel classification of single examples: logistic regression, and support vectors with the squared hinge."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from gramian._core.docstrings import described
from gramian.estimators.answers import ClassAnswers, ProbabilityAnswers
from gramian.estimators.coupled import CoupledMachine
from gramian.estimators.single import SOLVERS
from gramian.estimators.smooth import SolverChoice, always
from gramian.estimators.targets import Classes, TreeClasses, hinge, softmax
from gramian.estimators.tree.decisions import TreeDecisions
from gramian.operators import OperatorRecord
from gramian.solvers import Problem
from gramian.solvers.rkhs.preconditioning.leading_functions import is_many


def _newton_or_cg(problem: Problem, record: OperatorRecord, watched: bool) -> str:
    """Conjugate gradients where classes are many; early stopping counts Newton steps."""
    complete = record.name == "low_rank"  # Newton systems are then solved within the space
    return "kernel_cg" if is_many(problem) and not watched and not complete else "newton"


@described(CoupledMachine)
@dataclass(eq=False, repr=False)
class KernelLogisticRegression(TreeDecisions, ProbabilityAnswers, CoupledMachine):
    """Kernel logistic regression: joint softmax over all classes, with probabilities.

    Minimises ``Σ_i w_i loss(u(x_i), y_i) + (λ/2) Σ_c ‖f_c‖²`` over ``u_c = f_c + b_c`` with the
    softmax loss (binary: one latent function and the logistic loss); the intercepts b are penalised
    by ``(λ/2) b² / σ²``. It is the maximum a posteriori estimate of Gaussian process
    classification. The optimum is unique, and `solution_` certifies how close the fit is.

    Parameters
    ----------
    |kernel|
    hierarchy : Taxonomy, mapping, nested dict, edge list, paths or graph, default=None
        Tree of the classes, see `as_taxonomy`. Every node gets a latent function and a class is the sum of
        those on its path from the root, so classes of one branch resemble each other. y may then name leaves or
        inner nodes; an inner node says that the class is one of the leaves below it.
    share : {"tied", "class", "level", "subtree"} or mapping, default="tied"
        Which latent functions share kernel and variance: all of them, none ("separate kernels"), with a
        hierarchy those of one level or of one subtree under the root, or those of one group of a mapping from classes
        (with a hierarchy: nodes) to groups. It matters when they are learned.
    |coupling|
    |optimize|
    |cv|
    regularization : float, default=1.0
        λ > 0. A variance of the kernel does the same to f: ``10.0 * RBF(1.0)`` is λ divided by 10
        (exactly so if ``intercept_variance`` is divided by 10 too, or 0).
    |intercept_variance|
    |operator|
    |rank|
    |solver|
    |tol|
    |max_iter|
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply ``sample_weight``.
    |warm_start|
    |random_state|
    |copy_X|

    Attributes
    ----------
    |classes_|
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    taxonomy_ : Taxonomy or None
        The hierarchy.
    |kernel_|
    |kernels_|
    |variances_|
    groups_ : ndarray of int of shape (n_functions,)
        Group of each class, or of each node but the root.
    |coupling_|
    |n_couplings_|
    |judged_loss_|
    cv_log_loss_ : float
        Cross-validated log loss of the learned parameters.
    |optimization_path_|
    |operator_|
    |solution_|
    |n_iter_|
    |X_fit_|
    |n_features_in_|
    |feature_names_in_|

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

    _: KW_ONLY
    hierarchy: Any = None
    share: Any = "tied"
    class_weight: Any = None

    _solvers = SolverChoice(SOLVERS, _newton_or_cg)

    def _targets(self) -> Classes | TreeClasses:
        if self.hierarchy is None:
            known = {"taxonomy_": None}
            return Classes(softmax, self.share, self.class_weight, known, self.coupling)
        return TreeClasses(
            self.hierarchy,
            self.share,
            self.class_weight,
            self.solver,
            self.optimize,
            self.coupling,
        )


@described(KernelLogisticRegression, CoupledMachine)
@dataclass(eq=False, repr=False)
class KernelSVC(ClassAnswers, CoupledMachine):
    """Support vector classification with the squared hinge; one-vs-rest on one shared Gram operator.

    Minimises ``Σ_i w_i ½ max(0, 1 − y_i u(x_i))² + (λ/2) ‖f‖²`` over ``u = f + b`` for each class
    against the rest (binary: once); the intercept is penalised by ``(λ/2) b² / σ²``. All classes
    advance in lockstep, so one pass over the Gram matrix serves them all. With a linear kernel it
    is ``LinearSVC(C=1 / (2 λ))``.

    Parameters
    ----------
    |kernel|
    share : {"tied", "class"} or mapping, default="tied"
        Which classes share kernel and variance: all of them, none ("separate kernels"), or those of one group
        of a mapping from classes to groups. It matters when they are learned.
    |coupling|
    |optimize|
    |cv|
    |regularization|
    |intercept_variance|
    |operator|
    |rank|
    |solver|
    tol : float, default=1e-8
        Stop when the duality gap is at most ``tol`` × objective, for every class.
    |max_iter|
    |class_weight|
    |warm_start|
    |random_state|
    |copy_X|

    Attributes
    ----------
    |classes_|
    dual_coef_ : array of shape (n_samples, n_classes), one column if binary
    intercept_ : array of shape (n_classes,)
    |kernel_|
    |kernels_|
    |variances_|
    groups_ : ndarray of int of shape (n_classes,)
        Group of each class.
    |coupling_|
    |n_couplings_|
    |judged_loss_|
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
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelSVC(kernel="rbf").fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _: KW_ONLY
    share: Any = "tied"
    class_weight: Any = None

    _solvers = SolverChoice(SOLVERS, always("newton"))

    def _targets(self) -> Classes:
        return Classes(hinge, self.share, self.class_weight, coupling=self.coupling)
