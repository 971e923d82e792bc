"""Kernels of pairs, made from kernels of their objects."""

from gramian.kernels.pairwise.pairwise import (
    MLPK,
    Antisymmetric,
    Cartesian,
    Gaussian,
    Kronecker,
    Linear,
    PairwiseKernel,
    Poly2D,
    Ranking,
    Symmetric,
    Term,
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
