"""Which operator "auto" takes, and what explain() prints."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn

from gramian import KernelLogisticRegression, KernelRidge
from gramian.kernels import RBF, Linear, Matern, RationalQuadratic
from gramian.operators import choose_operator


def chosen(kernel, X, working_memory=1024, **options):
    with sklearn.config_context(working_memory=working_memory):
        return choose_operator(kernel, X, **options)[1].name


@pytest.fixture(scope="module")
def plane():
    return np.random.default_rng(0).uniform(size=(6000, 2))


def test_a_matrix_that_fits_is_stored_when_it_is_small(plane):
    assert chosen(RBF(0.01), plane[:5000]) == "dense"


def test_a_tree_code_replaces_a_stored_matrix_where_it_is_much_cheaper(plane):
    operator, record = choose_operator(RBF(0.01), plane)
    assert record.name == "tree_code"
    assert operator.methods  # planned, to know its cost
    costs = {name: cost for name, cost, _, _ in record.candidates}
    assert 4 * costs["tree_code"] <= costs["dense"]
    assert "times less than all pairs" in record.reason
    assert record.nbytes == operator.nbytes > 0


def test_gradients_keep_the_stored_matrix(plane):
    assert chosen(RBF(0.01), plane, gradients=True) == "dense"
    assert chosen(RBF(0.01), plane, 1, gradients=True) == "tree_code"


def test_what_does_not_fit_and_has_no_far_pairs_is_streamed():
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    assert chosen(RBF(1.0), X, 1) == "streamed"
    assert chosen(Matern(5.0), X[:, :2], 1) == "streamed"
    assert chosen(RationalQuadratic(), X[:, :2], 1) == "streamed"
    assert chosen(RBF(1.0), np.tile(X, (1, 2)), 1) == "streamed"


def test_a_rank_is_consent_to_an_approximation():
    X = np.random.default_rng(0).uniform(size=(1000, 6))
    assert chosen(RBF(1.0), X, 1) == "streamed"
    assert chosen(RBF(1.0), X, 1, rank=20) == "low_rank"
    assert chosen(RBF(1.0), X, rank=20) == "dense"


def test_sparse_examples_have_no_tree_code(plane):
    with sklearn.config_context(working_memory=1):
        record = choose_operator(RBF(0.01), sp.csr_array(plane))[1]
    assert record.name == "streamed"
    remarks = {name: remark for name, _, _, remark in record.candidates}
    assert remarks["tree_code"] == "needs a NumPy array"


def test_the_choice_does_not_depend_on_the_clock(plane):
    first, second = (choose_operator(RBF(0.01), plane)[1] for _ in range(2))
    assert first == second


def test_explain_prints_every_candidate(plane, capsys):
    choose_operator(RBF(0.01), plane)[1].explain()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tree_code: ")
    assert [line.split()[0] for line in lines[2:]] == [
        "dense",
        "linear",
        "streamed",
        "tree_code",
        "low_rank",
    ]
    (own,) = [line for line in lines[2:] if line.endswith("chosen")]
    assert own.split()[:2] == ["tree_code", "1"]


def test_explain_says_when_nothing_was_weighed(plane, capsys):
    choose_operator(RBF(0.01), plane[:50], "streamed")[1].explain()
    assert capsys.readouterr().out == "streamed: asked for\n"


def test_explain_of_a_linear_kernel(capsys):
    choose_operator(Linear(), np.ones((40, 3)))[1].explain()
    assert "linear: 120 feature values" in capsys.readouterr().out


def test_a_model_trained_by_a_tree_code_predicts_as_one_of_a_stored_matrix(plane):
    y = np.sin(9 * plane[:, 0])
    tree, dense = (
        KernelRidge(
            RBF(0.03), operator=name, solver="kernel_cg", tol=1e-12, regularization=1.0
        ).fit(plane[:3000], y[:3000])
        for name in ("tree_code", "dense")
    )
    new = plane[3000:4000]
    np.testing.assert_allclose(tree.predict(new), dense.predict(new), atol=1e-6)


def test_estimators_say_what_auto_weighed(plane):
    labels = plane[:, 0] > 0.5
    model = KernelLogisticRegression(RBF(0.05), tol=1e-3, regularization=1.0).fit(plane, labels)
    assert model.operator_.name == "tree_code"
    assert model.score(plane, labels) > 0.98
