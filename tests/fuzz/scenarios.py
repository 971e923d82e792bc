"""Random calls of estimators: sensible ones, and hostile ones of every kind.

A scenario is made from a seed alone, so that what went wrong can be done again. It ends in one of these ways:

=============  ================================================================================================
finite         The model was fitted; what it predicts and reports is finite.
named error    A ValueError or TypeError that code of gramian or scikit-learn raised on purpose.
raw error      Any other exception: an error of NumPy, SciPy or Python that says nothing about the arguments.
silent NaN     The fit succeeded, and a prediction or the certificate is not finite.
false          Only `certificate_outcome`: the objective is further from the optimum than the gap says.
=============  ================================================================================================

Hangs and crashes are seen by `driver`, which runs scenarios in processes of their own.
"""

import linecache
import traceback
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from fuzz import sequence_scenarios
from fuzz.parts import (
    SMOOTH,
    coupling_of,
    kernel_of,
    labels_of,
    options_of,
    pick,
    table,
    weights_of,
    wrapped,
)

import gramian
from gramian import Pairs, kernels
from gramian.testing import check_certificate

METHODS = ["flat", "orthogonal", "similarity", "independent", "tree_loss"]
SEQUENCES = 0.12  # share of scenarios with label sequences
RELATED = 0.3  # share of those with several outputs in which outputs may learn from each other
TREE = {"P": [0, 1], "Q": {"R": [2, 3]}}


@dataclass(frozen=True)
class Outcome:
    """How a scenario ended, and what is needed to see why."""

    kind: str
    text: str

    @property
    def good(self):
        return self.kind in ("finite", "named error")


def outcome(seed):
    """Run the scenario of a seed."""
    rng = np.random.default_rng(seed)
    described = "before the call"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # a generator of its own says which kind, so that other seeds stay what they are
            chain = np.random.default_rng([seed, 1]).random() < SEQUENCES
            model, X, y, weights, new = (
                sequence_scenarios.sequence_scenario(rng) if chain else _scenario(rng)
            )
            if not chain:
                y = _related(np.random.default_rng([seed, 2]), model, y)
            described = f"{model!r} on {_brief(X)}, {_brief(y)}, {_brief(weights)}"
            with np.errstate(all="ignore"):
                return _used(model, X, y, weights, new, described, rng)
    except Exception as error:
        kind = "named error" if _on_purpose(error) else "raw error"
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} at {where.filename}:{where.lineno}, {described}"
        return Outcome(kind, text[:1500])


def _used(model, X, y, weights, new, described, rng):
    """Fit and predict."""
    model.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    values = {"predict": model.predict(new)}
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            values[name] = getattr(model, name)(new)
    if isinstance(model, gramian.KernelCRF):
        values |= sequence_scenarios.answers(model, new, rng)
    solution = getattr(model, "solution_", None)
    if solution is not None:
        values |= {"gap": solution.gap, "objective": solution.objective}
    for name, value in values.items():
        array = np.asarray(value.todense() if sp.issparse(value) else value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return Outcome("silent NaN", f"{name} of {described}")
    return Outcome("finite", described)


def _on_purpose(error):
    """Whether an exception is a ValueError or TypeError raised by a statement of gramian or scikit-learn."""
    if not isinstance(error, (ValueError, TypeError)) or isinstance(error, UnicodeError):
        return False
    where = traceback.extract_tb(error.__traceback__)[-1]
    known = any(f"/{name}/" in where.filename.replace("\\", "/") for name in ("gramian", "sklearn"))
    return known and "raise" in linecache.getline(where.filename, where.lineno or 0)


def _brief(value):
    if isinstance(value, Pairs):
        return repr(value)
    if sp.issparse(value) or hasattr(value, "shape"):
        dtype = getattr(value, "dtype", "")
        return f"{type(value).__name__}{getattr(value, 'shape', '')} {dtype}"
    return repr(value)[:80]


# --- estimators ------------------------------------------------------------------------------------------


FEATURES = SMOOTH | {
    "operator": ["auto", "dense", "streamed", "low_rank"],
    "solver": ["auto", "newton", "kernel_cg", "exact", "parameter_cg"],
    "rank": [None, 1, 5],
    "copy_X": [True, False],
}
MARGIN = {
    "C": [1.0, 1e-3, 1e3, 1e-8, 1e8, "auto"],
    "intercept_variance": [0.0, 1.0, 1e4],
    "tol": [1e-3, 1e-6, 0.0],
    "max_iter": [50, 5],
    "probability": [False, True],
    "cv": [2, 3],
    "random_state": [None, 0],
}


def _features(rng, estimator, kind, options):
    """An estimator of single examples with its data."""
    n, d = int(pick(rng, [1, 2, 3, 5, 8, 13, 30, 60])), int(pick(rng, [1, 2, 5, 20]))
    kernel = kernel_of(rng)
    X, new = table(rng, n, d), rng.normal(size=(4, d))
    if isinstance(kernel, str) and kernel == "precomputed":
        Z = np.clip(np.nan_to_num(X), -1e3, 1e3)
        X, new = Z @ Z.T, new @ Z.T
        if rng.random() < 0.1:
            X = X - 2.0 * np.eye(n)
    model = estimator(kernel=kernel, **options)
    return model, wrapped(rng, X), labels_of(rng, n, kind), weights_of(rng, n), new


def _classifier(rng):
    options = options_of(rng, FEATURES | {"class_weight": [None, "balanced", {0: 1.0, 1: 2.0}]})
    estimator = pick(rng, [gramian.KernelLogisticRegression, gramian.KernelSVC])
    if estimator is gramian.KernelLogisticRegression and rng.random() < 0.2:
        options["hierarchy"] = TREE
    return _features(rng, estimator, "classes", options)


def _ridge(rng):
    return _features(rng, gramian.KernelRidge, "numbers", options_of(rng, FEATURES))


def _related(rng, model, y):
    """Relate the outputs of a model that can do so; return targets, several of them and some missing for numbers."""
    if not hasattr(model, "coupling") or rng.random() >= RELATED:
        return y
    numbers = isinstance(model, gramian.KernelRidge)
    if numbers and isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind == "f":
        y = y[:, None] * rng.normal(size=int(rng.integers(1, 5))) + rng.normal(size=(y.size, 1))
        missing = rng.random(y.shape) < pick(rng, [0.0, 0.2, 0.8, 1.0])
        y[missing] = np.nan
    n_outputs = 1
    if isinstance(y, np.ndarray) and y.ndim == 2:
        n_outputs = y.shape[1]
    elif isinstance(y, np.ndarray) and y.ndim == 1 and not numbers:
        n_classes = np.unique(y.astype(str)).size
        n_outputs = n_classes if n_classes > 2 else 1
    model.set_params(coupling=coupling_of(rng, n_outputs))
    return y


def _many_labels(rng):
    more = {
        "solver": ["auto", "coordinate", "blocked", "smo"],
        "loss": ["squared_hinge", "hamming", "correlation"],
        "label_correlation": [None, None, "pearson"],
        "class_weight": [None, "balanced"],
    }
    return _features(rng, gramian.M3LClassifier, "many", options_of(rng, MARGIN | more))


def _tree_labels(rng):
    more = {
        "method": METHODS,
        "class_weight": [None, "balanced"],
        "hierarchy": [TREE],
    }
    options = {"hierarchy": TREE} | options_of(rng, MARGIN | more)
    return _features(rng, gramian.HierarchicalSVC, "classes", options)


def _pairs(rng):
    estimator, kind = pick(
        rng,
        [
            (gramian.PairwiseRidge, "numbers"),
            (gramian.PairwiseLogisticRegression, "signs"),
            (gramian.PairwiseSVC, "signs"),
            (gramian.PairwiseRanker, "numbers"),
        ],
    )
    more = {
        "pairwise_kernel": [
            "kronecker",
            "cartesian",
            "symmetric",
            "antisymmetric",
            "linear",
            "gaussian",
        ]
    }
    options = options_of(rng, SMOOTH | more)
    m, q, d = (int(rng.integers(1, 8)) for _ in range(3))
    n = int(rng.integers(1, m * q + 1))
    left = table(rng, m, d)
    one = options.get("pairwise_kernel") in ("symmetric", "antisymmetric")
    right = None if one or rng.random() < 0.2 else table(rng, q, d)
    sizes = m, m if right is None else q
    rows = [rng.integers(0, size, n) for size in sizes]
    new = [rng.integers(0, size, 4) for size in sizes]
    if rng.random() < 0.1:
        X = wrapped(rng, np.c_[left[rows[0]], (left if right is None else right)[rows[1]]])
        fresh = rng.normal(size=(4, 2 * d))
    else:
        X, fresh = Pairs(left, right, *rows), Pairs(left, right, *new)
    return estimator(**options), X, labels_of(rng, n, kind), weights_of(rng, n), fresh


def _described_classes(rng):
    n, d = int(pick(rng, [2, 5, 13, 30])), int(pick(rng, [1, 3]))
    signatures = {k: rng.integers(0, 2, 4) for k in range(5)}
    if rng.random() < 0.5:
        model = gramian.ZeroShotClassifier(signatures)
    else:
        options = options_of(
            rng,
            {"mapping": ["nearest", "direct"], "shrinkage": [0.1, 0.0, 1.0], "estimator": [None]},
        )
        model = gramian.AttributeClassifier(signatures, **options)
    X = table(rng, n, d)
    return (
        model,
        wrapped(rng, X),
        labels_of(rng, n, "classes"),
        weights_of(rng, n),
        rng.normal(size=(4, d)),
    )


def _scenario(rng):
    makers = (
        [_classifier] * 4
        + [_ridge] * 3
        + [_many_labels] * 3
        + [_tree_labels] * 3
        + [_pairs] * 3
        + [_described_classes]
    )
    return pick(rng, makers)(rng)


# --- certificates ----------------------------------------------------------------------------------------


def certificate_outcome(seed, dtype):
    """Compare the gap of a sensible fit with an optimum that is found in another way."""
    rng = np.random.default_rng([seed, np.dtype(dtype).itemsize])
    n, d = int(rng.integers(5, 40)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)).astype(dtype)
    scale = float(10.0 ** rng.normal(0, 0.3))
    kernel = pick(
        rng, [kernels.RBF(scale), kernels.Matern(scale), kernels.Linear(), scale * kernels.RBF(1.0)]
    )
    weights = rng.random(n) if rng.random() < 0.3 else None
    shared = {
        "tol": float(10.0 ** -rng.integers(1, 10)),
        "intercept_variance": float(pick(rng, [0.0, 1.0, 100.0])),
    }
    smooth = {
        "regularization": float(10.0 ** rng.uniform(-5, 2)),
        "solver": pick(rng, ["auto", "newton", "kernel_cg", "exact", "parameter_cg"]),
        "operator": pick(rng, ["auto", "dense", "streamed"]),
    }
    name = pick(
        rng, ["softmax", "tree", "logistic", "svc", "ridge", "m3l", "pairs", "contrasts", "chain"]
    )
    classes = np.r_[0, 1, 2, 3, rng.integers(0, 4, n - 4)]
    if name == "m3l":
        Y = np.r_[[[0, 0, 0]], [[1, 1, 1]], rng.integers(0, 2, (n - 2, 3))]
        R = None if rng.random() < 0.5 else np.corrcoef(rng.normal(size=(3, 12)))
        options = {"loss": pick(rng, ["hamming", "squared_hinge"]), "label_correlation": R}
        solver = pick(
            rng,
            ["auto", "blocked", "smo"]
            if kernel.linear_variance is None
            else ["auto", "coordinate"],
        )
        model = gramian.M3LClassifier(
            float(10.0 ** rng.uniform(-3, 1)), kernel=kernel, solver=solver, **options, **shared
        )
        y = Y
    elif name == "contrasts":
        options = {"method": pick(rng, METHODS), "random_state": int(rng.integers(100))}
        C = float(10.0 ** rng.uniform(-3, 2))
        model = gramian.HierarchicalSVC(TREE, C=C, kernel=kernel, **options, **shared)
        y = classes
    elif name == "chain":
        lengths = rng.multinomial(n, np.ones(6) / 6)
        X = gramian.Sequences(X, lengths)
        y = X.split(rng.integers(0, 3, n))
        weights = None if weights is None else rng.random(6)
        options = {"ends": bool(rng.random() < 0.5), "optimize": None} | smooth
        options["solver"] = pick(rng, ["auto", "newton", "kernel_cg"])
        variance = float(10.0 ** rng.uniform(-2, 2))
        more = np.random.default_rng([seed, 2])  # other seeds stay what they are
        moving = float(10.0 ** more.uniform(-2, 1)) if more.random() < 0.3 else 0.0
        chain = {"transition_variance": variance, "input_transitions": moving}
        model = gramian.KernelCRF(kernel, **chain, **options, **shared)
    elif name == "pairs":
        left, right = rng.normal(size=(5, d)).astype(dtype), rng.normal(size=(6, d)).astype(dtype)
        X = Pairs(left, right, rng.integers(0, 5, n), rng.integers(0, 6, n))
        estimator, y = pick(
            rng,
            [
                (gramian.PairwiseRidge, rng.normal(size=n)),
                (gramian.PairwiseLogisticRegression, classes % 2),
            ],
        )
        model = estimator(regularization=smooth["regularization"], optimize=None, **shared)
    else:
        estimator, y = {
            "softmax": (gramian.KernelLogisticRegression, classes),
            "tree": (gramian.KernelLogisticRegression, classes),
            "logistic": (gramian.KernelLogisticRegression, classes % 2),
            "svc": (gramian.KernelSVC, classes),
            "ridge": (gramian.KernelRidge, rng.normal(size=n)),
        }[name]
        options = {"hierarchy": TREE} if name == "tree" else {}
        more = np.random.default_rng(
            [seed, np.dtype(dtype).itemsize, 1]
        )  # other seeds stay what they are
        if name in ("softmax", "svc", "ridge") and more.random() < 0.4:
            n_outputs = 4
            if name == "ridge":
                n_outputs = int(more.integers(2, 5))
                y = y[:, None] + more.normal(size=(n, n_outputs))
                y[more.random(y.shape) < 0.3] = np.nan
                y[:2] = more.normal(size=(2, n_outputs))
            B = more.normal(size=(n_outputs, int(more.integers(1, 4))))
            options["coupling"] = B @ B.T + np.diag(more.random(n_outputs))
            if len(kernel.addends()) == 2:
                options["coupling"] = [options["coupling"], B @ B.T]
        if options and smooth["solver"] == "exact":
            smooth["solver"] = "auto"  # outputs that are related have no factor of their own
        model = estimator(kernel, optimize=None, **shared, **smooth, **options)
    described = f"{name}: {model!r}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            distance = check_certificate(model, X, y, weights)
    except AssertionError as error:
        return Outcome("false", f"{error} ({described})")
    except Exception as error:
        kind = "named error" if _on_purpose(error) else "raw error"
        return Outcome(kind, f"{type(error).__name__}: {error}, {described}")
    return Outcome("finite", f"{distance:.1e} {described}")
