"""KeOps and GPyTorch as peers: sums Σ_j exp(−‖x_i − x_j‖²/(2ℓ²)) b_j on the CPU, timed in an interpreter of their own.

`peer_sums` writes the arrays to a temporary folder and runs this file with an interpreter that may have the peers;
it need not be ours. A process of its own keeps their threads away from ours. Needs NumPy here; NumPy, PyTorch and the
peers there. What cannot be imported there is reported as missing.

KeOps   ``pykeops.numpy.Genred``, its formula compiled before it is timed.
GPyTorch  ``RBFKernel()(rows, X) @ b`` by rows, since the whole matrix does not fit; the fastest of 512, 4096 and, up
        to 20 000 points, all rows. (Its own advice for what does not fit is its KeOps kernel, which is KeOps.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from timing import median_seconds, once

PEERS = {"KeOps": "pykeops", "GPyTorch": "gpytorch"}
PILOT = 200  # rows that tell how long KeOps would take for all; for GPyTorch those of a chunk do
WHOLE_UP_TO = 20_000


@dataclass(frozen=True)
class PeerSum:
    """Seconds of a peer; scaled up from some rows if there is no product."""

    seconds: float
    product: np.ndarray | None


def peers_there(python: str) -> dict[str, str]:
    """Versions of the peers that an interpreter can import."""
    return json.loads(_run(python, "versions").stdout.splitlines()[-1])


def peer_sums(
    python: str, peers: list[str], X: np.ndarray, b: np.ndarray, scale: float, limit: float
) -> dict[str, PeerSum]:
    """Time a product of each peer, unless it would take longer than the limit in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "b.npy", b)
        done = _run(python, "sums", folder, repr(scale), repr(limit), *peers)
        seconds = json.loads(done.stdout.splitlines()[-1])
        found = {}
        for peer in peers:
            file = Path(folder) / f"{peer}.npy"
            found[peer] = PeerSum(seconds[peer], np.load(file) if file.exists() else None)
        return found


def _run(python: str, *arguments: str) -> subprocess.CompletedProcess:
    code = "import sys, kernel_sums; kernel_sums.serve(*sys.argv[1:])"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [python, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{python}: {' '.join(done.stderr.strip().splitlines()[-1:])}", file=sys.stderr)
        raise SystemExit(2)
    return done


# --- in the other interpreter ---------------------------------------------------------------

Sum = Callable[[np.ndarray], np.ndarray]
Candidate = tuple[int, Sum]  # rows of a pilot, and the product of given rows with all


def _keops(X: np.ndarray, b: np.ndarray, scale: float) -> list[Candidate]:
    from pykeops.numpy import Genred

    d = X.shape[1]
    variables = ["G = Pm(1)", f"X = Vi({d})", f"Z = Vj({d})", "B = Vj(1)"]
    formula = Genred("Exp(-G * SqDist(X, Z)) * B", variables, reduction_op="Sum", axis=1)
    gain = np.array([0.5 / scale**2], X.dtype)
    return [(PILOT, lambda rows: formula(gain, rows, X, b, backend="CPU"))]


def _gpytorch(X: np.ndarray, b: np.ndarray, scale: float) -> list[Candidate]:
    import gpytorch
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(os.cpu_count() or 1)
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = scale
    Z, column = torch.from_numpy(X), torch.from_numpy(b)

    def by_rows(size: int) -> Sum:
        def run(rows: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                parts = torch.from_numpy(rows).split(size)
                return torch.cat([kernel(part, Z) @ column for part in parts]).numpy()

        return run

    sizes = [512, 4096] + ([len(X)] if len(X) <= WHOLE_UP_TO else [])
    return [(size, by_rows(size)) for size in sizes]


def _sums(folder: str, scale: str, limit: str, *peers: str) -> dict[str, float]:
    X, b = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "b.npy")
    builders = {"KeOps": _keops, "GPyTorch": _gpytorch}
    seconds = {}
    for peer in peers:
        guesses = []
        for size, candidate in builders[peer](X, b, float(scale)):
            candidate(X[:50])  # compiles
            pilot, _ = once(lambda c=candidate, size=size: c(X[:size]))
            guesses.append((pilot * len(X) / min(size, len(X)), candidate))
        seconds[peer], product = min(guesses, key=lambda guess: guess[0])
        if seconds[peer] > float(limit):
            continue
        seconds[peer], result = once(lambda p=product: p(X))
        if seconds[peer] < 5:
            seconds[peer] = median_seconds(lambda p=product: p(X))
        np.save(Path(folder) / f"{peer}.npy", result)
    return seconds


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        peer: f"{version(module)}"
        for peer, module in PEERS.items()
        if find_spec(module) is not None
    }


def serve(task: str, *arguments: str) -> None:
    """Do a task and print its result as the last line."""
    tasks: dict[str, Any] = {"versions": _versions, "sums": _sums}
    print("\n" + json.dumps(tasks[task](*arguments)))
