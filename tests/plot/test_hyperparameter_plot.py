"""The path of a search for parameters as a figure."""

from types import SimpleNamespace

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from gramian.plot import HyperparameterPathDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def make_path(n_parameters=2, n_evaluations=8, coarse=3):
    rng = np.random.default_rng(0)
    accepted = np.ones(n_evaluations, dtype=bool)
    accepted[[1, 5]] = False
    return SimpleNamespace(
        names=tuple(f"parameter {p}" for p in range(n_parameters)),
        theta=rng.normal(size=(n_evaluations, n_parameters)),
        loss=np.linspace(2.0, 0.5, n_evaluations),
        accepted=accepted,
        n_samples=np.where(np.arange(n_evaluations) < coarse, 100, 400),
    )


def test_shows_losses_and_parameters(ax):
    path = make_path()
    display = HyperparameterPathDisplay.from_path(path, ax=ax)
    coarse, full = display.loss_lines_
    np.testing.assert_array_equal(coarse.get_xdata(), [1, 3])
    np.testing.assert_array_equal(full.get_xdata(), [4, 5, 7, 8])
    np.testing.assert_array_equal(full.get_ydata(), path.loss[[3, 4, 6, 7]])
    np.testing.assert_array_equal(display.rejected_.get_xdata(), [2, 6])
    np.testing.assert_array_equal(display.rejected_.get_ydata(), path.loss[[1, 5]])
    for p, line in enumerate(display.parameter_lines_):
        np.testing.assert_array_equal(line.get_xdata(), [1, 3, 4, 5, 7, 8])
        np.testing.assert_allclose(line.get_ydata(), np.exp(path.theta[path.accepted, p]))
        assert line.get_label() == f"parameter {p} = {np.exp(path.theta[-1, p]):.3g}"
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.parameter_ax_.get_yscale() == "log"
    assert display.parameter_ax_.get_xlim() == ax.get_xlim()


def test_evaluations_on_fewer_examples_are_marked(ax):
    display = HyperparameterPathDisplay.from_path(make_path(coarse=3), ax=ax)
    (span,) = display.coarse_spans_
    assert (span.get_x(), span.get_x() + span.get_width()) == (0.5, 3.5)
    assert span.get_label() == "100 of 400 examples"
    assert "100 of 400 examples" in [text.get_text() for text in ax.get_legend().get_texts()]
    full = HyperparameterPathDisplay.from_path(make_path(coarse=0), ax=Figure().subplots())
    assert full.coarse_spans_ == []
    assert len(full.loss_lines_) == 1


def test_of_many_parameters_those_that_moved_have_names(ax):
    path = make_path(n_parameters=30)
    path.theta[:, 7] *= 20
    display = HyperparameterPathDisplay.from_path(path, ax=ax)
    assert len(display.parameter_lines_) == 30
    named = [line for line in display.parameter_lines_ if line.get_label().startswith("param")]
    assert len({line.get_color() for line in named}) == len(named) == 10
    assert display.parameter_lines_[7] in named
    entries = [t.get_text() for t in display.parameter_ax_.get_legend().get_texts()]
    assert len(entries) == 11
    assert entries[-1] == "20 others"


def test_a_search_that_accepted_everything(ax):
    path = make_path()
    path.accepted[:] = True
    assert HyperparameterPathDisplay.from_path(path, ax=ax).rejected_ is None


def test_a_search_of_one_evaluation_in_a_new_figure():
    path = make_path(n_evaluations=8)
    for field in ("theta", "loss", "accepted", "n_samples"):
        setattr(path, field, getattr(path, field)[:1])
    display = HyperparameterPathDisplay.from_path(path)
    display.figure_.canvas.draw()
    assert display.figure_.axes == [display.ax_, display.parameter_ax_]


def test_from_estimator():
    model = LogisticRegression()
    with pytest.raises(NotFittedError):
        HyperparameterPathDisplay.from_estimator(model)
    model.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="optimization_path_"):
        HyperparameterPathDisplay.from_estimator(model)
    model.optimization_path_ = make_path()
    assert len(HyperparameterPathDisplay.from_estimator(model).parameter_lines_) == 2


def test_refuses_what_is_no_path():
    with pytest.raises(TypeError, match="path must be an OptimizationPath"):
        HyperparameterPathDisplay.from_path({"loss": [1.0]})
