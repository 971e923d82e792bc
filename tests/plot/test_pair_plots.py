"""Matrices of pairs, and what iterations are worth, as figures."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from gramian import KernelLogisticRegression, Pairs
from gramian.datasets import make_interactions, make_spirals
from gramian.plot import IterationDisplay, PairMatrixDisplay
from gramian.selection import pair_setting


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def data():
    return make_interactions(12, 8, density=0.5)


def _letters(display):
    return [text.get_text() for text in display.settings_]


def _tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


# --- matrices of pairs ----------------------------------------------------------------------------


def test_shows_each_response_in_its_cell(data, ax):
    pairs, y = data
    display = PairMatrixDisplay.from_predictions(pairs, y, ax=ax, sort=False)
    expected = np.full((12, 8), np.nan)
    expected[pairs.left_index, pairs.right_index] = y
    np.testing.assert_array_equal(display.observed, expected)
    (image,) = display.images_
    np.testing.assert_array_equal(np.ma.getmaskarray(image.get_array()), np.isnan(expected))
    assert image.get_rasterized()
    assert display.predicted is display.predicted_ax_ is display.n_seen is None
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.borders_ == display.settings_ == []


def test_predictions_have_the_same_colours(data, ax):
    pairs, y = data
    display = PairMatrixDisplay.from_predictions(pairs, y, 2 * y, ax=ax)
    np.testing.assert_allclose(display.predicted, 2 * display.observed)
    first, second = display.images_
    assert first.get_clim() == second.get_clim() == (2 * y.min(), 2 * y.max())
    assert display.predicted_ax_.get_title() == "Predicted"
    assert display.colorbar_.ax.get_ylabel() == "Response"


def test_repeated_pairs_are_averaged(ax):
    pairs = Pairs(np.eye(2), np.eye(2), [0, 0, 1], [1, 1, 0])
    display = PairMatrixDisplay.from_predictions(pairs, [1.0, 3.0, 7.0], ax=ax, sort=False)
    np.testing.assert_array_equal(display.observed, [[np.nan, 2.0], [7.0, np.nan]])


def test_objects_that_respond_most_come_first(data, ax):
    pairs, y = data
    display = PairMatrixDisplay.from_predictions(pairs, y, ax=ax)
    assert np.all(np.diff(np.nanmean(display.observed, axis=1)) <= 1e-12)
    assert np.all(np.diff(np.nanmean(display.observed, axis=0)) <= 1e-12)


def test_objects_without_pairs_are_left_out(ax):
    pairs = Pairs(np.eye(5), np.eye(4), [4, 1], [2, 2], left_ids=list("abcde"))
    display = PairMatrixDisplay.from_predictions(pairs, [1.0, 2.0], ax=ax)
    np.testing.assert_array_equal(display.observed, [[2.0], [1.0]])
    assert _tick_labels(ax.yaxis) == ["b", "e"]


def test_blocks_are_those_of_the_settings(data, ax):
    pairs, y = data
    train = pairs[(pairs.left_index < 7) & (pairs.right_index >= 3)]
    number = np.searchsorted(["A", "B", "C", "D"], pair_setting(train, pairs)).astype(float)
    display = PairMatrixDisplay.from_predictions(pairs, number, y, train=train, ax=ax)
    rows, columns = display.n_seen
    assert (rows, columns) == (7, 5)
    for block, value in (
        (display.observed[:rows, :columns], 0),
        (display.observed[rows:, :columns], 1),
        (display.observed[:rows, columns:], 2),
        (display.observed[rows:, columns:], 3),
    ):
        assert set(block[np.isfinite(block)]) == {value}
    assert _letters(display) == 2 * ["A", "B", "C", "D"]
    across, down = display.borders_[0].get_segments()
    np.testing.assert_array_equal(across[:, 1], rows - 0.5)
    np.testing.assert_array_equal(down[:, 0], columns - 0.5)
    assert _tick_labels(ax.yaxis) == ["7 seen", "5 new"]
    assert _tick_labels(ax.xaxis) == ["5 seen", "3 new"]


def test_settings_that_do_not_occur_have_no_letter(data, ax):
    pairs, y = data
    train = pairs[pairs.left_index < 7]
    display = PairMatrixDisplay.from_predictions(pairs, y, train=train, ax=ax)
    assert _letters(display) == ["A", "B"]
    assert len(display.borders_[0].get_segments()) == 1
    plain = PairMatrixDisplay.from_predictions(
        pairs, y, train=train, setting_lines=False, ax=Figure().subplots()
    )
    assert plain.borders_ == plain.settings_ == []
    np.testing.assert_array_equal(plain.observed, display.observed)


def test_equal_objects_of_one_table_stay_apart(ax):
    pairs = Pairs.complete(np.ones((3, 1)), np.ones((2, 1)))
    display = PairMatrixDisplay.from_predictions(pairs, np.arange(6), train=pairs[:2], ax=ax)
    assert display.n_seen == (1, 2)


def test_homogeneous_pairs_have_one_order_for_both_ends(ax, rng):
    left, right = np.triu_indices(
        6
    )  # each pair once, so that the last object is at the right end mostly
    x = rng.normal(size=6)
    pairs = Pairs(x[:, None], None, left, right)
    train = pairs[(left < 4) & (right < 4)]
    display = PairMatrixDisplay.from_predictions(pairs, x[left] * x[right], train=train, ax=ax)
    assert display.n_seen == (4, 4)
    diagonal = np.diag(display.observed)
    np.testing.assert_allclose(np.sort(diagonal), np.sort(x**2))
    np.testing.assert_allclose(np.sort(diagonal[:4]), np.sort(x[:4] ** 2))


def test_large_matrices_are_averaged_without_the_missing(ax):
    left, right = np.divmod(np.arange(0, 1000 * 6, 7), 6)
    pairs = Pairs(np.arange(1000.0)[:, None], np.eye(6), left, right)
    display = PairMatrixDisplay.from_predictions(pairs, np.full(len(left), 3.0), ax=ax)
    shown = display.images_[0].get_array()
    assert display.observed.shape == (len(np.unique(left)), 6)
    assert shown.shape == (400, 6)
    np.testing.assert_allclose(shown.compressed(), 3.0)
    assert display.images_[0].get_extent() == [-0.5, 5.5, len(np.unique(left)) - 0.5, -0.5]


class _Sum(BaseEstimator):
    """Answers with the sum of all features."""

    def fit(self, pairs, y):
        self.classes_ = np.unique(y)
        return self


class _Regressor(_Sum):
    def predict(self, pairs):
        return pairs.to_wide().sum(axis=1)


class _Classifier(_Sum):
    def decision_function(self, pairs):
        return pairs.to_wide().sum(axis=1)


def test_of_a_regressor(data, ax):
    pairs, y = data
    model = _Regressor().fit(pairs, y)
    display = PairMatrixDisplay.from_estimator(model, pairs, y, train=pairs[:30], ax=ax)
    other = PairMatrixDisplay.from_predictions(
        pairs, y, model.predict(pairs), train=pairs[:30], ax=Figure().subplots()
    )
    np.testing.assert_array_equal(display.observed, other.observed)
    np.testing.assert_array_equal(display.predicted, other.predicted)
    assert display.n_seen == other.n_seen


def test_of_a_classifier_with_names_as_classes(data, ax):
    pairs, y = data
    names = np.where(y > 0, "yes", "no")
    model = _Classifier().fit(pairs, names)
    display = PairMatrixDisplay.from_estimator(model, pairs, names, ax=ax, sort=False)
    np.testing.assert_array_equal(
        display.observed[pairs.left_index, pairs.right_index], np.where(y > 0, 1, -1)
    )
    np.testing.assert_allclose(
        display.predicted[pairs.left_index, pairs.right_index], model.decision_function(pairs)
    )
    assert display.colorbar_.ax.get_ylabel() == "Decision function (no: −1, yes: 1)"
    with pytest.raises(ValueError, match="got maybe"):
        PairMatrixDisplay.from_estimator(model, pairs, np.full(len(y), "maybe"), ax=ax)


def test_pair_matrix_refuses(data):
    pairs, y = data
    show = PairMatrixDisplay.from_predictions
    with pytest.raises(TypeError, match="pairs must be a Pairs"):
        show(pairs.to_wide(), y)
    with pytest.raises(ValueError, match="pairs is empty"):
        show(pairs[:0], y[:0])
    with pytest.raises(ValueError, match=r"y_true must have shape \(48,\)"):
        show(pairs, y[:5])
    with pytest.raises(ValueError, match="y_score must be finite, got nan at position 0"):
        show(pairs, y, np.full(48, np.nan))
    with pytest.raises(TypeError, match="y_true must be numbers"):
        show(pairs, np.full(48, "a"))
    with pytest.raises(TypeError, match="train must be a Pairs"):
        show(pairs, y, train=y)
    with pytest.raises(TypeError, match="sort"):
        show(pairs, y, sort="mean")
    with pytest.raises(NotFittedError):
        PairMatrixDisplay.from_estimator(_Regressor(), pairs, y)
    three = np.arange(48) % 3
    model = _Classifier().fit(pairs, three)
    with pytest.raises(ValueError, match="two classes, got 3"):
        PairMatrixDisplay.from_estimator(model, pairs, three)


def test_pair_matrix_makes_a_figure_in_which_nothing_is_cut(data):
    pairs, y = data
    display = PairMatrixDisplay.from_predictions(pairs, y, y, train=pairs[:20])
    display.figure_.canvas.draw()
    width, height = display.figure_.bbox.size
    first, second = (axes.get_position() for axes in (display.ax_, display.predicted_ax_))
    np.testing.assert_allclose(first.size, second.size, rtol=1e-3)
    for axes in (display.ax_, display.predicted_ax_, display.colorbar_.ax):
        box = axes.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height


@pytest.mark.parametrize("in_grid", [True, False])
def test_predictions_are_beside_the_axes(data, in_grid):
    pairs, y = data
    figure = Figure()
    ax = figure.subplots() if in_grid else figure.add_axes((0.1, 0.4, 0.3, 0.5))
    display = PairMatrixDisplay.from_predictions(pairs, y, y, ax=ax)
    figure.canvas.draw()
    assert ax.get_position().x1 < display.predicted_ax_.get_position().x0


# --- iterations -----------------------------------------------------------------------------------


@pytest.fixture
def curves():
    return [
        dict(label="a", objective=np.array([8.0, 4.0, 2.0]), score=np.array([0.5, 0.75])),
        dict(label="b", objective=np.array([8.0, 6.0, 5.0, 4.0]), score=[0.9, np.nan, 0.8]),
    ]


def test_shows_objective_and_score(curves, ax):
    display = IterationDisplay(curves, score_name="AUC").plot(ax)
    assert display.ax_ is ax
    assert ax.get_yscale() == "log"
    assert display.score_ax_.get_ylabel() == "AUC"
    risk, other_risk = display.objective_lines_
    np.testing.assert_array_equal(risk.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(other_risk.get_ydata(), [8, 6, 5, 4])
    score, _ = display.score_lines_
    np.testing.assert_array_equal(score.get_xdata(), [1, 2])  # the start has none
    assert [(*line.get_xdata(), *line.get_ydata()) for line in display.best_] == [
        (2, 0.75),
        (1, 0.9),
    ]
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["a (0.75 at 2)", "b (0.9 at 1)"]


def test_scores_may_be_missing(curves, ax):
    curves[0]["score"] = None
    curves[1]["score"] = [np.nan, np.nan, np.nan]
    display = IterationDisplay(curves).plot(ax)
    assert len(display.score_lines_) == 1
    assert display.best_ == []
    del curves[0]["score"], curves[1]["score"]
    alone = IterationDisplay(curves).plot(Figure().subplots())
    assert alone.score_ax_ is None
    assert [text.get_text() for text in alone.legend_.get_texts()] == ["a", "b"]


def test_curves_differ_in_colour_and_dashes(curves, ax):
    display = IterationDisplay(curves).plot(ax)
    first, second = display.objective_lines_
    assert not np.allclose(first.get_color(), second.get_color())
    assert first.get_linestyle() != second.get_linestyle()
    assert np.allclose(second.get_color(), display.score_lines_[1].get_color())
    styled = IterationDisplay(curves).plot(
        Figure().subplots(), curve_kwargs=[{"color": "k"}, {"linewidth": 3}]
    )
    assert styled.objective_lines_[0].get_color() == styled.best_[0].get_color() == "k"
    assert styled.score_lines_[1].get_linewidth() == 3


def test_of_estimators(ax):
    X, y = make_spirals(60)
    models = [KernelLogisticRegression(regularization=r).fit(X, y) for r in (0.01, 1.0)]
    models[0].validation_score_ = np.array([0.2, 0.4])
    display = IterationDisplay.from_estimators(models, ax=ax)
    for line, model in zip(display.objective_lines_, models, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), model.solution_.history["objective"])
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["λ = 0.01 (0.4 at 2)", "λ = 1"]
    named = IterationDisplay.from_estimators(models, ["few", "many"], ax=Figure().subplots())
    assert [curve["label"] for curve in named.curves] == ["few", "many"]


def test_iterations_refuse(curves):
    with pytest.raises(ValueError, match="curves is empty"):
        IterationDisplay([]).plot()
    with pytest.raises(NotFittedError):
        IterationDisplay.from_estimators([KernelLogisticRegression(regularization=1.0)])
    with pytest.raises(TypeError, match="LinearRegression"):
        IterationDisplay.from_estimators([LinearRegression().fit([[1.0]], [1.0])])
    with pytest.raises(ValueError, match="labels must have one text for each of the 1 estimators"):
        IterationDisplay.from_estimators([LinearRegression()], ["a", "b"])
    with pytest.raises(ValueError, match="curve_kwargs"):
        IterationDisplay(curves).plot(curve_kwargs=[{}])


def test_iterations_make_a_figure_with_room_for_the_legend(curves):
    display = IterationDisplay(curves).plot()
    display.figure_.canvas.draw()
    legend = display.legend_.get_window_extent()
    assert legend.x0 > display.score_ax_.get_window_extent().x1
    assert legend.x1 <= display.figure_.bbox.width
