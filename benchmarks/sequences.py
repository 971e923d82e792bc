"""Label sequences: does a kernel CRF read better than single letters, CRFsuite and what was published, and how fast?

    python benchmarks/sequences.py --data DIR [--parts one,nine,linear,tagging,partial] [--folds 10]

Data: the words of the OCR letters (sequences/ocr_letters.npz), 6877 words in ten folds, and a generated tagging task.
CRFsuite runs in the same process if ``sklearn_crfsuite`` is installed.

* one: trained on one fold, tested on the nine others, for each of the ten. Kernel, variance and τ² are learned by
  cross-validation within the fold, on letters and their neighbours. Bar: mean error at most 12.5 %. Independent kernel
  logistic regression and CRFsuite (c2 by 3-fold cross-validation) stand beside it. Published: max-margin Markov networks
  with a cubic kernel about 13 %.
* nine: trained on nine folds, tested on the tenth, low rank. Bar: at most 5.5 % in the mean.
* linear: OCR bits with a linear kernel against CRFsuite with the same penalty: marginals to 1e-4 on fold 0 without scores
  of ends, and seconds on nine folds.
* tagging: generated, 10 000 sequences with 100 000 sparse features. Bar: at most CRFsuite's seconds to its accuracy.
* partial: 60 % of the labels of 200 words hidden: the partial chain against training on fragments and on single
  letters.
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
from gramian.selection import CrossValidationSearch

PARTS = ("one", "nine", "linear", "tagging", "partial")
NEIGHBOURS = {"before": 1, "after": 1, "weight": 0.5}
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


def seconds_of(call):
    start = time.perf_counter()
    result = call()
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


def error_of_crfsuite(model, X, y):
    predicted = model.predict(as_items(X))
    pairs = [
        (a, str(b)) for p, q in zip(predicted, y, strict=True) for a, b in zip(p, q, strict=True)
    ]
    return 100 * np.mean([a != b for a, b in pairs])


def tuned_crfsuite(X, y):
    """CRFsuite with the penalty that three folds of the training words like best."""
    fold = np.arange(len(X)) % 3
    errors = []
    for penalty in PENALTIES:
        parts = []
        for k in range(3):
            model = crfsuite(c2=penalty).fit(as_items(X[fold != k]), as_texts(y[fold != k]))
            parts.append(error_of_crfsuite(model, X[fold == k], y[fold == k]))
        errors.append(np.mean(parts))
    return crfsuite(c2=PENALTIES[int(np.argmin(errors))]).fit(as_items(X), as_texts(y))


def part_one(words, y, folds, n_folds):
    print("\n## one: trained on one fold, tested on nine\n")
    print(
        "| fold | letters | KernelCRF % | posterior % | independent KLR % | CRFsuite % | seconds | kernel, τ² |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---|")
    wide = words.with_neighbours(**NEIGHBOURS)
    table = []
    for fold in range(n_folds):
        train, test = folds == fold, folds != fold
        search = CrossValidationSearch(max_samples=2000)
        model, seconds = seconds_of(
            lambda: KernelCRF(optimize=search, tol=1e-5).fit(wide[train], y[train])
        )
        posterior = np.concatenate([m.argmax(axis=1) for m in model.predict_marginals(wide[test])])
        alone = KernelLogisticRegression().fit(words[train].positions, flat(words[train], y[train]))
        peer = np.nan
        if crfsuite() is not None:
            peer = error_of_crfsuite(tuned_crfsuite(words[train], y[train]), words[test], y[test])
        row = [
            wrong(model, wide[test], y[test]),
            100 * np.mean(model.classes_[posterior] != flat(words[test], y[test])),
            100 * (1 - alone.score(words[test].positions, flat(words[test], y[test]))),
            peer,
        ]
        table.append(row)
        shown = " | ".join(f"{value:.2f}" for value in row)
        learned = f"{model.kernel_!r}, {model.transition_variance_:.3g}"
        print(
            f"| {fold} | {words[train].n_positions} | {shown} | {seconds:.0f} | {learned} |",
            flush=True,
        )
    mean = np.mean(table, axis=0)
    print("| mean | | " + " | ".join(f"{value:.2f}" for value in mean) + " | | |")
    judge("mean error, trained on one fold", mean[0], 12.5, "%")


def part_nine(words, y, folds, n_folds):
    print("\n## nine: trained on nine folds, tested on one (low rank)\n")
    print("| fold | letters | KernelCRF % | posterior % | CRFsuite % | seconds | CRFsuite s |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    wide, table = words.with_neighbours(**NEIGHBOURS), []
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        search = CrossValidationSearch(max_samples=2000)

        def fit(train=train, search=search):
            first = KernelCRF(optimize=search, tol=1e-3).fit(
                wide[folds == (fold + 1) % 10], y[folds == (fold + 1) % 10]
            )
            return KernelCRF(
                first.kernel_,
                regularization=1.0,
                transition_variance=first.transition_variance_,
                operator="low_rank",
                rank=3000,
                tol=1e-4,
            ).fit(wide[train], y[train])

        model, seconds = seconds_of(fit)
        posterior = np.concatenate([m.argmax(axis=1) for m in model.predict_marginals(wide[test])])
        peer, peer_seconds = np.nan, np.nan
        if crfsuite() is not None:
            items, texts = as_items(words[train]), as_texts(y[train])
            other, peer_seconds = seconds_of(
                lambda items=items, texts=texts: crfsuite(c2=1.0).fit(items, texts)
            )
            peer = error_of_crfsuite(other, words[test], y[test])
        row = [
            wrong(model, wide[test], y[test]),
            100 * np.mean(model.classes_[posterior] != flat(words[test], y[test])),
            peer,
        ]
        table.append(row)
        shown = " | ".join(f"{value:.2f}" for value in row)
        print(
            f"| {fold} | {words[train].n_positions} | {shown} | {seconds:.0f} | {peer_seconds:.0f} |",
            flush=True,
        )
    mean = np.mean(table, axis=0)
    print("| mean | | " + " | ".join(f"{value:.2f}" for value in mean) + " | | |")
    judge("mean error, trained on nine folds", mean[0], 5.5, "%")


def marginals_of_crfsuite(model, X, classes):
    parts = model.predict_marginals(as_items(X))
    return np.array([[position[str(c)] for c in classes] for part in parts for position in part])


def part_linear(words, y, folds, n_folds):
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
    )


def part_tagging(words, y, folds, n_folds):
    print("\n## tagging: generated, 10 000 sequences, 100 000 sparse features\n")
    if crfsuite() is None:
        print("sklearn_crfsuite is not installed.")
        return
    X, tags = generated_tags()
    split = int(0.8 * len(X))
    timed("generated tags", X[:split], tags[:split], X[split:], tags[split:], 0.1)


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


def timed(name, X, y, X_test, y_test, penalty):
    """Seconds of both, each with the calls that its users make, and their errors."""
    items, texts = as_items(X), as_texts(y)  # not counted
    peer, peer_seconds = seconds_of(lambda: crfsuite(c2=penalty).fit(items, texts))
    options = {
        "optimize": None,
        "regularization": 2 * penalty,
        "transition_variance": 1.0,
        "tol": 1e-3,
    }
    KernelCRF("linear", **options).fit(X[:50], y[:50])  # compile
    model, seconds = seconds_of(lambda: KernelCRF("linear", **options).fit(X, y))
    ours, theirs = wrong(model, X_test, y_test), error_of_crfsuite(peer, X_test, y_test)
    print(
        f"{name}: {X!r}; CRFsuite {peer_seconds:.1f} s, {theirs:.2f} % wrong; ours {seconds:.1f} s, {ours:.2f} % wrong, "
    )
    print(f"relative gap {model.solution_.relative_gap:.1e}, {model.solution_.n_products} products")
    judge(f"{name}: seconds over those of CRFsuite", seconds / peer_seconds, 1.0, "")
    judge(f"{name}: error minus that of CRFsuite", ours - theirs, 0.1, "%")


def part_partial(words, y, folds, n_folds):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_data_argument(parser)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--folds", type=int, default=10)
    arguments = parser.parse_args()
    print(machine())
    warnings.simplefilter("ignore")
    words, y, folds = load(arguments.data)
    for part in arguments.parts.split(","):
        globals()[f"part_{part}"](words, y, folds, arguments.folds)


if __name__ == "__main__":
    main()
