"""Scores of transitions, and the labels of one sequence, as figures."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from gramian.plot import SequenceDisplay, TransitionDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


CLASSES = ["noun", "verb", "other"]
TRANSITIONS = np.array([[1.0, -2.0, 0.5], [0.25, 0.0, -np.inf], [-0.01, 1.5, 3.0]])
START, END = np.array([0.5, -1.0, 0.0]), np.array([-4.0, 1.0, 2.0])
MARGINALS = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.5, 0.4], [0.0, 0.2, 0.8]])


class Tagger(BaseEstimator):
    """Has what the displays ask for: a sequence of marginals, and another that is the same backwards."""

    def fit(self, X=None, y=None):
        self.classes_ = np.array(CLASSES)
        self.transitions_, self.start_, self.end_ = TRANSITIONS, START, END
        return self

    def predict_marginals(self, X):
        return _ragged([MARGINALS, MARGINALS[::-1]])

    def predict(self, X):
        return _ragged([self.classes_[P.argmax(axis=1)] for P in self.predict_marginals(X)])


def _ragged(arrays):
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


def _words(labels):
    return [label.get_text() for label in labels]


# --- transitions ----------------------------------------------------------------------------------


def test_transitions_have_start_above_and_end_on_the_right(ax):
    display = TransitionDisplay.from_estimator(Tagger().fit(), ax=ax)
    nothing = np.nan
    # a row and a column of NaN are the gaps; −∞ has the colour of the most unlikely
    expected = [
        [*START, nothing, nothing],
        [nothing] * 5,
        [1.0, -2.0, 0.5, nothing, -4.0],
        [0.25, 0.0, -4.0, nothing, 1.0],
        [-0.01, 1.5, 3.0, nothing, 2.0],
    ]
    cells = np.ma.filled(display.mesh_.get_array(), np.nan)
    np.testing.assert_array_equal(cells.reshape(5, 5), expected)
    assert display.mesh_.get_clim() == (-4.0, 4.0)  # centred at zero
    assert _words(ax.get_xticklabels()) == [*CLASSES, "end"]
    assert _words(ax.get_yticklabels()) == ["start", *CLASSES]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to", "from")
    bottom, top = ax.get_ylim()
    assert top < bottom  # rows go down, as in the array
    x, y = ax.get_xticks(), ax.get_yticks()
    assert x[-1] - x[-2] == y[1] - y[0] > 1.0  # set apart
    assert display.figure_ is ax.figure


def test_scores_are_written_where_they_belong(ax):
    display = TransitionDisplay.from_values(TRANSITIONS, CLASSES, START, END, ax=ax)
    written = {text.get_position(): text.get_text() for text in display.texts_}
    assert len(written) == 15
    assert written[(0.0, 0.0)] == "1.0"
    assert written[(1.0, 0.0)] == "−2.0"
    assert written[(2.0, 1.0)] == "−∞"
    assert written[(0.0, 2.0)] == "0.0"  # no minus before zero
    assert written[(ax.get_xticks()[-1], 0.0)] == "−4.0"
    assert written[(1.0, ax.get_yticks()[0])] == "−1.0"


def test_start_and_end_may_be_missing(ax):
    display = TransitionDisplay.from_values(TRANSITIONS, CLASSES, ax=ax)
    assert display.mesh_.get_array().shape == (3, 3)
    assert _words(ax.get_xticklabels()) == _words(ax.get_yticklabels()) == CLASSES
    only = TransitionDisplay.from_values(TRANSITIONS, CLASSES, end=END, ax=Figure().subplots())
    assert _words(only.ax_.get_xticklabels()) == [*CLASSES, "end"]
    assert _words(only.ax_.get_yticklabels()) == CLASSES


@pytest.mark.parametrize("n_classes, n_written", [(1, 1), (12, 144), (13, 0)])
def test_scores_are_written_for_few_classes(n_classes, n_written):
    display = TransitionDisplay.from_values(np.eye(n_classes), range(n_classes))
    assert len(display.texts_) == n_written


def test_small_scores_are_written_with_more_digits():
    display = TransitionDisplay.from_values([[0.0123, -0.5], [0.0, 0.25]], ["a", "b"])
    assert _words(display.texts_) == ["0.01", "−0.50", "0.00", "0.25"]


def test_transitions_that_are_all_zero_and_other_colours_can_be_drawn(ax):
    display = TransitionDisplay.from_values(np.zeros((2, 2)), ["a", "b"], ax=ax, cmap="PiYG")
    assert display.mesh_.get_clim() == (-1.0, 1.0)
    assert display.mesh_.get_cmap().name == "PiYG"


def test_very_many_classes_have_no_names():
    display = TransitionDisplay.from_values(np.eye(150), range(150))
    assert _words(display.ax_.get_xticklabels()) == []


@pytest.mark.parametrize(
    "values, words",
    [
        ((TRANSITIONS[:2], CLASSES), r"transitions must have shape \(3, 3\)"),
        ((TRANSITIONS, CLASSES, START[:2]), r"start must have shape \(3,\)"),
        ((TRANSITIONS, CLASSES, None, np.full(3, np.nan)), "end must not be NaN"),
        (([["a"]], ["a"]), "transitions must be numbers"),
        ((np.empty((0, 0)), []), "classes must have shape"),
    ],
)
def test_bad_transitions_are_named(values, words):
    with pytest.raises((TypeError, ValueError), match=words):
        TransitionDisplay.from_values(*values)


# --- one sequence ---------------------------------------------------------------------------------


def test_shows_probabilities_predictions_and_truth(ax):
    display = SequenceDisplay.from_estimator(
        Tagger().fit(),
        None,
        y_true=[["noun", "noun", None, "other"], ["noun"] * 4],
        tokens=[["time", "flies", "like", "."], ["a", "b", "c", "d"]],
        ax=ax,
    )
    np.testing.assert_array_equal(display.image_.get_array(), MARGINALS.T)  # classes × positions
    assert display.image_.get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(display.path_.get_data(), [[0, 1, 2, 3], [0, 1, 1, 2]])
    np.testing.assert_array_equal(display.right_.get_data(), [[0, 3], [0, 2]])
    np.testing.assert_array_equal(display.wrong_.get_data(), [[1], [0]])  # the third is not known
    red, green, blue = to_rgb(display.wrong_.get_color())
    assert red > 2 * max(green, blue)
    assert display.right_.get_markerfacecolor() == display.wrong_.get_markerfacecolor() == "none"
    assert _words(ax.get_xticklabels()) == ["time", "flies", "like", "."]
    assert _words(ax.get_yticklabels()) == CLASSES
    legend = _words(ax.get_legend().get_texts())
    assert legend == ["predicted", "true", "true, not predicted"]
    assert display.colorbar_.ax.get_ylabel() == "Marginal probability"


def test_another_sequence_can_be_shown():
    display = SequenceDisplay.from_estimator(Tagger().fit(), None, 1)
    np.testing.assert_array_equal(display.path_.get_ydata(), [2, 1, 1, 0])
    assert display.right_ is display.wrong_ is None
    assert display.ax_.get_xlabel() == "Position"


def test_without_errors_there_are_no_red_circles(ax):
    decoded = ["noun", "verb", "verb", "other"]
    display = SequenceDisplay.from_values(MARGINALS, CLASSES, decoded, decoded, ax=ax)
    assert display.wrong_ is None
    assert display.right_.get_xdata().tolist() == [0, 1, 2, 3]


def test_of_many_classes_only_those_that_matter_are_shown(ax):
    P = np.zeros((3, 41))
    P[:, 7], P[:, 20], P[1, 3], P[2, 30] = 0.6, 0.37, 0.03, 0.009
    P[0, 40] = 0.03
    display = SequenceDisplay.from_values(P, range(41), [7, 7, 7], [7, 33, None], ax=ax)
    # 30 never reaches 1 %; 33 is true somewhere and needs a row for its circle
    assert display.shown_.tolist() == [3, 7, 20, 33, 40]
    np.testing.assert_array_equal(display.image_.get_array(), P[:, display.shown_].T)
    assert display.path_.get_ydata().tolist() == [1, 1, 1]
    assert display.wrong_.get_data()[1].tolist() == [3]
    assert _words(ax.get_yticklabels()) == ["3", "7", "20", "33", "40"]
    assert ax.get_ylabel() == "5 of 41 classes"
    every = SequenceDisplay.from_values(P[:, :40], range(40), [7, 7, 7], ax=Figure().subplots())
    assert len(every.shown_) == 40
    assert every.ax_.get_ylabel() == ""


@pytest.mark.parametrize(
    "style, ground, ink", [("default", 1.0, 0.0), ("dark_background", 0.0, 1.0)]
)
def test_colours_suit_the_style(style, ground, ink):
    with plt.style.context(style):
        display = SequenceDisplay.from_values(MARGINALS, CLASSES, ["noun"] * 4)
    assert display.image_.cmap(0.0) == pytest.approx((ground, ground, ground, 1.0))
    assert to_rgb(display.path_.get_color()) == (ink, ink, ink)


def test_transparent_axes_take_the_colour_of_the_figure():
    ax = Figure(facecolor="black").subplots()
    ax.set_facecolor("none")
    display = SequenceDisplay.from_values(MARGINALS, CLASSES, ["noun"] * 4, ax=ax)
    assert display.image_.cmap(0.0) == (0.0, 0.0, 0.0, 1.0)


def test_long_sequences_have_numbers_in_place_of_tokens(rng):
    P = rng.dirichlet(np.ones(2), size=500)
    display = SequenceDisplay.from_values(P, ["a", "b"], ["a"] * 500, tokens=["word"] * 500)
    assert display.ax_.get_xlabel() == "Position"


def test_one_position_can_be_drawn():
    display = SequenceDisplay.from_values([[0.2, 0.8]], [0, 1], [1], [0])
    assert display.wrong_.get_ydata().tolist() == [0]


@pytest.mark.parametrize(
    "values, words",
    [
        ((MARGINALS, CLASSES[:2], ["noun"] * 4), r"marginals must have shape \(length, 2\)"),
        ((np.empty((0, 3)), CLASSES, []), r"marginals must have shape \(length, 3\)"),
        ((2 * MARGINALS, CLASSES, ["noun"] * 4), "marginals must be probabilities"),
        ((MARGINALS * np.nan, CLASSES, ["noun"] * 4), "marginals must be probabilities"),
        ((MARGINALS, CLASSES, ["noun"] * 3), r"decoded must have shape \(4,\)"),
        ((MARGINALS, CLASSES, [None] * 4), "decoded must hold labels that are among classes"),
        ((MARGINALS, CLASSES, ["noun"] * 4, ["x"] * 4), "y_true must hold labels .*; missing: 'x'"),
        ((MARGINALS, CLASSES, ["noun"] * 4, None, ["a"]), "tokens must be 4, one for each"),
    ],
)
def test_bad_sequences_are_named(values, words):
    with pytest.raises(ValueError, match=words):
        SequenceDisplay.from_values(*values)


def test_bad_choices_of_a_sequence_are_named():
    model = Tagger().fit()
    with pytest.raises(ValueError, match="index must be a whole number >= 0 and <= 1, got 2"):
        SequenceDisplay.from_estimator(model, None, 2)
    with pytest.raises(ValueError, match="y_true must hold 2 sequences, one for each in X; got 1"):
        SequenceDisplay.from_estimator(model, None, y_true=[["noun"] * 4])
    with pytest.raises(ValueError, match="tokens must hold 2 sequences"):
        SequenceDisplay.from_estimator(model, None, tokens=[["a"] * 4])


def test_estimators_must_be_fitted_models_of_sequences():
    other = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(NotFittedError):
        TransitionDisplay.from_estimator(Tagger())
    with pytest.raises(TypeError, match="must have transitions_, as KernelCRF does; got Logistic"):
        TransitionDisplay.from_estimator(other)
    with pytest.raises(TypeError, match="must have predict_marginals, as KernelCRF does"):
        SequenceDisplay.from_estimator(other, None)
