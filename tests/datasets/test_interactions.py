"""Interactions: distinct cells, every object, more than main effects."""

import numpy as np
import pytest

from gramian.datasets import make_interactions


def _table(pairs, y):
    cells = np.full((pairs.n_left, pairs.n_right), np.nan)
    cells[pairs.left_index, pairs.right_index] = y
    return cells


@pytest.mark.parametrize("n_left, n_right", [(1, 1), (1, 7), (9, 4), (20, 30)])
@pytest.mark.parametrize("density", [0.001, 0.4, 1.0])
def test_cells_are_distinct_and_every_object_occurs(n_left, n_right, density):
    pairs, y = make_interactions(n_left, n_right, density=density)
    n = max(n_left, n_right, round(density * n_left * n_right))
    assert len(pairs) == len(y) == n
    assert len(np.unique(pairs.left_index * n_right + pairs.right_index)) == n
    assert len(np.unique(pairs.left_index)) == n_left
    assert len(np.unique(pairs.right_index)) == n_right
    assert pairs.left.shape == (n_left, 5)
    assert pairs.right.shape == (n_right, 5)


def test_follows_random_state():
    first, y = make_interactions(random_state=3)
    again, y_again = make_interactions(random_state=np.random.RandomState(3))
    other, _ = make_interactions(random_state=4)
    np.testing.assert_array_equal(first.left, again.left)
    np.testing.assert_array_equal(first.left_index, again.left_index)
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(first.right, other.right)


def test_without_noise_a_denser_sample_agrees():
    few, y_few = make_interactions(noise=0.0, density=0.1)
    full, y_full = make_interactions(noise=0.0, density=1.0)
    shown = _table(few, y_few)
    np.testing.assert_allclose(
        shown[few.left_index, few.right_index],
        _table(full, y_full)[few.left_index, few.right_index],
    )


def test_main_effects_are_the_smaller_part():
    pairs, y = make_interactions(200, 150, noise=0.0, density=1.0)
    cells = _table(pairs, y)
    interactions = cells - cells.mean(axis=0) - cells.mean(axis=1)[:, None] + cells.mean()
    assert cells.var() == pytest.approx(1, rel=0.25)
    assert interactions.var() == pytest.approx(0.82, rel=0.25)
    rank = np.linalg.matrix_rank(cells, tol=1e-8)
    assert rank <= 5  # three products and two main effects


def test_noise_has_its_standard_deviation():
    _, y = make_interactions(noise=0.0)
    _, noisy = make_interactions(noise=0.5)
    assert np.std(noisy - y) == pytest.approx(0.5, rel=0.1)


def test_binary_marks_the_largest_quarter():
    _, y = make_interactions(density=0.5)
    _, marks = make_interactions(density=0.5, binary=True)
    assert marks.dtype.kind == "i"
    assert marks.mean() == 0.25
    assert y[marks == 1].min() > y[marks == 0].max()


@pytest.mark.parametrize(
    "arguments, error, name",
    [
        (dict(n_left=0), ValueError, "n_left"),
        (dict(n_right=2.5), TypeError, "n_right"),
        (dict(n_features=0), ValueError, "n_features"),
        (dict(density=0.0), ValueError, "density"),
        (dict(density=1.2), ValueError, "density"),
        (dict(noise=-1.0), ValueError, "noise"),
        (dict(binary="yes"), TypeError, "binary"),
    ],
)
def test_names_the_bad_argument(arguments, error, name):
    with pytest.raises(error, match=name):
        make_interactions(**arguments)
