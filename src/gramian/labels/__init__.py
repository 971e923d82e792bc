"""What is known about the outputs before any data: label Gram matrices."""

from gramian.labels.correlation.checks import check_correlation, nearest_correlation, shrunk
from gramian.labels.correlation.sources import (
    class_correlation,
    empirical_correlation,
    feature_correlation,
    laplacian_correlation,
    taxonomy_correlation,
)
from gramian.labels.coupling import Coupling, FactoredCoupling, LearnedCoupling
from gramian.labels.margins.contrasts import (
    Contrasts,
    family_contrasts,
    leaf_contrasts,
    sibling_contrasts,
)
from gramian.labels.margins.orthogonality import (
    OrthogonalPenalty,
    QuadraticPenalty,
    comparison_matrix,
    largest_alpha,
    orthogonality_weights,
    smallest_eigenvalue,
)
from gramian.labels.structure import DenseStructure, Diagonal, Identity, LabelStructure, Scalar
from gramian.labels.taxonomy.decision import climb_until_sure, cost_matrix, minimum_risk
from gramian.labels.taxonomy.structure import TreeStructure
from gramian.labels.taxonomy.taxonomy import Taxonomy, as_taxonomy

__all__ = [
    "Contrasts",
    "Coupling",
    "DenseStructure",
    "Diagonal",
    "FactoredCoupling",
    "Identity",
    "LabelStructure",
    "LearnedCoupling",
    "OrthogonalPenalty",
    "QuadraticPenalty",
    "Scalar",
    "Taxonomy",
    "TreeStructure",
    "as_taxonomy",
    "check_correlation",
    "class_correlation",
    "climb_until_sure",
    "comparison_matrix",
    "cost_matrix",
    "empirical_correlation",
    "family_contrasts",
    "feature_correlation",
    "laplacian_correlation",
    "largest_alpha",
    "leaf_contrasts",
    "minimum_risk",
    "nearest_correlation",
    "orthogonality_weights",
    "shrunk",
    "sibling_contrasts",
    "smallest_eigenvalue",
    "taxonomy_correlation",
]
