"""The contract of a kernel."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from gramian.kernels import Kernel
from gramian.testing._clauses import assert_close, numerical_gradient, read_only, run_clauses

__all__ = ["check_kernel"]


@dataclass(frozen=True)
class _Case:
    kernel: Kernel  # resolved
    X: np.ndarray
    Z: np.ndarray
    noisy: bool
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def tiles(self) -> list[tuple[int, int]]:
        n = len(self.X)
        return [(0, 1), (0, n), (n // 3, 2 * n // 3 + 1), (n - 1, n)]


def check_kernel(
    kernel: Kernel,
    X: Any,
    Z: Any = None,
    *,
    noisy: bool = False,
    sparse: bool = True,
    seed: int = 0,
) -> None:
    """Check that a kernel keeps its contract.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n_samples, n_features)
        Some ten float64 examples, all different. For a precomputed kernel: a Gram matrix.
    Z : array of shape (m_samples, n_features), default=None
        Other examples; by default shifted rows of X. For a precomputed kernel: values of shape (m_samples, n_samples).
    noisy : bool, default=False
        Whether the kernel contains white noise, which tells an example from its copy.
    sparse : bool, default=True
        Whether the kernel accepts sparse arrays.
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RBF, White
    >>> from gramian.testing import check_kernel
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> check_kernel(2.0 * RBF([1.0, 2.0, 3.0]) + White(0.1), X, noisy=True)
    """
    X = read_only(np.asarray(X, dtype=float))
    if Z is None:
        Z = X[: max(1, len(X) // 2)] + (0.0 if kernel.is_precomputed else 0.3)
    Z = read_only(np.asarray(Z, dtype=float))
    run_clauses(kernel, [_resolves, _is_a_value], kernel, X)
    case = _Case(kernel.resolve(X), X, Z, noisy, seed)
    clauses = [
        _has_shape_and_dtype,
        _is_symmetric,
        _is_positive_semidefinite,
        _has_diagonal,
        _knows_the_same_example,
        _tiles,
        _serves_no_rows,
        _has_theta,
        _takes_theta,
        _has_gradient,
        _keeps_single_precision,
        _keeps_single_precision_with_numpy_parameters,
        _leaves_inputs_alone,
        _ignores_memory_layout,
    ]
    if not kernel.is_precomputed:
        clauses.append(_transposes)
    if sparse:
        clauses.append(_accepts_sparse)
    run_clauses(kernel, clauses, case)


# --- as an object -----------------------------------------------------------------------------


def _resolves(kernel: Kernel, X: np.ndarray) -> None:
    """kernel.resolve(X) leaves the kernel alone and gives numbers; to resolve again changes nothing."""
    before = repr(kernel)
    resolved = kernel.resolve(X)
    assert repr(kernel) == before, "resolve changed the kernel itself."
    assert np.all(np.isfinite(resolved.theta)), f"theta is {resolved.theta}."
    assert resolved.resolve(X) == resolved, "resolving twice differs from resolving once."


def _is_a_value(kernel: Kernel, X: np.ndarray) -> None:
    """Copies by scikit-learn's clone, pickle and the constructor are equal, hash alike and evaluate alike."""
    copies = {
        "clone": clone(kernel),
        "pickle": pickle.loads(pickle.dumps(kernel)),
        "constructor": type(kernel)(**kernel.get_params(deep=False)),
        "set_params": clone(kernel).set_params(**kernel.get_params(deep=False)),
    }
    for name, copy in copies.items():
        assert copy is not kernel, f"{name} returned the kernel itself."
        assert copy == kernel, f"{name}: not equal to the original."
        assert hash(copy) == hash(kernel), f"{name}: equal kernels with different hashes."
        assert repr(copy) == repr(kernel), f"{name}: {copy!r} instead of {kernel!r}."
        np.testing.assert_array_equal(copy.resolve(X)(X), kernel.resolve(X)(X), err_msg=name)
    assert kernel != "kernel", "a kernel equals a string."
    assert (kernel == kernel + 1.0) is False, "a kernel equals itself plus a constant."


# --- values -----------------------------------------------------------------------------------


def _has_shape_and_dtype(case: _Case) -> None:
    """kernel(X), kernel(Z, X) and kernel.diag(X) have shapes (n, n), (m, n), (n,) and the dtype of X."""
    kernel, X, Z = case.kernel, case.X, case.Z
    found = [kernel(X), kernel(Z, X), kernel.diag(X)]
    shapes = [(len(X), len(X)), (len(Z), len(X)), (len(X),)]
    for values, shape in zip(found, shapes):
        assert values.shape == shape, f"shape {values.shape} instead of {shape}."
        assert values.dtype == X.dtype, f"dtype {values.dtype} instead of {X.dtype}."
        assert np.all(np.isfinite(values)), "values are not finite."


def _is_symmetric(case: _Case) -> None:
    """kernel(X) is symmetric."""
    K = case.kernel(case.X)
    assert_close(K, K.T, 1e-10)


def _is_positive_semidefinite(case: _Case) -> None:
    """kernel(X) has no negative eigenvalue."""
    eigenvalues = np.linalg.eigvalsh(case.kernel(case.X))
    largest = np.max(np.abs(eigenvalues))
    assert eigenvalues[0] >= -1e-10 * largest, (
        f"the smallest eigenvalue is {eigenvalues[0]:.3g}, the largest {largest:.3g}."
    )


def _has_diagonal(case: _Case) -> None:
    """kernel.diag(X) is the diagonal of kernel(X)."""
    assert_close(case.kernel.diag(case.X), np.diagonal(case.kernel(case.X)), 1e-7)


def _transposes(case: _Case) -> None:
    """kernel(Z, X) is the transpose of kernel(X, Z)."""
    assert_close(case.kernel(case.Z, case.X), case.kernel(case.X, case.Z).T, 1e-10)


def _knows_the_same_example(case: _Case) -> None:
    """kernel(X) is kernel(X, X, offset=0); without offset rows are other examples: only white noise is missing."""
    kernel, X = case.kernel, case.X
    K, copied = kernel(X), kernel(X, X.copy())
    np.testing.assert_array_equal(kernel(X, X, offset=0), K, err_msg="offset=0")
    off = ~np.eye(len(X), dtype=bool)
    assert_close(copied[off], K[off], 1e-10, "off the diagonal", scale=float(np.abs(K).max()))
    missing = np.diagonal(K) - np.diagonal(copied)
    if case.noisy:
        assert np.all(missing > 0), "white noise is found between an example and its copy."
    else:
        assert_close(missing, np.zeros(len(X)), 1e-7, "diagonal", scale=float(np.abs(K).max()))


def _tiles(case: _Case) -> None:
    """kernel(X[a:b], X, offset=a) holds rows a to b of kernel(X), and so for the columns up to b."""
    K = case.kernel(case.X)
    scale = float(np.abs(K).max())
    for a, b in case.tiles:
        tile = case.kernel(case.X[a:b], case.X, offset=a)
        assert_close(tile, K[a:b], 1e-7, f"rows {a}:{b}", scale=scale)
        if not case.kernel.is_precomputed:
            corner = case.kernel(case.X[a:b], case.X[:b], offset=a)
            assert_close(corner, K[a:b, :b], 1e-7, f"rows {a}:{b}, columns :{b}", scale=scale)


def _serves_no_rows(case: _Case) -> None:
    """No new examples give an array of shape (0, n)."""
    values = case.kernel(case.Z[:0], case.X)
    assert values.shape == (0, len(case.X)), f"shape {values.shape}."


# --- parameters -------------------------------------------------------------------------------


def _has_theta(case: _Case) -> None:
    """theta is a float vector of shape (p,) and bounds has shape (p, 2), low before high."""
    theta, bounds = case.kernel.theta, case.kernel.bounds
    assert isinstance(theta, np.ndarray), f"theta is {type(theta).__name__}."
    assert theta.ndim == 1, f"theta has shape {theta.shape}."
    assert theta.dtype == np.float64, f"theta has dtype {theta.dtype}."
    assert bounds.shape == (theta.size, 2), f"bounds have shape {bounds.shape}."
    assert np.all(bounds[:, 0] <= bounds[:, 1]), f"bounds are {bounds}."


def _takes_theta(case: _Case) -> None:
    """clone_with_theta(theta) has that theta and leaves the kernel alone; a wrong size is a ValueError."""
    kernel, theta = case.kernel, case.kernel.theta
    same = kernel.clone_with_theta(theta)
    assert type(same) is type(kernel), f"clone_with_theta returned a {type(same).__name__}."
    assert_close(same.theta, theta, 1e-12, "theta")
    assert_close(same.bounds, kernel.bounds, 1e-12, "bounds")
    assert_close(same(case.X), kernel(case.X), 1e-10, "values")
    moved = theta + np.linspace(0.1, 0.4, theta.size)
    other = kernel.clone_with_theta(moved)
    assert_close(other.theta, moved, 1e-12, "theta")
    assert_close(kernel.theta, theta, 0.0, "the theta of the original")
    if theta.size:
        assert other != kernel, "kernels with different theta are equal."
    try:
        kernel.clone_with_theta(np.zeros(theta.size + 1))
    except ValueError:
        return
    raise AssertionError("clone_with_theta takes a theta of the wrong size.")


def _has_gradient(case: _Case) -> None:
    """vjp(X, Z, G) is the gradient in theta of Σ_ij G_ij k(x_i, z_j), also for tiles and new examples."""
    kernel, X, Z = case.kernel, case.X, case.Z
    pairs: list[tuple[np.ndarray, np.ndarray | None, int | None]] = [(X, None, None)]
    pairs += [(X[a:b], X, a) for a, b in case.tiles]
    pairs += [(Z, X, None)]
    rng = case.rng
    for left, right, offset in pairs:
        K = kernel(left, right, offset=offset)
        G = rng.normal(size=K.shape)

        def weighted_sum(theta, left=left, right=right, offset=offset, G=G):
            return np.sum(G * kernel.clone_with_theta(theta)(left, right, offset=offset))

        gradient = kernel.vjp(left, right, G, offset=offset)
        assert isinstance(gradient, np.ndarray), f"vjp returned {type(gradient).__name__}."
        assert gradient.shape == kernel.theta.shape, f"vjp has shape {gradient.shape}."
        expected = numerical_gradient(weighted_sum, kernel.theta).reshape(-1)
        scale = float(np.sum(np.abs(G * K)))
        what = f"X {left.shape}, Z {None if right is None else right.shape}, offset {offset}"
        assert_close(gradient, expected, 1e-6, what, scale=0.1 * scale)


# --- arrays -----------------------------------------------------------------------------------


def _keeps_single_precision(case: _Case) -> None:
    """float32 stays float32, and the values agree with float64; vjp is float64."""
    _check_single(case.kernel, case)


def _keeps_single_precision_with_numpy_parameters(case: _Case) -> None:
    """float32 stays float32 when parameters are NumPy numbers, as a grid search gives them."""
    params = case.kernel.get_params(deep=True)
    numbers: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Integral) and not isinstance(value, bool):
            numbers[name] = np.int64(int(value))
        elif isinstance(value, Real) and not isinstance(value, bool):
            numbers[name] = np.float64(float(value))
    _check_single(clone(case.kernel).set_params(**numbers), case)


def _check_single(kernel: Kernel, case: _Case) -> None:
    X, Z = case.X.astype(np.float32), case.Z.astype(np.float32)
    for name, single, double in [
        ("kernel(X)", kernel(X), case.kernel(case.X)),
        ("kernel(Z, X)", kernel(Z, X), case.kernel(case.Z, case.X)),
        ("diag(X)", kernel.diag(X), case.kernel.diag(case.X)),
    ]:
        assert single.dtype == np.float32, f"{name} has dtype {single.dtype}."
        assert_close(single, double, 1e-3, name)
    G = np.ones((len(X), len(X)), dtype=np.float32)
    gradient = kernel.vjp(X, None, G)
    assert gradient.dtype == np.float64, f"vjp has dtype {gradient.dtype}."
    scale = float(np.abs(case.kernel(case.X)).sum())
    assert_close(gradient, case.kernel.vjp(case.X, None, G), 1e-3, "vjp", scale=scale)


def _leaves_inputs_alone(case: _Case) -> None:
    """Inputs are not modified, and may be read-only (the suite passes such arrays everywhere)."""
    X, Z = case.X.copy(), case.Z.copy()
    G = case.rng.normal(size=(len(Z), len(X)))
    before = G.copy()
    case.kernel(X)
    case.kernel(Z, X)
    case.kernel.diag(X)
    case.kernel.vjp(Z, X, G)
    for name, now, then in [("X", X, case.X), ("Z", Z, case.Z), ("G", G, before)]:
        np.testing.assert_array_equal(now, then, err_msg=f"{name} was modified.")


def _ignores_memory_layout(case: _Case) -> None:
    """Column-major and strided arrays give the same values."""
    expected = case.kernel(case.Z, case.X)
    strided = np.repeat(np.repeat(case.X, 2, axis=0), 2, axis=1)[::2, ::2]
    for name, X in [("column-major", np.asfortranarray(case.X)), ("strided", strided)]:
        assert_close(case.kernel(case.Z, X), expected, 1e-10, name)


def _accepts_sparse(case: _Case) -> None:
    """Sparse rows (csr_array and csr_matrix) give dense results equal to those of dense rows."""
    # most entries zero, as in real sparse data; a precomputed matrix must stay what it is
    keep = 1.0 if case.kernel.is_precomputed else case.rng.random(case.X.shape[1]) < 0.7
    X, Z = case.X * keep, case.Z * keep
    K, C, scale = case.kernel(X), case.kernel(Z, X), float(np.abs(case.kernel(X)).max())
    G = case.rng.normal(size=C.shape)
    gradient = case.kernel.vjp(Z, X, G)
    for kind in (sp.csr_array, sp.csr_matrix):
        Xs, Zs = kind(X), kind(Z)
        for name, values, expected in [
            ("kernel(X)", case.kernel(Xs), K),
            ("kernel(Z, X)", case.kernel(Zs, Xs), C),
            ("diag(X)", case.kernel.diag(Xs), case.kernel.diag(X)),
        ]:
            assert type(values) is np.ndarray, f"{kind.__name__}: {name} is {type(values)}."
            assert_close(values, expected, 1e-6, f"{kind.__name__}: {name}", scale=scale)
        assert_close(
            case.kernel.vjp(Zs, Xs, G),
            gradient,
            1e-6,
            f"{kind.__name__}: vjp",
            scale=float(np.abs(G * C).sum()),
        )
    single = case.kernel(sp.csr_array(X.astype(np.float32)))
    assert single.dtype == np.float32, f"sparse float32 became {single.dtype}."
