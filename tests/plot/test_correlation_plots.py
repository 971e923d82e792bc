"""Label correlations side by side, the loss against a correlation, and progress of the dual."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from gramian.labels import class_correlation, taxonomy_correlation
from gramian.plot import (
    ConvergenceDisplay,
    plot_hamming_against_correlation,
    plot_label_correlation,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _words(labels):
    return [label.get_text() for label in labels]


# --- label correlations ---------------------------------------------------------------------------


TREE = {"cat": "animal", "dog": "animal", "car": "machine", "van": "machine"}
NAMES = ["cat", "car", "dog", "van"]


def test_shows_each_correlation_in_the_order_of_the_prior(rng):
    prior = taxonomy_correlation(TREE, NAMES)
    train = class_correlation(rng.integers(0, 2, size=(9, 4)))
    display = plot_label_correlation(prior, train, names=NAMES)
    order = display.order_
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(list(order).index(0) - list(order).index(2)) == 1  # cat and dog
    for image, matrix in zip(display.images_, (prior, train), strict=True):
        np.testing.assert_allclose(image.get_array(), matrix[np.ix_(order, order)])
        assert image.get_clim() == (-1, 1)
    first, second = display.axes_
    ordered = [NAMES[label] for label in order]
    assert _words(first.get_yticklabels()) == ordered
    assert _words(first.get_xticklabels()) == _words(second.get_xticklabels()) == ordered
    assert (first.get_title(), second.get_title()) == ("Prior", "Training labels")
    assert display.colorbar_.ax.get_ylabel() == "Correlation"


def test_keeps_the_order_and_uses_the_axes_given(rng):
    prior = class_correlation(rng.integers(0, 2, size=(9, 5)))
    axes = Figure().subplots(1, 2)
    display = plot_label_correlation(prior, predicted=4 * prior, axes=axes, order=False)
    np.testing.assert_array_equal(display.order_, np.arange(5))
    assert display.axes_ == list(axes)
    assert display.figure_ is axes[0].figure
    assert axes[1].get_title() == "Predictions"
    for image in display.images_:  # a covariance is scaled
        np.testing.assert_allclose(image.get_array(), prior)
    assert _words(axes[0].get_yticklabels()) == list("01234")
    alone = Figure().subplots()
    assert plot_label_correlation(prior, axes=alone).axes_ == [alone]


def test_frames_bring_their_names(rng):
    prior = taxonomy_correlation(TREE, NAMES)
    frame = pd.DataFrame(prior, NAMES, NAMES)
    display = plot_label_correlation(frame, frame.iloc[::-1, ::-1], order=False)
    assert _words(display.axes_[0].get_yticklabels()) == NAMES
    np.testing.assert_array_equal(display.images_[1].get_array(), prior)


def test_many_labels_have_no_names(rng):
    display = plot_label_correlation(class_correlation(rng.integers(0, 2, size=(9, 31))))
    assert _words(display.axes_[0].get_yticklabels()) == []


@pytest.mark.parametrize("n_labels", [1, 2])
def test_few_labels_can_be_shown(n_labels):
    display = plot_label_correlation(np.eye(n_labels))
    assert display.images_[0].get_array().shape == (n_labels, n_labels)


def test_label_correlation_refuses():
    with pytest.raises(ValueError, match=r"train must have shape \(n_labels, n_labels\)"):
        plot_label_correlation(np.eye(3), np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"predicted must have the shape of prior, \(3, 3\)"):
        plot_label_correlation(np.eye(3), predicted=np.eye(2))
    with pytest.raises(ValueError, match="prior must have a positive diagonal, got 0"):
        plot_label_correlation(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="names must be 3, one for each label; got 2"):
        plot_label_correlation(np.eye(3), names=["a", "b"])
    with pytest.raises(ValueError, match="axes must be 2, one for each matrix"):
        plot_label_correlation(np.eye(3), np.eye(3), axes=Figure().subplots())


# --- Hamming loss against a correlation -----------------------------------------------------------


def test_loss_is_drawn_in_the_order_of_correlations_with_its_minimum():
    ax = Figure().subplots()
    display = plot_hamming_against_correlation(
        [0.5, -0.5, 0.0], [0.4, 0.1, 0.2], errors=[0.03, 0.01, 0.02], ax=ax
    )
    np.testing.assert_array_equal(display.line_.get_data(), [[-0.5, 0.0, 0.5], [0.1, 0.2, 0.4]])
    np.testing.assert_array_equal(display.minimum_.get_data(), [[-0.5], [0.1]])
    np.testing.assert_array_equal(display.zero_line_.get_xdata(), [0.0, 0.0])
    box = display.band_.get_paths()[0].get_extents()
    np.testing.assert_allclose([box.ymin, box.ymax], [0.09, 0.43])
    assert display.ax_ is ax
    assert plot_hamming_against_correlation([0.0], [0.2]).band_ is None


@pytest.mark.parametrize(
    "arguments, errors, words",
    [
        (([], []), None, "correlations must have shape"),
        (([0.0, 0.5], [0.1]), None, r"losses must have shape \(2,\)"),
        (([0.0, 1.0], [0.1, 0.2]), None, "between -1 and 1, got 1"),
        (([0.0], [np.nan]), None, "losses must be finite"),
        (([0.0], ["low"]), None, "losses must be numbers"),
        (([0.0], [0.1]), [-0.1], "errors must not be negative"),
    ],
)
def test_bad_losses_are_refused(arguments, errors, words):
    with pytest.raises((TypeError, ValueError), match=words):
        plot_hamming_against_correlation(*arguments, errors=errors)


# --- progress of the dual -------------------------------------------------------------------------


def _history(objective, gap, **more):
    history = {"objective": np.array(objective), "gap": np.array(gap)}
    return history | {name: np.array(values) for name, values in more.items()}


def test_the_dual_is_shown_relative_to_the_best_of_all_curves():
    ax = Figure().subplots()
    histories = {
        "fast": _history([14.0, 10.0], [14.0, 0.0], operations=[0, 50]),
        "slow": _history([14.0, 12.0], [14.0, 3.0], operations=[0, 900]),
    }
    display = ConvergenceDisplay(histories).plot(ax, x="operations", y="dual_distance")
    fast, slow = display.line_
    np.testing.assert_array_equal(fast.get_ydata(), [1.0, np.nan])  # the best itself has no place
    np.testing.assert_allclose(slow.get_ydata(), [1.0, 0.1])
    np.testing.assert_array_equal(slow.get_xdata(), [0, 900])
    assert "dual" in ax.get_ylabel()


def test_operations_must_have_been_counted():
    histories = {"Newton": _history([2.0, 1.0], [1.0, 0.0])}
    with pytest.raises(ValueError, match="x='operations' is not in the history of 'Newton'"):
        ConvergenceDisplay(histories).plot(Figure().subplots(), x="operations")


def test_bounds_are_drawn_with_the_band_between_them():
    ax = Figure().subplots()
    histories = {
        "fast": _history([14.0, 10.0], [14.0, 0.5]),
        "slow": _history([14.0, 12.0, 11.0], [np.inf, 15.0, 3.0]),
    }
    display = ConvergenceDisplay(histories, tol=1e-3).plot(ax, x="iterations", y="bounds")
    for (upper, lower), expected in zip(
        zip(display.line_, display.lower_line_, strict=True),
        ([[14.0, 10.0], [0.0, 9.5]], [[14.0, 12.0, 11.0], [np.nan, -3.0, 8.0]]),
        strict=True,
    ):
        np.testing.assert_array_equal([upper.get_ydata(), lower.get_ydata()], expected)
        assert upper.get_color() == lower.get_color()
    box = display.band_[0].get_paths()[0].get_extents()
    assert (box.ymin, box.ymax) == (0.0, 14.0)
    assert ax.get_yscale() == "linear"
    assert (
        ax.get_ylim()[0] == 0.0
    )  # what is below says nothing of an objective that is not negative
    assert display.tol_line_ is None
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fast", "slow"]
    alone = ConvergenceDisplay({"a": histories["fast"]})
    assert alone.plot(Figure().subplots(), x="iterations", y="bounds").band_.get_paths()
    assert alone.plot(Figure().subplots(), x="iterations").band_ is None
