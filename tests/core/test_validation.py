"""Checks that many arguments share."""

import numpy as np
import pytest

from gramian._core.validation import check_number, check_shape, listed, repeated


@pytest.mark.parametrize("shape", [("n", "m"), (2, "m"), (2, 3), (np.int64(2), 3)])
def test_shapes_that_fit(shape):
    check_shape("X", np.ones((2, 3)), shape, "one row for each example")


@pytest.mark.parametrize(
    "shape, words",
    [
        ((2,), r"X must have shape \(2,\), one row for each example; got \(2, 3\)"),
        (("n", "n"), r"shape \(n, n\)"),
        ((np.int64(3), np.int64(3)), r"shape \(3, 3\)"),
        (("n", "m", "q"), r"shape \(n, m, q\)"),
    ],
)
def test_shapes_that_do_not_fit(shape, words):
    with pytest.raises(ValueError, match=words):
        check_shape("X", np.ones((2, 3)), shape, "one row for each example")


def test_a_word_is_a_size_above_zero():
    with pytest.raises(ValueError, match=r"got \(0, 3\)"):
        check_shape("X", np.ones((0, 3)), ("n", "m"), "one row for each example")


@pytest.mark.parametrize(
    "value, options, error",
    [
        (1.5, {"high": 1}, ValueError),
        (1, {"high": 1, "strict": True}, ValueError),
        (np.nan, {}, ValueError),
        (np.inf, {}, ValueError),
        (True, {}, TypeError),
        (1.0, {"whole": True}, TypeError),
    ],
)
def test_numbers_out_of_bounds(value, options, error):
    with pytest.raises(error, match=r"s must be a (finite|whole) number >=? 0"):
        check_number("s", value, **options)


def test_names_in_messages():
    assert repeated(["a", "b", "a", "c", "b", "a"]) == ["a", "b"]
    assert listed(range(7)) == "0, 1, 2, 3, 4 and 2 more"
