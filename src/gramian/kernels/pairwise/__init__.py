"""Kernels of pairs, made from kernels of their objects."""

from gramian.kernels.pairwise.base import PairwiseKernel, Term
from gramian.kernels.pairwise.named import (
    MLPK,
    Antisymmetric,
    Cartesian,
    Gaussian,
    Kronecker,
    Linear,
    Poly2D,
    Ranking,
    Symmetric,
    as_pairwise_kernel,
)

__all__ = [
    "MLPK",
    "Antisymmetric",
    "Cartesian",
    "Gaussian",
    "Kronecker",
    "Linear",
    "PairwiseKernel",
    "Poly2D",
    "Ranking",
    "Symmetric",
    "Term",
    "as_pairwise_kernel",
]
