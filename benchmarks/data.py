"""Real data for the benchmarks, read from a folder that is not part of the project.

The folder is ``--data DIR`` or ``$GRAMIAN_DATA``. It holds ``satimage.npz`` (arrays ``X_train``,
``y_train``, ``X_test``, ``y_test``), ``uci/NAME.csv.gz`` (one example a line, target last),
``dti/NAME.npz`` (drugs and targets), ``multilabel/NAME.npz``, ``text/rcv1sub1.npz`` to ``3`` (documents with several
topics), ``attributes/NAME.npz`` (objects with attributes), ``dem/bigtujunga_30m.npz`` (an elevation map) and
``images/usps.npz`` (digits). What is missing is named, and the program ends with exit code 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy import sparse

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


def load_multilabel(folder: str | None, name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Read "yeast", "scene" or "tmc2007-500" in the original split: X_train, Y_train, X_test, Y_test.

    Labels are 0 or 1, of type int; features float64, dense, or CSR for tmc2007-500.
    """
    with np.load(data_file(folder, f"multilabel/{name}.npz"), allow_pickle=False) as arrays:
        parts = []
        for part in ("train", "test"):
            dense = f"X_{part}" in arrays
            X = arrays[f"X_{part}"].astype(float) if dense else _csr(arrays, f"X_{part}")
            parts += [X, arrays[f"Y_{part}"].astype(int)]
    return tuple(parts)


def load_rcv1(folder: str | None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Read RCV1: subsets 1 and 2 for training, 3 for testing: X_train, Y_train, X_test, Y_test.

    A document that occurs more than once is kept where it occurs first. Features are CSR, float64; topics 0 or 1.
    """
    matrices, topics = [], []
    for k in (1, 2, 3):
        with np.load(data_file(folder, f"text/rcv1sub{k}.npz"), allow_pickle=False) as arrays:
            matrices.append(_csr(arrays, "X"))
            topics.append(_unpacked(arrays["Y_bits"], int(arrays["n_labels"])))
    X, Y = sparse.vstack(matrices, format="csr"), np.concatenate(topics)
    first: dict[tuple[bytes, bytes], int] = {}
    for row, (a, b) in enumerate(pairwise(X.indptr)):
        first.setdefault((X.indices[a:b].tobytes(), X.data[a:b].tobytes()), row)
    rows = np.array(list(first.values()))
    of_training = rows < matrices[0].shape[0] + matrices[1].shape[0]
    train, test = rows[of_training], rows[~of_training]
    return X[train], Y[train], X[test], Y[test]


def load_hierarchy(
    folder: str | None, name: str, leafmost: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, str | None]]:
    """Read "enron" or "cellcycle_FUN": X_train, Y_train, X_test, Y_test, and the parent of each label.

    Labels are 0 or 1, in the order of the parents: all on the paths of an example, or the last of each path only.
    """
    with np.load(data_file(folder, f"hierarchy/{name}.npz"), allow_pickle=False) as arrays:
        nodes = [str(node) for node in arrays["nodes"]]
        parent = {int(child): int(up) for child, up in arrays["edges_child_parent"]}
        names = {nodes[k]: nodes[parent[k]] if k in parent else None for k in range(len(nodes))}
        parts = []
        for part in ("train", "test"):
            bits = arrays[f"Y_leafmost_{part}_bits" if leafmost else f"Y_{part}_bits"]
            parts += [arrays[f"X_{part}"].astype(float), _unpacked(bits, len(nodes)).astype(int)]
    return (*parts, names)


def load_attributes(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read "apascal_train", "apascal_test" or "ayahoo_test": 64 attributes (0 or 1) and the class of each object."""
    with np.load(data_file(folder, f"attributes/{name}.npz"), allow_pickle=False) as arrays:
        return _unpacked(arrays["Y_bits"], int(arrays["n_attributes"])), arrays["cls"]


def load_signatures(folder: str | None) -> pd.DataFrame:
    """Read how frequent the 64 attributes are in the 32 classes of aPascal and aYahoo; rows are named by class."""
    with np.load(data_file(folder, "attributes/apy.npz"), allow_pickle=False) as arrays:
        return pd.DataFrame(arrays["original_att"], index=arrays["class_names"])


def load_elevation(folder: str | None) -> np.ndarray:
    """Read the elevation map: metres above sea level, float64, 643 rows (north to south) of 1197 cells of 30 m."""
    with np.load(data_file(folder, "dem/bigtujunga_30m.npz"), allow_pickle=False) as arrays:
        return arrays["elevation"].astype(float)


def load_usps(folder: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Read USPS digits, 256 pixels from -1 to 1, in the original split: X_train, y_train, X_test, y_test."""
    with np.load(data_file(folder, "images/usps.npz"), allow_pickle=False) as arrays:
        X_train, X_test = (arrays[f"X_{part}_milli"] / 1000 for part in ("train", "test"))
        return X_train, arrays["y_train"], X_test, arrays["y_test"]


def _csr(arrays: Any, name: str) -> Any:
    shape = tuple(arrays[f"{name}_shape"])
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    if len(data) == 1:  # all stored values are the same
        data = np.repeat(data, len(indices))
    return sparse.csr_array((data.astype(float), indices, indptr), shape=shape)


def _unpacked(bits: np.ndarray, columns: int) -> np.ndarray:
    return np.unpackbits(bits, axis=1)[:, :columns].astype(int)


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
