"""Cross-validation in lockstep."""

from gramian.selection.folds import cross_val_latent, training_masks

__all__ = ["cross_val_latent", "training_masks"]
