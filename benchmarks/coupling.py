"""Outputs that share: learned couplings against unrelated outputs, a taxonomy and peers.

Parts (``--parts``):

* checks: gradients in B and log d against numerical ones (bar 1e-6), products against numpy.kron.
* synthetic: 20 classes whose functions are mixtures of three, 6 examples of each. Bar: 8 points of error less.
* letters: OCR letters, 8 of each. Bars: 1.5 points less, and a lower log loss with at least 7 of 8 seeds.
* news: 20 newsgroups, 10 of each, against the taxonomy of their names. Reported.
* approvals: thirty generated sets whose classes have nothing in common, and thirty whose classes have, with seeds from
  100 on, which constants were set on. How often judges approve, and how often new examples then say otherwise.
* never: six sets with 10 examples of each class, where little is to be gained. Bar: the mean difference of the log loss
  to unrelated classes is at most two standard errors above zero.
* regression: 12 kinases of Metz et al., where cells that were not measured are missing, next to GPyTorch's multitask
  kernel (where torch is installed) and scikit-learn's independent Gaussian processes. Bars: RMSE at most theirs, five
  times faster than GPyTorch.
* time: seconds of a fit with and without a coupling. Bar: the whole fit takes at most three times the flat one.

Training parts are drawn with seeds 0, 1, ...; all choices are made within them. Run: python benchmarks/coupling.py
--data DIR --parts synthetic,letters --seeds 8
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from data import add_data_argument, data_file, load_uci
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from timing import verdict

from gramian import KernelLogisticRegression, KernelRidge
from gramian.kernels import RBF
from gramian.labels import FactoredCoupling, Identity
from gramian.losses import Softmax, Squared
from gramian.operators import Dense, Intercept, LabelMixed
from gramian.selection import CrossValidationCriterion, fold_masks
from gramian.solvers import Problem

PARTS = ("checks", "synthetic", "letters", "news", "approvals", "never", "regression", "time")
NEVER = ("digits", "usps", "satimage", "vowel", "segment", "vehicle")


def some_of_each(y, count, rng):
    """Row numbers of ``count`` examples of each class."""
    rows = [rng.choice(np.flatnonzero(y == c), count, replace=False) for c in np.unique(y)]
    return np.concatenate(rows)


def split(X, y, count, seed, most=3000):
    """Some examples of each class to learn from, and at most so many others to test on."""
    rng = np.random.default_rng(seed)
    train = some_of_each(y, count, rng)
    rest = np.setdiff1d(np.arange(len(y)), train)
    test = rng.choice(rest, min(most, rest.size), replace=False)
    return X[train], y[train], X[test], y[test]


def synthetic(seed, n_classes=20, rank=3, n_features=10, count=6):
    """The set of the issue: functions of classes are mixtures of three."""
    rng = np.random.default_rng(seed)
    mixture = rng.normal(size=(n_classes, rank))
    directions = rng.normal(size=(rank, n_features))
    X = rng.normal(size=(30_000, n_features))
    U = 3 * np.tanh(X @ directions.T) @ mixture.T
    P = np.exp(U - U.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) > rng.random((len(X), 1))).argmax(axis=1)
    train = some_of_each(y, count, rng)
    test = np.setdiff1d(np.arange(len(y)), train)[:3000]
    return X[train], y[train], X[test], y[test]


def corners(seed, n_classes, count):
    """Classes around corners of a simplex: each is as far from any other."""
    rng = np.random.default_rng(seed)

    def draw(count):
        y = np.repeat(np.arange(n_classes), count)
        return 1.5 * np.eye(n_classes)[y] + 0.7 * rng.normal(size=(y.size, n_classes)), y

    return *draw(count), *draw(200)


def mixtures(seed, mix, count, n_features=10, scale=3.0):
    """Classes whose functions are mixtures of some others, with the coefficients that ``mix`` draws."""
    rng = np.random.default_rng(seed)
    mixture = mix(rng)
    directions = rng.normal(size=(mixture.shape[1], n_features))
    X = rng.normal(size=(20_000, n_features))
    U = scale * np.tanh(X @ directions.T) @ mixture.T
    y = (U + rng.gumbel(size=U.shape)).argmax(axis=1)
    frequent = np.flatnonzero(np.bincount(y, minlength=len(mixture)) > 2 * count)
    kept = np.isin(y, frequent)
    X, y = X[kept], np.searchsorted(frequent, y[kept])
    train = some_of_each(y, count, rng)
    test = np.setdiff1d(np.arange(len(y)), train)[:3000]
    return X[train], y[train], X[test], y[test]


UNRELATED = {
    "5 corners, 8 of each": lambda seed: corners(seed, 5, 8),
    "10 corners, 10 of each": lambda seed: corners(seed, 10, 10),
    "8 functions, 8 of each": lambda seed: mixtures(seed, lambda rng: np.eye(8), 8, 8, 4.0),
}
RELATED = {
    "20 classes of rank 3, 6 of each": synthetic,
    "12 classes in four groups, 8 of each": lambda seed: mixtures(
        seed,
        lambda rng: np.repeat(rng.normal(size=(4, 4)), 3, axis=0) + 0.4 * rng.normal(size=(12, 4)),
        8,
    ),
    "20 classes of falling spectrum, 10 of each": lambda seed: mixtures(
        seed, lambda rng: rng.normal(size=(20, 20)) * np.arange(1, 21) ** -0.75, 10
    ),
}


def letters(folder, seed):
    stored = np.load(data_file(folder, "sequences/ocr_letters.npz"), allow_pickle=False)
    X = np.unpackbits(stored["X_bits"], axis=1)[:, :128].astype(float)
    return split(X, stored["y"].astype(int), 8, seed)


def small(folder, name, seed):
    """A set with 10 examples of each class to learn from."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "usps":
        stored = np.load(data_file(folder, "images/usps.npz"), allow_pickle=False)
        X, y = stored["X_train_milli"] / 1000.0, stored["y_train"]
    elif name == "satimage":
        stored = np.load(data_file(folder, "satimage.npz"), allow_pickle=False)
        X, y = stored["X_train"].astype(float), stored["y_train"]
    else:
        X, y, _ = load_uci(folder, name)
    X, y, X_test, y_test = split(X, y, 10, seed, most=2000)
    if name in ("digits", "usps"):
        return X, y, X_test, y_test
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def scores(model, X, y):
    return log_loss(y, model.predict_proba(X), labels=model.classes_), 1 - model.score(X, y)


def compared(draw, seeds, kernel="rbf"):
    """Differences of log loss and error to unrelated classes, and seconds, a row for each seed."""
    rows = []
    for seed in range(seeds):
        X, y, X_test, y_test = draw(seed)
        found, seconds = [], []
        for coupling in (None, "auto"):
            start = time.perf_counter()
            model = KernelLogisticRegression(kernel, optimize="cv", coupling=coupling).fit(X, y)
            seconds.append(time.perf_counter() - start)
            found.append(scores(model, X_test, y_test))
        rows.append([*found[0], *np.subtract(found[1], found[0]), model.n_couplings_, *seconds])
        print("   seed", seed, np.round(rows[-1], 4).tolist(), flush=True)
    return np.array(rows)


def n_lower(rows):
    """Seeds with a lower log loss; that of models that stayed unrelated differs by rounding, which does not count."""
    return int(((rows[:, 2] < 0) & (rows[:, 4] > 0)).sum())


def reported(name, rows):
    """Print one line for a set: means and standard errors over seeds."""
    mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    print(
        f"{name}: log loss {mean[0]:.4f}, difference {mean[2]:+.4f} ± {error[2]:.4f}; error {100 * mean[1]:.2f} %, "
        f"difference {100 * mean[3]:+.2f} ± {100 * error[3]:.2f} points; coupled with {int((rows[:, 4] > 0).sum())} of "
        f"{len(rows)} seeds; lower log loss with {n_lower(rows)}; seconds {rows[:, 5].sum():.1f} and "
        f"{rows[:, 6].sum():.1f}",
        flush=True,
    )
    return mean, error


def checks(folder, seeds):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), np.eye(4)[np.arange(40) % 4]
    worst = 0.0
    for loss, targets in ((Softmax(), Y), (Squared(), rng.normal(size=Y.shape))):
        structure = FactoredCoupling(rng.normal(size=(4, 2)), rng.uniform(0.5, 2, 4), 2.0)
        matrix = Dense(RBF(1.0), X)
        operator = LabelMixed([(matrix, structure), (Intercept(1.0, Y, len(X)), Identity())])
        A, S = rng.normal(size=Y.shape), structure.mix(np.eye(4))
        whole = np.kron(matrix.to_dense(), S) @ A.reshape(-1) + np.tile(A.sum(axis=0), len(X))
        off = np.abs((operator @ A).reshape(-1) - whole).max()
        folds = fold_masks(3, X, Y.argmax(axis=1), classifier=True)
        criterion = CrossValidationCriterion(Problem(operator, loss, targets, 0.5), *folds)
        theta = operator.theta
        gradient = criterion(theta, tol=1e-15, accuracy=1e-12)[1]
        for k, e in enumerate(np.eye(theta.size)):
            ends = [criterion(theta + j * 1e-4 * e, tol=1e-15)[0] for j in (-2, -1, 1, 2)]
            numerical = np.dot([1, -8, 8, -1], ends) / 12e-4
            worst = max(worst, abs(gradient[k] - numerical) / np.abs(gradient).max())
        print(f"{loss!r}: products against numpy.kron differ by {off:.1e}")
    print(f"{verdict(worst <= 1e-6)}: gradients differ from numerical ones by {worst:.1e}")


def synthetic_part(folder, seeds):
    mean, _ = reported("synthetic", compared(synthetic, min(seeds, 8)))
    print(f"{verdict(mean[3] <= -0.08)}: {-100 * mean[3]:.1f} points of error less, bar 8")


def letters_part(folder, seeds):
    rows = compared(lambda seed: letters(folder, seed), min(seeds, 8))
    mean, _ = reported("letters", rows)
    print(f"{verdict(mean[3] <= -0.015)}: {-100 * mean[3]:.2f} points of error less, bar 1.5")
    lower = n_lower(rows)
    print(f"{verdict(lower >= 7)}: lower log loss with {lower} of {len(rows)} seeds, bar 7 of 8")


def never_part(folder, seeds, names=NEVER):
    for name in names:
        mean, error = reported(name, compared(lambda seed, n=name: small(folder, n, seed), seeds))
        held = mean[2] <= 2 * error[2]
        print(f"{verdict(held)}: {name}, never worse beyond noise", flush=True)


def approvals_part(folder, seeds):
    for kind, sets in (("unrelated", UNRELATED), ("related", RELATED)):
        for name, draw in sets.items():
            print(f"   {kind}: {name}")
            rows = compared(lambda k, d=draw: d(100 + k), min(seeds, 10))
            reported(f"{kind}, {name}", rows)
            worse = int(((rows[:, 2] > 0) & (rows[:, 4] > 0)).sum())
            print(f"{kind}, {name}: coupled and worse with {worse} of {len(rows)} seeds")


def news_part(folder, seeds):
    import pandas as pd
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = pd.read_parquet(data_file(folder, "text/20news_bydate.parquet"))
    train = (frame["split"] == "train").to_numpy()
    y = frame["group"].str.replace(".", "/").to_numpy()
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=5, max_df=0.3, stop_words="english")
    X_train = vectorizer.fit_transform(frame["text"][train])
    X_test, y_train, y_test = vectorizer.transform(frame["text"][~train]), y[train], y[~train]
    models = {
        "unrelated": {},
        "taxonomy": {"hierarchy": sorted(set(y)), "share": "level"},
        "coupled": {"coupling": "auto"},
        "taxonomy and coupled": {
            "hierarchy": sorted(set(y)),
            "share": "level",
            "coupling": "auto",
        },
    }
    found = {name: [] for name in models}
    for seed in range(min(seeds, 8)):
        rng = np.random.default_rng(seed)
        rows, few = some_of_each(y_train, 10, rng), rng.choice(X_test.shape[0], 3000, replace=False)
        for name, settings in models.items():
            model = KernelLogisticRegression("linear", optimize="cv", **settings)
            model.fit(X_train[rows], y_train[rows])
            found[name].append(scores(model, X_test[few], y_test[few]))
            approved = getattr(model, "n_couplings_", "-")
            print(f"   seed {seed}, {name}:", np.round(found[name][-1], 4).tolist(), approved)
    for name, values in found.items():
        loss, error = np.mean(values, axis=0)
        print(f"news, {name}: log loss {loss:.4f}, error {100 * error:.2f} %", flush=True)


def kinases(folder, seed, n_targets=12, n_train=200):
    """Affinities of drugs to the kinases that were measured most; drugs to learn from, and others."""
    stored = np.load(data_file(folder, "dti/metz.npz"), allow_pickle=False)
    Y = stored["pKi"].astype(float)
    bits = np.unpackbits(stored["fp_bits"], axis=1)[:, : int(stored["fp_n_bits"])].astype(float)
    columns = np.argsort(-np.sum(~np.isnan(Y), axis=0))[:n_targets]
    Y = Y[:, columns]
    drugs = np.random.default_rng(seed).permutation(np.flatnonzero(~np.isnan(Y).all(axis=1)))
    train, test = drugs[:n_train], drugs[n_train : n_train + 500]
    Y = (Y - np.nanmean(Y[train], axis=0)) / np.nanstd(Y[train], axis=0)
    return bits[train], Y[train], bits[test], Y[test]


def rmse(predicted, Y):
    return float(np.sqrt(np.nanmean((predicted - Y) ** 2)))


def regression_part(folder, seeds):
    from coupling_peers import gpytorch_multitask, independent_processes

    peers = {"scikit-learn": independent_processes, "GPyTorch": gpytorch_multitask}
    found = {}
    for seed in range(min(seeds, 5)):
        X, Y, X_test, Y_test = kinases(folder, seed)
        X, X_test = X / np.sqrt(X.shape[1]), X_test / np.sqrt(X.shape[1])
        for name, coupling in (("unrelated", None), ("coupled", "auto")):
            start = time.perf_counter()
            model = KernelRidge(optimize="cv", coupling=coupling).fit(X, Y)
            row = time.perf_counter() - start, rmse(model.predict(X_test), Y_test)
            found.setdefault(name, []).append((*row, model.solution_.relative_gap))
        print("   approved", model.n_couplings_, flush=True)
        for name, peer in peers.items():
            start = time.perf_counter()
            predicted = peer(X, Y, X_test)
            if predicted is not None:
                row = time.perf_counter() - start, rmse(predicted, Y_test)
                found.setdefault(name, []).append((*row, np.nan))
    means = {name: np.mean(rows, axis=0) for name, rows in found.items()}
    print("   RMSE of each split:", {k: np.round(v, 4)[:, 1].tolist() for k, v in found.items()})
    for name, (seconds, error, gap) in means.items():
        print(f"kinases, {name}: RMSE {error:.4f}, {seconds:.1f} s, relative gap {gap:.1e}")
    for name in means.keys() & set(peers):
        ratio = means[name][0] / means["coupled"][0]
        print(f"{verdict(means['coupled'][1] <= means[name][1])}: RMSE against {name}")
        if name == "GPyTorch":
            print(f"{verdict(ratio >= 5)}: {ratio:.1f} times faster than {name}, bar 5")
    if "GPyTorch" not in means:
        print("GPyTorch skipped: torch and gpytorch are not installed")


def time_part(folder, seeds):
    sets = {"synthetic": synthetic}
    if folder:
        sets["letters"] = lambda seed: letters(folder, seed)
    for name, draw in sets.items():
        X, y, _, _ = draw(0)
        seconds = []
        for coupling in (None, "auto") * 6:  # the first two compile
            start = time.perf_counter()
            KernelLogisticRegression(optimize="cv", coupling=coupling).fit(X, y)
            seconds.append(time.perf_counter() - start)
        flat, coupled = np.median(seconds[2::2]), np.median(seconds[3::2])
        words = f"{name}: {flat:.2f} s flat, {coupled:.2f} s coupled"
        print(f"{verdict(coupled <= 3 * flat)}: {words}, {coupled / flat:.1f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--seeds", type=int, default=20, help="training parts of each set")
    parser.add_argument("--sets", default=",".join(NEVER), help="sets of the part never")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The search for hyperparameters ended")
    warnings.filterwarnings("ignore", ".*heavy tails.*")
    for part in arguments.parts.split(","):
        print(f"== {part}", flush=True)
        if part == "never":
            never_part(arguments.data, arguments.seeds, arguments.sets.split(","))
        else:
            run = checks if part == "checks" else globals()[f"{part}_part"]
            run(arguments.data, arguments.seeds)


if __name__ == "__main__":
    main()
