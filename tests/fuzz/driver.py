"""Run many scenarios in processes of their own, with limits of time and memory.

    python tests/fuzz/driver.py [--minutes 30 | --scenarios 50000] [--certificates 1000] [--workers 2] [--seed 0]

Prints how scenarios ended, and the seed and text of each that ended badly; the exit code is 1 if one did. Run a seed
again with ``python tests/fuzz/driver.py --only SEED``.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Lock

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

BATCH = 250  # scenarios of one process
SECONDS_EACH = 60  # of the processor, for one scenario; longer is a hang
WAITING = 600  # seconds after which a scenario that does not even work is a hang
MEMORY = 8 * 2**30  # bytes of address space of a process
GOOD = ("finite", "named error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=None, help="how long, at most")
    parser.add_argument("--scenarios", type=int, default=None, help="how many, at most")
    parser.add_argument("--certificates", type=int, default=0, help="how many of each precision")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0, help="of the first scenario")
    parser.add_argument(
        "--only", type=int, default=None, help="run this seed alone, and show everything"
    )
    parser.add_argument("--batch", nargs=3, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.batch is not None:
        kind, first, last = arguments.batch
        run_batch(kind, int(first), int(last))
        return 0
    if arguments.only is not None:
        print(one("scenario", arguments.only))
        return 0
    return campaign(arguments)


# --- in a process of its own ------------------------------------------------------------------------------


def one(kind, seed):
    """Run a scenario, or compare a certificate."""
    from fuzz import scenarios

    if kind == "scenario":
        return scenarios.outcome(seed)
    return scenarios.certificate_outcome(seed, np.dtype(kind))


def run_batch(kind, first, last):
    """Run scenarios; a line of JSON for the beginning and for the end of each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed in range(first, last):
        print(json.dumps({"seed": seed}), flush=True)
        # they end the process: a hang may be in compiled code
        signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
        signal.setitimer(signal.ITIMER_REAL, WAITING)
        found = one(kind, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps({"seed": seed, "kind": found.kind, "text": found.text}), flush=True)


# --- the campaign -----------------------------------------------------------------------------------------


def batch(kind, first, last):
    """Outcomes of all seeds; after a hang or a crash another process goes on with the next seed."""
    found = []
    while first < last:
        command = [sys.executable, "-W", "ignore", __file__, "--batch", kind, str(first), str(last)]
        threads = {
            name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        }
        ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads)
        lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        done = [line for line in lines if "kind" in line]
        found += done
        begun = lines[-1]["seed"] if lines else first
        first = (done[-1]["seed"] if done else first - 1) + 1
        if first >= last:
            break
        hung = ended.returncode in (-signal.SIGALRM, -signal.SIGPROF)
        text = f"exit {ended.returncode}: {ended.stderr[-500:]}"
        found.append({"seed": begun, "kind": "hang" if hung else "crash", "text": text})
        first = begun + 1
    return found


def campaign(arguments):
    """Run until time or numbers are used up; return the exit code."""
    start, counts, bad = time.monotonic(), Counter(), []
    jobs = [
        (dtype, k, min(k + BATCH, arguments.certificates))
        for k in range(0, arguments.certificates, BATCH)
        for dtype in ("float32", "float64")
    ]
    most = arguments.scenarios or (10**9 if arguments.minutes else 0)
    limit = None if arguments.minutes is None else start + 60 * arguments.minutes

    last_seed = arguments.seed + most
    scenarios = (
        ("scenario", k, min(k + BATCH, last_seed)) for k in range(arguments.seed, last_seed, BATCH)
    )
    waiting, turn = chain(jobs, scenarios), Lock()

    def work():
        while limit is None or time.monotonic() < limit:
            with turn:
                job = next(waiting, None)
            if job is None:
                return
            kind, first, last = job
            for line in batch(kind, first, last):
                counts[kind if kind != "scenario" else "", line["kind"]] += 1
                if line["kind"] not in GOOD:
                    bad.append(line)
                    print(f"{kind} {line['seed']}: {line['kind']}: {line['text']}", flush=True)
            seconds = time.monotonic() - start
            print(
                f"{sum(counts.values())} in {seconds:.0f} s: {dict(counts)}",
                file=sys.stderr,
                flush=True,
            )

    with ThreadPoolExecutor(arguments.workers) as pool:
        for future in [pool.submit(work) for _ in range(arguments.workers)]:
            future.result()
    for (kind, ending), count in sorted(counts.items()):
        print(f"{kind or 'scenarios'}: {ending} {count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
