"""Displays: what they store, what they draw, what they say when they cannot."""

import builtins
import subprocess
import sys

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from gramian import KernelLogisticRegression, KernelRidge
from gramian.datasets import make_spirals
from gramian.kernels import RBF
from gramian.losses import Squared
from gramian.metrics import expected_calibration_error, reliability_curve
from gramian.operators import Dense
from gramian.plot import ConvergenceDisplay, ReliabilityDisplay
from gramian.solvers import Problem, kernel_cg, newton


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
    return KernelLogisticRegression(RBF(0.3), regularization=0.1).fit(*data)


# --- convergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("x", ["products", "seconds", "iterations"])
@pytest.mark.parametrize("y", ["relative_gap", "gap", "objective"])
def test_convergence_shows_the_history(model, ax, x, y):
    display = ConvergenceDisplay.from_estimator(model, ax=ax, x=x, y=y)
    history = model.solution_.history
    shown_x, shown_y = display.line_.get_data()
    gap, objective = history["gap"], history["objective"]
    expected = {"relative_gap": gap / objective, "gap": gap, "objective": objective}[y]
    np.testing.assert_array_equal(shown_y, expected)
    np.testing.assert_array_equal(shown_x, np.arange(len(gap)) if x == "iterations" else history[x])
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_yscale() == "log"
    assert x in ax.get_xlabel().lower()
    assert (display.tol_line_ is not None) == (y == "relative_gap")


def test_convergence_ends_below_the_tolerance_it_draws(model, ax):
    display = ConvergenceDisplay.from_estimator(model, ax=ax)
    tol = display.tol_line_.get_ydata()[0]
    assert tol == model.tol
    assert display.line_.get_ydata()[-1] <= tol


def test_convergence_compares_solvers(data, ax):
    X, y = data
    problem = Problem(Dense(RBF(0.3), X), Squared(), y[:, None].astype(float), 0.1)
    solutions = {"Newton": newton(problem), "CG": kernel_cg(problem)}
    styles = [{"color": "red"}, {"color": "blue", "marker": "s"}]
    display = ConvergenceDisplay.from_solutions(solutions, ax=ax, tol=1e-8, curve_kwargs=styles)
    assert [line.get_color() for line in display.line_] == ["red", "blue"]
    assert [line.get_label() for line in display.line_] == ["Newton", "CG"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["Newton", "CG", "tol = 1e-08"]


def test_convergence_leaves_out_a_gap_of_zero(ax):
    history = {name: np.array([1.0, 0.0]) for name in ("gap", "products", "seconds")}
    display = ConvergenceDisplay({"exact": history | {"objective": np.ones(2)}}).plot(ax)
    np.testing.assert_array_equal(display.line_.get_ydata(), [1.0, np.nan])


def test_convergence_of_every_estimator(data, ax):
    X, y = data
    ridge = KernelRidge(RBF(0.3), regularization=1.0).fit(X, y)
    assert (
        ConvergenceDisplay.from_estimator(ridge, ax=ax, name="ridge").line_.get_label() == "ridge"
    )


def test_convergence_refuses(model, data, ax):
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(KernelRidge(regularization=1.0))
    with pytest.raises(TypeError, match="solution_"):
        ConvergenceDisplay.from_estimator(LogisticRegression().fit(*data))
    with pytest.raises(TypeError, match="solutions"):
        ConvergenceDisplay.from_solutions({"a": 1.0})
    with pytest.raises(ValueError, match="x must be one of"):
        ConvergenceDisplay.from_estimator(model, x="hours", ax=ax)
    with pytest.raises(ValueError, match="y must be one of"):
        ConvergenceDisplay.from_estimator(model, y="loss", ax=ax)
    with pytest.raises(ValueError, match="curve_kwargs"):
        ConvergenceDisplay.from_estimator(model, ax=ax, curve_kwargs=[{}, {}])


# --- reliability --------------------------------------------------------------------------------


def test_reliability_shows_the_curve(model, data, ax):
    X, y = data
    display = ReliabilityDisplay.from_estimator(model, X, y, ax=ax, n_bins=5)
    P = model.predict_proba(X)
    curve = reliability_curve(y, P, n_bins=5)
    filled = curve.count > 0
    np.testing.assert_allclose(display.line_.get_xdata(), curve.confidence[filled])
    np.testing.assert_allclose(display.line_.get_ydata(), curve.accuracy[filled])
    np.testing.assert_allclose(display.points_.get_offsets()[:, 1], curve.accuracy[filled])
    np.testing.assert_allclose(display.bars_.get_data().values, 100 * curve.weight)
    error = expected_calibration_error(y, P, n_bins=5)
    assert display.line_.get_label() == f"KernelLogisticRegression (ECE = {error:.3f})"
    assert display.figure_ is ax.figure


def test_reliability_takes_probabilities_of_anyone(data, ax):
    X, y = data
    names = np.array(["a", "b", "c"])
    other = LogisticRegression().fit(X, names[y])
    display = ReliabilityDisplay.from_predictions(
        names[y], other.predict_proba(X), classes=other.classes_, ax=ax, histogram=False
    )
    assert display.line_.get_label().startswith("ECE = ")
    assert display.histogram_ax_ is None
    assert display.bars_ is None


def test_reliability_puts_two_curves_into_the_same_axes(model, data, ax):
    X, y = data
    first = ReliabilityDisplay.from_estimator(model, X, y, ax=ax)
    second = ReliabilityDisplay(first.curve, name="again").plot(
        ax, histogram=first.histogram_ax_, curve_kwargs={"color": "k", "marker": "s"}
    )
    assert second.histogram_ax_ is first.histogram_ax_
    assert second.line_.get_color() == "k"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels.count("Calibrated") == 1
    assert labels[-1].startswith("again (ECE")


@pytest.mark.parametrize("in_grid", [True, False])
def test_reliability_histogram_is_below_the_axes(model, data, in_grid):
    figure = Figure()
    ax = figure.subplots() if in_grid else figure.add_axes((0.1, 0.4, 0.8, 0.5))
    display = ReliabilityDisplay.from_estimator(model, *data, ax=ax)
    figure.canvas.draw()
    above, below = ax.get_position(), display.histogram_ax_.get_position()
    assert below.y1 < above.y0
    assert below.y0 > 0
    assert display.histogram_ax_.get_xlim() == ax.get_xlim()


def test_reliability_intervals_are_wilsons(ax):
    y, p = [0, 0, 0, 1, 1], np.full(5, 0.4)  # predicts class 0 with 0.6, right three times of five
    display = ReliabilityDisplay.from_predictions(y, p, ax=ax, n_bins=5)
    (segment,) = display.intervals_.get_segments()
    # roots of (3/5 - q)² = 1.96² q (1 - q) / 5
    z2 = 1.96**2 / 5
    roots = np.roots([1 + z2, -1.2 - z2, 0.36])
    np.testing.assert_allclose(segment[:, 1], np.sort(roots))
    assert ReliabilityDisplay(display.curve).plot(ax, intervals=False).intervals_ is None


def test_reliability_refuses(data):
    X, y = data
    with pytest.raises(NotFittedError):
        ReliabilityDisplay.from_estimator(LogisticRegression(), X, y)
    with pytest.raises(TypeError, match="predict_proba"):
        ReliabilityDisplay.from_estimator(RidgeClassifier().fit(X, y), X, y)
    with pytest.raises(ValueError, match="y_proba"):
        ReliabilityDisplay.from_predictions(y, np.ones((3, 3)) / 3)


# --- both ---------------------------------------------------------------------------------------


def test_a_new_figure_is_made(model, data):
    for display in (
        ConvergenceDisplay.from_estimator(model),
        ReliabilityDisplay.from_estimator(model, *data),
    ):
        display.figure_.canvas.draw()
        assert display.figure_.axes[0] is display.ax_


def test_without_matplotlib_the_fix_is_named(model, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "gramian\[plot\]"'):
        ConvergenceDisplay.from_estimator(model)


@pytest.mark.slow  # a process of its own
def test_importing_gramian_is_light():
    # scikit-learn's callbacks import rich where it is installed; nothing else may
    code = (
        "import sys, sklearn.callback\n"
        "before = set(sys.modules)\n"
        "import gramian, gramian.metrics, gramian.datasets, gramian.plot\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new & {'matplotlib', 'rich', 'typer'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
