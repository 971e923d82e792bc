"""What is known about the outputs before any data: label Gram matrices."""

from gramian.labels.structure import DenseStructure, Diagonal, Identity, LabelStructure, Scalar

__all__ = ["DenseStructure", "Diagonal", "Identity", "LabelStructure", "Scalar"]
