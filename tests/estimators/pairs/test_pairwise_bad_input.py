"""Estimators for pairs on bad input: an error or a warning that names what is wrong, never a wrong model."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from gramian import (
    PairKFold,
    Pairs,
    PairwiseLogisticRegression,
    PairwiseRanker,
    PairwiseRidge,
    PairwiseSVC,
)
from gramian.kernels import RBF, Precomputed
from gramian.kernels import pairwise as pk
from gramian.selection import CrossValidationSearch

pytestmark = pytest.mark.usefixtures("one_thread")

RIDGE, KLR, MARGIN, RANK = PairwiseRidge, PairwiseLogisticRegression, PairwiseSVC, PairwiseRanker
CLASSIFIERS = [KLR, MARGIN]
ESTIMATORS = [RIDGE, KLR, MARGIN, RANK]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
classifiers = pytest.mark.parametrize("estimator", CLASSIFIERS)

_RNG = np.random.default_rng(0)
LEFT, RIGHT = _RNG.normal(size=(8, 2)), _RNG.normal(size=(6, 4))
CELLS = _RNG.permutation(48)[:30]
INDEX = CELLS // 6, CELLS % 6
PAIRS = Pairs(LEFT, RIGHT, *INDEX)
VALUES = _RNG.normal(size=30)
LABELS = (VALUES > 0).astype(int)
WIDE = PAIRS.to_wide()


def target(estimator):
    return LABELS if estimator in CLASSIFIERS else VALUES


def similarity(features, shift=0.0):
    return features @ features.T + np.eye(len(features)) - shift * np.eye(len(features))


# --- pairs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index, error, message",
    [
        (([8], [0]), ValueError, r"left_index must lie between 0 and 7.*got 8 at position 0"),
        (
            ([0, 1], [0, 6]),
            ValueError,
            r"right_index must lie between 0 and 5.*got 6 at position 1",
        ),
        (([-1], [0]), ValueError, r"left_index must lie between 0 and 7.*got -1"),
        (([0.5], [0]), TypeError, "left_index must hold integers"),
        (([0], [float("nan")]), TypeError, "right_index must hold integers"),
        (([0, 1], [0]), ValueError, "must have the same length.*got 2 and 1"),
    ],
)
def test_indices_out_of_range(index, error, message):
    with pytest.raises(error, match=message):
        Pairs(LEFT, RIGHT, *index)


def test_a_pair_with_a_missing_object():
    pd = pytest.importorskip("pandas")
    drugs = pd.DataFrame(LEFT, index=[f"D{k}" for k in range(8)])
    targets = pd.DataFrame(RIGHT, index=[f"T{k}" for k in range(6)])
    frame = pd.DataFrame({"drug": ["D0", "D9", "D1"], "target": ["T0", "T1", "T7"]})
    with pytest.raises(ValueError, match=r"1 pair names a left object .* first: 'D9' \(row 1\)"):
        Pairs.from_frame(frame, drugs, targets, left="drug", right="target")
    with pytest.raises(ValueError, match=r"1 pair names a right object .* first: 'T7' \(row 2\)"):
        Pairs.from_frame(frame.assign(drug="D0"), drugs, targets, left="drug", right="target")


@every_estimator
@pytest.mark.parametrize("form", ["pairs", "wide"])
def test_a_repeated_pair_with_conflicting_values(estimator, form):
    again = PAIRS[np.r_[np.arange(30), 4]]
    y = np.r_[target(estimator), 1 - target(estimator)[4]]
    X = again if form == "pairs" else again.to_wide()
    with pytest.warns(
        UserWarning, match=r"1 pairs occur more than once with different y.*row 4.*row 30"
    ):
        estimator(regularization=1.0).fit(X, y)
    y[30] = y[4]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(regularization=1.0).fit(X, y)


def test_conflicting_labels_are_shown_as_given():
    again = PAIRS[np.r_[np.arange(30), 4]]
    names = np.array(["off", "on"])[np.r_[LABELS, 1 - LABELS[4]]]
    with pytest.warns(UserWarning, match=r"has y = '(off|on)' \(row 4\) and '(off|on)' \(row 30\)"):
        KLR().fit(again, names)


@every_estimator
def test_no_pairs(estimator):
    with pytest.raises(ValueError, match="X holds no pairs"):
        estimator(regularization=1.0).fit(PAIRS[:0], target(estimator)[:0])


@every_estimator
def test_other_lengths(estimator):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator(regularization=1.0).fit(PAIRS, target(estimator)[:-1])
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(30,\)"):
        estimator(regularization=1.0).fit(PAIRS, target(estimator), np.ones(29))
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        estimator(regularization=1.0).fit(PAIRS, target(estimator), -np.ones(30))


@pytest.mark.parametrize("estimator", [RIDGE, RANK])
@pytest.mark.parametrize("form", [PAIRS, WIDE], ids=["pairs", "wide"])
def test_values_that_are_no_numbers(estimator, form):
    bad = VALUES.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator(regularization=1.0).fit(form, bad)
    with pytest.raises(ValueError, match="y"):
        estimator(regularization=1.0).fit(form, None)
    with pytest.raises((ValueError, TypeError), match=r"y must hold numbers|could not convert"):
        estimator(regularization=1.0).fit(form, np.array(["a"] * 30))


@classifiers
@pytest.mark.parametrize("form", [PAIRS, WIDE], ids=["pairs", "wide"])
def test_labels_that_are_none(estimator, form):
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator(regularization=1.0).fit(form, VALUES)
    with pytest.raises(ValueError, match="y"):
        estimator(regularization=1.0).fit(form, None)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        estimator(regularization=1.0).fit(form, np.where(np.arange(30) == 3, np.nan, LABELS))


@classifiers
@pytest.mark.parametrize("form", [PAIRS, WIDE], ids=["pairs", "wide"])
def test_one_class(estimator, form):
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class: 1"):
        estimator(regularization=1.0).fit(form, np.ones(30, dtype=int))


def test_folds_of_one_class():
    """All positives belong to one left object: some folds have none to learn from."""
    y = (PAIRS.left_index == 0).astype(int)
    with pytest.warns(UserWarning, match=r"setting 'B'|setting B"):
        list(PairKFold("B").split(PAIRS, y))


@every_estimator
def test_wide_tables_with_bad_numbers(estimator):
    bad = WIDE.copy()
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator(regularization=1.0).fit(bad, target(estimator))
    with pytest.raises(ValueError, match="X must hold numbers"):
        estimator(regularization=1.0).fit(np.full((30, 4), "text"), target(estimator))
    with pytest.raises(ValueError, match="Expected 2D array"):
        estimator(regularization=1.0).fit(WIDE[:, 0], target(estimator))


# --- similarities ---------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("side", ["left", "right"])
def test_similarities_must_be_symmetric(estimator, side):
    K, T = similarity(LEFT), similarity(RIGHT)
    (K if side == "left" else T)[0, 1] += 0.5
    model = estimator("precomputed", "precomputed", regularization=1.0)
    with pytest.raises(ValueError, match=rf"X.{side} must be the symmetric.*reaches 0.5"):
        model.fit(Pairs(K, T, *INDEX), target(estimator))


@every_estimator
@pytest.mark.parametrize("side", ["left", "right"])
def test_similarities_must_be_square(estimator, side):
    K, T = similarity(LEFT), similarity(RIGHT)
    K, T = (K[:, :5], T) if side == "left" else (K, T[:, :5])
    with pytest.raises(ValueError, match=rf"X.{side} must be the square matrix of similarities"):
        estimator("precomputed", "precomputed", regularization=1.0).fit(
            Pairs(K, T, *INDEX), target(estimator)
        )


@every_estimator
def test_wide_tables_with_an_odd_number_of_columns(estimator):
    message = r"X has 5 columns, an odd number.*left_columns or right_columns"
    with pytest.raises(ValueError, match=message):
        estimator().fit(WIDE[:, :5], target(estimator))
    estimator(left_columns=[0, 1]).fit(WIDE[:, :5], target(estimator))
    estimator(right_columns=[0]).fit(WIDE[:, :5], target(estimator))


def test_wide_tables_are_no_similarities():
    with pytest.raises(ValueError, match="must be the square matrix of similarities"):
        RIDGE("precomputed", "precomputed").fit(WIDE, VALUES)


def indefinite(n=8, seed=5):
    """Similarities with two negative eigenvalues, the smallest of which is -2."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    S = (Q * np.r_[-2.0, -1.0, np.linspace(0.5, 4, n - 2)]) @ Q.T
    return (S + S.T) / 2


@every_estimator
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_indefinite_similarities_are_refused(estimator, side, complete, sparse):
    """Whatever the solver: the objective has no minimum, and a gap of zero would certify nothing."""
    K, T = (
        (indefinite(), similarity(RIGHT)) if side == "left" else (similarity(LEFT), indefinite(6))
    )
    make = sp.csr_array if sparse else np.asarray
    index = (np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)) if complete else INDEX
    y = np.resize(target(estimator), len(index[0]))
    X = Pairs(make(K), make(T), *index)
    solvers = ["auto", "kernel_cg", "newton"]
    solvers += ["minres", "closed_form"] if estimator is RIDGE else []
    for solver in solvers:
        model = estimator("precomputed", "precomputed", solver=solver)
        with pytest.raises(
            ValueError,
            match=rf"X.{side} is not positive semidefinite: its smallest eigenvalue is -2,.*indefinite='clip'",
        ):
            model.fit(X, y)
        assert not hasattr(model, "solution_")


@every_estimator
def test_indefinite_similarities_of_one_kind_are_refused(estimator):
    A = np.random.default_rng(0).normal(size=(10, 10))
    index = np.arange(30) % 10, np.arange(30) * 7 % 9
    for pairwise_kernel in ("symmetric", "antisymmetric", "ranking", "mlpk", "kronecker"):
        right = "precomputed" if pairwise_kernel == "kronecker" else None
        model = estimator("precomputed", right, pairwise_kernel=pairwise_kernel)
        for pairs in (Pairs(A + A.T, None, *index), Pairs(A + A.T, A + A.T, *index)):
            with pytest.raises(ValueError, match=r"X.left is not positive semidefinite"):
                model.fit(pairs, target(estimator))


def test_similarities_of_the_right_objects_of_one_table_are_checked():
    """The left kernel takes the rows of the same table for features."""
    pairs = Pairs(indefinite(), None, INDEX[0], INDEX[1])
    with pytest.raises(ValueError, match=r"X.right is not positive semidefinite"):
        RIDGE("rbf", "precomputed").fit(pairs, VALUES)


@every_estimator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("repair", ["error", "clip", "flip", "shift"])
def test_rounding_is_not_indefinite(estimator, dtype, repair):
    """Matrices of low rank have eigenvalues of either sign and the size of rounding errors; they are left alone."""
    rng = np.random.default_rng(0)
    F, H = rng.normal(size=(40, 2)).astype(dtype), rng.normal(size=(30, 1)).astype(dtype)
    K, T = F @ F.T, H @ H.T
    assert np.linalg.eigvalsh(K)[0] < 0
    X = Pairs((K + K.T) / 2, (T + T.T) / 2, rng.integers(40, size=60), rng.integers(30, size=60))
    y = np.resize(target(estimator), 60)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pairs occur more than once")
        model = estimator(
            "precomputed", "precomputed", indefinite=repair, max_iter=3, regularization=1.0
        )
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        model.fit(X, y)
    assert model.kernel_ == pk.Kronecker(Precomputed(), Precomputed())


@every_estimator
def test_new_similarities_are_to_the_same_objects(estimator):
    K, T = similarity(LEFT), similarity(RIGHT)
    model = estimator("precomputed", "precomputed", regularization=1.0).fit(
        Pairs(K, T, *INDEX), target(estimator)
    )
    with pytest.raises(ValueError, match=r"X.left has 5 columns, but .* was fitted with 8"):
        model.predict(Pairs(K[:, :5], T, [0], [0]))


# --- kernels --------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("name", ["symmetric", "antisymmetric", "ranking", "mlpk"])
@pytest.mark.parametrize("form", [PAIRS, WIDE], ids=["pairs", "wide"])
def test_pairs_of_two_kinds_with_a_kernel_for_one(estimator, name, form):
    model = estimator(pairwise_kernel=name, regularization=1.0)
    if form is WIDE:
        model.set_params(left_columns=[0, 1])
    with pytest.raises(ValueError, match="left has 2 columns, right has 4"):
        model.fit(form, target(estimator))


@every_estimator
def test_cartesian_knows_nothing_about_two_new_objects(estimator):
    model = estimator(
        pairwise_kernel=pk.Cartesian(RBF(1.0), RBF(1.0)), intercept_variance=1.0, regularization=1.0
    )
    model.fit(PAIRS, target(estimator))
    fresh = Pairs(LEFT + 9, RIGHT + 9, [0, 1], [0, 0])
    latent = getattr(model, "decision_function", model.predict)
    with pytest.warns(UserWarning, match="2 of 2 pairs have two objects that were not in training"):
        values = latent(fresh)
    np.testing.assert_allclose(values, np.full(2, model.intercept_[0]))
    known = Pairs(np.vstack([LEFT[:1], LEFT + 9]), RIGHT, [0, 1, 2], [0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        latent(known)


PARAMETERS = {
    "pairwise_kernel": [("kroneker", ValueError), (3, TypeError)],
    "left_kernel": [("rfb", ValueError), (2.5, TypeError)],
    "right_kernel": [("rfb", ValueError), (2.5, TypeError)],
    "optimize": [("grid", ValueError)],
    "regularization": [(0.0, ValueError), (-1.0, ValueError), ("1", TypeError)],
    "intercept_variance": [(-1.0, ValueError), (np.nan, ValueError)],
    "indefinite": [("cut", ValueError), (None, ValueError)],
    "operator": [("dense", ValueError), (None, ValueError)],
    "solver": [("cg", ValueError), ("parameter_cg", ValueError)],
    "tol": [(-1e-3, ValueError), (None, TypeError)],
    "max_iter": [(0, ValueError), (2.5, TypeError)],
    "max_inner": [(0, ValueError), (1.5, TypeError)],
    "patience": [(0, ValueError), (1.5, TypeError)],
    "warm_start": [(1, TypeError)],
    "class_weight": [("equal", ValueError), ({0: -1.0}, ValueError)],
    "groups": [("both", ValueError), (3, ValueError)],
}


@every_estimator
@pytest.mark.parametrize("name", PARAMETERS)
def test_wrong_parameters_are_named(estimator, name):
    if name not in estimator(regularization=1.0).get_params():
        return
    for value, error in PARAMETERS[name]:
        with pytest.raises(error, match=name):
            estimator(**{name: value}).fit(PAIRS, target(estimator))


@every_estimator
def test_wrong_parameters_of_a_search_are_named(estimator):
    with pytest.raises(ValueError, match="max_evaluations"):
        estimator(optimize=CrossValidationSearch(max_evaluations=0)).fit(PAIRS, target(estimator))


@pytest.mark.parametrize("estimator", [RIDGE, KLR])
@pytest.mark.parametrize(
    "columns, message",
    [
        ({"left_columns": [0, 9]}, "left_columns holds 9, but X has 6 columns"),
        ({"right_columns": [True, False]}, "right_columns as a mask must have 6 entries, .* got 2"),
        (
            {"left_columns": ["mass"]},
            "left_columns holds 'mass', which is no column: X is not a DataFrame",
        ),
        ({"right_columns": [0.5]}, "right_columns holds 0.5, which is no column"),
    ],
)
def test_wrong_columns_are_named(estimator, columns, message):
    with pytest.raises(ValueError, match=message):
        estimator(**columns).fit(WIDE, target(estimator))


def test_column_names_that_are_not_there():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(WIDE, columns=list("abcdef"))
    with pytest.raises(
        ValueError, match=r"left_columns holds 'z', which is no column: X has \['a', 'b'"
    ):
        RIDGE(left_columns=["a", "z"]).fit(frame, VALUES)


def test_primal_needs_linear_kernels():
    with pytest.raises(ValueError, match="primal form needs"):
        RIDGE("rbf", "linear", operator="primal").fit(PAIRS, VALUES)


def test_closed_form_needs_complete_pairs():
    with pytest.raises(ValueError, match=r"complete|every"):
        RIDGE(solver="closed_form").fit(PAIRS, VALUES)


@pytest.mark.parametrize("estimator", [KLR, MARGIN, RANK])
@pytest.mark.parametrize("solver", ["minres", "closed_form"])
def test_solvers_of_linear_systems_are_for_ridge(estimator, solver):
    with pytest.raises(ValueError, match="solver must be one of"):
        estimator(solver=solver, regularization=1.0).fit(PAIRS, target(estimator))


def test_ranking_has_one_output():
    with pytest.raises(ValueError, match="y"):
        RANK().fit(PAIRS, np.column_stack([VALUES, VALUES]))
    with pytest.raises(ValueError, match="y"):
        RANK().fit(WIDE, np.column_stack([VALUES, VALUES]))


# --- validation pairs -----------------------------------------------------------------------


@every_estimator
def test_validation_pairs_and_values_come_together(estimator):
    y = target(estimator)
    with pytest.raises(
        ValueError, match="X_val and y_val must be given together; y_val is missing"
    ):
        estimator(regularization=1.0).fit(PAIRS, y, X_val=PAIRS)
    with pytest.raises(
        ValueError, match="X_val and y_val must be given together; X_val is missing"
    ):
        estimator(regularization=1.0).fit(PAIRS, y, y_val=y)


@every_estimator
@pytest.mark.parametrize("form", [PAIRS, WIDE], ids=["pairs", "wide"])
def test_validation_pairs_must_fit(estimator, form):
    y = target(estimator)
    model = estimator(regularization=1.0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(form, y, X_val=form, y_val=y[:5])
    with pytest.raises(ValueError, match=r"X_val.* 4 (features|columns)"):
        model.fit(form, y, X_val=WIDE[:, :4], y_val=y)
    with pytest.raises(ValueError, match=r"X_val\.(left|right) has 2 columns"):
        model.fit(form, y, X_val=Pairs(LEFT, RIGHT[:, :2], *INDEX), y_val=y)
    with pytest.raises(ValueError, match="X_val"):
        model.fit(form, y, X_val=np.full_like(WIDE, np.nan), y_val=y)


@pytest.mark.parametrize("estimator", [RIDGE, RANK])
def test_validation_values_must_be_numbers(estimator):
    bad = np.where(np.arange(30) == 2, np.nan, VALUES)
    with pytest.raises(ValueError, match=r"y_val|y_true"):
        estimator(regularization=1.0).fit(PAIRS, VALUES, X_val=PAIRS, y_val=bad)


@pytest.mark.parametrize("estimator", [RIDGE, RANK])
def test_validation_values_must_differ(estimator):
    for rows in (slice(0), slice(None)):
        with pytest.raises(ValueError, match="y_val must hold at least two different values"):
            estimator(regularization=1.0).fit(
                PAIRS, VALUES, X_val=PAIRS[rows], y_val=np.ones(30)[rows]
            )


def test_validation_is_for_one_output():
    with pytest.raises(ValueError, match=r"y has shape \(30, 2\): fit one at a time"):
        RIDGE().fit(PAIRS, np.column_stack([VALUES] * 2), X_val=PAIRS, y_val=VALUES)


@classifiers
def test_validation_classes_must_be_known(estimator):
    with pytest.raises(ValueError, match=r"y_val holds classes that y does not have: .2."):
        estimator(regularization=1.0).fit(PAIRS, LABELS, X_val=PAIRS, y_val=LABELS + 1)
    with pytest.raises(ValueError, match="y_val must hold both classes"):
        estimator(regularization=1.0).fit(PAIRS, LABELS, X_val=PAIRS, y_val=np.ones(30, dtype=int))


# --- prediction -----------------------------------------------------------------------------


@every_estimator
def test_prediction_before_fit(estimator):
    with pytest.raises(NotFittedError):
        estimator(regularization=1.0).predict(PAIRS)
    with pytest.raises(NotFittedError):
        estimator(regularization=1.0).score(PAIRS, target(estimator))
    if estimator is RIDGE:
        with pytest.raises(NotFittedError):
            estimator(regularization=1.0).held_out_predictions("A")


@every_estimator
def test_other_features_are_refused(estimator):
    for form in (PAIRS, WIDE):
        model = estimator(regularization=1.0).fit(form, target(estimator))
        with pytest.raises(ValueError, match="features"):
            model.predict(WIDE[:, :4])
        right_cut = RIGHT if form is PAIRS else RIGHT[:, :3]
        with pytest.raises(ValueError, match=r"X\.left has 1 columns"):
            model.predict(Pairs(LEFT[:, :1], right_cut, [0], [0]))
        with pytest.raises(ValueError, match="NaN"):
            model.predict(np.full_like(WIDE, np.nan))


def test_held_out_settings():
    complete = Pairs.complete(LEFT, RIGHT)
    model = RIDGE().fit(complete, np.arange(48.0))
    with pytest.raises(ValueError, match=r"setting must be one of .* got 'E'"):
        model.held_out_predictions("E")


# --- a failed fit -----------------------------------------------------------------------------

FAILURES = {
    "index": lambda m, y: m.fit(Pairs(LEFT, RIGHT, [99], [0]), y),
    "length": lambda m, y: m.fit(PAIRS, y[:3]),
    "kernel": lambda m, y: m.set_params(pairwise_kernel="mlpk").fit(PAIRS, y),
    "parameter": lambda m, y: m.set_params(regularization=-1.0).fit(PAIRS, y),
    "validation": lambda m, y: m.fit(PAIRS, y, X_val=WIDE[:, :3], y_val=y),
    "wide": lambda m, y: m.fit(np.where(WIDE > 0, np.inf, WIDE), y),
    "columns": lambda m, y: m.set_params(left_columns=[77]).fit(WIDE, y),
    "similarity": lambda m, y: m.set_params(left_kernel="precomputed").fit(PAIRS, y),
}


@every_estimator
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_fit_leaves_the_estimator_as_it_was(estimator, name):
    y = target(estimator)
    fresh = estimator(regularization=1.0)
    with pytest.raises((ValueError, TypeError)):
        FAILURES[name](fresh, y)
    assert set(vars(fresh)) == set(vars(estimator(regularization=1.0)))
    model = estimator(regularization=1.0).fit(WIDE[:, :4], y)
    predicted, before = model.predict(WIDE[:, :4]), set(vars(model))
    with pytest.raises((ValueError, TypeError)):
        FAILURES[name](model, y)
    assert set(vars(model)) == before
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(WIDE[:, :4]), predicted)
