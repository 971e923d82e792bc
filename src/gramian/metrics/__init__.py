"""Scores beyond scikit-learn's: taxonomies, rejection, ranking, calibration."""

from gramian.metrics.calibration import (
    ReliabilityCurve,
    expected_calibration_error,
    reliability_curve,
)
from gramian.metrics.ranking import reciprocal_rank
from gramian.metrics.reject import RejectCurve, reject_curve

__all__ = [
    "RejectCurve",
    "ReliabilityCurve",
    "expected_calibration_error",
    "reciprocal_rank",
    "reject_curve",
    "reliability_curve",
]
