"""An operator of your own: random Fourier features, an approximation of the RBF kernel."""

import numpy as np

from gramian.operators import InputOperator


class RandomFourier(InputOperator):
    """``Φ(X) Φ(Z)ᵀ`` with ``Φ(x) = √(2/D) cos(Ω x / ℓ + b)``: products in O((n + m) D).

    Parameters
    ----------
    length_scale : float
    X : array of shape (n_samples, n_features)
    n_components : int, default=300
        D. The error of a kernel value is about 1/√D.
    seed : int, default=0
    Z : array of shape (m_samples, n_features), default=None
        None means X itself.
    """

    def __init__(self, length_scale, X, n_components=300, seed=0, Z=None):
        self.length_scale, self.n_components, self.seed = float(length_scale), n_components, seed
        self.X, self.Z = X, Z
        rng = np.random.default_rng(seed)
        self.omega = rng.normal(size=(X.shape[1], n_components)).astype(X.dtype)
        self.phase = rng.uniform(0, 2 * np.pi, size=n_components).astype(X.dtype)
        self.left = self._features(X)
        self.right = self.left if Z is None else self._features(Z)
        self.shape = (len(self.left), len(self.right))
        self.dtype = X.dtype

    def _features(self, X):
        angles = X @ self.omega / self.length_scale + self.phase
        return np.cos(angles) * np.sqrt(2 / self.n_components).astype(X.dtype)

    def _matmul(self, B):
        return self.left @ (self.right.T @ B)

    def _accurate(self, B):
        return self.left.astype(float) @ (self.right.T.astype(float) @ B)

    def to_dense(self):
        return self.left @ self.right.T

    def _diagonal(self):
        return np.sum(self.left**2, axis=1)

    @property
    def nbytes(self):
        own = self.left.nbytes if self.Z is None else self.left.nbytes + self.right.nbytes
        return own + self.omega.nbytes + self.phase.nbytes

    # one log-parameter, the length scale: dΦ/dlog ℓ = √(2/D) sin(Ωx/ℓ + b) ∘ (Ωx/ℓ)

    def _slopes(self, X):
        turns = X @ self.omega / self.length_scale
        return np.sin(turns + self.phase) * turns * np.sqrt(2 / self.n_components)

    def vjp(self, E, F):
        E, F = E.reshape(len(E), -1), F.reshape(len(F), -1)
        Z = self.X if self.Z is None else self.Z
        left = np.sum((self._slopes(self.X).T @ E) * (self.right.T @ F), dtype=float)
        right = np.sum((self.left.T @ E) * (self._slopes(Z).T @ F), dtype=float)
        return np.array([left + right])

    @property
    def theta(self):
        return np.log([self.length_scale])

    def clone_with_theta(self, theta):
        if np.shape(theta) != (1,):
            raise ValueError(f"theta must have shape (1,), got {np.shape(theta)}.")
        return RandomFourier(np.exp(theta[0]), self.X, self.n_components, self.seed, self.Z)


if __name__ == "__main__":
    from gramian.losses import Squared
    from gramian.solvers import Problem, newton
    from gramian.testing import check_operator

    X = np.random.default_rng(0).normal(size=(12, 3))
    operator, predictor = RandomFourier(2.0, X), RandomFourier(2.0, X[:4] + 1, Z=X)
    check_operator(operator, operator.left @ operator.left.T)
    check_operator(predictor, predictor.left @ operator.left.T)

    X = np.random.default_rng(1).uniform(-3, 3, size=(20_000, 1))
    problem = Problem(RandomFourier(0.5, X), Squared(), np.sin(X), regularization=1e-2)
    solution = newton(problem)
    predictor = RandomFourier(0.5, np.array([[1.0]]), Z=X)
    print(solution.status, (predictor @ solution.coefficients).round(2))
