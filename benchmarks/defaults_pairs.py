"""The part of `defaults.py` about pairs: targets that are not centred, few pairs, and four settings of real data."""

from __future__ import annotations

import numpy as np
from data import load_dti
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import PairKFold, Pairs, PairwiseRidge
from gramian.datasets import make_interactions

SHIFT = 6.0
MOST_PAIRS = 12_000  # of a set, by a sample of its objects: a search takes hundreds of products
ACTIVE = 7.6  # pKi of Metz et al. from which a pair counts as an interaction


def pairs_part(folder: str | None, seeds: int, sets: list[str], outcomes: Outcomes) -> None:
    pairs, y = make_interactions()
    header("setting", "R²", "R² of y + 6")
    for setting in "ABCD":
        plain, shifted = (
            cross_val_score(PairwiseRidge(), pairs, values, cv=PairKFold(setting)).mean()
            for values in (y, y + SHIFT)
        )
        row(setting, number(plain, ".4f"), number(shifted, ".4f"))
        report(abs(plain - shifted) <= 1e-3, f"{setting}: {abs(plain - shifted):.1e}", outcomes)
    few, values = pairs[:400], y[:400]
    PairwiseRidge(optimize="cv").fit(few[:100], values[:100])
    seconds, _ = once(lambda: PairwiseRidge(optimize="cv").fit(few, values))
    report(seconds <= 2, f"400 pairs learned in {seconds:.2f} s", outcomes)
    header("set", "setting", "default AUC", "learned AUC")
    held = total = 0
    for name in ("gpcr", "ic", "e", "metz"):
        pairs, active = _interactions(folder, name)
        for setting in "ABCD":
            scores = np.mean([_auc(pairs, active, setting, seed) for seed in range(seeds)], axis=0)
            row(name, setting, *(number(score, ".4f") for score in scores))
            held, total = held + (scores[1] >= scores[0] - 1e-3), total + 1
    report(held >= 0.75 * total, f"learned is no worse in {held} of {total}", outcomes)


def _interactions(folder: str | None, name: str) -> tuple[Pairs, np.ndarray]:
    """Pairs of a sample of the objects, described by their rows of similarities, and whether they interact."""
    drugs, targets, Y = load_dti(folder, name)
    rng = np.random.default_rng(0)
    share = min(1.0, np.sqrt(MOST_PAIRS / np.isfinite(Y).sum()))
    rows, columns = (rng.permutation(size)[: int(share * size)] for size in Y.shape)
    part = Y[np.ix_(rows, columns)]
    left, right = np.nonzero(np.isfinite(part))
    values = part[left, right]
    active = values >= ACTIVE if name == "metz" else values > 0
    return Pairs(drugs[rows], targets[columns], left, right), active.astype(float)


def _auc(pairs: Pairs, active: np.ndarray, setting: str, seed: int) -> tuple[float, float]:
    """AUC of the default and of a model that learned for the setting, on the first fold."""
    folds = PairKFold(setting, random_state=seed, shuffle=True)
    training, test = next(iter(folds.split(pairs, active)))
    models = (
        PairwiseRidge(random_state=seed),
        PairwiseRidge(optimize="cv", cv=PairKFold(setting), random_state=seed),
    )
    default, learned = (
        roc_auc_score(
            active[test], model.fit(pairs[training], active[training]).predict(pairs[test])
        )
        for model in models
    )
    return default, learned
