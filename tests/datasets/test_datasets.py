"""Datasets: same number, same data."""

import numpy as np
import pytest

from gramian.datasets import load_digits_split, make_spirals


def test_digits_are_scaled_split_and_complete():
    data = load_digits_split()
    assert data.X_train.shape == (898, 64)
    assert data.X_test.shape == (899, 64)
    assert len(data.y_train) + len(data.y_test) == 1797
    assert data.X_train.min() == 0.0
    assert data.X_train.max() == 1.0
    assert set(data.y_train) == set(data.y_test) == set(data.target_names)
    assert "digits" in data.DESCR


def test_digits_keep_the_shares_of_the_classes():
    data = load_digits_split(test_size=0.25, random_state=3)
    train = np.bincount(data.y_train) / len(data.y_train)
    test = np.bincount(data.y_test) / len(data.y_test)
    np.testing.assert_allclose(train, test, atol=5e-3)


def test_digits_split_follows_random_state():
    first, again, other = (load_digits_split(random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.X_train, again.X_train)
    np.testing.assert_array_equal(first.y_test, again.y_test)
    assert not np.array_equal(first.y_train, other.y_train)


def test_digits_refuses_a_bad_test_size():
    with pytest.raises(ValueError, match="test_size"):
        load_digits_split(test_size=1.5)


@pytest.mark.parametrize("n_samples, n_classes", [(1, 1), (7, 3), (300, 3), (20, 20)])
def test_spirals_are_balanced(n_samples, n_classes):
    X, y = make_spirals(n_samples, n_classes, 0.1, 0)
    assert X.shape == (n_samples, 2)
    counts = np.bincount(y, minlength=n_classes)
    assert counts.sum() == n_samples
    assert counts.max() - counts.min() <= 1


def test_spirals_follow_random_state():
    X, y = make_spirals(50, random_state=5)
    X_again, y_again = make_spirals(50, random_state=np.random.RandomState(5))
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(X, make_spirals(50, random_state=6)[0])


def test_spirals_without_noise_lie_on_their_arms():
    X, y = make_spirals(90, 3, noise=0.0)
    radius = np.hypot(X[:, 0], X[:, 1])
    arm = np.mod(np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) - radius, 1.0) * 3
    np.testing.assert_allclose(np.mod(arm - y + 0.5, 3.0), 0.5, atol=1e-9)
    assert radius.max() <= 1.0


@pytest.mark.parametrize(
    "arguments, name",
    [
        (dict(n_samples=2, n_classes=3), "n_samples"),
        (dict(n_classes=0), "n_classes"),
        (dict(noise=-1.0), "noise"),
    ],
)
def test_spirals_name_the_bad_argument(arguments, name):
    with pytest.raises(ValueError, match=name):
        make_spirals(**arguments)
