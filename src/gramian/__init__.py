"""Kernel learning with structured outputs, in the manner of scikit-learn."""

__version__ = "0.1.0"
