"""From pairs to an estimator, and a table that says what was decided."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from gramian import PairKFold, Pairs, PairwiseLogisticRegression, PairwiseRidge
from gramian.cli.errors import UserError
from gramian.cli.pair_tables import PairLayout
from gramian.cli.pipeline import CLASSIFICATION, Plan, decided, preprocessing, target_summary
from gramian.cli.tables import Layout

__all__ = ["plan_pairs", "refuse_other_options"]

# For pairs of one kind of object; those that change sign when the two are exchanged have no intercept.
ONE_KIND = ("symmetric", "antisymmetric", "ranking", "mlpk")
ODD = ("antisymmetric", "ranking")

SETTINGS = {
    "A": "both objects known",
    "B": "new left objects",
    "C": "new right objects",
    "D": "both objects new",
}


def refuse_other_options(options: dict[str, Any], why: str) -> None:
    """Name the first option that was given and does not apply."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"{name} {value} {why}")


def plan_pairs(
    X: Pairs,
    y: np.ndarray,
    layout: PairLayout,
    *,
    task: str = "auto",
    kernel: str | None = None,
    pairwise_kernel: str | None = None,
    regularization: float | None = None,
    optimize: str | None = None,
    setting: str | None = None,
) -> Plan:
    """Decide task and kernels where the user did not.

    Parameters
    ----------
    X : Pairs
    y : ndarray of shape (n_samples,)
    layout : PairLayout
    task : {"auto", "classification", "regression"}, default="auto"
    kernel : str, default=None
        Of the objects on both sides; None is "rbf".
    pairwise_kernel : str, default=None
        None is "kronecker", or "symmetric" for pairs of one kind of object.
    regularization : float, default=None
        None is 1.
    optimize : {"cv"}, default=None
    setting : {"A", "B", "C", "D"}, default=None
        Of the folds for `optimize`; None is "A".

    Returns
    -------
    Plan
    """
    task, task_reason, y = decided(task, y)
    why = "--pairwise-kernel" if pairwise_kernel else "default"
    if pairwise_kernel is None and layout.homogeneous:
        pairwise_kernel, why = "symmetric", "one table of objects"
    pairwise_kernel = pairwise_kernel or "kronecker"
    if pairwise_kernel in ONE_KIND and not layout.homogeneous:
        raise UserError(
            f"--pairwise-kernel {pairwise_kernel} is for pairs of one kind of object: give one table, --left, or use "
            "--pairwise-kernel kronecker."
        )
    if setting is not None and optimize is None:
        raise UserError(f"--setting {setting} says for which pairs to learn: add --optimize cv.")
    parameters: dict[str, Any] = {
        "left_kernel": kernel or "rbf",
        "right_kernel": None if pairwise_kernel in ONE_KIND else kernel or "rbf",
        "pairwise_kernel": pairwise_kernel,
        "intercept_variance": 0.0 if pairwise_kernel in ODD else 1.0,
        "optimize": optimize,
    }
    if pairwise_kernel == "gaussian":
        if kernel not in (None, "rbf"):
            raise UserError(
                f"--pairwise-kernel gaussian is of rbf kernels: leave --kernel {kernel} out."
            )
        del parameters["left_kernel"], parameters["right_kernel"]
    if regularization is not None:
        parameters["regularization"] = regularization
    if optimize is not None:
        parameters["cv"] = PairKFold(setting or "A", symmetric=pairwise_kernel in ONE_KIND)
    kind = PairwiseLogisticRegression if task == CLASSIFICATION else PairwiseRidge
    used = X.compact()[0]
    if layout.homogeneous:
        ends = f"{layout.left.column} with {layout.right.column}"
        sides = [(f"Objects: {ends}", used.n_left, layout.left.features)]
    else:
        sides = [
            (f"Left: {layout.left.column}", used.n_left, layout.left.features),
            (f"Right: {layout.right.column}", used.n_right, layout.right.features),
        ]
    asked = f"setting {setting or 'A'}, {SETTINGS[setting or 'A']}"
    decisions = [
        ("Pairs", f"{len(X)}, {100 * len(X) / (used.n_left * used.n_right):.1f} % of all"),
        ("Target", f"{layout.target}: {target_summary(task, y)} ({task_reason})"),
        *((name, f"{number} objects; {_features(its)}") for name, number, its in sides),
        ("Left out", ", ".join(layout.left_out)),
        ("Kernel of objects", f"{kernel or 'rbf'} ({'--kernel' if kernel else 'default'})"),
        ("Kernel of pairs", f"{pairwise_kernel} ({why})"),
        ("Model", kind.__name__),
        ("Learned", f"kernel parameters, by cross-validation for {asked}" if optimize else ""),
    ]
    return Plan(Pipeline([("model", kind(**parameters))]), task, y, [row for row in decisions if row[1]])  # fmt: skip


def _features(layout: Layout) -> str:
    done = [f"{name.lower()}: {what}" for name, what in preprocessing(layout)[1]]
    unused = [f"left out: {name} ({why})" for name, why in layout.left_out.items()]
    return "; ".join(done + unused)
