"""The squared loss of targets of which some are missing: the squared loss with weights for cells."""

import numpy as np
import pytest

from gramian._core.arrays import to_numpy
from gramian.losses import ObservedSquared, Squared
from gramian.testing import check_loss


def test_keeps_the_contract_where_nothing_is_missing():
    Y = np.random.default_rng(0).normal(size=(6, 3))
    check_loss(ObservedSquared(), np.random.default_rng(1).normal(size=(6, 3)), Y)


def test_missing_targets_count_for_nothing(rng, xp):
    """Value, gradient and curvature are those of the cells that are known, with any latent values elsewhere."""
    U, Y, weights = rng.normal(size=(6, 3, 2)), rng.normal(size=(6, 3, 1)), rng.random((6, 2))
    missing = rng.random((6, 3, 1)) < 0.4
    gaps = np.where(missing, np.nan, Y)
    loss = ObservedSquared()
    arrays = [xp.asarray(values) for values in (U, gaps, weights)]
    # where the latent value is the target, the squared loss has neither value nor gradient
    filled = np.where(missing, Y, U)
    np.testing.assert_allclose(to_numpy(loss.value(*arrays)), Squared().value(filled, Y, weights))
    np.testing.assert_allclose(
        to_numpy(loss.gradient(*arrays)), Squared().gradient(filled, Y, weights)
    )
    W = to_numpy(loss.curvature(*arrays).diagonal)
    np.testing.assert_allclose(W, ~missing * weights[:, None, :])


def test_numbers_that_overflowed_are_not_missing():
    with np.errstate(all="ignore"):
        assert np.isnan(ObservedSquared().value(np.array([[np.nan]]), np.array([[1.0]])))


@pytest.mark.parametrize("other", [Squared(), None])
def test_it_is_not_the_squared_loss(other):
    """Closed forms for the squared loss do not know about cells."""
    assert ObservedSquared() != other
    assert ObservedSquared() == ObservedSquared()
