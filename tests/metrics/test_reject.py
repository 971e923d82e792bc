"""Reject curves against the definition, one k at a time, and what is refused."""

import numpy as np
import pytest

from gramian.metrics import RejectCurve, reject_curve


def naive_errors(wrong, confidence):
    """Errors among the k most confident over m, for k = 0, …, m."""
    order = sorted(range(len(wrong)), key=lambda i: -confidence[i])
    return [sum(wrong[i] for i in order[:k]) / len(wrong) for k in range(len(wrong) + 1)]


def test_agrees_with_the_definition(rng):
    P = rng.dirichlet(np.ones(4), size=60)
    y = rng.integers(4, size=60)
    curve = reject_curve(y, P, labels=[0, 1, 2, 3])
    np.testing.assert_allclose(curve.fraction, np.arange(61) / 60)
    np.testing.assert_allclose(curve.error, naive_errors(P.argmax(axis=1) != y, P.max(axis=1)))
    assert isinstance(curve, RejectCurve)


def test_right_end_is_the_error_rate(rng):
    y, y_pred = rng.integers(3, size=(2, 50))
    curve = reject_curve(y, y_pred=y_pred, confidence=rng.normal(size=50))
    assert curve.fraction[-1] == 1.0
    assert curve.error[-1] == pytest.approx(np.mean(y != y_pred))
    assert (np.diff(curve.error) >= 0).all()


def test_equal_confidences_are_the_mean_over_their_orders(rng):
    confidence = np.array([2.0, 1.0, 1.0, 1.0, 0.0])
    wrong = np.array([0, 1, 0, 1, 1])
    curve = reject_curve(np.zeros(5), y_pred=wrong, confidence=confidence)
    np.testing.assert_allclose(curve.fraction, [0, 0.2, 0.8, 1.0])
    orders = [
        naive_errors(wrong[p], confidence[p]) for p in (rng.permutation(5) for _ in range(4000))
    ]
    interpolated = np.interp(np.arange(6) / 5, curve.fraction, curve.error)
    np.testing.assert_allclose(interpolated, np.mean(orders, axis=0), atol=0.02)


def test_weights_count_like_repeats(rng):
    P, y = rng.dirichlet(np.ones(3), size=30), np.arange(30) % 3
    times = rng.integers(0, 4, size=30)
    weighted = reject_curve(y, P, sample_weight=times)
    repeated = reject_curve(np.repeat(y, times), np.repeat(P, times, axis=0))
    np.testing.assert_allclose(weighted.fraction, repeated.fraction)
    np.testing.assert_allclose(weighted.error, repeated.error, atol=1e-15)


def test_the_scale_of_confidence_does_not_matter(rng):
    y, y_pred = rng.integers(3, size=(2, 50))
    confidence = rng.normal(size=50)
    curve = reject_curve(y, y_pred=y_pred, confidence=confidence)
    other = reject_curve(y, y_pred=y_pred, confidence=np.exp(3 * confidence))
    np.testing.assert_array_equal(curve.error, other.error)


PRED = dict(y_pred=[0, 1], confidence=[0.5, 0.6])


@pytest.mark.parametrize(
    "arguments, error, names",
    [
        (dict(y_true=[], proba=[]), ValueError, "y_true"),
        (dict(y_true=[0, 1]), TypeError, "none of them"),
        (dict(y_true=[0, 1], proba=[0.1, 0.2], **PRED), TypeError, "proba and y_pred and conf"),
        (dict(y_true=[0, 1], y_pred=[0, 1]), TypeError, "got y_pred"),
        (dict(y_true=[0, 1], confidence=[0, 1]), TypeError, "got confidence"),
        (dict(y_true=[0, 1], proba=[0, 1], confidence=[0, 1]), TypeError, "got proba and conf"),
        (dict(y_true=[0, 1], labels=[0, 1], **PRED), TypeError, "labels"),
        (dict(y_true=[0, 1], proba=[0.1, 1.2]), ValueError, "proba"),
        (dict(y_true=[0, 0], proba=[0.1, 0.2]), ValueError, "labels"),
        (dict(y_true=[0, 1], y_pred=[0], confidence=[0.5, 0.6]), ValueError, "y_pred"),
        (dict(y_true=[0, 1], y_pred=[0, 1], confidence=[0.5]), ValueError, "confidence"),
        (dict(y_true=[0, 1], y_pred=[0, 1], confidence=[0.5, np.nan]), ValueError, "confidence"),
        (dict(y_true=[0, 1], y_pred=[0, 1], confidence=["a", "b"]), TypeError, "confidence"),
        (dict(y_true=[0, 1], sample_weight=[-1, 1], **PRED), ValueError, "sample_weight"),
        (dict(y_true=[0, 1], sample_weight=[0, 0], **PRED), ValueError, "sample_weight"),
    ],
)
def test_bad_input_is_named(arguments, error, names):
    with pytest.raises(error, match=names):
        reject_curve(**arguments)
