"""Reject curves as figures."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from gramian.datasets import make_spirals
from gramian.metrics import reject_curve
from gramian.plot import RejectCurveDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def data():
    return make_spirals(60, noise=0.1)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def test_shows_the_curve(model, data, ax):
    X, y = data
    display = RejectCurveDisplay.from_estimator(model, X, y, ax=ax)
    curve = reject_curve(y, model.predict_proba(X))
    np.testing.assert_allclose(display.line_.get_xdata(), curve.fraction)
    np.testing.assert_allclose(display.line_.get_ydata(), curve.error)
    assert display.line_.get_label() == f"LogisticRegression (error = {1 - model.score(X, y):.3g})"
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.zero_line_ is None
    assert ax.get_ylim()[0] == 0


def test_a_higher_curve_fits_into_the_same_axes(data, ax):
    _, y = data
    good, bad = (y + 0) % 3, (y + 1) % 3
    first = RejectCurveDisplay.from_predictions(
        y, y_pred=good, confidence=np.arange(60), ax=ax, name="good"
    )
    second = RejectCurveDisplay.from_predictions(
        y, y_pred=bad, confidence=np.arange(60), ax=ax, name="bad", curve_kwargs={"color": "k"}
    )
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["good (error = 0)", "bad (error = 1)"]
    assert second.line_.get_color() == "k"
    assert first.line_.axes is second.line_.axes
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] >= 1


def test_difference_to_a_baseline(data, ax, rng):
    _, y = data
    P, Q = rng.dirichlet(np.ones(3), size=(2, 60))
    first = RejectCurveDisplay.from_predictions(y, P, name="flat", ax=ax)
    second = RejectCurveDisplay.from_predictions(y, Q, name="tree", ax=Figure().subplots())
    display = second.plot(Figure().subplots(), baseline=first)
    # all confidences differ, so that both curves have a point at each k
    np.testing.assert_allclose(
        display.line_.get_ydata(), first.curve.error - second.curve.error, atol=1e-15
    )
    assert display.line_.get_label() == "tree"
    assert "flat" in display.ax_.get_ylabel()
    assert display.zero_line_ is not None


def test_difference_interpolates_where_points_differ():
    many = RejectCurveDisplay.from_predictions(
        [0, 0, 0, 0], y_pred=[0, 0, 1, 1], confidence=[4, 3, 2, 1], ax=Figure().subplots()
    )
    few = RejectCurveDisplay.from_predictions(
        [0, 0, 0, 0], y_pred=[0, 0, 1, 1], confidence=[1, 1, 1, 1], ax=Figure().subplots()
    )
    line = many.plot(Figure().subplots(), baseline=few).line_
    np.testing.assert_allclose(line.get_ydata(), [0, 0.125, 0.25, 0.125, 0])


def test_refuses(model, data):
    X, y = data
    with pytest.raises(NotFittedError):
        RejectCurveDisplay.from_estimator(LogisticRegression(), X, y)
    with pytest.raises(TypeError, match="predict_proba"):
        RejectCurveDisplay.from_estimator(RidgeClassifier().fit(X, y), X, y)
    with pytest.raises(TypeError, match="baseline"):
        RejectCurveDisplay.from_estimator(model, X, y, baseline=0.5)
    with pytest.raises(TypeError, match="proba"):
        RejectCurveDisplay.from_predictions(y)
