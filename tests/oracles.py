"""Slow and obvious: loops and dense matrices that the fast code is compared with.

Nothing here shares a formula with `gramian`: distances are sums of squares, losses are scalar functions, label
structures are Kronecker products, minima come from SciPy. Below is also the one list of kernels that every kernel
test runs through.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from gramian.kernels import (
    RBF,
    Constant,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Power,
    Precomputed,
    Product,
    RationalQuadratic,
    Sum,
    White,
)

# --- kernels ----------------------------------------------------------------------------------

# Every kernel test runs through this list. The data have three features.
KERNELS: list[Kernel] = [
    Constant(2.5),
    Constant(2.5, value_bounds="fixed"),
    White(0.3),
    Linear(),
    Polynomial(),
    Polynomial(degree=2, gamma=0.5, coef0=2.0),
    Polynomial(degree=2, coef0=0.0),
    Polynomial(degree=3, gamma=0.2, gamma_bounds="fixed"),
    Polynomial(gamma="scale"),
    RBF(),
    RBF(0.5, length_scale_bounds=(1e-2, 1e2)),
    RBF([0.5, 1.0, 3.0]),
    RBF(2.0, length_scale_bounds="fixed"),
    RBF("scale"),
    Matern(1.5, nu=0.5),
    Matern([0.7, 1.5, 2.0], nu=0.5),
    Matern(1.5, nu=1.5),
    Matern([0.7, 1.5, 2.0], nu=2.5),
    Matern("scale", nu=2.5),
    RationalQuadratic(1.5, alpha=0.7),
    RationalQuadratic([0.7, 1.5, 2.0], alpha=2.0),
    RationalQuadratic(alpha_bounds="fixed"),
    Laplacian(1.5),
    Laplacian([0.7, 1.5, 2.0]),
    RBF(2.0) + White(0.1),
    10.0 * RBF(2.0),
    2.0 * RBF([0.5, 1.0, 3.0]) + 0.5 * Linear() + White(0.2) + 1.0,
    (1.0 + Linear()) ** 2,
    RBF(2.0) * (Linear() + Constant(0.5)),
    (RBF(1.0) + White(0.5)) * Matern(2.0, nu=1.5),
    Constant(0.5) * (White(0.2) * RBF(3.0) + RationalQuadratic()) ** 2,
]


def kernel_id(kernel: Kernel) -> str:
    """What pytest shows."""
    return repr(kernel).replace(" ", "")


def is_noisy(kernel: Kernel) -> bool:
    """Whether there is white noise anywhere inside."""
    return isinstance(kernel, White) or any(
        is_noisy(part) for part in vars(kernel).values() if isinstance(part, Kernel)
    )


def gram(kernel: Kernel, X, Z=None, offset: int | None = None) -> np.ndarray:
    """Kernel values by a double loop."""
    if Z is None:
        Z, offset = X, 0
    X, Z = np.asarray(X, dtype=float), np.asarray(Z, dtype=float)
    K = np.empty((len(X), len(Z)))
    for i in range(len(X)):
        for j in range(len(Z)):
            same = offset is not None and i + offset == j
            K[i, j] = kernel_value(kernel, X[i], Z[j], same)
    return K


def kernel_value(kernel: Kernel, x, z, same: bool) -> float:
    """One kernel value; ``same``: x and z are the very same example."""
    if isinstance(kernel, Sum):
        return kernel_value(kernel.left, x, z, same) + kernel_value(kernel.right, x, z, same)
    if isinstance(kernel, Product):
        return kernel_value(kernel.left, x, z, same) * kernel_value(kernel.right, x, z, same)
    if isinstance(kernel, Power):
        return kernel_value(kernel.kernel, x, z, same) ** kernel.exponent
    if isinstance(kernel, Constant):
        return kernel.value
    if isinstance(kernel, White):
        return kernel.noise if same else 0.0
    if isinstance(kernel, Linear):
        return sum(a * b for a, b in zip(x, z))
    if isinstance(kernel, Polynomial):
        return (kernel.gamma * sum(a * b for a, b in zip(x, z)) + kernel.coef0) ** kernel.degree
    scales = np.broadcast_to(kernel.length_scale, (len(x),))
    squared = sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales))
    if isinstance(kernel, Laplacian):
        return math.exp(-sum(abs(a - b) / s for a, b, s in zip(x, z, scales)))
    if isinstance(kernel, RBF):
        return math.exp(-squared / 2)
    if isinstance(kernel, RationalQuadratic):
        return (1 + squared / (2 * kernel.alpha)) ** -kernel.alpha
    assert isinstance(kernel, Matern)
    r = math.sqrt(squared)
    if kernel.nu == 0.5:
        return math.exp(-r)
    if kernel.nu == 1.5:
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    return (1 + math.sqrt(5) * r + 5 * squared / 3) * math.exp(-math.sqrt(5) * r)


def precomputed_case(n: int = 9, m: int = 4, seed: int = 0):
    """A precomputed kernel with a Gram matrix to train on and values for new examples."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n + m, 5))
    K = features @ features.T
    return Precomputed(), K[:n, :n], K[n:, :n]


# --- operators --------------------------------------------------------------------------------


def kronecker(*terms) -> np.ndarray:
    """Σ_l kron(S_l, M_l): the matrix of ``Σ_l M_l A S_l`` on column-stacked vec(A)."""
    return sum(np.kron(np.asarray(S), np.asarray(M)) for M, S in terms)


def block_diagonal(matrices) -> np.ndarray:
    """The matrix of "one Gram matrix for each output" on column-stacked vec(A)."""
    C = len(matrices)
    return sum(np.kron(np.outer(e, e), M) for e, M in zip(np.eye(C), matrices))


# --- losses -----------------------------------------------------------------------------------


def example_loss(name: str, u, y) -> float:
    """Loss of one example, by scalar arithmetic."""
    if name == "Softmax":
        highest = max(u)
        log_sum = highest + math.log(sum(math.exp(a - highest) for a in u))
        return log_sum - sum(a * b for a, b in zip(u, y))
    total = 0.0
    for a, b in zip(u, y):
        if name == "Logistic":
            softplus = max(a, 0.0) + math.log1p(math.exp(-abs(a)))
            total += softplus - b * a
        elif name == "Squared":
            total += (a - b) ** 2 / 2
        else:
            assert name == "SquaredHinge"
            total += max(0.0, 1 - b * a) ** 2 / 2
    return total


def total_loss(name: str, U, Y, weights=None) -> float:
    """Weighted sum over examples."""
    weights = np.ones(len(U)) if weights is None else weights
    return sum(float(w) * example_loss(name, u, y) for u, y, w in zip(U, Y, weights))


def objective(name: str, K: np.ndarray, A, Y, strength: float, weights=None) -> float:
    """P(A) with K the matrix of 𝒦 on column-stacked vec(A)."""
    n, C = A.shape
    a = np.asarray(A).T.reshape(-1)
    U = (K @ a).reshape(C, n).T
    return total_loss(name, U, Y, weights) + strength / 2 * float(a @ K @ a)


def lbfgs(name: str, K: np.ndarray, Y, strength: float, weights=None) -> tuple[float, np.ndarray]:
    """Minimum of P and the latent values there, by L-BFGS through the factor K = L Lᵀ.

    K acts on column-stacked vec(A). With w = Lᵀ vec(A) the problem is loss(L w) + (λ/2) ‖w‖².
    """
    n, C = Y.shape
    w8 = np.ones(n) if weights is None else np.asarray(weights)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    L = vectors * np.sqrt(np.clip(values, 0, None))

    def function(w):
        U = (L @ w).reshape(C, n).T
        gradient = w8[:, None] * _gradient(name, U, Y)
        value = total_loss(name, U, Y, w8) + strength / 2 * float(w @ w)
        return value, L.T @ gradient.T.reshape(-1) + strength * w

    w = np.zeros(n * C)
    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 60, "ftol": 0, "gtol": 1e-13}
    for _ in range(3):
        w = minimize(function, w, jac=True, method="L-BFGS-B", options=options).x
    return function(w)[0], (L @ w).reshape(C, n).T


def _gradient(name: str, U, Y) -> np.ndarray:
    if name == "Softmax":
        E = np.exp(U - U.max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True) - Y
    if name == "Logistic":
        return 0.5 * (1 + np.tanh(U / 2)) - Y
    if name == "Squared":
        return U - Y
    return -Y * np.maximum(0, 1 - Y * U)
