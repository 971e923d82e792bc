"""Random label sequences for `KernelCRF`: sensible ones, and hostile ones of every kind."""

import numpy as np
from fuzz.parts import RARELY, SMOOTH, kernel_of, options_of, pick, table, weights_of, wrapped

import gramian
from gramian import Sequences

BIO = ["B-x", "I-x", "O"]
TREE = {"P": ["a", "b"], "Q": ["c", "d"]}
WALKS = [(a, b) for a in "abcd" for b in "abcd" if a != "a" or b != "d"]
OPTIONS = SMOOTH | {
    "operator": ["auto", "dense", "streamed", "low_rank"],
    "rank": [None, 1, 5],
    "solver": ["auto", "newton", "kernel_cg"],
    "copy_X": [True, False],
    "share": ["tied", "class"],
    "transition_variance": ["auto", 1.0, 1e-8, 1e8],
    "input_transitions": [0.0, 0.0, 1.0, 1e-3, 1e3],
    "ends": [True, False],
    "decode": ["auto", "viterbi", "posterior"],
}


def sequence_scenario(rng):
    """A model, sequences, their labels, weights, and sequences to answer for."""
    n, d = int(pick(rng, [1, 2, 3, 8, 15])), int(pick(rng, [1, 2, 5]))
    lengths = rng.choice([0, 1, 1, 2, 3, 5, 8], size=n)
    names = pick(rng, [["a", "b", "c", "d"], ["a", "b"], [0, 1, 2], BIO])
    options = options_of(rng, OPTIONS)
    if names == ["a", "b", "c", "d"] and rng.random() < 0.5:
        share = pick(rng, ["tied", "class", "level", "subtree"])
        options = {"hierarchy": TREE, "share": share} | options
    if rng.random() < 0.3:
        allowed = "BIO" if names == BIO else WALKS if "d" in names else [(None, names[0])]
        options = {"allowed_transitions": allowed} | options
    kernel = kernel_of(rng)
    if kernel == "precomputed" and rng.random() < 0.8:
        kernel = "rbf"
    model = gramian.KernelCRF(kernel, **options)
    positions = table(rng, max(1, int(lengths.sum())), d)[: lengths.sum()]
    y = _labels(rng, lengths, names)
    if rng.random() < 2 * RARELY:
        X = _hostile_examples(rng, positions, lengths)
    else:
        X = Sequences(positions if rng.random() < 0.5 else wrapped(rng, positions), lengths)
        X = list(X) if rng.random() < 0.2 else X
    new = Sequences(rng.normal(size=(6, d)), [0, 1, 5])
    if rng.random() < RARELY:
        new = _hostile_answers(rng, d)
    return model, X, y, weights_of(rng, n), new


def answers(model, new, rng):
    """What a fitted model says about sequences, all numbers in one array for each method."""
    marginals = model.predict_marginals(new)
    pairs = model.predict_pair_marginals(new)
    best = model.predict_top(new, 2)
    given = model.predict(new)
    out = {
        "predict_marginals": _joined(marginals),
        "predict_pair_marginals": _joined(pairs),
        "predict_top": np.array([score for several in best for _, score in several]),
        "predict_log_proba": model.predict_log_proba(new, given),
    }
    known = [[None if rng.random() < 0.5 else label for label in part] for part in given.tolist()]
    if rng.random() < 2 * RARELY:
        unseen, unhashable = ([[label] * len(part) for part in known] for label in ("zz", {}))
        known = pick(rng, [unseen, unhashable, [None] * len(known), known[:-1], "a", 3])
    model.predict(new, given=known)
    return out


def _hostile_answers(rng, d):
    """What a model cannot answer for, or nothing."""
    nothing, missing = Sequences(np.empty((0, d)), []), [np.full((2, d), np.nan)]
    return pick(rng, [[], [np.ones((2, d + 1))], nothing, np.ones((2, d)), missing])


def _joined(parts):
    return np.concatenate([np.empty(0), *(np.ravel(part) for part in parts)])


def _labels(rng, lengths, names):
    """Labels of each sequence; often some are not known, seldom they are nonsense."""
    y = [[names[k] for k in rng.integers(len(names), size=length)] for length in lengths]
    if names is BIO:
        y = [
            [
                "B-x" if label == "I-x" and (t == 0 or part[t - 1] == "O") else label
                for t, label in enumerate(part)
            ]
            for part in y
        ]
    kind = rng.integers(8)
    if kind == 0:
        y = [[None if rng.random() < 0.3 else label for label in part] for part in y]
    elif kind == 1:
        y = [[(label, names[0]) if rng.random() < 0.2 else label for label in part] for part in y]
    elif kind == 2:
        y = [np.array(part, dtype=object) for part in y]
    if rng.random() < 2 * RARELY:
        return _hostile_labels(rng, y)
    return y


def _hostile_labels(rng, y):
    """What is not a list of label sequences, or one with labels that errors should name."""

    def all_of(*labels):
        return [[labels[k % len(labels)] for k, _ in enumerate(part)] for part in y]

    every = (
        None, "abc", 3, [], y[:-1], [[*part, "a"] for part in y], {0: y}, [set(part) for part in y],
        np.zeros((len(y), 2)), ["a" for _ in y],
        [[pick(rng, [1, "a", None, b"x", 2.0, True]) for _ in part] for part in y],
        all_of(None), all_of("P"), all_of(np.nan), all_of(1.5, 2), all_of({}), all_of([]), all_of([[1]]),
        all_of(10**400, 1), all_of(1j, 1), all_of("", "\x00", "\x1b[2J"), all_of(("a",), "b"), all_of(("a", np.nan)),
        all_of(object(), object()), all_of(1e300, 0.0), all_of(True, False), all_of(np.array([1]), np.array([2])),
        all_of(np.datetime64("2020-01-01"), np.datetime64("2020-01-02")), all_of(frozenset(), "a"), all_of(2**70, 1),
    )  # fmt: skip
    return pick(rng, every)


def _hostile_examples(rng, positions, lengths):
    """What is not a collection of sequences, or one that errors should name."""
    missing = positions.copy()
    missing[:1] = np.nan
    every = (
        (missing, lengths), (positions, lengths + 1), (positions, -lengths), (positions, lengths + 0.5),
        (positions, []), (positions, None), (positions, [2**62] * 4), (positions, "ab"), (positions[:, 0], lengths),
        (positions + 1j, lengths), ([["a"]], [1]), (None, [0]), (positions[:, :0], lengths), ([[1, 2], [3]], [2]),
        (positions, np.array([[len(positions)]])), (np.empty((0, 2)), []), (np.empty((0, 2)), [0, 0]),
        (positions, [10**400]), (positions * 1e300, lengths),
    )  # fmt: skip
    others = (
        positions, [], [np.empty((0, 2))], None, "abc", [[]], [None], 3, [[["a"]]], [positions, 3],
        [positions, positions[:, :0]], [positions.tolist()],
    )  # fmt: skip
    return pick(rng, others) if rng.random() < 0.4 else Sequences(*pick(rng, every))
