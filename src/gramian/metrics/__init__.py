"""Scores beyond scikit-learn's: taxonomies, rejection, ranking, pairs, sequences, calibration."""

from gramian.metrics.calibration import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from gramian.metrics.hierarchical import (
    credited,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    parent_accuracy,
    taxo_loss,
    tree_zero_one_loss,
)
from gramian.metrics.pairs import (
    concordance_index,
    interaction_concordance_index,
    scores_by_setting,
)
from gramian.metrics.ranking import reciprocal_rank
from gramian.metrics.reject import RejectCurve, reject_curve
from gramian.metrics.scorers import sequence_scorers, taxonomy_scorers
from gramian.metrics.sequences import (
    ChunkScores,
    chunk_f1_score,
    chunk_report,
    chunk_scores,
    chunks,
    position_accuracy,
    sequence_accuracy,
)

__all__ = [
    "ChunkScores",
    "RejectCurve",
    "ReliabilityCurve",
    "chunk_f1_score",
    "chunk_report",
    "chunk_scores",
    "chunks",
    "concordance_index",
    "credited",
    "expected_calibration_error",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "interaction_concordance_index",
    "parent_accuracy",
    "position_accuracy",
    "reciprocal_rank",
    "reject_curve",
    "reliability_curve",
    "scores_by_setting",
    "sequence_accuracy",
    "sequence_scorers",
    "taxo_loss",
    "taxonomy_scorers",
    "tree_zero_one_loss",
]
