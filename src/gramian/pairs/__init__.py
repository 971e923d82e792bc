"""Pairs of objects: two tables, and the rows of each that belong together."""

from gramian.pairs.container import Pairs
from gramian.pairs.matching import match_objects
from gramian.pairs.reading import split_columns

__all__ = ["Pairs", "match_objects", "split_columns"]
