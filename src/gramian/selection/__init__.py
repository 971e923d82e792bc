"""Cross-validation in lockstep, its criterion, and learning hyperparameters by its gradient."""

from gramian.selection.criterion import CrossValidationCriterion
from gramian.selection.folds import cross_val_latent, fold_masks
from gramian.selection.pair_folds import PairKFold, pair_setting
from gramian.selection.ridge_criterion import RidgeCriterion, choose_criterion
from gramian.selection.search import CrossValidationSearch, LogNormalPrior
from gramian.selection.walk import OptimizationPath

__all__ = [
    "CrossValidationCriterion",
    "CrossValidationSearch",
    "LogNormalPrior",
    "OptimizationPath",
    "PairKFold",
    "RidgeCriterion",
    "choose_criterion",
    "cross_val_latent",
    "fold_masks",
    "pair_setting",
]
