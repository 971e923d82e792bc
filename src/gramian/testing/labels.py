"""The contract of a label structure."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.labels import LabelStructure
from gramian.testing import _clauses as check


def check_structure(
    structure: LabelStructure, n_outputs: int, dense: Any = None, *, seed: int = 0
) -> None:
    """Check that a label structure keeps its contract.

    Parameters
    ----------
    structure : LabelStructure
    n_outputs : int
        Number C of outputs to try it with.
    dense : array of shape (n_outputs, n_outputs), default=None
        What S should be, from elsewhere. By default the suite takes ``mix(I)`` and checks the rest against it.
    seed : int, default=0

    Raises
    ------
    AssertionError
        The message names the clause that fails.

    Examples
    --------
    >>> from gramian.labels import Diagonal
    >>> from gramian.testing import check_structure
    >>> check_structure(Diagonal([1.0, 2.0, 4.0]), 3)
    """
    S = structure.mix(np.eye(n_outputs)) if dense is None else np.asarray(dense, dtype=float)
    _StructureContract(structure, seed, n_outputs, np.array(S))._check()


@dataclass(frozen=True)
class _StructureContract(check.Contract):
    subject: LabelStructure
    n_outputs: int
    S: np.ndarray

    def _arrays(self, n: int, *trailing: int, count: int = 1) -> list[np.ndarray]:
        rng = self._rng
        return [
            check.read_only(rng.normal(size=(n, self.n_outputs, *trailing))) for _ in range(count)
        ]

    def is_symmetric_positive_semidefinite(self) -> None:
        """S is symmetric and has no negative eigenvalue."""
        check.positive_semidefinite(self.subject.mix(np.eye(self.n_outputs)), 1e-12)

    def mixes(self) -> None:
        """mix(B) is B S for B of shape (n, C)."""
        (B,) = self._arrays(7)
        check.close(self.subject.mix(B), B @ self.S, 1e-10)

    def serves_columns(self) -> None:
        """mix(B) is B S along axis 1 for B of shape (n, C, q)."""
        (B,) = self._arrays(5, 4)
        check.close(self.subject.mix(B), np.einsum("icq,cd->idq", B, self.S), 1e-10)

    def has_diagonal(self) -> None:
        """diagonal(C) is the diagonal of S, shape (C,)."""
        check.close(self.subject.diagonal(self.n_outputs), np.diagonal(self.S), 1e-10)

    def takes_theta(self) -> None:
        """clone_with_theta(theta) has that theta and leaves the structure alone."""
        self._check_theta(lambda copy: copy.mix(np.eye(self.n_outputs)), self.S, 1e-10)

    def has_gradient(self) -> None:
        """vjp(E, G) is the gradient of ⟨E, G S⟩ in theta, for (n, C) and (n, C, q)."""
        for trailing in [(), (3,)]:
            E, G = self._arrays(6, *trailing, count=2)

            def product(copy, E=E, G=G):
                return np.sum(E * copy.mix(G))

            self._check_gradient(self.subject.vjp(E, G), product, 1e-8, f"{E.shape}")

    def keeps_single_precision(self) -> None:
        """mix of float32 is float32."""
        for trailing in [(), (2,)]:
            (B,) = self._arrays(5, *trailing)
            mixed = ("mix", self.subject.mix(B.astype(np.float32)), self.subject.mix(B))
            check.agree([mixed], 1e-4, np.float32)

    def pickles(self) -> None:
        """A pickled copy mixes alike."""
        (B,) = self._arrays(5)
        copy = pickle.loads(pickle.dumps(self.subject))
        np.testing.assert_array_equal(copy.mix(B), self.subject.mix(B))
