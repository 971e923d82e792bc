"""Pairs from files: a table with one row for each pair, and tables of the objects that it names.

The id of an object is the first column of its table. The pair table has the ids in the columns of the same names, or
else in its first two columns besides the target: left, then right. Ids are compared as they are written: 007 is not 7.
Other columns of the object tables are features, prepared as those of a single table are, on each side by itself, by
the objects of the training pairs; other columns of the pair table are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian import Pairs
from gramian.cli import tables as files
from gramian.cli.errors import UserError
from gramian.cli.plan import preprocessing
from gramian.cli.tables import Layout


@dataclass(frozen=True)
class Side:
    """The objects at one end of a pair.

    Attributes
    ----------
    column : str
        Where the pair table has their ids.
    id : str
        Where their own table has them.
    features : Layout
        What their table looked like.
    """

    column: str
    id: str
    features: Layout


@dataclass(frozen=True)
class PairLayout:
    """What the training data looked like.

    Attributes
    ----------
    target : str
    left, right : Side
    homogeneous : bool
        Both ends are of one kind, from one table.
    left_out : tuple of str
        Columns of the pair table that are not used.
    labels : {"text", "integer", "number"}
        How the target is to be read.
    """

    target: str
    left: Side
    right: Side
    homogeneous: bool
    left_out: tuple[str, ...] = ()
    labels: str = "text"

    def with_labels(self, y: np.ndarray) -> PairLayout:
        """Remember how the target is to be read."""
        return replace(self, labels=self.left.features.with_labels(y).labels)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> PairLayout:
        """Rebuild from ``dataclasses.asdict``."""
        values = values | {"left_out": tuple(values["left_out"])}
        for name in ("left", "right"):
            features = Layout(**values[name]["features"])
            values[name] = Side(**values[name] | {"features": features})
        return cls(**values)


@dataclass(frozen=True)
class Objects:
    """All objects of the training tables, also those in no pair.

    Attributes
    ----------
    left, right : transformer
        From the columns of an object table to features; the same one if both ends are of one kind.
    tables : Pairs
        Features and ids, and no pairs.
    """

    left: Any
    right: Any
    tables: Pairs


def read_training_pairs(
    data: Path, left: Path | None, right: Path | None, target: str | None
) -> tuple[Pairs, np.ndarray, PairLayout, Objects]:
    """Read pairs, target and objects, and find out what they are.

    Parameters
    ----------
    data : Path
        The pair table.
    left, right : Path or None
        Tables of objects; without the right one both ends are in the left one.
    target : str or None
        Column of the pair table.

    Returns
    -------
    X : Pairs
    y : ndarray of shape (n_samples,), text, int64 or float64
    layout : PairLayout
    objects : Objects
    """
    if left is None:
        raise UserError(
            f"--right {right} needs --left FILE, the other objects of the pairs; pairs of one kind of object have "
            "--left alone."
        )
    if target is None:
        raise UserError(f"Name the column of {data} to predict: --target COLUMN.")
    paths = [left] if right is None else [left, right]
    ids = [_names(path, keep_index=True)[0] for path in paths]
    columns = _id_columns(data, ids, target)
    frame = files.read_frame(data, text=[*columns, target])
    y = files.column_target(frame, target, data, labels_are_text=False)
    # one side for each column of ids: of two files, or both of the same file
    sides, transformers, tables, indices = [], [], [], []
    ends = [columns] if right is None else [columns[:1], columns[1:]]
    for file, name, its_columns in zip(paths, ids, ends, strict=True):
        table = _object_table(file, name)
        index = [
            _looked_up(frame, column, data, table.index, file, f"Add them to {file}")
            for column in its_columns
        ]
        features = files.column_layout(table, "", file)
        transformer, _ = preprocessing(features)
        values = files.as_kinds(table, features, file)
        transformer.fit(values.iloc[np.unique(np.concatenate(index))])
        tables.append((transformer.transform(values), table.index.to_numpy(dtype=str)))
        transformers += [transformer] * len(index)
        sides += [Side(column, name, features) for column in its_columns]
        indices += index
    X = _pairs(tables, indices)
    unused = tuple(name for name in frame.columns if name not in (*columns, target))
    layout = PairLayout(target, *sides, homogeneous=right is None, left_out=unused)
    return X, y, layout, Objects(*transformers, tables=X[:0])


def read_new_pairs(
    data: Path,
    left: Path | None,
    right: Path | None,
    layout: PairLayout,
    objects: Objects,
    *,
    need_target: bool,
) -> tuple[Pairs, Any]:
    """Read pairs in the layout of the training data; the target only where it is needed.

    Parameters
    ----------
    data : Path
    left, right : Path or None
        Tables of objects; those that they do not have are taken from the training tables.
    layout : PairLayout
    objects : Objects
        Of the training tables.
    need_target : bool

    Returns
    -------
    X : Pairs
    y : ndarray of shape (n_samples,) or None
    """
    if right is not None and layout.homogeneous:
        raise UserError(
            f"--right {right}: the model's pairs are of one kind of object; give new ones by --left."
        )
    columns = [layout.left.column, layout.right.column]
    files.check_names(data, _names(data), *columns)
    frame = files.read_frame(data, text=[*columns, layout.target])
    known = objects.tables
    tables = [_extended(left, layout.left, objects.left, known.left, known.left_ids)]
    if not layout.homogeneous:
        right_table = (known.right, known.right_ids)
        tables.append(_extended(right, layout.right, objects.right, *right_table))
    sources = [("--left", left), ("--left", left) if layout.homogeneous else ("--right", right)]
    indices = []
    for column, (option, path), (_, ids) in zip(columns, sources, (tables * 2)[:2], strict=True):
        place, remedy = "the training tables", f"Give them by {option} FILE"
        if path is not None:
            place, remedy = f"{path} or the training tables", f"Add them to {path}"
        indices.append(_looked_up(frame, column, data, ids, place, remedy))
    X = _pairs(tables, indices)
    return X, files.new_target(frame, layout, data) if need_target else None


def _pairs(tables: list[tuple[Any, Any]], indices: list[np.ndarray]) -> Pairs:
    """Pairs of objects of one table, or of two, each with its ids."""
    (left, left_ids), (right, right_ids) = (*tables, (None, None))[:2]
    return Pairs(left, right, *indices, left_ids=left_ids, right_ids=right_ids)


def _names(path: Path, *, keep_index: bool = False) -> list[str]:
    """Names of the columns."""
    if files.extension_of(path) not in files.COLUMNS:
        raise UserError(
            f"{path}: tables of pairs and objects end in one of {', '.join(files.COLUMNS)}."
        )
    return list(files.read_frame(path, text=[], keep_index=keep_index, n_rows=0).columns)


def _id_columns(data: Path, ids: list[str], target: str) -> list[str]:
    """Columns of the pair table with the ids of the left and right objects: those of two different names, or the first.

    ``ids`` has the name of the id column of each object table, of one or of two.
    """
    names = _names(data)
    files.check_names(data, names, target)
    rest = [name for name in names if name != target]
    found = [name if name in rest and len(set(ids)) == 2 else None for name in (*ids, *ids)[:2]]
    free = [name for name in rest if name not in found]
    if len(free) < found.count(None):
        raise UserError(
            f"{data} needs two columns with the ids of the objects besides the target {target!r}; "
            f"it has {files.some_of(names)}."
        )
    return [free.pop(0) if name is None else name for name in found]


def _object_table(path: Path, id_column: str, text: Iterable[str] = ()) -> Any:
    """Read the features of objects, with their ids as the index."""
    files.check_names(path, _names(path, keep_index=True), id_column)
    frame = files.read_frame(path, text=[id_column, *text], keep_index=True)
    ids = ids_of(frame, id_column, path)
    repeated = np.flatnonzero(ids.duplicated())
    if len(repeated):
        second = repeated[0]
        first = int(np.flatnonzero(ids == ids.iloc[second])[0])
        raise UserError(
            f"{path}: the id {ids.iloc[second]!r} occurs more than once in column {id_column!r} (rows {first + 1} and "
            f"{second + 1}); keep one row for each object."
        )
    return frame.drop(columns=id_column).set_index(ids)


def _extended(path: Path | None, side: Side, transformer: Any, table: Any, ids: Any) -> Any:
    """Features and ids of the training table, replaced and extended by those of a new one."""
    if path is None:
        return table, ids
    text = [name for name, kind in side.features.columns.items() if kind != files.NUMBER]
    new = _object_table(path, side.id, text)
    features = transformer.transform(files.as_kinds(new, side.features, path))
    names = new.index.to_numpy(dtype=str)
    kept = np.flatnonzero(~np.isin(ids, names))
    stacked = sp.vstack if sp.issparse(table) or sp.issparse(features) else np.vstack
    return stacked([features, table[kept]]), np.concatenate([names, ids[kept]])


def _looked_up(
    frame: Any, column: str, data: Path, ids: Any, place: Any, remedy: str
) -> np.ndarray:
    """Rows of the objects that a column of the pair table names."""
    wanted = ids_of(frame, column, data)
    rows = {name: row for row, name in enumerate(np.asarray(ids).tolist())}
    index = np.array([rows.get(name, -1) for name in wanted], dtype=np.int64)
    missing = np.flatnonzero(index < 0)
    if len(missing):
        number = "1 row names an object" if len(missing) == 1 else f"{len(missing)} rows name objects"  # fmt: skip
        raise UserError(
            f"{data}: in column {column!r}, {number} that are not in {place}, first {wanted.iloc[missing[0]]!r} "
            f"(row {missing[0] + 1}); ids there are like {next(iter(rows), '')!r}. {remedy}, or leave these rows out."
        )
    return index


def ids_of(frame: Any, column: str, path: Path) -> Any:
    """Ids as text, none of them missing."""
    missing = frame[column].isna()
    if missing.any():
        row = int(missing.argmax()) + 1
        raise UserError(f"{path}: the id in column {column!r} is missing in row {row}.")
    return frame[column].map(str)
