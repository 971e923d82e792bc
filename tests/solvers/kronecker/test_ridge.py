"""Ridge regression on complete pairs: every setting against models that are fitted again without the cells."""

import numpy as np
import pytest

from gramian.kernels import RBF
from gramian.solvers import KroneckerRidge

SHAPES = [(6, 4), (4, 7), (5, 5), (1, 5), (5, 1), (1, 1)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def _data(m, q, seed=0):
    rng = np.random.default_rng(seed)
    K = RBF(1.5)(rng.normal(size=(m, 2)))
    T = RBF(1.0)(rng.normal(size=(q, 2)))
    return K, 2 * T, rng.normal(size=(m, q))


def _refitted(K, T, Y, strength, is_hidden, variance=0.0):
    """Fit again for each cell, without those that ``is_hidden(cell, other)``, with the dense Kronecker product."""
    m, q = Y.shape
    gram = np.kron(K, T) + variance
    cells = [(i, j) for i in range(m) for j in range(q)]
    out = np.zeros(m * q)
    for h, cell in enumerate(cells):
        kept = [g for g, other in enumerate(cells) if not is_hidden(cell, other)]
        if kept:
            system = gram[np.ix_(kept, kept)] + strength * np.eye(len(kept))
            out[h] = gram[h, kept] @ np.linalg.solve(system, Y.reshape(-1)[kept])
    return out.reshape(m, q)


def _hidden(setting, m, q, left=None, right=None):
    """Whether a cell's model must not see another cell."""
    if setting == "A":
        cell_folds = np.arange(m * q).reshape(m, q) if left is None else left
        return lambda cell, other: cell_folds[cell] == cell_folds[other]
    left = np.arange(m) if left is None else left
    right = np.arange(q) if right is None else right

    def hidden(cell, other):
        same_row = left[cell[0]] == left[other[0]]
        same_column = right[cell[1]] == right[other[1]]
        return {"B": same_row, "C": same_column, "D": same_row or same_column}[setting]

    return hidden


@every_shape
def test_coefficients_solve_the_system(shape):
    K, T, Y = _data(*shape)
    A = KroneckerRidge(K, T).coefficients(Y, 0.1)
    np.testing.assert_allclose(K @ A @ T + 0.1 * A, Y, atol=1e-12)


def test_coefficients_of_a_path():
    K, T, Y = _data(6, 4)
    path = np.array([0.01, 1.0, 100.0])
    ridge = KroneckerRidge(K, T)
    A = ridge.coefficients(Y, path)
    assert A.shape == (3, 6, 4)
    for k, strength in enumerate(path):
        np.testing.assert_allclose(A[k], ridge.coefficients(Y, strength), rtol=1e-13)


@every_shape
@pytest.mark.parametrize("setting", "ABCD")
@pytest.mark.parametrize("strength", [0.01, 3.0])
def test_one_by_one(shape, setting, strength):
    K, T, Y = _data(*shape)
    found = KroneckerRidge(K, T).held_out(Y, strength, setting)
    expected = _refitted(K, T, Y, strength, _hidden(setting, *shape))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def _folds(m, q, setting):
    """Some folds, not of equal size, where there are enough objects for them."""
    left = None if setting == "C" else np.arange(m) % 3
    right = np.arange(q) // 2 if setting in "CD" else None
    return (np.arange(m * q).reshape(m, q) * 7 % 4, None) if setting == "A" else (left, right)


@every_shape
@pytest.mark.parametrize("variance", [0.5, 1.0, 1e3])
def test_coefficients_with_an_intercept(shape, variance):
    K, T, Y = _data(*shape)
    A = KroneckerRidge(K, T, variance).coefficients(Y + 6, 0.1)
    np.testing.assert_allclose(K @ A @ T + variance * A.sum() + 0.1 * A, Y + 6, atol=1e-8)
    path = KroneckerRidge(K, T, variance).coefficients(Y + 6, np.array([0.1, 2.0]))
    np.testing.assert_allclose(path[0], A, rtol=1e-12)


@every_shape
@pytest.mark.parametrize("setting", "ABCD")
@pytest.mark.parametrize("folded", [False, True], ids=["one by one", "folds"])
@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_held_out_with_an_intercept(shape, setting, folded, variance):
    """Every model has an intercept of its own: exactly that of a fit without the cells, for labels far from zero."""
    K, T, Y = _data(*shape)
    Y = Y + 6
    left, right = _folds(*shape, setting) if folded else (None, None)
    hidden = _hidden(setting, *shape, left, right)
    ridge = KroneckerRidge(K, T, variance)
    for strength in (0.05, 3.0):
        found = ridge.held_out(Y, strength, setting, left, right)
        expected = _refitted(K, T, Y, strength, hidden, variance)
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("setting", "ABCD")
@pytest.mark.parametrize("folded", [False, True], ids=["one by one", "folds"])
def test_a_path_of_held_out_predictions_with_an_intercept(setting, folded):
    K, T, Y = _data(6, 5)
    left, right = _folds(6, 5, setting) if folded else (None, None)
    ridge = KroneckerRidge(K, T, 2.0)
    found = ridge.held_out(Y, np.array([0.1, 1.0]), setting, left, right)
    assert found.shape == (2, 6, 5)
    for k, strength in enumerate([0.1, 1.0]):
        alone = ridge.held_out(Y, strength, setting, left, right)
        np.testing.assert_allclose(found[k], alone, atol=1e-11)


@pytest.mark.parametrize("setting", "ABCD")
def test_held_out_without_rank_with_an_intercept(setting):
    rng = np.random.default_rng(0)
    F, H = rng.normal(size=(6, 2)), rng.normal(size=(5, 1))
    K, T, Y = F @ F.T, H @ H.T, rng.normal(size=(6, 5)) - 4
    found = KroneckerRidge(K, T, 1.0).held_out(Y, 0.5, setting)
    expected = _refitted(K, T, Y, 0.5, _hidden(setting, 6, 5), 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_intercepts_refused():
    K, T, _ = _data(6, 5)
    with pytest.raises(ValueError, match="intercept_variance must be a finite number >= 0"):
        KroneckerRidge(K, T, -1.0)
    # 1ᵀG1 = 1 / (λ − 2) = −1, so that an intercept of variance one makes the system singular
    indefinite = KroneckerRidge(-2 * np.eye(1), np.eye(1), 1.0)
    with pytest.raises(ValueError, match=r"intercept_variance=1 is singular to working precision"):
        indefinite.coefficients(np.ones((1, 1)), 1.0)


LEFT, RIGHT = np.array([0, 1, 0, 2, 1, 0]), np.array([5, -1, 5, 5, -1])


@pytest.mark.parametrize(
    "setting, left, right",
    [
        ("B", LEFT, None),
        ("C", None, RIGHT),
        ("D", LEFT, RIGHT),
        ("D", LEFT, None),
        ("D", None, RIGHT),
        ("B", np.zeros(6, dtype=int), None),  # nothing is left to train on
        ("D", LEFT, np.zeros(5, dtype=int)),
    ],
)
def test_folds(setting, left, right):
    K, T, Y = _data(6, 5)
    found = KroneckerRidge(K, T).held_out(Y, 0.2, setting, left, right)
    expected = _refitted(K, T, Y, 0.2, _hidden(setting, 6, 5, left, right))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_folds_of_cells():
    K, T, Y = _data(6, 5)
    folds = np.random.default_rng(1).integers(3, size=(6, 5))
    found = KroneckerRidge(K, T).held_out(Y, 0.2, "A", folds)
    expected = _refitted(K, T, Y, 0.2, _hidden("A", 6, 5, folds))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("setting", "BCD")
def test_folds_of_one_object_are_one_by_one(setting):
    K, T, Y = _data(6, 5)
    ridge = KroneckerRidge(K, T)
    left = None if setting == "C" else np.arange(6)
    right = None if setting == "B" else np.arange(5)
    one_by_one = ridge.held_out(Y, 0.3, setting)
    np.testing.assert_allclose(ridge.held_out(Y, 0.3, setting, left, right), one_by_one, atol=1e-11)


@pytest.mark.parametrize("setting", "ABCD")
@pytest.mark.parametrize("folds", [False, True])
def test_a_path_of_held_out_predictions(setting, folds):
    K, T, Y = _data(6, 5)
    left = right = None
    if folds:
        left = {"A": np.arange(30).reshape(6, 5) % 4, "C": None}.get(setting, LEFT)
        right = RIGHT if setting in "CD" else None
    path = np.array([0.1, 1.0])
    ridge = KroneckerRidge(K, T)
    found = ridge.held_out(Y, path, setting, left, right)
    assert found.shape == (2, 6, 5)
    for k, strength in enumerate(path):
        alone = ridge.held_out(Y, float(strength), setting, left, right)
        np.testing.assert_allclose(found[k], alone, atol=1e-12)


@pytest.mark.parametrize("setting", "ABCD")
def test_matrices_of_low_rank(setting):
    rng = np.random.default_rng(0)
    F, H = rng.normal(size=(6, 2)), rng.normal(size=(5, 1))
    K, T, Y = F @ F.T, H @ H.T, rng.normal(size=(6, 5))
    found = KroneckerRidge(K, T).held_out(Y, 0.5, setting)
    np.testing.assert_allclose(found, _refitted(K, T, Y, 0.5, _hidden(setting, 6, 5)), atol=1e-10)


@pytest.mark.parametrize("setting", "ABCD")
def test_indefinite_similarities(setting):
    rng = np.random.default_rng(0)
    K, T = (B + B.T for B in (rng.normal(size=(5, 5)), rng.normal(size=(4, 4))))
    Y = rng.normal(size=(5, 4))
    ridge = KroneckerRidge(K, T)
    A = ridge.coefficients(Y, 0.37)
    np.testing.assert_allclose(K @ A @ T + 0.37 * A, Y, atol=1e-11)
    found = ridge.held_out(Y, 0.37, setting)
    np.testing.assert_allclose(found, _refitted(K, T, Y, 0.37, _hidden(setting, 5, 4)), atol=1e-8)


def test_single_precision_is_computed_in_double():
    K, T, Y = (array.astype(np.float32) for array in _data(6, 5))
    A = KroneckerRidge(K, T).coefficients(Y, 0.1)
    assert A.dtype == np.float64
    double = KroneckerRidge(*(a.astype(float) for a in (K, T))).coefficients(Y.astype(float), 0.1)
    np.testing.assert_allclose(A, double, rtol=1e-5, atol=1e-6)


def test_inputs_are_left_alone():
    arrays = _data(6, 5)
    for array in arrays:
        array.setflags(write=False)
    K, T, Y = arrays
    for setting in "ABCD":
        KroneckerRidge(K, T).held_out(Y, 0.1, setting)


def test_singular_systems_are_refused():
    with pytest.raises(ValueError, match=r"singular to working precision for λ = 2\."):
        KroneckerRidge(np.diag([1.0, -2.0]), np.eye(1)).coefficients(np.ones((2, 1)), 2.0)
    ridge = KroneckerRidge(np.diag([1.0, -2.0]), np.eye(1))
    with pytest.raises(ValueError, match="K ⊗ T \\+ λI is indefinite for λ = 1"):
        ridge.held_out(np.ones((2, 1)), 1.0, "A", np.array([[0], [1]]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"regularization": 0.0}, "regularization must be positive and finite, got 0.0"),
        ({"regularization": np.array([1.0, np.nan])}, "regularization must be positive"),
        (
            {"Y": np.ones((6, 4))},
            r"Y must have shape \(6, 5\), a label for each pair; got \(6, 4\)",
        ),
        ({"Y": np.where(np.eye(6)[:, :5], np.nan, 1.0)}, r"got nan in cell \(0, 0\)"),
        ({"setting": "E"}, "setting must be one of .* got 'E'"),
        ({"right_folds": RIGHT}, "right_folds has no meaning in setting 'B'"),
        ({"setting": "C", "left_folds": LEFT}, "left_folds has no meaning in setting 'C'"),
        ({"left_folds": LEFT[:5]}, r"left_folds must have shape \(6,\), got \(5,\)"),
        ({"setting": "A", "left_folds": LEFT}, r"left_folds must have shape \(6, 5\)"),
    ],
)
def test_bad_arguments(arguments, message):
    K, T, Y = _data(6, 5)
    arguments = {"Y": Y, "regularization": 1.0, "setting": "B"} | arguments
    with pytest.raises(ValueError, match=message):
        KroneckerRidge(K, T).held_out(**arguments)


def test_bad_matrices():
    K, T, Y = _data(6, 5)
    with pytest.raises(ValueError, match=r"K must be a square Gram matrix, got shape \(6, 5\)"):
        KroneckerRidge(Y, T)
    with pytest.raises(ValueError, match="T must be symmetric"):
        KroneckerRidge(K, np.triu(np.ones((5, 5))))
    with pytest.raises(ValueError, match="T must be finite"):
        KroneckerRidge(K, T * np.nan)
    with pytest.raises(TypeError, match="left_folds must be integers, got float64"):
        KroneckerRidge(K, T).held_out(Y, 1.0, "B", np.ones(6))
