"""Options with a fixed list of values."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Kernel", "Optimize", "PairwiseKernel", "Setting", "Share", "Task"]


class Task(StrEnum):
    """Values of --task."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Kernel(StrEnum):
    """Values of --kernel."""

    rbf = "rbf"
    matern12 = "matern12"
    matern32 = "matern32"
    matern52 = "matern52"
    rational_quadratic = "rational_quadratic"
    linear = "linear"
    polynomial = "polynomial"


class PairwiseKernel(StrEnum):
    """Values of --pairwise-kernel."""

    linear = "linear"
    poly2d = "poly2d"
    kronecker = "kronecker"
    gaussian = "gaussian"
    cartesian = "cartesian"
    symmetric = "symmetric"
    antisymmetric = "antisymmetric"
    ranking = "ranking"
    mlpk = "mlpk"


class Setting(StrEnum):
    """Values of --setting."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"


class Share(StrEnum):
    """Values of --share."""

    tied = "tied"
    by_class = "class"
    level = "level"
    subtree = "subtree"


class Optimize(StrEnum):
    """Values of --optimize."""

    cv = "cv"
