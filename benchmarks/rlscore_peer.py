"""RLScore (Pahikkala & Airola) as a peer, in an interpreter of its own: it needs other versions than we do.

`rlscore` writes arrays to a temporary file, runs one of the tasks below with the given interpreter, which does its own
timing, and reads what the task returns. Needs NumPy only here, and rlscore there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import median_seconds, once

HERE = Path(__file__).parent


def add_rlscore_argument(parser) -> None:
    """Add ``--rlscore`` to a parser."""
    parser.add_argument(
        "--rlscore",
        metavar="PYTHON",
        default=os.environ.get("RLSCORE_PYTHON"),
        help="interpreter that can import rlscore (default: $RLSCORE_PYTHON; none: published seconds)",
    )


def rlscore(python: str, task: str, **arrays) -> dict[str, np.ndarray]:
    """Run a task with another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        code = "import rlscore_peer; rlscore_peer.serve()"
        command = [python, "-c", code, task, str(source), str(target)]
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            print(f"--rlscore {python}: {task} failed: {' '.join(last)}", file=sys.stderr)
            raise SystemExit(2)
        with np.load(target, allow_pickle=False) as results:
            return dict(results)


# --- in the other interpreter ---------------------------------------------------------------


def serve() -> None:
    """Do the task of the command line."""
    task, source, target = sys.argv[1:]
    with np.load(source, allow_pickle=False) as arrays:
        results = globals()[f"_{task}"](dict(arrays))
    np.savez(target, **results)


def _product(a: dict) -> dict:
    from rlscore.utilities.sampled_kronecker_products import sampled_vec_trick

    rows, columns = a["rows"].astype(np.int32), a["columns"].astype(np.int32)

    def run():
        return sampled_vec_trick(a["v"], a["T"], a["K"], columns, rows, columns, rows)

    return {"seconds": median_seconds(run), "product": run()}


class _Counter:
    """Counts iterations."""

    def __init__(self):
        self.iterations = 0

    def callback(self, _):
        self.iterations += 1

    def finished(self, _):
        pass


def _given(a: dict, **options) -> dict:
    return {
        "K1": a["K"],
        "K2": a["T"],
        "Y": a["y"],
        "label_row_inds": a["rows"],
        "label_col_inds": a["columns"],
        "regparam": float(a["regularization"]),
        "maxiter": int(a["max_iter"]),
        **options,
    }


def _ridge(a: dict) -> dict:
    from rlscore.learner import CGKronRLS

    counter = _Counter()
    seconds, model = once(lambda: CGKronRLS(**_given(a, callback=counter)))
    rows, columns = (a[name].astype(np.int32) for name in ("rows", "columns"))
    predictions = model.predict(a["K"], a["T"], rows, columns)
    return {
        "seconds": seconds,
        "iterations": counter.iterations,
        "predictions": predictions,
        "coefficients": np.ravel(model.A),
    }


def _svm(a: dict) -> dict:
    from rlscore.learner import KronSVM

    seconds, model = once(lambda: KronSVM(**_given(a, inneriter=int(a["max_inner"]))))
    rows, columns = (a[f"new_{name}"].astype(np.int32) for name in ("rows", "columns"))
    decisions = model.predict(a["new_K"], a["new_T"], rows, columns)
    return {"seconds": seconds, "decisions": decisions, "coefficients": np.ravel(model.A)}


def _complete(a: dict) -> dict:
    try:
        from rlscore.learner import KronRLS
    except ImportError:
        return {}
    Y = a["Y"]

    def run():
        return KronRLS(
            K1=a["K"], K2=a["T"], Y=Y.ravel(order="F"), regparam=float(a["regularization"])
        )

    coefficients = np.asarray(run().A).reshape(Y.shape, order="F")
    return {"seconds": median_seconds(run), "coefficients": coefficients}
