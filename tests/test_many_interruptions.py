"""Ctrl-C at 200 random moments of fits of all kinds: the process stays usable, and nothing is half-fitted.

One process fits estimators again and again, one kind after the other, until it is interrupted. Then the estimator must
be as it was before the fit, or fitted as a whole; a small fit of the same kind must come out as it did at the start.
"""

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.slow

ROUNDS = 200
LATEST = 0.5  # seconds after the beginning of a fit, at most
LIMIT = 300  # seconds after which an interruption counts as ignored

SCRIPT = """
import gc, json, sys, warnings
import numpy as np
import gramian
from gramian import KernelLogisticRegression as Logistic, Pairs, Sequences
from gramian.kernels import RBF

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
tree = {"P": [0, 1], "Q": {"R": [2, 3]}}
signatures = {k: rng.normal(size=4) for k in range(4)}
signs = {k: np.array([k % 2, k // 2, 1 - k % 2]) for k in range(4)}

def data(n):
    X = rng.normal(size=(n, 5))
    classes = np.arange(n) % 4
    ends = rng.integers(0, n // 4, (2, n))
    pairs = Pairs(X[: n // 4], X[n // 4 : n // 2], *ends)
    sequences = Sequences(X, [n // 2, n - n // 2])
    return {
        "classes": (X, classes), "numbers": (X, X[:, 0]), "labels": (X, (X[:, :3] > 0).astype(int)),
        "pairs": (pairs, rng.normal(size=n)), "signs of pairs": (pairs, classes % 2),
        "sequences": (sequences, sequences.split(classes)),
    }

large, small = data(700), data(40)
cases = {
    "KernelRidge": (lambda: gramian.KernelRidge(regularization=1e-3), "numbers"),
    "KernelRidge, learned": (lambda: gramian.KernelRidge(), "numbers"),
    "KernelLogisticRegression": (lambda: Logistic(regularization=0.1, operator="streamed"), "classes"),
    "KernelLogisticRegression, tree": (lambda: Logistic(hierarchy=tree), "classes"),
    "KernelLogisticRegression, low rank": (
        lambda: Logistic(regularization=0.1, operator="low_rank", rank=20, random_state=0), "classes"
    ),
    "KernelSVC": (lambda: gramian.KernelSVC(optimize="cv"), "classes"),
    "M3LClassifier": (lambda: gramian.M3LClassifier(1.0, kernel="rbf", probability=True), "labels"),
    "M3LClassifier, smo": (lambda: gramian.M3LClassifier(1.0, kernel=RBF(1.0), solver="smo"), "labels"),
    "M3LClassifier, linear": (lambda: gramian.M3LClassifier(kernel="linear", solver="coordinate"), "labels"),
    "HierarchicalSVC": (lambda: gramian.HierarchicalSVC(tree, C=1.0, kernel="rbf"), "classes"),
    "HierarchicalSVC, linear": (lambda: gramian.HierarchicalSVC(tree, "orthogonal"), "classes"),
    "PairwiseRidge": (lambda: gramian.PairwiseRidge(), "pairs"),
    "PairwiseLogisticRegression": (lambda: gramian.PairwiseLogisticRegression(), "signs of pairs"),
    "PairwiseRanker": (lambda: gramian.PairwiseRanker(regularization=0.1), "pairs"),
    "KernelCRF": (lambda: gramian.KernelCRF(regularization=0.1), "sequences"),
    "ZeroShotClassifier": (lambda: gramian.ZeroShotClassifier(signatures), "classes"),
    "AttributeClassifier": (lambda: gramian.AttributeClassifier(signs), "classes"),
}

def same(one, two):
    return len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two))

def answers(make, kind, table):
    X, y = table[kind]
    return make().fit(X, y).predict(X)

expected = {name: answers(*case, small) for name, case in cases.items()}
whole = {name: answers(*case, large) for name, case in cases.items()}
for turn in range(int(sys.argv[1])):
    name = list(cases)[turn % len(cases)]
    make, kind = cases[name]
    model, (X, y) = make(), large[kind]
    fitted_before = turn // len(cases) % 2 == 1  # every other time it is fitted again
    if fitted_before:
        model.fit(*small[kind])
    before = dict(vars(model))
    interrupted = False
    gc.collect()  # Python loses an interruption that comes while it disposes of things
    try:
        print(json.dumps({"begin": name}), flush=True)
        while True:
            model.fit(X, y)
    except KeyboardInterrupt:
        interrupted = True
    after = dict(vars(model))
    unchanged = after.keys() == before.keys() and all(after[key] is before[key] for key in before)
    state = "unchanged" if unchanged else "whole" if same(model.predict(X), whole[name]) else "half-fitted"
    right = bool(same(answers(make, kind, small), expected[name]))
    print(json.dumps({"end": name, "interrupted": interrupted, "state": state, "right": right}), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_fits_are_interrupted_at_any_moment():
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(ROUNDS)], stdout=subprocess.PIPE, text=True
    )
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout])
    reader.start()
    moments, found = random.Random(0), []
    try:
        for turn in range(ROUNDS):
            # the first fits of all kinds come before the first round, and compile
            begun = json.loads(lines.get(timeout=LIMIT if turn else 600))
            threading.Event().wait(moments.uniform(0, LATEST))
            process.send_signal(signal.SIGINT)
            found.append(json.loads(lines.get(timeout=LIMIT)))
            assert found[-1]["end"] == begun["begin"]
        assert process.wait(timeout=LIMIT) == 0
    finally:
        process.kill()
        reader.join()
    good = {"interrupted": True, "right": True}
    bad = [
        line for line in found if line["state"] == "half-fitted" or not good.items() <= line.items()
    ]
    assert bad == []
    # many were interrupted in their first fit, the others in a later one
    assert sum(line["state"] == "unchanged" for line in found) > ROUNDS / 5
