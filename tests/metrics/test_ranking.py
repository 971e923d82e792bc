"""The rank of the true class against an oracle with loops, and what is refused."""

import numpy as np
import pytest

from gramian.metrics import reciprocal_rank


def naive_rank(y, P, columns, weights):
    total = 0.0
    for label, row, weight in zip(y, P, weights):
        own = row[list(columns).index(label)]
        total += weight / sum(p >= own for p in row)
    return total / sum(weights)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_oracle(rng, n_classes, weighted):
    # rounded, so that some probabilities are equal; the columns are not sorted
    P = np.round(rng.dirichlet(np.full(n_classes, 0.5), size=100) * 8)
    P = (P + 0.25) / (P + 0.25).sum(axis=1, keepdims=True)
    columns = rng.permutation([f"class {c}" for c in range(n_classes)])
    y = rng.choice(columns, size=100)
    weights = rng.uniform(0.1, 2.0, size=100) if weighted else None
    got = reciprocal_rank(y, P, labels=columns, sample_weight=weights)
    assert got == pytest.approx(naive_rank(y, P, columns, np.ones(100) if weights is None else weights))  # fmt: skip


def test_by_hand():
    P = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.4, 0.35, 0.25]]
    assert reciprocal_rank([0, 1, 2], P) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_no_opinion_earns_one_over_the_number_of_classes():
    assert reciprocal_rank([0, 1, 2, 3], np.full((4, 4), 0.25)) == 0.25


def test_two_classes_and_one_column():
    assert reciprocal_rank([0, 1, 1], [0.2, 0.7, 0.3]) == pytest.approx((1 + 1 + 0.5) / 3)


def test_weights_count_like_repeats(rng):
    P, y = rng.dirichlet(np.ones(3), size=30), np.arange(30) % 3
    times = rng.integers(0, 4, size=30)
    weighted = reciprocal_rank(y, P, sample_weight=times)
    repeated = reciprocal_rank(np.repeat(y, times), np.repeat(P, times, axis=0))
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize(
    "arguments, error, names",
    [
        (dict(y_true=[], proba=[]), ValueError, "y_true"),
        (dict(y_true=[0, 1], proba=[0.1]), ValueError, "proba"),
        (dict(y_true=[0, 1], proba=[[0.2, 0.2], [0.5, 0.5]]), ValueError, "proba"),
        (dict(y_true=[0, 1], proba=[0.1, 0.2], labels=[0, 1, 2]), ValueError, "labels"),
        (dict(y_true=[0, 0], proba=[0.1, 0.2]), ValueError, "labels"),
        (dict(y_true=[0, 5], proba=[0.1, 0.2], labels=[0, 1]), ValueError, "y_true holds"),
        (dict(y_true=[0, 1], proba=[0.1, 0.2], sample_weight=[-1, 1]), ValueError, "sample_weight"),
        (dict(y_true=[0, 1], proba=[0.1, 0.2], sample_weight=[0, 0]), ValueError, "sample_weight"),
    ],
)
def test_bad_input_is_named(arguments, error, names):
    with pytest.raises(error, match=names):
        reciprocal_rank(**arguments)
