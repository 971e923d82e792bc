"""Preconditioners: P against its dense formula, fewer products to the same solution, and when there is none."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import RBF, Constant, Linear, RationalQuadratic
from gramian.kernels.pairwise import Kronecker
from gramian.labels import DenseStructure, Diagonal, Identity, Scalar, Taxonomy, TreeStructure
from gramian.losses import DiagonalCurvature, Logistic, Softmax, Squared, SquaredHinge
from gramian.operators import (
    Dense,
    Intercept,
    LabelMixed,
    LinearFeatures,
    LowRank,
    PairGram,
    Separate,
)
from gramian.pairs import Pairs
from gramian.solvers import Problem, kernel_cg, newton
from gramian.solvers.rkhs.preconditioning import policy
from gramian.solvers.rkhs.preconditioning.coarse_space import coarse_space
from gramian.solvers.rkhs.preconditioning.policy import Preconditioning
from gramian.solvers.rkhs.preconditioning.preconditioner import INNER_REDUCTION, Preconditioner
from gramian.solvers.rkhs.recorder import Recorder

pytestmark = pytest.mark.usefixtures("one_thread")
LOSSES = [Squared(), Logistic(), SquaredHinge(), Softmax()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
MIXING = DenseStructure(np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 2.0]]))
STRENGTHS = np.array([1e-3, 0.2])


@pytest.fixture
def cheap(monkeypatch):
    """Calls cost nothing, so that spaces of small problems are soon affordable."""
    monkeypatch.setattr(policy, "BUILD_FLOPS", 0.0)
    monkeypatch.setattr(policy, "FUNCTION_FLOPS", 0.0)


def _targets(loss, X: np.ndarray, C: int = 3) -> np.ndarray:
    latent = np.stack([np.sin((c + 1) * X[:, c % X.shape[1]] + c) for c in range(C)], axis=1)
    if isinstance(loss, Softmax):
        return np.eye(C)[latent.argmax(axis=1)]
    if isinstance(loss, Logistic):
        return (latent > 0).astype(float)
    return latent if isinstance(loss, Squared) else np.where(latent > 0, 1.0, -1.0)


def _with_intercept(structure, X: np.ndarray, kernel=None, variance: float = 2.0) -> LabelMixed:
    terms = [(Dense(kernel or RBF(1.5), X), structure)]
    return LabelMixed([*terms, (Intercept(variance, X, len(X)), Identity())] if variance else terms)


def _matrix(function, n: int, C: int) -> np.ndarray:
    return function(np.eye(n * C).reshape(n, C, n * C)).reshape(-1, n * C)


def _dense_preconditioner(operator, space, D: np.ndarray, strength: float) -> tuple:
    """𝒦 and I + Z (λ G⁻¹ − T⁻¹) Zᵀ 𝒦 for W = diag(D), as matrices."""
    n, C = D.shape
    K, c = _matrix(operator.__matmul__, n, C), len(space.parts.variances)
    zeros = np.zeros((n, C, space.rank * c))
    Z = _matrix(lambda v: space.lifted(v, zeros), space.rank, c)
    T, KZ = Z.T @ K @ Z, K @ Z
    G = strength * T + KZ.T @ (D.reshape(-1, 1) * KZ)
    return K, np.eye(n * C) + Z @ (strength * np.linalg.inv(G) - np.linalg.inv(T)) @ Z.T @ K


# --- P --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.0, 2.0], ids=["no intercept", "intercept"])
@pytest.mark.parametrize(
    "structure, C",
    [(Identity(), 1), (Scalar(0.7), 3), (Diagonal([0.5, 1.0, 2.0]), 3)],
    ids=["one output", "scalar", "diagonal"],
)
def test_p_is_its_dense_formula(structure, C, variance, X, rng):
    """Uncoupled outputs, two columns with λ and curvatures of their own; weights of zero, too."""
    operator, n = _with_intercept(structure, X, variance=variance), len(X)
    D = rng.uniform(0.1, 2.0, size=(n, C, 2))
    D[::4] = 0.0
    r = rng.normal(size=(n, C, 2))
    space = coarse_space(operator, C, 5)
    P = Preconditioner(space, DiagonalCurvature(D), STRENGTHS)
    z, Kz = P.apply(r, operator @ r)
    assert P.n_inner == 0
    for j, strength in enumerate(STRENGTHS):
        K, dense = _dense_preconditioner(operator, space, D[:, :, j], strength)
        expected = dense @ r[:, :, j].reshape(-1)
        np.testing.assert_allclose(z[:, :, j].reshape(-1), expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(Kz[:, :, j].reshape(-1), K @ expected, rtol=1e-7, atol=1e-9)
        KP = K @ dense
        np.testing.assert_allclose(KP, KP.T, atol=1e-9)
        assert np.linalg.eigvalsh((KP + KP.T) / 2).min() > 0


@pytest.mark.parametrize("structure", [Scalar(0.7), Diagonal([0.5, 1.0, 2.0])], ids=["v", "diag"])
def test_the_whole_active_set_solves_the_system(structure, X, rng):
    operator, n = _with_intercept(structure, X), len(X)
    D, r = rng.uniform(0.1, 2.0, size=(n, 3, 2)), rng.normal(size=(n, 3, 2))
    W = DiagonalCurvature(D)
    z, Kz = Preconditioner(coarse_space(operator, 3, n), W, STRENGTHS).apply(r, operator @ r)
    s, Ks = z / STRENGTHS, Kz / STRENGTHS
    np.testing.assert_allclose(STRENGTHS * s + W.apply(Ks), r, atol=1e-8)


@pytest.mark.parametrize("structure", [Scalar(0.7), MIXING], ids=["scalar", "mixing"])
@pytest.mark.parametrize("loss", [Softmax(), Logistic()], ids=repr)
def test_coupled_outputs_are_solved_to_the_inner_tolerance(structure, loss, X, rng):
    """By the loss or by S: the residual within the space falls by the factor promised."""
    if isinstance(loss, Logistic) and isinstance(structure, Scalar):
        pytest.skip("nothing couples")
    operator, n, C = _with_intercept(structure, X), len(X), 3
    U = rng.normal(size=(n, C, 2))
    weights = np.where(np.arange(n) % 4, 1.0, 0.0)
    W = loss.curvature(U, _targets(loss, X)[:, :, None], weights)
    space = coarse_space(operator, C, 6)
    P = Preconditioner(space, W, STRENGTHS)
    r = rng.normal(size=(n, C, 2))
    P.apply(r, operator @ r)
    assert P.n_inner > 0
    y = space.coordinates(r, operator @ r)
    v = P._solved(y, 100)
    for j, strength in enumerate(STRENGTHS):
        # G by products with the identity, and what preconditions it
        one = Preconditioner(
            space, loss.curvature(U[:, :, j : j + 1], 0 * y[:1], weights), strength
        )
        columns = np.eye(6 * C).reshape(6, C, 6 * C)
        G, inverse = (
            np.stack([apply(columns[:, :, [k]]).reshape(-1) for k in range(6 * C)], axis=1)
            for apply in (one._multiplied, one._blockwise)
        )
        np.testing.assert_allclose(G, G.T, atol=1e-10)
        np.testing.assert_allclose(inverse, inverse.T, rtol=1e-8)
        first = y[:, :, j].reshape(-1)
        left = first - G @ v[:, :, j].reshape(-1)
        assert left @ inverse @ left <= 1.001 * INNER_REDUCTION**2 * (first @ inverse @ first)


@pytest.mark.parametrize("structure", [Scalar(0.7), MIXING], ids=["scalar", "mixing"])
def test_examples_with_one_weight_decouple_whatever_the_structure(structure, X, rng):
    """The squared loss: solved in the basis of S, without steps within the space."""
    operator, n = _with_intercept(structure, X), len(X)
    D = np.broadcast_to(rng.uniform(0.1, 2.0, size=(n, 1, 1)), (n, 3, 2))
    space, r = coarse_space(operator, 3, 5), rng.normal(size=(n, 3, 2))
    P = Preconditioner(space, DiagonalCurvature(D), STRENGTHS)
    z, _ = P.apply(r, operator @ r)
    assert P.n_inner == 0
    for j, strength in enumerate(STRENGTHS):
        _, dense = _dense_preconditioner(operator, space, D[:, :, j], strength)
        np.testing.assert_allclose(
            z[:, :, j].reshape(-1), dense @ r[:, :, j].reshape(-1), rtol=1e-7, atol=1e-8
        )


# --- the same solution ----------------------------------------------------------------------------


def _hard(loss, X: np.ndarray, structure=None, **options) -> Problem:
    """Wide kernel, weak regularisation: ill-conditioned."""
    operator = _with_intercept(structure or Scalar(1.0), X, RBF(4.0))
    return Problem(
        operator, loss, _targets(loss, X), options.pop("regularization", 1e-3), **options
    )


def _check_latent(problem: Problem, found, expected) -> None:
    """``|f − f'| ≤ √k(x, x) (√(2 gap / λ) + √(2 gap' / λ))``: both certificates hold."""
    radius = sum(np.sqrt(2 * solution.gaps / problem.strength) for solution in (found, expected))
    diagonal = problem.operator.diagonal(problem.shape[1])
    allowed = np.sqrt(diagonal)[:, :, None] * radius
    distance = np.abs(found.latent - expected.latent).reshape(problem.shape)
    assert np.all(distance <= allowed + 1e-9 * np.abs(expected.latent).max())
    assert allowed.max() < 1e-3 * np.abs(expected.latent).max()


@pytest.fixture
def X_many() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(150, 3))


@pytest.mark.parametrize(
    "solve, loss",
    [(kernel_cg, Squared()), *((newton, loss) for loss in LOSSES)],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_every_setting_finds_the_same_solution(solve, loss, X_many, cheap):
    tol = 1e-13
    problem = _hard(loss, X_many)
    plain, *others = [
        solve(problem, tol=tol, max_iter=4000, preconditioner=setting)
        for setting in (None, "auto", 80)
    ]
    for solution in others:
        assert solution.status == "converged"
        assert solution.relative_gap <= tol
        _check_latent(problem, solution, plain)
        if not isinstance(loss, Softmax):
            size = np.abs(plain.latent).max()
            np.testing.assert_allclose(solution.latent, plain.latent, atol=1e-6 * size)
        A = solution.coefficients[:, :, None]
        value = problem.objective(A, problem.operator @ A)[0]
        assert value == pytest.approx(plain.objective, rel=10 * tol)
    assert others[-1].n_products < 0.5 * plain.n_products


@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
def test_kernel_cg_has_none_for_losses_whose_curvature_changes(loss, X):
    problem = Problem(Dense(RBF(), X), loss, _targets(loss, X), 0.1)
    plain, found = (kernel_cg(problem, preconditioner=setting) for setting in (None, 5))
    np.testing.assert_array_equal(found.coefficients, plain.coefficients)


TREE = Taxonomy.from_dict({"a": ["b", "c"], "d": None})


@pytest.mark.parametrize(
    "structure",
    [
        Diagonal([0.3, 1.0, 3.0]),
        MIXING,
        TreeStructure(TREE, [1.0, 0.5], groups=TREE.groups("level")),
    ],
    ids=["diagonal", "mixing", "tree"],
)
@pytest.mark.parametrize("loss", [Squared(), Softmax()], ids=repr)
def test_label_structures_and_lockstep_columns(structure, loss, X_many):
    """Hierarchies and a path of λ: the certificate holds, with fewer products."""
    weights = (np.arange(150) % 3 > 0).astype(float)
    problem = _hard(
        loss, X_many, structure, regularization=np.array([1e-3, 1e-1, 1.0]), weights=weights
    )
    plain, better = (newton(problem, tol=1e-12, preconditioner=p) for p in (None, 75))
    assert better.status == "converged"
    assert np.all(better.gaps <= 1e-12 * better.objective)
    _check_latent(problem, better, plain)
    assert better.n_products < 0.6 * plain.n_products


@every_loss
def test_folds_have_none_so_that_held_out_coefficients_are_zero(loss, X_many):
    weights = np.stack([np.arange(150) % 3 != fold for fold in range(3)], axis=1).astype(float)
    solution = newton(_hard(loss, X_many, weights=weights), tol=1e-4, preconditioner=75)
    held_out = np.broadcast_to(weights[:, None, :] == 0, solution.coefficients.shape)
    assert not solution.coefficients[held_out].any()


@every_loss
def test_coefficients_of_weight_zero_stay_zero(loss, X_many):
    weights = (np.arange(150) % 3 > 0).astype(float)
    solution = newton(_hard(loss, X_many, weights=weights), tol=1e-6, preconditioner=75)
    assert not solution.coefficients[weights == 0].any()


@every_loss
@pytest.mark.parametrize("structure", [Scalar(0.7), MIXING], ids=["scalar", "mixing"])
def test_low_rank_is_solved_in_its_features(loss, structure, X_many):
    """From the first step on; a path of λ and weights of examples, as without."""
    M = LowRank(RBF(2.0), X_many, 30, random_state=0)
    operator = LabelMixed([(M, structure), (Intercept(2.0, X_many, 150), Identity())])
    weights = (np.arange(150) % 3).astype(float)
    problem = Problem(operator, loss, _targets(loss, X_many), np.array([1e-2, 1.0]), weights)
    plain, found = (newton(problem, tol=1e-11, preconditioner=p) for p in (None, "auto"))
    assert found.status == "converged"
    if structure is not MIXING:
        assert found.n_products < 0.7 * plain.n_products
    _check_latent(problem, found, plain)


def test_low_rank_columns_that_are_done_stay(X_many):
    """A column of its own gives the same as one that waits for others."""
    M = LowRank(RBF(2.0), X_many, 30, random_state=0)
    Y = _targets(Softmax(), X_many)
    both = newton(Problem(M, Softmax(), Y, np.array([1e-3, 10.0])), tol=1e-6)
    easy = newton(Problem(M, Softmax(), Y, 10.0), tol=1e-6)
    assert easy.n_iter < both.n_iter
    np.testing.assert_allclose(both.latent[:, :, 1], easy.latent, atol=1e-3)


# --- fewer products -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow_problem() -> Problem:
    """n = 500, wide length scale, λ = 1e-4."""
    X = np.random.default_rng(1).normal(size=(500, 3))
    y = np.sin(2 * X[:, :1]) + 0.1 * np.random.default_rng(2).normal(size=(500, 1))
    return Problem(Dense(RationalQuadratic(4.0), X), Squared(), y, 1e-4)


@pytest.mark.parametrize("solve", [newton, kernel_cg])
def test_an_ill_conditioned_problem_needs_less_than_half(solve, slow_problem, cheap):
    plain, auto, again, ranked = [
        solve(slow_problem, preconditioner=setting) for setting in (None, "auto", "auto", 150)
    ]
    assert 2 * auto.n_products < plain.n_products
    assert 5 * ranked.n_products < plain.n_products
    assert again.n_products == auto.n_products
    np.testing.assert_array_equal(again.coefficients, auto.coefficients)


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@every_loss
def test_a_well_conditioned_problem_never_meets_one(solve, loss, X_many):
    problem = Problem(Dense(RBF(0.5), X_many), loss, _targets(loss, X_many), 1.0)
    plain, auto = (solve(problem, preconditioner=setting) for setting in (None, "auto"))
    assert auto.n_products == plain.n_products
    np.testing.assert_array_equal(auto.coefficients, plain.coefficients)


def _spent(problem: Problem, n_products: int, gaps: tuple[float, ...] = ()) -> Recorder:
    """What a solver has recorded after so many products, with these gaps on the way."""
    recorder = Recorder(problem, tol=1e-6, max_iter=10, callback=None, patience=5)
    recorder.n_products = n_products
    recorder.rows = [{"objective": 1.0, "gap": gap, "products": 1} for gap in gaps]
    return recorder


def test_it_is_bought_when_its_price_is_spent_several_times(slow_problem, cheap):
    buyer = Preconditioning(slow_problem, "auto")
    curvature = slow_problem.curvature(slow_problem.start(None))
    price = policy.PRICES_SPENT * buyer._cost(policy.FIRST_RANK)
    assert 1 < price < np.inf
    assert not buyer.grown(_spent(slow_problem, int(price)), curvature)
    assert buyer.at(curvature) is None
    assert buyer.grown(_spent(slow_problem, int(price) + 1), curvature)
    assert buyer.at(curvature) is buyer.at(curvature)
    assert len(buyer.space.indices) <= policy.FIRST_RANK


def test_it_is_not_bought_shortly_before_the_end(slow_problem, cheap):
    buyer = Preconditioning(slow_problem, "auto")
    curvature = slow_problem.curvature(slow_problem.start(None))
    spent = 10 * int(policy.PRICES_SPENT * buyer._cost(policy.FIRST_RANK))
    nearly = _spent(slow_problem, spent, gaps=(1.0, 1.01e-6))
    assert nearly.remaining() < 1
    assert not buyer.grown(nearly, curvature)
    half = _spent(slow_problem, spent, gaps=(1.0, 1e-3))
    assert half.remaining() == pytest.approx(spent - 1)
    assert buyer.grown(half, curvature)


def test_a_space_that_leaves_too_much_is_not_used(X_many, cheap):
    """Nothing to gain where the spectrum is flat."""
    problem = Problem(Dense(RBF(0.1), X_many), Squared(), _targets(Squared(), X_many), 1e-4)
    buyer = Preconditioning(problem, "auto")
    assert not buyer.grown(_spent(problem, 10**9), problem.curvature(problem.start(None)))
    assert buyer.space is None


# --- without one ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["auto", 5])
def test_operators_without_columns_run_without_one(setting, X, cheap):
    n, Y = len(X), _targets(Squared(), X, 2)
    M = Dense(RBF(3.0), X)
    left, right = RBF()(X[:4]), RBF()(X[4:8])
    rows, columns = (part.reshape(-1)[:n] for part in np.indices((4, 4)))
    pairs = Pairs(left, right, rows, columns)
    operators = [
        Separate([M, Dense(RBF(1.0), X)]),
        LinearFeatures(Linear(), X),
        PairGram(Kronecker(RBF(1.0), RBF(1.0)), pairs),
    ]
    for operator in operators:
        problem = Problem(operator, Squared(), Y, 1e-3)
        assert Preconditioning(problem, setting).space is None
        found, plain = (newton(problem, preconditioner=p) for p in (setting, None))
        np.testing.assert_array_equal(found.coefficients, plain.coefficients)


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@pytest.mark.parametrize("setting", ["auto", 5])
def test_any_array_library_runs_without_one(solve, setting, xp, X, cheap):
    Y = _targets(Squared(), X, 2)
    problem = Problem(Dense(RBF(3.0), xp.asarray(X.copy())), Squared(), xp.asarray(Y), 1e-3)
    solution = solve(problem, preconditioner=setting)
    assert type(solution.coefficients) is type(problem.targets)
    assert solution.status == "converged"


@pytest.mark.parametrize("solve", [newton, kernel_cg])
@every_loss
@pytest.mark.parametrize("setting", [0, -3, 2.5, True, "always", "AUTO", [5]])
def test_bad_settings_are_named(solve, loss, setting, X):
    problem = Problem(Dense(RBF(), X), loss, _targets(loss, X))
    with pytest.raises(ValueError, match="preconditioner must be 'auto', None or a rank"):
        solve(problem, preconditioner=setting)


# --- hard cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["auto", 20, 80])
@pytest.mark.parametrize("case", ["weak", "duplicates", "constant", "float32", "all float32"])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax()], ids=repr)
def test_degenerate_problems_end_no_worse_than_without(case, loss, setting, rng, cheap):
    """Nothing escapes but a warning, everything is finite, and the objective is as low."""
    X = rng.normal(size=(80, 2))
    Y, kernel, strength = _targets(loss, X), RBF(4.0), 1e-4
    if case == "weak":
        strength = 1e-12
    elif case == "duplicates":
        X = np.repeat(X[:8], 10, axis=0)
    elif case == "constant":
        kernel = Constant(2.0)
    elif case == "float32":
        X, strength = X.astype(np.float32), 1e-2
    else:
        X, Y, strength = X.astype(np.float32), Y.astype(np.float32), 1e-2
    problem = Problem(Dense(kernel, X), loss, Y, strength)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, found = (
            newton(problem, tol=1e-5, max_iter=10, preconditioner=p) for p in (None, setting)
        )
    assert found.coefficients.dtype == Y.dtype
    assert np.isfinite(found.objective)
    assert np.isfinite(found.gap)
    if plain.status == "converged":
        # twice the tolerance: a certificate in float32 counts rounding, which differs from one processor to the next
        assert found.gap <= 2e-5 * found.objective
        assert found.objective <= plain.objective * (1 + 2e-5)
