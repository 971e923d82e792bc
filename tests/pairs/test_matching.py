"""The same objects in different tables."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.pairs import match_objects


class TestMatchObjects:
    def test_the_same_table(self):
        doubled = np.ones((3, 1))
        np.testing.assert_array_equal(match_objects(doubled, None, doubled, None), [0, 1, 2])

    def test_ids_before_features(self):
        found = match_objects(np.eye(2), np.array(["a", "b"]), np.eye(2), np.array(["b", "c"]))
        np.testing.assert_array_equal(found, [1, -1])

    @pytest.mark.parametrize("a", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("b", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_features(self, a, b, dtype):
        there = np.array([[0.0, 0.1], [0.3, 0.0], [-0.0, 0.1], [0.0, 0.0]])
        wanted = np.array([[0.3, 0.0], [0.1, 0.0], [0.0, 0.1], [0.0, -0.0]])
        found = match_objects(a(there), None, b(wanted.astype(dtype)), np.arange(4))
        np.testing.assert_array_equal(found, [1, -1, 0, 3])

    def test_other_features(self):
        with pytest.raises(ValueError, match="2 and 3 of them"):
            match_objects(np.eye(2), None, np.eye(3), None)
