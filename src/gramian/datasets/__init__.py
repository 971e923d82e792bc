"""Data for examples, tests and the demo: nothing is downloaded."""

from gramian.datasets.digits import load_digits_split
from gramian.datasets.interactions import make_interactions
from gramian.datasets.spirals import make_spirals

__all__ = ["load_digits_split", "make_interactions", "make_spirals"]
