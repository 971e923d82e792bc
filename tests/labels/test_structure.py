"""Label structures: the contract against the dense S, and what is refused."""

import numpy as np
import pytest

from gramian._core.arrays import to_numpy
from gramian.labels import DenseStructure, Diagonal, Identity, Scalar
from gramian.testing import check_structure


def _correlation() -> np.ndarray:
    B = np.random.default_rng(0).normal(size=(4, 2))
    return B @ B.T  # of rank two, with negative entries


CASES = [
    (Identity(), np.eye(4)),
    (Scalar(2.5), 2.5 * np.eye(4)),
    (Diagonal([1.0, 2.0, 0.5, 3.0]), np.diag([1.0, 2.0, 0.5, 3.0])),
    (DenseStructure(_correlation()), _correlation()),
]
every_structure = pytest.mark.parametrize(
    "structure, S", CASES, ids=[type(structure).__name__ for structure, _ in CASES]
)


@every_structure
def test_keeps_the_contract(structure, S):
    check_structure(structure, 4, S)


@every_structure
def test_mixes_arrays_of_any_library(structure, S, rng, xp):
    for shape in [(5, 4), (5, 4, 2)]:
        B = rng.normal(size=shape)
        mixed = structure.mix(xp.asarray(B))
        assert type(mixed) is type(xp.asarray(B))
        np.testing.assert_allclose(to_numpy(mixed), structure.mix(B), rtol=1e-12)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Scalar(0.0), "variance must be a finite number > 0"),
        (lambda: Scalar([1.0, 2.0]), "variance must be a finite number > 0"),
        (lambda: Diagonal([1.0, -1.0]), "variances must be a vector of positive numbers"),
        (lambda: Diagonal(1.0), "variances must be a vector"),
        (lambda: DenseStructure(np.ones((2, 3))), r"matrix must have shape .* got \(2, 3\)"),
        (lambda: DenseStructure([[1.0, 0.5], [0.2, 1.0]]), "symmetric"),
        (lambda: DenseStructure([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
    ],
)
def test_bad_matrices_are_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


@pytest.mark.parametrize("structure", [Diagonal([1.0, 2.0]), DenseStructure(np.eye(2))])
def test_the_number_of_outputs_must_fit(structure):
    with pytest.raises(ValueError, match="must be 2 outputs, but the array has 3"):
        structure.mix(np.ones((5, 3)))
