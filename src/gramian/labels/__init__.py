"""What is known about the outputs before any data: label Gram matrices."""

from gramian.labels.correlation import (
    check_correlation,
    class_correlation,
    empirical_correlation,
    feature_correlation,
    laplacian_correlation,
    nearest_correlation,
    shrunk,
    taxonomy_correlation,
)
from gramian.labels.decision import climb_until_sure, cost_matrix, minimum_risk
from gramian.labels.structure import DenseStructure, Diagonal, Identity, LabelStructure, Scalar
from gramian.labels.taxonomy import Taxonomy, as_taxonomy
from gramian.labels.tree import TreeStructure

__all__ = [
    "DenseStructure",
    "Diagonal",
    "Identity",
    "LabelStructure",
    "Scalar",
    "Taxonomy",
    "TreeStructure",
    "as_taxonomy",
    "check_correlation",
    "class_correlation",
    "climb_until_sure",
    "cost_matrix",
    "empirical_correlation",
    "feature_correlation",
    "laplacian_correlation",
    "minimum_risk",
    "nearest_correlation",
    "shrunk",
    "taxonomy_correlation",
]
