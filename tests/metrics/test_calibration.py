"""Calibration against an oracle with loops, and what is refused."""

import numpy as np
import pytest

from gramian.metrics import expected_calibration_error, reliability_curve


def naive_error(y, P, columns, n_bins, weights):
    """Expected calibration error, one example at a time."""
    bins = [[] for _ in range(n_bins)]
    for label, row, weight in zip(y, P, weights):
        top = max(range(len(row)), key=lambda c: row[c])
        place = min(int(row[top] * n_bins), n_bins - 1)
        bins[place].append((weight, row[top], columns[top] == label))
    total = sum(weights)
    error = 0.0
    for held in bins:
        if held:
            mass = sum(w for w, _, _ in held)
            confidence = sum(w * p for w, p, _ in held) / mass
            accuracy = sum(w * right for w, _, right in held) / mass
            error += mass / total * abs(accuracy - confidence)
    return error


@pytest.mark.parametrize("n_bins", [1, 7, 15])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_oracle(rng, n_bins, n_classes, weighted):
    P = rng.dirichlet(np.full(n_classes, 0.3), size=200)
    columns = np.array([f"class {c}" for c in range(n_classes)])
    y = rng.choice(columns, size=200)
    weights = rng.uniform(0.1, 2.0, size=200) if weighted else None
    got = expected_calibration_error(y, P, classes=columns, n_bins=n_bins, sample_weight=weights)
    expected = naive_error(y, P, columns, n_bins, np.ones(200) if weights is None else weights)
    assert got == pytest.approx(expected, rel=1e-12)


def test_perfect_calibration_is_zero():
    # of ten predictions with confidence 0.8, eight are right; of those with 1, all
    P = np.array([[0.8, 0.2]] * 10 + [[0.0, 1.0]] * 5)
    y = np.array([0] * 8 + [1] * 2 + [1] * 5)
    assert expected_calibration_error(y, P) == pytest.approx(0.0, abs=1e-15)


def test_always_sure_and_always_wrong_is_one():
    assert expected_calibration_error([0, 1], [[0.0, 1.0], [1.0, 0.0]]) == 1.0


def test_weights_count_like_repeats(rng):
    P = rng.dirichlet(np.ones(3), size=30)
    y = np.arange(30) % 3
    times = rng.integers(0, 4, size=30)
    weighted = expected_calibration_error(y, P, sample_weight=times)
    repeated = expected_calibration_error(np.repeat(y, times), np.repeat(P, times, axis=0))
    assert weighted == pytest.approx(repeated, rel=1e-12)


def test_one_column_is_the_second_class(rng):
    p = rng.uniform(size=50)
    y = (rng.uniform(size=50) < p).astype(int)
    both = np.column_stack([1 - p, p])
    assert expected_calibration_error(y, p) == expected_calibration_error(y, both)
    assert expected_calibration_error(y, p[:, None]) == expected_calibration_error(y, both)


def test_curve_has_all_bins_and_an_edge_belongs_to_the_upper_one():
    curve = reliability_curve([0, 0, 1], [0.5, 0.0, 1.0], n_bins=4)
    np.testing.assert_array_equal(curve.edges, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(curve.count, [0, 0, 1, 2])
    np.testing.assert_allclose(curve.weight, [0, 0, 1 / 3, 2 / 3])
    assert np.isnan(curve.confidence[:2]).all()
    np.testing.assert_allclose(curve.confidence[2:], [0.5, 1.0])
    np.testing.assert_allclose(curve.accuracy[2:], [1.0, 1.0])


def test_order_of_classes_is_respected():
    P = [[0.9, 0.1], [0.9, 0.1]]
    assert expected_calibration_error(["b", "b"], P, classes=["b", "a"]) == pytest.approx(0.1)
    assert expected_calibration_error(["b", "b"], P, classes=["a", "b"]) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "arguments, error, names",
    [
        (dict(y_true=[], y_proba=[]), ValueError, "y_true"),
        (dict(y_true=[[0], [1]], y_proba=[0.1, 0.2]), ValueError, "y_true"),
        (dict(y_true=[0, 1], y_proba=[0.1]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=[[[0.1]], [[0.2]]]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=[0.1, 1.5]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=[-0.1, 0.5]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=[0.1, np.nan]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=[[0.2, 0.2], [0.5, 0.5]]), ValueError, "y_proba"),
        (dict(y_true=[0, 1], y_proba=["a", "b"]), TypeError, "y_proba"),
        (dict(y_true=[0, 0], y_proba=[0.1, 0.2]), ValueError, "classes"),
        (dict(y_true=[0, 1], y_proba=[0.1, 0.2], classes=[0, 1, 2]), ValueError, "classes"),
        (dict(y_true=[0, 1], y_proba=[0.1, 0.2], classes=[1, 1]), ValueError, "classes"),
        (dict(y_true=[0, 5], y_proba=[0.1, 0.2], classes=[0, 1]), ValueError, "y_true"),
        (dict(y_true=[0, 1], y_proba=[0.1, 0.2], n_bins=0), ValueError, "n_bins"),
        (dict(y_true=[0, 1], y_proba=[0.1, 0.2], n_bins=2.5), TypeError, "n_bins"),
        (dict(y_true=[0, 1], y_proba=[0.1, 0.2], sample_weight=[1.0]), ValueError, "sample_weight"),
        (
            dict(y_true=[0, 1], y_proba=[0.1, 0.2], sample_weight=[0, 0]),
            ValueError,
            "sample_weight",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, names):
    with pytest.raises(error, match=names):
        expected_calibration_error(**arguments)
