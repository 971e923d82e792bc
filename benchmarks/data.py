"""Real data for the benchmarks, read from a folder that is not part of the project.

The folder is ``--data DIR`` or ``$GRAMIAN_DATA``. It holds ``satimage.npz`` (arrays ``X_train``,
``y_train``, ``X_test``, ``y_test``), ``uci/NAME.csv.gz`` (one example a line, target last) and
``dti/NAME.npz`` (drugs and targets). What is missing is named, and the program ends with exit code 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd

HOW = "Pass the folder as --data DIR or in the environment variable GRAMIAN_DATA."
# name: (file, columns to drop, categorical columns, kind); columns are counted from 0.
# vowel: 0 says train or test, 1 is the number of the speaker. cmc: 6 is an occupation.
UCI = {
    "abalone": ("abalone.csv.gz", [], [0], "regression"),
    "cmc": ("cmc.csv.gz", [], [6], "classification"),
    "covtype": ("covtype_kaggle_train.csv.gz", [], [], "classification"),
    "glass": ("glass.csv.gz", [], [], "classification"),
    "ionosphere": ("ionosphere.csv.gz", [], [], "classification"),
    "iris": ("iris.csv.gz", [], [], "classification"),
    "pima": ("pima.csv.gz", [], [], "classification"),
    "segment": ("segment.csv.gz", [], [], "classification"),
    "spambase": ("spambase.csv.gz", [], [], "classification"),
    "vehicle": ("vehicle.csv.gz", [], [], "classification"),
    "vowel": ("vowel.csv.gz", [0, 1], [], "classification"),
    "wine": ("wine.csv.gz", [], [], "classification"),
}


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--data`` to a parser."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=os.environ.get("GRAMIAN_DATA"),
        help="folder with the data (default: $GRAMIAN_DATA)",
    )


def missing(what: str) -> NoReturn:
    """Say what is missing and how to pass it, then exit with code 2."""
    print(f"Missing: {what}. {HOW}", file=sys.stderr)
    raise SystemExit(2)


def data_file(folder: str | None, name: str) -> Path:
    """Return the path of a file of the data folder, or exit with a clear message."""
    if not folder:
        missing("the data folder")
    if not Path(folder).is_dir():
        missing(f"the data folder (there is no folder {folder!r})")
    path = Path(folder) / name
    if not path.is_file():
        missing(f"the file {name} in the data folder {folder!r}")
    return path


def load_uci(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Read a set of the UCI repository.

    Returns
    -------
    X : ndarray of shape (n, d), float64
        Numbers as they are, categorical columns one-hot.
    y : ndarray of shape (n,)
        Numbers for regression, codes 0, 1, ... of the sorted classes for classification.
    kind : {"classification", "regression"}
    """
    if name not in UCI:
        raise ValueError(f"name must be one of {', '.join(UCI)}; got {name!r}.")
    file, dropped, categorical, kind = UCI[name]
    header = 0 if name == "covtype" else None
    table = pd.read_csv(data_file(folder, f"uci/{file}"), header=header)
    table.columns = range(table.shape[1])
    y, table = table.iloc[:, -1].to_numpy(), table.iloc[:, :-1].drop(columns=dropped)
    X = pd.get_dummies(table, columns=categorical).to_numpy(dtype=float)
    if kind == "classification":
        y = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)[1]
    return X, y, kind


def load_satimage(
    folder: str | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Read Statlog Landsat in its original split: X_train, y_train, X_test, y_test."""
    with np.load(data_file(folder, "satimage.npz"), allow_pickle=False) as arrays:
        X_train, X_test = (arrays[f"X_{part}"].astype(float) for part in ("train", "test"))
        return X_train, arrays["y_train"], X_test, arrays["y_test"]


def load_dti(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read a set of drug-target interactions: "gpcr", "ic", "e" (Yamanishi et al.) or "metz" (Metz et al.).

    Returns
    -------
    drugs : ndarray of shape (m, d)
        Rows of the symmetrised similarity matrix; 881 substructure bits for "metz".
    targets : ndarray of shape (q, q)
        Rows of the symmetrised similarity matrix, percentages for "metz".
    Y : ndarray of shape (m, q)
        1 or 0: an interaction is known or not. For "metz" pKi, nan where it was not measured.
    """
    if name not in ("gpcr", "ic", "e", "metz"):
        raise ValueError(f"name must be one of gpcr, ic, e, metz; got {name!r}.")
    with np.load(data_file(folder, f"dti/{name}.npz"), allow_pickle=False) as arrays:
        targets = _symmetrised(arrays["S_target_recomputed" if name == "e" else "S_target"])
        if name == "metz":
            bits = np.unpackbits(arrays["fp_bits"], axis=1)[:, : int(arrays["fp_n_bits"])]
            return bits.astype(float), targets, arrays["pKi"]
        return _symmetrised(arrays["S_drug"]), targets, arrays["Y"].T.astype(float)


def _symmetrised(S: np.ndarray) -> np.ndarray:
    return (S + S.T) / 2


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; constant columns are left out."""
    spread = X.std(axis=0)
    varies = spread > 0
    return (X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies]


def machine() -> str:
    """The machine in one line: CPU, cores, NumPy and its BLAS."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    library = f"{blas['name']} {blas['version']}"
    return f"{_cpu()}, {os.cpu_count()} cores; NumPy {np.__version__}, {library}"


def _cpu() -> str:
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
