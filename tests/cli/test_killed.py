"""Commands that are killed at any moment leave whole files or none."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramian.cli.model_file import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes cannot be killed here"),
]
MOMENTS = 34  # of each command


def command(*arguments):
    return [sys.executable, "-c", "from gramian.cli.app import main; main()", *arguments]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    table["y"] = np.where(table.a > 0, "up", "down")
    table.to_csv(folder / "x.csv", index=False)
    fit = command("fit", "x.csv", "--target", "y", "--regularization", "1", "--out", "model.skops")
    subprocess.run(fit, cwd=folder, check=True, capture_output=True)
    return folder


COMMANDS = {
    "fit": ("fit", "x.csv", "--target", "y", "--regularization", "1", "--out", "other.skops"),
    "predict": ("predict", "model.skops", "x.csv", "--out", "p.csv"),
    "evaluate": ("evaluate", "model.skops", "x.csv", "--json", "r.json"),
}
READ = {
    "other.skops": lambda path: load(path),
    "p.csv": lambda path: len(pd.read_csv(path)) == 400 or pytest.fail("rows are missing"),
    "r.json": lambda path: json.loads(path.read_text()),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_commands_leave_whole_files(folder, name):
    arguments = command(*COMMANDS[name])
    start = time.perf_counter()
    subprocess.run(arguments, cwd=folder, check=True, capture_output=True)
    whole = time.perf_counter() - start
    out = folder / arguments[-1]
    for moment in np.linspace(0.5, 1.1, MOMENTS):  # before that nothing but imports happens
        process = subprocess.Popen(
            arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moment * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert Path(out).exists()
        READ[out.name](out)
    for left in folder.glob(".*"):  # what was not finished
        os.unlink(left)
