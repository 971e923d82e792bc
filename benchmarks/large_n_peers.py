"""Our `auto` product next to KeOps and GPyTorch on the CPU; what `large_n.py --part peers` measures."""

from __future__ import annotations

import math

import numpy as np
from kernel_sums import PEERS, PeerSum, peer_sums, peers_there
from streamed import numpy_obvious
from tables import Outcomes, header, number, report, row
from timing import once, prepared

from gramian.kernels import RBF
from gramian.operators import Streamed, choose_operator

LIMIT = 120.0  # seconds; what would take longer is scaled up from some rows
CHECKED = 500  # rows
NUMPY_ROWS, PILOT = 512, 1024
NARROW = 0.1  # length scale, for two and three features


def cases(dimensions: list[int]) -> list[tuple[int, float, str]]:
    """Features, length scale and what to call it."""
    wide = [(d, math.sqrt(d), "√d") for d in dimensions]
    return wide + [(d, NARROW, f"{NARROW:g}") for d in dimensions if d <= 3]


def peers_part(python: str, sizes: list[int], dimensions: list[int]) -> Outcomes:
    """Print the table and the verdicts."""
    versions = peers_there(python)
    for peer in PEERS:
        print(f"- {peer}: {versions.get(peer, 'missing; not compared')}")
    print(
        "\nSeconds of a product with one column, float32, normal data. ~: scaled up from some rows, as the product "
        f"would take longer than {LIMIT:g} s. Relative errors are against float64, on {CHECKED} rows.\n"
    )
    header(
        "n", "d", "ℓ", "ours", "preparation s", "ours s",
        *(f"{peer} s" for peer in versions), "NumPy s", "best peer / ours",
        "error, ours", *(f"error, {peer}" for peer in versions), "error, NumPy",
    )  # fmt: skip
    ratios: dict[str, float] = {}
    for d, scale, name in cases(dimensions):
        for n in sizes:
            ratio = _compare(python, list(versions), n, d, scale, name)
            if ratio is not None:
                ratios[f"n = {n}, d = {d}, ℓ = {name}"] = ratio
    outcomes: Outcomes = []
    print()
    for case, ratio in ratios.items():
        report(
            ratio >= 1, f"{case}: best peer takes {ratio:.2f} times our seconds (bar 1)", outcomes
        )
    if not ratios:
        print("- no verdict: no peer is installed")
    return outcomes


def _compare(
    python: str, peers: list[str], n: int, d: int, scale: float, name: str
) -> float | None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    b = rng.standard_normal((n, 1), dtype=np.float32)
    kernel = RBF(scale, "fixed")
    _, record = choose_operator(kernel, X, "auto")
    choose_operator(kernel, X[:3000], record.name)[0] @ b[:3000]  # compiles
    preparation, ours, product = prepared(
        lambda: choose_operator(kernel, X, "auto")[0], lambda operator: operator @ b
    )
    found = {"ours": PeerSum(ours, product)}
    found |= peer_sums(python, peers, X, b, scale, LIMIT) if peers else {}
    found["NumPy"] = _numpy(X, b, scale)
    chosen = rng.choice(n, CHECKED, replace=False)
    rows, all_points, column = (a.astype(np.float64) for a in (X[chosen], X, b))
    exact = Streamed(kernel, rows, all_points) @ column

    def error(found: PeerSum) -> str:
        if found.product is None:
            return "–"
        off = np.linalg.norm(found.product[chosen] - exact) / np.linalg.norm(exact)
        return f"{off:.1e}"

    best = min((found[peer].seconds for peer in peers), default=None)
    ratio = None if best is None else best / ours
    row(
        n, d, name, record.name, number(preparation), number(ours),
        *(_seconds(found[peer]) for peer in peers), _seconds(found["NumPy"]),
        number(ratio), error(found["ours"]), *(error(found[peer]) for peer in peers),
        error(found["NumPy"]),
    )  # fmt: skip
    return ratio


def _numpy(X: np.ndarray, b: np.ndarray, scale: float) -> PeerSum:
    """In chunks of rows, as one writes it first."""
    numpy_obvious(X[:NUMPY_ROWS], X, b, scale, NUMPY_ROWS)  # first use of its memory
    pilot, _ = once(lambda: numpy_obvious(X[:PILOT], X, b, scale, NUMPY_ROWS))
    whole = pilot * len(X) / PILOT
    if whole > LIMIT:
        return PeerSum(whole, None)
    seconds, product = once(lambda: numpy_obvious(X, X, b, scale, NUMPY_ROWS))
    return PeerSum(seconds, product)


def _seconds(found: PeerSum) -> str:
    return ("~" if found.product is None else "") + number(found.seconds)
