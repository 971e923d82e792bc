"""What an estimator remembers of the operator it used: its name, why it was chosen, and what else was weighed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Candidate(NamedTuple):
    """An operator that "auto" weighed."""

    name: str
    cost: float | None  # of a product, in the unit of `costs`; None if not estimated
    nbytes: int
    objection: str  # what speaks against it, "" if nothing does


@dataclass(frozen=True)
class OperatorRecord:
    """Which operator an estimator used, and why.

    Attributes
    ----------
    name : str
        "dense", "linear", "streamed", "tree_code" or "low_rank"; for pairs "dual", "primal" or "streamed".
    reason : str
        Why it was chosen, in words.
    n_samples : int
    nbytes : int
        Bytes the operator keeps beyond the training data.
    candidates : tuple of (name, cost, nbytes, objection)
        What "auto" weighed: estimated flops of a product (None if not estimated), bytes, and what speaks against it
        ("" if nothing does). Empty if the operator was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> model = KernelRidge().fit(np.arange(4.0)[:, None], np.arange(4.0))
    >>> model.operator_.name
    'dense'
    >>> model.operator_.explain()
    dense: 4 x 4 values take 128 B, within working_memory = 1024 MiB
    operator   cost of a product     memory
    dense                      1      128 B  chosen
    linear                     -        0 B  needs the kernel Linear()
    streamed                0.95        0 B  the matrix itself fits
    tree_code                  -        0 B  a stored matrix of at most 5000 examples is exact and fast enough
    low_rank                   -        0 B  approximates: pass rank to allow it
    """

    name: str
    reason: str
    n_samples: int
    nbytes: int
    candidates: tuple[Candidate, ...] = ()

    def explain(self) -> None:
        """Print why this operator was chosen, and what the others would cost, relative to it."""
        print(f"{self.name}: {self.reason}")
        if not self.candidates:
            return
        unit = next((one.cost for one in self.candidates if one.name == self.name), None)
        print(f"{'operator':10} {'cost of a product':>17} {'memory':>10}")
        for name, cost, nbytes, objection in self.candidates:
            relative = "-" if cost is None or not unit else f"{cost / unit:.3g}"
            remark = "chosen" if name == self.name else objection
            line = f"{name:10} {relative:>17} {readable_bytes(nbytes):>10}  {remark}"
            print(line.rstrip())


def readable_bytes(nbytes: float) -> str:
    """A number of bytes with a unit.

    Examples
    --------
    >>> from gramian.operators.record import readable_bytes
    >>> readable_bytes(3 * 2**20)
    '3 MiB'
    """
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} GiB"
