"""Label sequences: does a kernel CRF read better than single letters, CRFsuite and what was published, and how fast?

    python benchmarks/sequences.py --data DIR [--parts one,nine,linear,tagging,partial,odd] [--folds 0,1,...]

Data: the words of the OCR letters (sequences/ocr_letters.npz), 6877 words in ten folds, and a generated tagging task.
CRFsuite runs in the same process if ``sklearn_crfsuite`` is installed.

* one: trained on one fold, tested on the nine others, for each of the ten. ``KernelCRF()``: kernel, variance and τ² are
  learned by cross-validation within the fold. Bar: mean error at most 12.5 %. Independent kernel logistic regression
  and CRFsuite (c2 by 3-fold cross-validation) stand beside it. Published: max-margin Markov networks with a cubic
  kernel about 13 %.
* nine: trained on nine folds, tested on the tenth, low rank and in float32. Bar: at most 5.5 % in the mean.
  CRFsuite's c2 is chosen by three folds of a sixth of the training words, our kernel by folds of a sample.
* linear: OCR bits with a linear kernel against CRFsuite with the same penalty: marginals to 1e-4 on fold 0 without
  scores of ends, and seconds on nine folds.
* tagging: generated, 10 000 sequences with 100 000 sparse features; each with the penalty that a part of the training
  sequences likes best. Bar: at most CRFsuite's seconds to its accuracy.
* partial: 60 % of the labels of 200 words hidden: the partial chain against training on fragments and on single
  letters.
* odd: a sequence of 20 000 positions, 10 000 sequences of length one, 200 labels, empty sequences, labels that training
  did not have, no labels at all; and F1 scores against seqeval.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from data import add_data_argument, machine
from timing import verdict

from gramian import KernelCRF, KernelLogisticRegression, Sequences
from gramian.metrics import chunk_f1_score

PARTS = ("one", "nine", "linear", "tagging", "partial", "odd")
RANK = 2000  # of the low-rank fits
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)  # c2 of CRFsuite


def load(folder):
    """Words as sequences, their letters, and the fold of each."""
    file = np.load(Path(folder) / "sequences" / "ocr_letters.npz")
    bits = np.unpackbits(file["X_bits"], axis=1)[:, : int(file["n_features"])]
    words = Sequences(bits.astype(np.float64), file["word_length"])
    return words, words.split(file["y"].astype(int)), file["fold"]


def flat(X, y):
    return X.flat(y).astype(int)


def wrong(model, X, y):
    return 100 * (1 - model.score(X, y))


def judge(name, value, bar, unit=""):
    """Print a figure, its bar and whether it is met."""
    print(f"\n{verdict(value <= bar)}: {name}: {value:.3g}{unit} (bar {bar:g}{unit})")


def seconds_of(call, *arguments):
    start = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - start


def crfsuite(**options):
    """CRFsuite, or None if it is not installed."""
    try:
        from sklearn_crfsuite import CRF
    except ImportError:
        return None
    return CRF(algorithm="lbfgs", c1=0, all_possible_transitions=True, **options)


def as_items(X):
    """Sequences as CRFsuite wants them: a list of dictionaries for each."""
    rows = sp.csr_array(X.positions)
    ends, names = rows.indptr, [f"f{k}" for k in range(rows.shape[1])]
    items = [
        {names[k]: float(v) for k, v in zip(rows.indices[a:b], rows.data[a:b], strict=True)}
        for a, b in pairwise(ends)
    ]
    return [items[a:b] for a, b in pairwise(X.bounds)]


def as_texts(y):
    return [[str(label) for label in labels] for labels in y]


def error_of_crfsuite(model, X, y, decode="viterbi"):
    if decode == "viterbi":
        predicted = model.predict(as_items(X))
    else:
        marginals = model.predict_marginals(as_items(X))
        predicted = [[max(position, key=position.get) for position in part] for part in marginals]
    pairs = [
        (a, str(b)) for p, q in zip(predicted, y, strict=True) for a, b in zip(p, q, strict=True)
    ]
    return 100 * np.mean([a != b for a, b in pairs])


def tuned_penalty(X, y):
    """The penalty of CRFsuite that three folds of the training words like best."""
    fold = np.arange(len(X)) % 3
    errors = []
    for penalty in PENALTIES:
        parts = []
        for k in range(3):
            model = crfsuite(c2=penalty).fit(as_items(X[fold != k]), as_texts(y[fold != k]))
            parts.append(error_of_crfsuite(model, X[fold == k], y[fold == k]))
        errors.append(np.mean(parts))
    return PENALTIES[int(np.argmin(errors))]


def errors_of(model, X, y):
    """Per cent of wrong letters as the model predicts by default, and in the most probable words."""
    by_letter = wrong(model, X, y)
    return [by_letter, wrong(model.set_params(decode="viterbi"), X, y)]


def print_row(fold, X, values, *rest):
    shown = " | ".join(f"{value:.2f}" for value in values)
    print("| " + " | ".join([str(fold), str(X.n_positions), shown, *rest]) + " |", flush=True)


def part_one(words, y, folds, chosen):
    print("\n## one: trained on one fold, tested on nine\n")
    print(
        "| fold | letters | KernelCRF % | Viterbi % | independent KLR % | CRFsuite % | seconds | kernel, τ² |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---|")
    table = []
    for fold in chosen:
        train, test = folds == fold, folds != fold
        model, seconds = seconds_of(KernelCRF().fit, words[train], y[train])
        alone = KernelLogisticRegression().fit(words[train].positions, flat(words[train], y[train]))
        peer = np.nan
        if crfsuite() is not None:
            penalty = tuned_penalty(words[train], y[train])
            other = crfsuite(c2=penalty).fit(as_items(words[train]), as_texts(y[train]))
            peer = error_of_crfsuite(other, words[test], y[test])
        single = 100 * (1 - alone.score(words[test].positions, flat(words[test], y[test])))
        table.append([*errors_of(model, words[test], y[test]), single, peer])
        learned = f"{model.kernel_!r}, {model.transition_variance_:.3g}"
        print_row(fold, words[train], table[-1], f"{seconds:.0f}", learned)
    mean = np.mean(table, axis=0)
    print_row("mean", words, mean, "", "")
    judge("mean error, trained on one fold", mean[0], 12.5, "%")


def part_nine(words, y, folds, chosen):
    print(f"\n## nine: trained on nine folds, tested on one (rank {RANK})\n")
    print("| fold | letters | KernelCRF % | Viterbi % | CRFsuite % | seconds | CRFsuite s |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    table, words = [], Sequences(words.positions.astype(np.float32), words.lengths)
    for fold in chosen:
        train, test = folds != fold, folds == fold
        model = KernelCRF(operator="low_rank", rank=RANK, tol=1e-3)
        model, seconds = seconds_of(model.fit, words[train], y[train])
        peer, peer_seconds = np.nan, np.nan
        if crfsuite() is not None:
            penalty = tuned_penalty(words[train][::6], y[train][::6])
            items, texts = as_items(words[train]), as_texts(y[train])
            other, peer_seconds = seconds_of(crfsuite(c2=penalty).fit, items, texts)
            peer = error_of_crfsuite(other, words[test], y[test])
        table.append([*errors_of(model, words[test], y[test]), peer])
        print_row(fold, words[train], table[-1], f"{seconds:.0f}", f"{peer_seconds:.0f}")
    mean = np.mean(table, axis=0)
    print_row("mean", words, mean, "", "")
    judge("mean error, trained on nine folds", mean[0], 5.5, "%")


def marginals_of_crfsuite(model, X, classes):
    parts = model.predict_marginals(as_items(X))
    return np.array([[position[str(c)] for c in classes] for part in parts for position in part])


def part_linear(words, y, folds, chosen):
    print("\n## linear: OCR bits against CRFsuite\n")
    if crfsuite() is None:
        print("sklearn_crfsuite is not installed.")
        return
    train, test = folds == 0, folds == 1
    penalty = 1.0
    exact = KernelCRF(
        "linear",
        optimize=None,
        regularization=2 * penalty,
        transition_variance=1.0,
        intercept_variance=0.0,
        ends=False,
        tol=1e-10,
    ).fit(words[train], y[train])
    peer = crfsuite(
        c2=penalty,
        all_possible_states=True,
        epsilon=1e-9,
        delta=1e-12,
        max_iterations=5000,
        period=50,
    )
    peer.fit(as_items(words[train]), as_texts(y[train]))
    ours = np.concatenate(exact.predict_marginals(words[test]))
    apart = np.abs(ours - marginals_of_crfsuite(peer, words[test], exact.classes_)).max()
    judge("largest difference of marginals, same penalty", apart, 1e-4, "")
    timed(
        "OCR bits, nine folds",
        words[folds != 0],
        y[folds != 0],
        words[folds == 0],
        y[folds == 0],
        penalty,
        penalty,
    )


def part_tagging(words, y, folds, chosen):
    print("\n## tagging: generated, 10 000 sequences, 100 000 sparse features\n")
    if crfsuite() is None:
        print("sklearn_crfsuite is not installed.")
        return
    X, tags = generated_tags()
    split, inner = int(0.8 * len(X)), int(0.64 * len(X))
    ours, theirs = [], []
    items, texts = as_items(X[:inner]), as_texts(tags[:inner])
    for penalty in PENALTIES:
        model = linear_chain(penalty).fit(X[:inner], tags[:inner])
        ours.append(wrong(model, X[inner:split], tags[inner:split]))
        peer = crfsuite(c2=penalty).fit(items, texts)
        theirs.append(error_of_crfsuite(peer, X[inner:split], tags[inner:split]))
    print("errors on a part of the training sequences, ours and CRFsuite's:", PENALTIES)
    print(np.round(ours, 2), np.round(theirs, 2), flush=True)
    best = PENALTIES[int(np.argmin(ours))], PENALTIES[int(np.argmin(theirs))]
    timed("generated tags", X[:split], tags[:split], X[split:], tags[split:], *best)


def generated_tags(n_sequences=10_000, vocabulary=33_000, n_tags=12, seed=0):
    """Sentences of words that follow tags, with indicators of each word and of its neighbours."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 25, size=n_sequences)
    follows = rng.dirichlet(np.full(n_tags, 0.3), size=n_tags)
    favourite = rng.integers(n_tags, size=vocabulary)
    by_tag = [np.flatnonzero(favourite == tag) for tag in range(n_tags)]
    frequency = [1 / np.arange(1, len(own) + 1) for own in by_tag]
    frequency = [values / values.sum() for values in frequency]
    common = 1 / np.arange(1, vocabulary + 1) ** 1.2
    common /= common.sum()
    tags = np.empty(lengths.sum(), dtype=int)
    first = np.zeros(lengths.sum(), dtype=bool)
    first[np.cumsum(lengths) - lengths] = True
    for t in range(tags.size):
        tags[t] = rng.integers(n_tags) if first[t] else rng.choice(n_tags, p=follows[tags[t - 1]])
    words = rng.choice(vocabulary, size=tags.size, p=common)
    own = rng.random(tags.size) < 0.6
    for tag in range(n_tags):
        rows = np.flatnonzero(own & (tags == tag))
        words[rows] = rng.choice(by_tag[tag], size=rows.size, p=frequency[tag])
    one = sp.csr_array(
        (np.ones(tags.size), (np.arange(tags.size), words)), shape=(tags.size, vocabulary)
    )
    X = Sequences(one, lengths).with_neighbours()
    return X, X.split(tags)


def linear_chain(penalty):
    """Our model with the penalty c2 of CRFsuite."""
    return KernelCRF(
        "linear",
        optimize=None,
        regularization=2 * penalty,
        transition_variance=1.0,
        operator="linear",
        tol=1e-3,
    )


def timed(name, X, y, X_test, y_test, penalty, peer_penalty):
    """Seconds of both, each with the calls that its users make, and their errors."""
    items, texts = as_items(X), as_texts(y)  # not counted
    peer, peer_seconds = seconds_of(crfsuite(c2=peer_penalty).fit, items, texts)
    linear_chain(penalty).fit(X[:50], y[:50])  # compile
    model, seconds = seconds_of(linear_chain(penalty).fit, X, y)
    theirs = error_of_crfsuite(peer, X_test, y_test)
    by_position = error_of_crfsuite(peer, X_test, y_test, "posterior")
    ours, viterbi = errors_of(model, X_test, y_test)
    print(f"{name}: {X!r}")
    print(f"CRFsuite, c2 = {peer_penalty}: {peer_seconds:.1f} s, {theirs:.2f} % wrong", end="")
    print(f" ({by_position:.2f} % decoded by position)")
    print(f"ours, λ = {2 * penalty}: {seconds:.1f} s, {ours:.2f} % wrong", end="")
    print(f" ({viterbi:.2f} % by Viterbi), ", end="")
    solution = model.solution_
    print(f"relative gap {solution.relative_gap:.1e}, {solution.n_products} products")
    judge(f"{name}: seconds over those of CRFsuite", seconds / peer_seconds, 1.0, "")
    judge(f"{name}: error minus that of CRFsuite", ours - theirs, 0.1, "%")


def part_partial(words, y, folds, chosen):
    print("\n## partial: 60 % of the labels of 200 words hidden\n")
    rng = np.random.default_rng(1)
    train, test = np.flatnonzero(folds == 0)[:200], np.flatnonzero(folds != 0)[:1200]
    X, labels = words[train], y[train]
    gaps = X.split(np.where(rng.random(X.n_positions) < 0.6, None, X.flat(labels)))
    known = X.flat(gaps) != None  # noqa: E711 - of an array of objects
    number = np.repeat(np.arange(len(X)), X.lengths)[known]
    cut = np.flatnonzero((np.diff(np.flatnonzero(known)) > 1) | (np.diff(number) > 0)) + 1
    pieces = Sequences(X.positions[known], np.diff([0, *cut, int(known.sum())]))
    some = X.flat(labels)[known].astype(int)
    chain = KernelCRF().fit(X, gaps)
    fragments = KernelCRF().fit(pieces, pieces.split(some))
    alone = KernelLogisticRegression().fit(X.positions[known], some)
    errors = wrong(chain, words[test], y[test]), wrong(fragments, words[test], y[test])
    single = 100 * (1 - alone.score(words[test].positions, flat(words[test], y[test])))
    print(
        f"partial chain {errors[0]:.1f} % wrong, fragments {errors[1]:.1f} %, single letters {single:.1f} %"
    )
    judge("partial chain over fragments", errors[0] / errors[1], 1.0, "")


def part_odd(words, y, folds, chosen):
    print("\n## odd: long, short, many, none\n")
    rng = np.random.default_rng(0)

    def attempt(name, make):
        try:
            model, seconds = seconds_of(make)
            said = f"{seconds:.1f} s, {model.solution_.status}"
        except ValueError as error:
            said = f"ValueError: {error}"
        print(f"* {name}: {said}", flush=True)

    def fixed(kernel="linear", **options):
        given = {"optimize": None, "regularization": 1.0, "tol": 1e-3}
        return KernelCRF(kernel, **(given | options))

    def labels_of(X, n_classes):
        return X.split(rng.integers(n_classes, size=X.n_positions))

    long = Sequences(rng.normal(size=(20_000, 5)), [20_000])
    short = Sequences(rng.normal(size=(10_000, 5)), np.ones(10_000, dtype=int))
    some = Sequences(rng.normal(size=(2000, 5)), np.full(200, 10))
    gaps = Sequences(rng.normal(size=(100, 5)), [0, 50, 0, 50])
    attempt("one sequence of 20 000 positions", lambda: fixed().fit(long, labels_of(long, 5)))
    attempt("10 000 sequences of length one", lambda: fixed().fit(short, labels_of(short, 5)))
    attempt("200 labels", lambda: fixed().fit(some, labels_of(some, 200)))
    attempt("200 labels, RBF", lambda: fixed("rbf").fit(some, labels_of(some, 200)))
    attempt("empty sequences", lambda: fixed().fit(gaps, labels_of(gaps, 3)))
    attempt("nothing but empty sequences", lambda: fixed().fit(gaps[[0, 2]], [[], []]))
    attempt("no labels", lambda: fixed().fit(gaps, gaps.split(np.full(100, None))))
    model = fixed().fit(gaps, labels_of(gaps, 3))
    try:
        model.predict_log_proba(gaps, gaps.split(np.full(100, 7)))
    except ValueError as error:
        print(f"* a label that training did not have: ValueError: {error}")
    compare_with_seqeval(rng)


def compare_with_seqeval(rng):
    """Largest difference of F1 scores of random BIO tags."""
    try:
        from seqeval.metrics import f1_score
    except ImportError:
        print("seqeval is not installed.")
        return
    tags = np.array(["O", "B-x", "I-x", "B-y", "I-y"])
    apart = 0.0
    for _ in range(200):
        lengths = rng.integers(1, 12, size=5)
        true, guess = (
            [rng.choice(tags, p=[0.4, 0.15, 0.15, 0.15, 0.15], size=n).tolist() for n in lengths]
            for _ in range(2)
        )
        for average in ("micro", "macro"):
            theirs = f1_score(true, guess, average=average, zero_division=0)
            apart = max(apart, abs(chunk_f1_score(true, guess, average=average) - theirs))
    judge("largest difference of F1 scores to seqeval", apart, 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_data_argument(parser)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--folds", default="0,1,2,3,4,5,6,7,8,9")
    arguments = parser.parse_args()
    print(machine())
    warnings.simplefilter("ignore")
    words, y, folds = load(arguments.data)
    for part in arguments.parts.split(","):
        globals()[f"part_{part}"](
            words, y, folds, [int(fold) for fold in arguments.folds.split(",")]
        )


if __name__ == "__main__":
    main()
