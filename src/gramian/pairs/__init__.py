"""Pairs of objects: two tables, and the rows of each that belong together."""

from gramian.pairs.pairs import Pairs, match_objects, split_columns

__all__ = ["Pairs", "match_objects", "split_columns"]
