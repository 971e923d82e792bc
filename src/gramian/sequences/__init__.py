"""Sequences of positions: one table with a row for each position, and the length of each sequence."""

from gramian.sequences.conll import read_conll
from gramian.sequences.container import Sequences
from gramian.sequences.vectorizer import SequenceVectorizer, token_features

__all__ = ["Sequences", "SequenceVectorizer", "read_conll", "token_features"]
