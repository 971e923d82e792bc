"""The part of `defaults.py` about pairs: targets that are not centred, few pairs, and four settings of real data."""

from __future__ import annotations

import numpy as np
from data import load_dti
from records import Cell, Run
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from tables import Outcomes, header, number, report, row
from timing import once

from gramian import PairKFold, Pairs, PairwiseRidge
from gramian.datasets import make_interactions

PAIR_SETS = ("gpcr", "ic", "e", "metz")
SHIFT = 6.0
MOST_PAIRS = 12_000  # of a set, by a sample of its objects: a search takes hundreds of products
ACTIVE = 7.6  # pKi of Metz et al. from which a pair counts as an interaction


def pairs_part(run: Run, outcomes: Outcomes) -> None:
    if not run.recorded_only:
        _shifted_and_few(outcomes)
    _settings_part(run, outcomes)


def _shifted_and_few(outcomes: Outcomes) -> None:
    """Targets that are not centred, and the seconds that a few hundred pairs take to be learned."""
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


def _settings_part(run: Run, outcomes: Outcomes) -> None:
    """Mean areas under ROC curves, over folds and seeds, of the default and of what learned for the setting."""
    header("set", "setting", "default AUC", "learned AUC", "error of the difference", "s", "s")
    held = total = 0
    for name in run.chosen(PAIR_SETS):
        for setting in "ABCD":

            def measure(seed: int, name: str = name, setting: str = setting) -> Cell:
                return _areas(*_interactions(run.data, name), setting, seed)

            cells = run.cells("pairs", f"{name}-{setting}", measure)
            if not cells:
                continue
            default, learned = (
                np.concatenate([cell[key] for cell in cells]) for key in ("default", "learned")
            )
            off = learned - default
            error = off.std(ddof=1) / np.sqrt(off.size)
            seconds = (
                np.mean([cell[key] for cell in cells]) for key in ("default, s", "learned, s")
            )
            areas = (number(area.mean(), ".4f") for area in (default, learned))
            row(name, setting, *areas, number(error, ".4f"), *map(number, seconds))
            held, total = held + (off.mean() >= -1e-3), total + 1
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


def _areas(pairs: Pairs, active: np.ndarray, setting: str, seed: int) -> Cell:
    """Areas of the default and of a model that learned for the setting, in three disjoint folds."""
    folds = PairKFold(setting, random_state=seed)
    kinds = {
        "default": PairwiseRidge(random_state=seed),
        "learned": PairwiseRidge(optimize="cv", cv=PairKFold(setting), random_state=seed),
    }
    cell: Cell = {key: [] for kind in kinds for key in (kind, f"{kind}, s", f"{kind}, kernel")}
    for training, test in list(folds.split(pairs, active))[:: 4 if setting == "D" else 1]:
        for kind, model in kinds.items():
            seconds, _ = once(lambda m=model, t=training: m.fit(pairs[t], active[t]))
            cell[kind].append(roc_auc_score(active[test], model.predict(pairs[test])))
            cell[f"{kind}, s"].append(seconds)
            cell[f"{kind}, kernel"].append(repr(model.kernel_))
    return cell
