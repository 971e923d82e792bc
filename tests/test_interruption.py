"""Ctrl-C during long work ends it soon and leaves process and estimators as they were.

One process goes through all cases: each announces itself and works for longer than anyone would wait, is interrupted,
and then does small work of the same kind, which has to come out right. No time is asserted but a limit against hanging.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.slow  # and best alone: what is measured is how soon work ends

LIMIT = 60  # seconds after which an interruption counts as ignored

SCRIPT = """
import gc, json, sys, threading
import numpy as np
from gramian import KernelLogisticRegression, KernelRidge, M3LClassifier
from gramian._core.threads import _GATE
from gramian.kernels import RBF, Matern, RationalQuadratic
from gramian.operators import Dense, LowRank, Streamed, TreeCode

rng = np.random.default_rng(0)
X = rng.random((400_000, 3))
b = np.ones((len(X), 1))
few, right, y = X[:200], rng.normal(size=(200, 1)), X[:, 0] > 0.5

def agrees(operator, atol=1e-7):
    exact = Dense(operator.kernel, few).matrix @ right
    return bool(np.allclose(operator @ right, exact, atol=atol))

def fits(model):
    if vars(model) != before[id(model)]:
        return "changed"
    answers = model.fit(few, y[:200]).predict(few)
    other = type(model)(kernel=kernel, **same[id(model)]).fit(few, y[:200]).predict(few)
    return bool(np.array_equal(answers, other))

def unlocked():
    taken = []
    def take():
        taken.append(_GATE.lock.acquire(timeout=10))
        if taken[0]:
            _GATE.lock.release()
    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]

kernel = RBF(0.3)
logistic = KernelLogisticRegression(kernel, operator="streamed", regularization=1.0)
margin = M3LClassifier(1.0, kernel=kernel, tol=1e-6)
before = {id(model): dict(vars(model)) for model in (logistic, margin)}
same = {
    id(logistic): {"operator": "dense", "regularization": 1.0},
    id(margin): {"C": 1.0, "solver": "smo", "tol": 1e-6},
}
fitted = KernelRidge(kernel, regularization=1.0).fit(few, few[:, 0])
answers = fitted.predict(few)
planned, c = TreeCode(Matern(0.01), X[:20_000]), b[:20_000]
product = planned @ c  # plans
assert planned.methods == ("near cells",)

def again_and_again():
    while True:
        planned @ c

cases = {
    "streamed product": (
        lambda: Streamed(Matern(0.3), X) @ b, lambda: agrees(Streamed(Matern(0.3), few))
    ),
    "streamed product by tiles": (
        lambda: Streamed(RationalQuadratic(0.3), X) @ b,
        lambda: agrees(Streamed(RationalQuadratic(0.3), few)),
    ),
    "logistic regression": (lambda: logistic.fit(X, y), lambda: fits(logistic)),
    "multi-label": (lambda: margin.fit(X, y), lambda: fits(margin)),
    "fitted before": (
        lambda: fitted.set_params(operator="streamed").fit(X, y.astype(float)),
        lambda: bool(np.array_equal(fitted.predict(few), answers)),
    ),
    "tree code, planning": (
        lambda: TreeCode(Matern(0.05), X) @ b, lambda: agrees(TreeCode(Matern(0.05), few))
    ),
    "tree code, products": (again_and_again, lambda: bool(np.allclose(planned @ c, product))),
    "low rank": (
        lambda: LowRank(RBF(0.02), X, 4000, random_state=0),
        lambda: agrees(LowRank(RBF(0.02), few, 200, random_state=0), 1e-4),
    ),
}
for name, (work, check) in cases.items():
    interrupted = False
    gc.collect()  # Python loses an interruption that comes while it disposes of things
    try:
        print(json.dumps({"begin": name}), flush=True)
        work()
    except KeyboardInterrupt:
        interrupted = True
    result = {"interrupted": interrupted, "right": check(), "unlocked": unlocked()}
    print(json.dumps({"end": name} | result), flush=True)
"""

CASES = [
    "streamed product",
    "streamed product by tiles",
    "logistic regression",
    "multi-label",
    "fitted before",
    "tree code, planning",
    "tree code, products",
    "low rank",
]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict]:
    """What each case came to."""
    if os.name == "nt":
        pytest.skip("Windows has no SIGINT for one process")
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout])
    reader.start()
    found = {}
    try:
        for name in CASES:
            assert json.loads(lines.get(timeout=LIMIT)) == {"begin": name}
            threading.Event().wait(0.7)  # until it is in the midst of it
            process.send_signal(signal.SIGINT)
            found[name] = json.loads(lines.get(timeout=LIMIT))
        assert process.wait(timeout=LIMIT) == 0
    except queue.Empty:
        pass  # the cases that are missing fail
    finally:
        process.kill()
        reader.join()
    return found


@pytest.mark.parametrize("name", CASES)
def test_work_is_interrupted_and_the_process_goes_on(name, outcomes):
    assert name in outcomes, "the interruption was ignored"
    assert outcomes[name] == {"end": name, "interrupted": True, "right": True, "unlocked": True}
