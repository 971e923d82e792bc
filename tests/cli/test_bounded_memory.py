"""Files that would fill the memory are refused in one line, in processes with little memory and little time."""

import gzip
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

resource = pytest.importorskip("resource")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of address space work on Linux"),
]

MEMORY = 2 * 2**30  # bytes of address space; imports alone take 0.7 GiB
SECONDS = 60  # of the processor
FIT = ("--target", "y", "--regularization", "1", "--out", "model.skops")
MIB = bytes(2**20)


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def ended(folder, *arguments, code="from gramian.cli.app import main; main()"):
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )  # each of them takes address space
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        env=os.environ | threads | {"TERMINAL_WIDTH": "400", "COLUMNS": "400"},
    )


def refused(folder, *arguments):
    result = ended(folder, *arguments)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result.stderr


def archive(path, **sizes):
    """A zip archive with entries of that many MiB of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, size in sizes.items():
            with file.open(name.replace("_", "."), "w", force_zip64=True) as entry:
                for _ in range(size):
                    entry.write(MIB)


def header(*shape):
    buffer = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


@pytest.mark.parametrize("entry", ["gramian_json", "schema_json", "1_npy"])
def test_models_of_more_than_a_gigabyte(tmp_path, entry):
    archive(tmp_path / "model.skops", **{entry: 1536})
    (tmp_path / "new.csv").write_text("a\n1\n")
    assert "unpacks to more than" in refused(tmp_path, "predict", "model.skops", "new.csv")


def test_arrays_of_more_than_a_gigabyte(tmp_path):
    archive(tmp_path / "x.npz", X_npy=1536, y_npy=1)
    assert "unpacks to more than" in refused(tmp_path, "fit", "x.npz", *FIT)


def test_tables_of_more_than_a_gigabyte(tmp_path):
    rows = b"1,0\n" * 2**18
    with gzip.open(tmp_path / "x.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,y\n")
        for _ in range(1536):
            file.write(rows)
    assert "unpacks to more than" in refused(tmp_path, "fit", "x.csv.gz", *FIT)


@pytest.mark.parametrize("shape", [(2**20, 2**20), (2**40,), (2**62, 2**62), (-1, 8)])
def test_shapes_that_no_memory_holds(tmp_path, shape):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("X.npy", header(*shape) + bytes(64))
        file.writestr("y.npy", header(8) + bytes(64))
    assert "X.npy" in refused(tmp_path, "fit", "x.npz", *FIT)
    with zipfile.ZipFile(tmp_path / "model.skops", "w") as file:
        file.writestr("1.npy", header(*shape) + bytes(64))
    (tmp_path / "new.csv").write_text("a\n1\n")
    assert "model.skops" in refused(tmp_path, "predict", "model.skops", "new.csv")


TREES = """
import sys
import numpy as np
from gramian.labels import Taxonomy, as_taxonomy
n = 10**6
names = np.arange(n + 1)
parents = names[:-1] if sys.argv[1] == "chain" else np.zeros(n, dtype=int)
edges = list(zip(parents.tolist(), names[1:].tolist()))
if sys.argv[2] == "mapping":
    tree = as_taxonomy({child: parent for parent, child in edges})
else:
    tree = Taxonomy.from_edges(edges)
assert tree.n_nodes == n + 1
assert tree.leaves.size == (1 if sys.argv[1] == "chain" else n)
assert tree.depth.max() == (n if sys.argv[1] == "chain" else 1)
print(tree.index([n]))
"""


@pytest.mark.parametrize("kind", ["chain", "star"])
@pytest.mark.parametrize("form", ["edges", "mapping"])
def test_trees_of_a_million_nodes(tmp_path, kind, form):
    result = ended(tmp_path, kind, form, code=TREES)
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.parametrize("kind", ["chain", "star"])
def test_a_fit_with_a_tree_of_a_million_nodes(tmp_path, kind):
    """Done, or ended in one line: a million classes of four examples are no use to anybody."""
    n = 10**6
    parents = range(n) if kind == "chain" else [0] * n
    edges = "".join(f"n{parent},n{child}\n" for child, parent in enumerate(parents, 1))
    (tmp_path / "tree.csv").write_text("parent,child\n" + edges)
    (tmp_path / "x.csv").write_text(f"a,y\n1,n{n}\n2,n{n - 1}\n3,n{n}\n4,n{n - 1}\n")
    result = ended(tmp_path, "fit", "x.csv", *FIT, "--taxonomy", "tree.csv")
    lines = result.stderr.strip().splitlines()
    if result.returncode == 1:
        assert len(lines) == 1
        assert lines[0].startswith("Not enough memory.")
    elif result.returncode == 2:
        assert len(lines) == 1, result.stderr
    else:
        assert result.returncode == 0, result.stderr[-2000:]
