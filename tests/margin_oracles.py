"""Slow and obvious answers to margin problems: loops over the formulas, CVXPY, and LIBSVM without its bias."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy
import numpy as np
from sklearn.svm import SVC


@dataclass(frozen=True)
class Margins:
    """A margin problem on explicit features: K = X Xᵀ."""

    X: np.ndarray
    signs: np.ndarray
    R: np.ndarray
    margins: np.ndarray
    caps: np.ndarray


def random_correlation(rng: np.random.Generator, n_labels: int) -> np.ndarray:
    """Positive definite, with negative entries and a diagonal that is not all ones."""
    factor = rng.normal(size=(n_labels, 2 * n_labels))
    return factor @ factor.T / (2 * n_labels) + 0.1 * np.eye(n_labels)


def random_margins(seed: int, n: int, d: int, n_labels: int) -> Margins:
    """Margins and caps of all sizes, about a tenth of each zero."""
    rng = np.random.default_rng(seed)
    margins = rng.uniform(0, 2, size=(n, n_labels)) * (rng.random((n, n_labels)) > 0.1)
    caps = rng.exponential(size=(n, n_labels)) * (rng.random((n, n_labels)) > 0.1)
    signs = np.where(rng.random((n, n_labels)) < 0.5, 1, -1).astype(np.int8)
    return Margins(rng.normal(size=(n, d)), signs, random_correlation(rng, n_labels), margins, caps)


# --- loops --------------------------------------------------------------------------------------


def latent(K, A, R) -> np.ndarray:
    """u_il = Σ_jk K_ij a_jk R_kl."""
    n, L = A.shape
    U = np.zeros((n, L))
    for i in range(n):
        for l in range(L):
            for j in range(n):
                for k in range(L):
                    U[i, l] += K[i, j] * A[j, k] * R[k, l]
    return U


def dual(K, signs, R, margins, caps, A) -> float:
    """D(A); minus infinity outside of the box, but for rounding."""
    U, total = latent(K, A, R), 0.0
    for i, l in np.ndindex(A.shape):
        alpha = signs[i, l] * A[i, l]
        if not -1e-12 <= alpha <= caps[i, l] + 1e-12:
            return -np.inf
        total += margins[i, l] * alpha - 0.5 * A[i, l] * U[i, l]
    return total


def primal(K, signs, R, margins, caps, A) -> float:
    """P(A)."""
    U, total = latent(K, A, R), 0.0
    for i, l in np.ndindex(A.shape):
        hinge = max(0.0, margins[i, l] - signs[i, l] * U[i, l])
        total += caps[i, l] * hinge + 0.5 * A[i, l] * U[i, l]
    return total


def violation(K, signs, R, margins, caps, A) -> float:
    """The largest projected gradient of D in α."""
    U, largest = latent(K, A, R), 0.0
    for i, l in np.ndindex(A.shape):
        slope = margins[i, l] - signs[i, l] * U[i, l]
        alpha = signs[i, l] * A[i, l]
        if alpha <= 0:
            slope = max(0.0, slope)
        if alpha >= caps[i, l]:
            slope = min(0.0, slope)
        largest = max(largest, abs(slope))
    return largest


# --- CVXPY --------------------------------------------------------------------------------------


def cvxpy_primal(problem: Margins) -> float:
    """The minimum over weights Z = Xᵀ A R and slacks: Σ c ξ + ½ tr(R⁻¹ Zᵀ Z)."""
    Z = cvxpy.Variable((problem.X.shape[1], problem.signs.shape[1]))
    slack = cvxpy.Variable(problem.signs.shape, nonneg=True)
    whitened = Z @ np.linalg.inv(np.linalg.cholesky(problem.R)).T
    objective = cvxpy.sum(cvxpy.multiply(problem.caps, slack)) + cvxpy.sum_squares(whitened) / 2
    reached = slack + cvxpy.multiply(problem.signs, problem.X @ Z)
    return _optimum(cvxpy.Minimize(objective), [reached >= problem.margins])


def cvxpy_dual(problem: Margins) -> float:
    """The maximum over α in its box."""
    alpha = cvxpy.Variable(problem.signs.shape, nonneg=True)
    A = cvxpy.multiply(problem.signs, alpha)
    half = problem.X.T @ A @ np.linalg.cholesky(problem.R)
    objective = cvxpy.sum(cvxpy.multiply(problem.margins, alpha)) - cvxpy.sum_squares(half) / 2
    return _optimum(cvxpy.Maximize(objective), [alpha <= problem.caps])


def _optimum(objective, constraints) -> float:
    accurate = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    return float(cvxpy.Problem(objective, constraints).solve(solver="CLARABEL", **accurate))


# --- LIBSVM -------------------------------------------------------------------------------------


def mirrored_svc(K: np.ndarray, signs: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """Coefficients A of Σ c max(0, 1 − y u) + ½ aᵀ K a for each label on its own, by LIBSVM.

    LIBSVM has a bias. Each example gets a mirror image (−φ, −y), and they share its cap: with weights w and bias b
    their losses are c/2 max(0, 1 − y w·φ ∓ y b), symmetric in b and convex, so that b = 0 is optimal.

    LIBSVM keeps kernel values in single precision. The dual of A is in error by the square of that, its primal is not.
    """
    n, n_labels = signs.shape
    A = np.zeros((n, n_labels))
    for l in range(n_labels):
        svc = SVC(kernel="precomputed", C=1.0, tol=1e-9)
        y = np.concatenate([signs[:, l], -signs[:, l]])
        svc.fit(np.block([[K, -K], [-K, K]]), y, sample_weight=np.tile(caps[:, l] / 2, 2))
        for support, coefficient in zip(svc.support_, svc.dual_coef_[0]):
            A[support % n, l] += coefficient if support < n else -coefficient
    return A
