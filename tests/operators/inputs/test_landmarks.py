"""Examples next to the centres of clusters: as many as asked for, one of each cluster, the same in any format."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.kernels import RBF, Laplacian, Linear, Matern, White
from gramian.operators import LowRank
from gramian.operators.inputs.landmarks import central_examples, has_clusters


@pytest.fixture
def crowds(rng):
    """Ten crowds of 30, and a hundred examples that are far from all others."""
    crowd = np.repeat(10.0 * rng.normal(size=(10, 4)), 30, axis=0) + 0.1 * rng.normal(size=(300, 4))
    return np.concatenate([crowd, 300 * rng.normal(size=(3, 4))])


def test_every_crowd_has_its_example(crowds):
    chosen = central_examples(RBF(1.0), crowds, 40, 0)
    assert len(np.unique(chosen)) == len(chosen) == 40
    assert set(np.unique(chosen // 30)) >= set(range(10))


def test_formats_and_precisions_have_the_same(crowds):
    expected = central_examples(RBF(1.0), crowds, 12, 0)
    for X in (crowds.astype(np.float32), sp.csr_array(crowds), np.asfortranarray(crowds)):
        np.testing.assert_array_equal(central_examples(RBF(1.0), X, 12, 0), expected)
    assert not np.array_equal(central_examples(RBF(1.0), crowds, 12, 1), expected)


def test_length_scales_of_features_count(rng):
    """A feature with an endless length scale tells nobody apart."""
    kinds = np.repeat(np.arange(8), 20)
    X = np.column_stack([kinds + 0.01 * rng.normal(size=160), 1e3 * rng.normal(size=160)])
    chosen = central_examples(RBF([1.0, 1e9]), X, 16, 0)
    assert set(kinds[chosen]) == set(range(8))


def test_copies_leave_their_places_to_others():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    chosen = central_examples(RBF(1.0), X, 9, 0)
    assert len(np.unique(chosen)) == 9
    assert set(chosen // 50) == {0, 1}


def test_kernels_of_distances_have_clusters():
    assert all(map(has_clusters, (RBF(), 2.0 * Matern() + White(0.1), Laplacian() * 3.0)))
    assert not any(map(has_clusters, (Linear(), Linear() + White(0.1))))


def test_what_classes_tell_apart_is_represented(rng):
    """Classes of a mixture, as functions of few examples: pivots drawn by what is left out are at its edges."""
    place = np.repeat(rng.normal(size=(60, 8)), 40, axis=0)
    X, y = place + 0.5 * rng.normal(size=place.shape), np.repeat(rng.choice([-1.0, 1.0], 60), 40)
    left = {}
    for pivots in ("clusters", "random"):
        L = LowRank(RBF(1.0), X, 60, pivots=pivots).factor
        weights = np.linalg.solve(L.T @ L + 0.1 * np.eye(L.shape[1]), L.T @ y)
        left[pivots] = np.mean((y - L @ weights) ** 2)
    assert left["clusters"] < 0.9 * left["random"]


def test_automatic_pivots_are_clusters_where_there_are_distances(crowds):
    auto, clusters = (LowRank(RBF(1.0), crowds, 20, pivots=p) for p in ("auto", "clusters"))
    np.testing.assert_array_equal(auto.active, clusters.active)
    auto, drawn = (
        LowRank(Linear(), crowds, 3, pivots=p, random_state=0) for p in ("auto", "random")
    )
    np.testing.assert_array_equal(auto.active, drawn.active)
