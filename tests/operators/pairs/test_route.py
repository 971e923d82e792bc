"""The route through a sampled Kronecker product: what the cost model chooses."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.operators.pairs.route import Shape, best_route


@pytest.mark.parametrize("itemsize", [4, 8])
def test_complete_data_take_blocks_and_sparse_data_cells(itemsize):
    complete = best_route(Shape(500, 500, 400, 400, 200_000, 200_000), itemsize)
    assert (complete.phase_one, complete.phase_two) == ("blocks", "blocks")
    sparse = best_route(Shape(500, 500, 400, 400, 1_000, 1_000), itemsize)
    assert (sparse.phase_one, sparse.phase_two) == ("cells", "cells")


sizes = st.integers(1, 3000)


@settings(deadline=None, derandomize=True, max_examples=300, database=None)
@given(a=sizes, b=sizes, c=sizes, d=sizes, data=st.data(), itemsize=st.sampled_from([4, 8]))
def test_fewer_coefficients_never_cost_more(a, b, c, d, data, itemsize):
    e, f = data.draw(st.integers(1, b * d)), data.draw(st.integers(1, a * c))
    identity = data.draw(st.sampled_from(["none", "left", "right"]))
    shape = Shape(a, b, c, d, e, f, identity == "left", identity == "right")
    fewer = best_route(replace(shape, e=data.draw(st.integers(0, e))), itemsize)
    every = best_route(shape, itemsize)
    assert 0 <= fewer.cost <= every.cost
    if identity != "none":
        assert every.first == ("left" if identity == "left" else "right")


def test_starting_blas_is_counted_with_an_identity():
    """A few cells are not worth it, whichever factor is an identity."""
    for left in (True, False):
        route = best_route(Shape(3, 3, 3, 3, 4, 4, left, not left), 8)
        assert (route.phase_one, route.phase_two) == ("cells", "cells")


def test_the_same_product_turned_takes_the_other_factor_first():
    shape = Shape(300, 200, 50, 70, 4_000, 6_000)
    assert best_route(shape, 8).first != best_route(shape.turned(), 8).first
