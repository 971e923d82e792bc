"""What `contrast_ascent` knows on its way: coefficients, the form of outputs, and sums that follow both.

Latent sums
    The penalty gives S = F Fᵀ with a sparse F (`labels.margins.forms`). With features X the sums Y = Xᵀ A F are kept,
    one row a feature; with a Gram matrix the latent scores V = K A F, one row an example. A visit reads those columns
    that the scores of its label are made of, and changes those that belong to outputs whose coefficients change.

Slots
    Coefficients that are not zero have slots (`solvers.contrast.loops`). Each unit begins with a few, and has twice as
    many once they are full.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gramian._core.threads import in_parts
from gramian.labels.margins.contrasts import Contrasts
from gramian.labels.margins.forms import Factor
from gramian.operators.inputs.feature_rows import FeatureRows
from gramian.operators.inputs.gram_rows import GramRows
from gramian.solvers.contrast import loops
from gramian.solvers.contrast.mixed import MixedCoefficients
from gramian.solvers.contrast.problem import ContrastProblem
from gramian.solvers.interior import MOST, Coefficients, interior_point

FIRST_SLOTS = 4  # of a unit: it has twice as many whenever they are full
SWEEP_PARTS = (
    4  # of a pass, with better signs after each if that does not take more work than the visits
)
CHEAP_SIGNS = (
    2**20
)  # multiply-adds of a sweep over signs, less than a millisecond: done after each part
MORE_PASSES = 10  # over slots, as long as they take less work than a look at all contrasts
MAX_VISITS = 5000  # in one compiled call: interruptions get through
BLOCK_EXAMPLES = 128  # whose kernel values are worked on together
ROWS_BYTES = 24 * 2**20  # of a block; it has fewer examples if they take more (the last: twice)


class Snapshot(NamedTuple):
    """What coefficients are made of."""

    begin: np.ndarray
    counts: np.ndarray
    row: np.ndarray
    rival: np.ndarray
    beta: np.ndarray
    signs: np.ndarray


class State:
    """Coefficients β in slots, the form, and what follows from both."""

    drift: float  # tolerances below this are certified with sums computed anew
    exact = True  # whether sums before were in float64, too

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        self.problem = problem
        self.random = random
        self.form = problem.penalty.start()
        contrasts = problem.contrasts
        outputs, latents = _needed(contrasts, self.form.factor)
        self.n_contrasts = contrasts.counts()[problem.labels]
        slots = np.minimum(self.n_contrasts, FIRST_SLOTS)
        before = np.concatenate([[0], np.cumsum(latents.end - latents.first)])
        width = np.diff(before[latents.start])
        self.n_read = float(width[problem.labels].sum())  # columns, by a look at all units
        assert problem.examples is not None
        self.dual = loops.Dual(
            start=contrasts.start,
            own=contrasts.own,
            first=contrasts.first,
            end=contrasts.end,
            scale=contrasts.scale,
            outputs=outputs,
            latents=latents,
            width=width,
            form=tuple(self.form.factor),
            columns=_columns(self.form.factor, self.form.n_latent),
            examples=problem.examples,
            labels=problem.labels,
            caps=problem.caps,
            begin=np.concatenate([[0], np.cumsum(slots)]),
            counts=np.zeros(slots.size, dtype=np.int64),
            row=np.zeros(slots.sum(), dtype=np.int64),
            rival=np.zeros(slots.sum(), dtype=np.int64),
            beta=np.zeros(slots.sum()),
        )
        self.fresh = True
        self.operations = 0.0  # multiply-adds so far

    def values(self) -> tuple[float, float, np.ndarray]:
        """J, D and the gap of each unit."""
        losses, gaps = np.zeros(self.problem.labels.size), np.zeros(self.problem.labels.size)
        self.scan(losses, gaps)
        left, right = self.sums()
        penalty = self.form.value(left, right)
        objective = penalty + losses.sum()
        gap = np.maximum(gaps, 0.0).sum() + max(penalty - 0.5 * float(np.vdot(left, right)), 0.0)
        gap += 0.0 if self.exact else self.rounding_of_matrix()
        return float(objective), float(objective - gap), gaps

    # --- slots ------------------------------------------------------------------------------

    def widen(self) -> None:
        """Give twice as many slots to the units whose slots are full."""
        sizes = np.diff(self.dual.begin)
        full = (self.dual.counts == sizes) & (sizes < self.n_contrasts)
        if full.any():
            self._resize(np.where(full, np.minimum(2 * sizes, self.n_contrasts), sizes))

    def _resize(self, sizes: np.ndarray) -> None:
        old, begin = self.dual, np.concatenate([[0], np.cumsum(sizes)])
        used, to = _places(old.begin, old.counts), _places(begin, old.counts)
        arrays = {}
        for name in ("row", "rival", "beta"):
            before = getattr(old, name)
            arrays[name] = np.zeros(begin[-1], dtype=before.dtype)
            arrays[name][to] = before[used]
        self.dual = old._replace(begin=begin, **arrays)

    def snapshot(self) -> Snapshot:
        """Return copies of what coefficients are made of."""
        d = self.dual
        of_slots = (d.counts.copy(), d.row.copy(), d.rival.copy(), d.beta.copy())
        return Snapshot(d.begin, *of_slots, self.form.signs.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to the coefficients and the form of a snapshot; `refresh` computes the sums."""
        slots = {name: part.copy() for name, part in snapshot._asdict().items() if name != "signs"}
        self.dual = self.dual._replace(**slots)
        self.form.signs[:] = snapshot.signs
        self.form.renew()

    def dual_coefficients(self) -> sp.csr_array:
        """A: by how much each example weighs in the sum of each output."""
        d = self.dual
        used, example = _places(d.begin, d.counts), np.repeat(d.examples, d.counts)
        weighty = d.beta[used] > 0
        used, example = used[weighty], example[weighty]
        row, rival = d.row[used], d.rival[used]
        weight = d.beta[used] * d.scale[row]
        places = np.tile(example, 2), np.concatenate([d.own[row], rival])
        entries = np.concatenate([weight, -weight]), places
        return sp.csr_array(sp.coo_array(entries, shape=self.problem.shape))

    def current(self) -> MixedCoefficients:
        """The coefficients c = A S of this state."""
        F = self.form.matrix()
        return MixedCoefficients(sp.csr_array(self.dual_coefficients() @ F), F)

    def rounding_of_matrix(self) -> float:
        """Return by how much ½ tr(S AᵀK A) may be wrong because entries of K are rounded to float32.

        Rounding errors of at most ε max(K) / 2 in a matrix have a norm of about √n times that.
        """
        inputs = self.problem.inputs
        largest = float(inputs.diagonal().max(initial=0.0)) * inputs.shape[0] ** 0.5
        return 2.0**-25 * largest * float(np.sum(self.current().latent.data ** 2))

    # --- all coefficients at once -----------------------------------------------------------

    @property
    def can_leap(self) -> bool:
        """Whether there are few enough coefficients for `leap`, and some."""
        return 0 < max(self.n_contrasts.sum(), self.problem.shape[0]) <= MOST

    def leap(self, allowed: float) -> None:
        """Find all coefficients by an interior-point method, with better signs before each of its steps.

        What it found is left if the dual is not higher there: signs may need more steps, or rounding rules.
        """
        before, lower = self.snapshot(), self.values()[1]
        dual, triples = self.dual, self.problem.contrasts.triples()
        counts = np.where(dual.caps > 0, self.n_contrasts, 0)
        used = np.flatnonzero(counts)
        unit = np.repeat(np.arange(used.size), counts[used])
        contrast = _places(triples.start[dual.labels[used]], counts[used])
        examples, scale = dual.examples[used][unit], triples.scale[contrast]
        each, outputs = np.arange(unit.size), np.zeros((unit.size, self.problem.shape[1]))
        outputs[each, triples.own[contrast]] = scale
        outputs[each, triples.rival[contrast]] = -scale
        K = self.problem.inputs.rows(examples)[:, examples]
        rows = np.repeat(np.arange(dual.own.size), dual.end - dual.first)[contrast]
        begin = np.concatenate([[0], np.cumsum(counts)])
        numbers = {"row": rows, "rival": triples.rival[contrast], "begin": begin, "counts": counts}
        self.dual = dual._replace(beta=np.zeros(unit.size), **numbers)

        def set_to(beta: np.ndarray) -> np.ndarray:
            self.dual.beta[:] = beta
            self.refresh()
            self.form.improve(*self.sums())
            F = self.form.matrix()
            return (F @ F.T).toarray()

        found = Coefficients(K, outputs, scale, unit, dual.caps[used])
        self.dual.beta[:] = interior_point(found, set_to, allowed)
        self.refresh()  # with the signs that coefficients were found for: with large kernel values better ones undo it
        if not self.values()[1] > lower:
            self.restore(before)
            self.refresh()
            self.form.improve(*self.sums())
        self.fresh = False  # bounds so far are of sums that were updated

    # --- by the kind of inputs --------------------------------------------------------------

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays with leftᵀ right = Y Yᵀ, which follow when signs improve."""
        raise NotImplementedError

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
        """Write losses and gaps of all units."""
        raise NotImplementedError

    def sweep(self, units: np.ndarray, passes: int) -> None:
        """Visit units that many times."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Compute the form and sums anew from signs and β."""
        raise NotImplementedError


class FeatureState(State):
    """With features X: Y = Xᵀ A F, one row a feature."""

    drift = 1e-7  # sums are in float64

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        super().__init__(problem, random)
        self.features = problem.inputs
        self.Y = np.zeros((self.features.n_features, self.form.n_latent))

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        return self.Y, self.Y

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
        of_features = (self.features.compiled, self.dual, self.Y, losses, gaps)
        in_parts(partial(loops.scan, *of_features), losses.size)
        self.operations += self.features.n_entries * self.n_read

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        features = self.features
        X, squares, nothing = features.compiled, features.diagonal(), np.empty((0, 0))
        before = improved = self.operations
        work, look = len(self.Y) * self.form.n_products, features.n_entries * self.n_read
        dear = work if work > CHEAP_SIGNS else 0
        for number in range(passes if passes == 1 else MORE_PASSES):
            if number >= passes and loops.LINE * (self.operations - before) > look:
                break  # where slots are much less work than a look, more is made of each look
            for part in np.array_split(self.random.permutation(units), SWEEP_PARTS):
                for some in np.array_split(part, 1 + part.size // MAX_VISITS):
                    places = self.dual.examples[some]
                    columns = loops.visit(
                        X, squares, places, some, number == 0, self.dual, self.Y, nothing
                    )
                    self.operations += features.n_entries * columns
                    self.widen()
                if self.operations - improved >= dear:  # no more work for signs than for visits
                    self.form.improve(self.Y, self.Y)
                    improved = self.operations
        if self.operations > improved:
            self.form.improve(self.Y, self.Y)

    def refresh(self) -> None:
        self.form.renew()
        B = self.current().latent
        self.Y[:] = 0.0
        loops.add_sums(self.features.compiled, B.indptr, B.indices, B.data, self.Y)
        self.fresh = True


class GramState(State):
    """With rows of a Gram matrix: V = K A F, one row an example."""

    drift = np.inf  # sums are in the precision of the matrix

    def __init__(self, problem: ContrastProblem, random: np.random.RandomState):
        super().__init__(problem, random)
        self.V = np.zeros((problem.shape[0], self.form.n_latent))
        self.exact = problem.inputs.dtype == np.float64
        affordable = ROWS_BYTES // (problem.shape[0] * problem.inputs.dtype.itemsize)
        self.block = max(1, min(BLOCK_EXAMPLES, affordable))

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        return self.current().latent.toarray(), self.V

    def scan(self, losses: np.ndarray, gaps: np.ndarray) -> None:
        in_parts(partial(loops.scan_scores, self.V, self.dual, losses, gaps), losses.size)

    def sweep(self, units: np.ndarray, passes: int) -> None:
        self.fresh = False
        units = units[np.argsort(self.dual.examples[units], kind="stable")]
        examples, first = np.unique(self.dual.examples[units], return_index=True)
        units_of = np.split(units, first[1:])
        blocks = np.array_split(
            self.random.permutation(examples.size), max(1, examples.size // self.block)
        )
        part = -(-len(blocks) // SWEEP_PARTS)
        for number, some in enumerate(blocks, start=1):
            block = examples[some]
            places = np.repeat(np.arange(some.size), [units_of[x].size for x in some])
            order = np.concatenate([units[:0], *(units_of[x] for x in some)])
            rows = self.problem.inputs.rows(block)
            K = rows[:, block].astype(np.float64)
            A = np.zeros((block.size, self.V.shape[1]))
            V, squares = self.V[block], np.diagonal(K).copy()
            for number in range(passes):
                loops.visit(K, squares, places, order, number == 0, self.dual, V, A)
                self.widen()
            self.V += rows.T @ A.astype(rows.dtype, copy=False)
            self.operations += float(rows.size) * self.V.shape[1]
            del rows  # before the next ones are evaluated
            if self.form.signs.size and (number % part == 0 or number == len(blocks)):
                self.form.improve(*self.sums())

    def refresh(self) -> None:
        self.form.renew()
        self.V = np.ascontiguousarray(self.problem.inputs @ self.current().latent.toarray())
        self.fresh = True


STATES: dict[type, type[State]] = {FeatureRows: FeatureState, GramRows: GramState}


def _places(begin: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers ``begin[k]`` to ``begin[k] + counts[k] - 1`` for each k, one after the other."""
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(begin[: counts.size] - before, counts)


def _needed(contrasts: Contrasts, factor: Factor) -> tuple[loops.Ranges, loops.Ranges]:
    """The outputs whose scores each label needs, and the latent sums these are made of, as ranges."""
    spans = np.stack([contrasts.first, contrasts.end], axis=1).tolist()
    own = contrasts.own.tolist()
    of_outputs, of_latents, known = [], [], {}
    for a, b in zip(contrasts.start[:-1].tolist(), contrasts.start[1:].tolist(), strict=True):
        some = spans[a:b] + [[i, i + 1] for i in own[a:b]]
        outputs = tuple(_merged(some))
        if outputs not in known:  # many labels share theirs
            rows = [factor.latent[factor.start[i] : factor.start[j]] for i, j in outputs]
            latents = np.unique(np.concatenate(rows)) if rows else []
            known[outputs] = _merged([[r, r + 1] for r in latents])
        of_outputs.append(outputs)
        of_latents.append(known[outputs])
    return _ranges(of_outputs), _ranges(of_latents)


def _merged(spans: list[list[int]]) -> list[tuple[int, int]]:
    """Ranges that do not touch, ascending, of the same numbers."""
    merged: list[list[int]] = []
    for first, end in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([first, end])
    return [(first, end) for first, end in merged]


def _ranges(found: list) -> loops.Ranges:
    flat = np.array([span for spans in found for span in spans], dtype=np.int64).reshape(-1, 2)
    start = np.concatenate([[0], np.cumsum([len(spans) for spans in found])]).astype(np.int64)
    return loops.Ranges(start, flat[:, 0].copy(), flat[:, 1].copy())


def _columns(factor: Factor, n_latent: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F by its columns: where each begins, its outputs, and the places of its entries in the rows."""
    output = np.repeat(np.arange(factor.start.size - 1), np.diff(factor.start))
    entry = np.argsort(factor.latent, kind="stable")
    start = np.searchsorted(factor.latent[entry], np.arange(n_latent + 1))
    return start, output[entry], entry
