"""A coupling as correlations and as a map."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt

from gramian import KernelLogisticRegression, KernelRidge
from gramian.plot import CouplingDisplay

FACTORS = np.array([[2.0, 0.0], [0.0, 1.0], [1.8, 0.1], [-0.1, 0.9], [-2.0, 0.0]])
S = FACTORS @ FACTORS.T + 0.1 * np.eye(5)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_similar_outputs_are_neighbours():
    display = CouplingDisplay.from_matrix(S, list("abcde"))
    order = display.order_.tolist()
    assert sorted(order) == list(range(5))
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    root = np.sqrt(np.diag(S))
    shown = (S / root / root[:, None])[np.ix_(order, order)]
    np.testing.assert_allclose(display.image_.get_array(), shown)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["abcde"[output] for output in order]


def test_the_map_has_the_two_largest_eigenvectors():
    display = CouplingDisplay.from_matrix(S)
    values = np.linalg.eigvalsh(S)[::-1]
    np.testing.assert_allclose((display.places_**2).sum(axis=0), values[:2])
    np.testing.assert_allclose(display.points_.get_offsets(), display.places_)
    assert display.places_[0] @ display.places_[2] > 0 > display.places_[0] @ display.places_[4]
    assert (display.places_.max(axis=0) >= -display.places_.min(axis=0)).all()
    assert len(display.map_ax_.texts) == 5


def test_axes_may_be_given():
    _, ax = plt.subplots()
    display = CouplingDisplay.from_matrix(S, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_many_outputs_have_no_names():
    display = CouplingDisplay.from_matrix(np.eye(60))
    assert not display.map_ax_.texts
    assert not display.ax_.get_yticklabels()


def test_estimators_have_names_of_classes_or_numbers(rng):
    X, y = rng.normal(size=(30, 2)), np.repeat(["u", "v", "w"], 10)
    model = KernelLogisticRegression(regularization=1.0, coupling=S[:3, :3]).fit(X, y)
    display = CouplingDisplay.from_estimator(model)
    assert display.names == ["u", "v", "w"]
    np.testing.assert_array_equal(display.coupling, S[:3, :3])
    ridge = KernelRidge(regularization=1.0, coupling=S).fit(X, rng.normal(size=(30, 5)))
    assert CouplingDisplay.from_estimator(ridge).names == list("01234")
    assert CouplingDisplay.from_estimator(ridge, names=list("abcde")).names == list("abcde")


def test_bad_couplings_are_refused(rng):
    with pytest.raises(ValueError, match="coupling must be symmetric"):
        CouplingDisplay.from_matrix([[1.0, 0.5], [0.2, 1.0]])
    with pytest.raises(ValueError, match="names must be 5"):
        CouplingDisplay.from_matrix(S, ["a"])
    model = KernelRidge(regularization=1.0).fit(rng.normal(size=(9, 2)), np.arange(9.0))
    with pytest.raises(TypeError, match="coupling_"):
        CouplingDisplay.from_estimator(model)
