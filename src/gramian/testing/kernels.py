"""The contract of a kernel."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from gramian.kernels import Kernel
from gramian.testing import _clauses as check


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
    X = check.read_only(np.asarray(X, dtype=float))
    if Z is None:
        Z = X[: max(1, len(X) // 2)] + (0.0 if kernel.is_precomputed else 0.3)
    Z = check.read_only(np.asarray(Z, dtype=float))
    _AsGiven(kernel, seed, X)._check()
    _KernelContract(kernel.resolve(X), seed, X, Z, noisy, sparse)._check()


@dataclass(frozen=True)
class _AsGiven(check.Contract):
    """What a kernel keeps before its parameters are known."""

    subject: Kernel
    X: np.ndarray

    def resolves(self) -> None:
        """kernel.resolve(X) leaves the kernel alone and gives numbers; to resolve again changes nothing."""
        before = repr(self.subject)
        resolved = self.subject.resolve(self.X)
        assert repr(self.subject) == before, "resolve changed the kernel itself."
        assert np.all(np.isfinite(resolved.theta)), f"theta is {resolved.theta}."
        assert resolved.resolve(self.X) == resolved, "resolving twice differs from resolving once."

    def is_a_value(self) -> None:
        """Copies by scikit-learn's clone, pickle and the constructor are equal, hash alike and evaluate alike."""
        kernel, X = self.subject, self.X
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


@dataclass(frozen=True)
class _KernelContract(check.Contract):
    """What a resolved kernel keeps."""

    subject: Kernel
    X: np.ndarray
    Z: np.ndarray
    noisy: bool
    sparse: bool

    @cached_property
    def _K(self) -> np.ndarray:
        return self.subject(self.X)

    @cached_property
    def _scale(self) -> float:
        return float(np.abs(self._K).max())

    @property
    def _tiles(self) -> list[tuple[int, int]]:
        n = len(self.X)
        return [(0, 1), (0, n), (n // 3, 2 * n // 3 + 1), (n - 1, n)]

    def has_shape_and_dtype(self) -> None:
        """kernel(X), kernel(Z, X) and kernel.diag(X) have shapes (n, n), (m, n), (n,) and the dtype of X."""
        kernel, X, Z = self.subject, self.X, self.Z
        n, m = len(X), len(Z)
        for values, shape in [(kernel(X), (n, n)), (kernel(Z, X), (m, n)), (kernel.diag(X), (n,))]:
            assert values.shape == shape, f"shape {values.shape} instead of {shape}."
            assert values.dtype == X.dtype, f"dtype {values.dtype} instead of {X.dtype}."
            assert np.all(np.isfinite(values)), "values are not finite."

    def is_symmetric_positive_semidefinite(self) -> None:
        """kernel(X) is symmetric and has no negative eigenvalue."""
        check.positive_semidefinite(self._K, 1e-10)

    def has_diagonal(self) -> None:
        """kernel.diag(X) is the diagonal of kernel(X)."""
        check.close(self.subject.diag(self.X), np.diagonal(self._K), 1e-7)

    def transposes(self) -> None:
        """kernel(Z, X) is the transpose of kernel(X, Z), unless the kernel is precomputed."""
        if not self.subject.is_precomputed:
            check.close(self.subject(self.Z, self.X), self.subject(self.X, self.Z).T, 1e-10)

    def knows_the_same_example(self) -> None:
        """kernel(X) is kernel(X, X, offset=0); without offset rows are other examples: only white noise is missing."""
        K, copied = self._K, self.subject(self.X, self.X.copy())
        np.testing.assert_array_equal(self.subject(self.X, self.X, offset=0), K, err_msg="offset=0")
        off = ~np.eye(len(K), dtype=bool)
        check.close(copied[off], K[off], 1e-10, "off the diagonal", self._scale)
        missing = np.diagonal(K) - np.diagonal(copied)
        if self.noisy:
            assert np.all(missing > 0), "white noise is found between an example and its copy."
        else:
            check.close(missing, np.zeros(len(K)), 1e-7, "diagonal", self._scale)

    def tiles(self) -> None:
        """kernel(X[a:b], X, offset=a) holds rows a to b of kernel(X), and so for the columns up to b."""
        kernel, X, K = self.subject, self.X, self._K
        for a, b in self._tiles:
            tile = kernel(X[a:b], X, offset=a)
            check.close(tile, K[a:b], 1e-7, f"rows {a}:{b}", self._scale)
            if not kernel.is_precomputed:
                corner = kernel(X[a:b], X[:b], offset=a)
                check.close(corner, K[a:b, :b], 1e-7, f"rows {a}:{b}, columns :{b}", self._scale)

    def serves_no_rows(self) -> None:
        """No new examples give an array of shape (0, n)."""
        values = self.subject(self.Z[:0], self.X)
        assert values.shape == (0, len(self.X)), f"shape {values.shape}."

    def has_theta(self) -> None:
        """theta is a float64 vector of shape (p,) and bounds has shape (p, 2), low before high."""
        theta, bounds = self.subject.theta, self.subject.bounds
        assert theta.dtype == np.float64, f"theta has dtype {theta.dtype}."
        assert bounds.shape == (theta.size, 2), f"bounds have shape {bounds.shape}."
        assert np.all(bounds[:, 0] <= bounds[:, 1]), f"bounds are {bounds}."

    def takes_theta(self) -> None:
        """clone_with_theta(theta) has that theta and leaves the kernel alone; a wrong size is a ValueError."""
        kernel, theta = self.subject, self.subject.theta
        other = self._check_theta(lambda copy: copy(self.X), self._K, 1e-10)
        check.close(kernel.clone_with_theta(theta).bounds, kernel.bounds, 1e-12, "bounds")
        assert not theta.size or other != kernel, "kernels with different theta are equal."
        with check.refusal("clone_with_theta takes a theta of the wrong size.", ValueError):
            kernel.clone_with_theta(np.zeros(theta.size + 1))

    def has_gradient(self) -> None:
        """vjp(X, Z, G) is the gradient in theta of Σ_ij G_ij k(x_i, z_j), also for tiles and new examples."""
        X, rng = self.X, self._rng
        calls: list[tuple[np.ndarray, np.ndarray | None, int | None]] = [(X, None, None)]
        calls += [(X[a:b], X, a) for a, b in self._tiles]
        for left, right, offset in [*calls, (self.Z, X, None)]:
            K = self.subject(left, right, offset=offset)
            G = rng.normal(size=K.shape)

            def weighted_sum(copy, left=left, right=right, offset=offset, G=G):
                return np.sum(G * copy(left, right, offset=offset))

            gradient = self.subject.vjp(left, right, G, offset=offset)
            what = f"X {left.shape}, Z {None if right is None else right.shape}, offset {offset}"
            scale = 0.1 * float(np.sum(np.abs(G * K)))
            self._check_gradient(gradient, weighted_sum, 1e-6, what, scale)

    def keeps_single_precision(self) -> None:
        """float32 stays float32, and the values agree with float64; vjp is float64."""
        self._check_single(self.subject)

    def keeps_single_precision_with_numpy_parameters(self) -> None:
        """float32 stays float32 when parameters are NumPy numbers, as a grid search gives them."""
        numbers: dict[str, Any] = {}
        for name, value in self.subject.get_params(deep=True).items():
            if isinstance(value, Real) and not isinstance(value, bool):
                kind: Any = np.int64 if isinstance(value, Integral) else np.float64
                numbers[name] = kind(value)
        self._check_single(clone(self.subject).set_params(**numbers))

    def _check_single(self, kernel: Kernel) -> None:
        X, Z = self.X.astype(np.float32), self.Z.astype(np.float32)
        check.agree(self._compared(kernel, X, Z, self.X, self.Z), 1e-3, np.float32)
        G = np.ones((len(X), len(X)), dtype=np.float32)
        scale = float(np.abs(self._K).sum())
        gradients = ("vjp", kernel.vjp(X, None, G), self.subject.vjp(self.X, None, G))
        check.agree([gradients], 1e-3, np.float64, scale)

    def _compared(
        self, kernel: Kernel, X: Any, Z: Any, dense_X: np.ndarray, dense_Z: np.ndarray
    ) -> list[tuple[str, Any, Any]]:
        """Name, value of ``kernel`` for other forms of the arrays, and what it should be."""
        return [
            ("kernel(X)", kernel(X), self.subject(dense_X)),
            ("kernel(Z, X)", kernel(Z, X), self.subject(dense_Z, dense_X)),
            ("diag(X)", kernel.diag(X), self.subject.diag(dense_X)),
        ]

    def leaves_inputs_alone(self) -> None:
        """Inputs are not modified, and may be read-only (the suite passes such arrays everywhere)."""
        kernel = self.subject

        def use(X: np.ndarray, Z: np.ndarray, G: np.ndarray) -> list[Any]:
            return [kernel(X), kernel(Z, X), kernel.diag(X), kernel.vjp(Z, X, G)]

        G = self._rng.normal(size=(len(self.Z), len(self.X)))
        check.unchanged(use, X=self.X, Z=self.Z, G=G)

    def ignores_memory_layout(self) -> None:
        """Column-major and strided arrays give the same values."""
        expected = self.subject(self.Z, self.X)
        for name, X in check.layouts(self.X).items():
            check.close(self.subject(self.Z, X), expected, 1e-10, name)

    def accepts_sparse(self) -> None:
        """Sparse rows (csr_array and csr_matrix), if accepted, give dense results equal to those of dense rows."""
        if not self.sparse:
            return
        kernel, rng = self.subject, self._rng
        # most entries zero, as in real sparse data; a precomputed matrix must stay what it is
        keep = 1.0 if kernel.is_precomputed else rng.random(self.X.shape[1]) < 0.7
        X, Z = self.X * keep, self.Z * keep
        C, scale = kernel(Z, X), float(np.abs(kernel(X)).max())
        G = rng.normal(size=C.shape)
        for kind in (sp.csr_array, sp.csr_matrix):
            Xs, Zs = kind(X), kind(Z)
            check.agree(self._compared(kernel, Xs, Zs, X, Z), 1e-6, np.float64, scale)
            gradients = ("vjp", kernel.vjp(Zs, Xs, G), kernel.vjp(Z, X, G))
            check.agree([gradients], 1e-6, np.float64, float(np.abs(G * C).sum()))
        single = kernel(sp.csr_array(X.astype(np.float32)))
        assert single.dtype == np.float32, f"sparse float32 became {single.dtype}."
