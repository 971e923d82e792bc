"""Couplings: the contract against dense matrices, products against numpy.kron, and what is refused."""

import numpy as np
import pytest
from sklearn.base import clone

from gramian._core.arrays import to_numpy
from gramian.kernels import RBF
from gramian.labels import (
    Coupling,
    DenseStructure,
    FactoredCoupling,
    LearnedCoupling,
    Taxonomy,
)
from gramian.labels import coupling as module
from gramian.labels.coupling import CouplingOfColumns
from gramian.labels.taxonomy.structure import CoupledTree
from gramian.operators import Dense, LabelMixed
from gramian.testing import check_structure

RNG = np.random.default_rng(0)
B, OWN = RNG.normal(size=(4, 2)), np.array([0.5, 1.0, 2.0, 0.1])
R = B @ B.T + np.eye(4)
PETS = Taxonomy.from_dict({"animal": ["cat", "dog"], "car": None, "van": None})
LEAVES = np.array([0.5, 0.5, 2.0, 2.0])  # variances of car, van, cat and dog; an animal has 0.5
TREE = np.diag(LEAVES) + 0.5 * np.outer([0, 0, 1, 1], [0, 0, 1, 1])
BESIDE = TREE + np.sqrt(np.outer(LEAVES, LEAVES)) * (R - np.eye(4))
CASES = {
    "given": (Coupling(R, 2.0), 2 * R),
    "of rank two": (Coupling(B @ B.T), B @ B.T),
    "tied": (FactoredCoupling(B, 0.7, 3.0), 3 * (B @ B.T + 0.7 * np.eye(4))),
    "free": (FactoredCoupling(B, OWN), B @ B.T + np.diag(OWN)),
    "beside a tree": (CoupledTree(PETS, [0.5, 2.0], PETS.groups("level"), None, R), BESIDE),
    "no factors": (FactoredCoupling(np.zeros((4, 0)), 0.7, 3.0), 2.1 * np.eye(4)),
}
every_case = pytest.mark.parametrize("case", CASES)


@every_case
@pytest.mark.parametrize("few", [0, 100])
def test_keeps_the_contract(case, few, monkeypatch):
    """With few outputs by one product with S, with many by two with its factors."""
    monkeypatch.setattr(module, "FEW_OUTPUTS", few)
    structure, S = CASES[case]
    check_structure(structure.clone_with_theta(structure.theta), 4, S)


@every_case
@pytest.mark.parametrize("few", [0, 100])
def test_mixes_arrays_of_any_library(case, few, rng, xp, monkeypatch):
    monkeypatch.setattr(module, "FEW_OUTPUTS", few)
    structure = CASES[case][0].clone_with_theta(CASES[case][0].theta)
    for shape in [(5, 4), (5, 4, 2)]:
        E, G = rng.normal(size=shape), rng.normal(size=shape)
        mixed = structure.mix(xp.asarray(E))
        assert type(mixed) is type(xp.asarray(E))
        np.testing.assert_allclose(to_numpy(mixed), structure.mix(E), rtol=1e-12)
        gradient = structure.vjp(xp.asarray(E), xp.asarray(G))
        np.testing.assert_allclose(gradient, structure.vjp(E, G), rtol=1e-12)


@every_case
def test_products_are_those_of_a_kronecker_product(case, X, rng):
    structure, S = CASES[case]
    M = Dense(RBF(1.0), X)
    A = rng.normal(size=(len(X), 4))
    whole = np.kron(M.to_dense(), S) @ A.reshape(-1)
    mixed = LabelMixed([(M, structure)])
    np.testing.assert_allclose((mixed @ A).reshape(-1), whole, rtol=1e-10)
    np.testing.assert_allclose(mixed.diagonal(4).reshape(-1), np.diag(np.kron(M.to_dense(), S)))


def test_problems_in_lockstep_have_relations_of_their_own(rng, xp):
    matrices = np.stack([R, np.eye(4), 2 * R])
    structure, values = CouplingOfColumns(matrices), rng.normal(size=(5, 4, 3))
    mixed = structure.mix(xp.asarray(values))
    assert type(mixed) is type(xp.asarray(values))
    np.testing.assert_allclose(to_numpy(mixed), np.einsum("icq,qcd->idq", values, matrices))
    np.testing.assert_array_equal(structure.diagonal(4), 2 * np.diag(R))
    with pytest.raises(ValueError, match="must be 4 outputs"):
        structure.mix(np.ones((5, 3, 3)))


def test_parameters_have_names_and_bounds():
    for structure, _ in CASES.values():
        size = structure.theta.size
        assert len(structure.parameter_names) == size
        assert structure.bounds.shape == (size, 2)
        low, high = structure.bounds.T
        assert ((low < structure.theta) & (structure.theta < high)).all()
    assert FactoredCoupling(B[:2, :1], [1.0, 2.0]).parameter_names == (
        "factor 0 [0]",
        "factor 0 [1]",
        "own variance [0]",
        "own variance [1]",
    )
    assert DenseStructure(R).bounds.shape == (0, 2)


def test_factors_are_parameters_as_they_are():
    """A descent may change their signs; only what is positive is in logarithms."""
    structure = FactoredCoupling(B, 0.7)
    np.testing.assert_array_equal(structure.theta[:-1].reshape(B.shape), B)
    flipped = structure.clone_with_theta(np.append(-B.reshape(-1), np.log(0.7)))
    np.testing.assert_allclose(flipped.matrix, structure.matrix)


def test_a_coupling_is_described_like_an_estimator():
    asked = LearnedCoupling(rank=3)
    assert clone(asked).get_params() == {"rank": 3, "diagonal": "tied", "summands": "together"}
    assert repr(asked) == "LearnedCoupling(rank=3)"
    asked.check()
    LearnedCoupling("auto", "free").check()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Coupling([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
        (lambda: Coupling([[1.0, 0.5], [0.2, 1.0]]), "symmetric"),
        (lambda: Coupling(R, 0.0), "variance must be a finite number > 0"),
        (lambda: FactoredCoupling(np.ones(3), 1.0), "factors must be a finite array of shape"),
        (lambda: FactoredCoupling([[np.nan]], 1.0), "factors must be a finite array of shape"),
        (lambda: FactoredCoupling(B, [1.0, 2.0]), "own must be one number or 4"),
        (lambda: FactoredCoupling(B, -1.0), "own must be a vector of positive"),
        (lambda: LearnedCoupling(0).check(), r"LearnedCoupling\(rank=...\) must be"),
        (lambda: LearnedCoupling("all").check(), "a whole number or 'auto', got 'all'"),
        (lambda: LearnedCoupling(diagonal="own").check(), r"LearnedCoupling\(diagonal=...\)"),
        (lambda: Coupling(R).mix(np.ones((5, 3))), "must be 4 outputs, but the array has 3"),
        (lambda: FactoredCoupling(B, 1.0).mix(np.ones((5, 3))), "must be 4 outputs"),
    ],
)
def test_bad_couplings_are_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
