"""From a table of pairs to an estimator, and a table that says what was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from gramian import PairKFold, Pairs, PairwiseLogisticRegression, PairwiseRidge
from gramian.cli.errors import UserError, refuse_options
from gramian.cli.options import Settings
from gramian.cli.pair_tables import PairLayout, read_training_pairs
from gramian.cli.plan import CLASSIFICATION, Plan, decided, preprocessing, target_summary

# For pairs of one kind of object.
ONE_KIND = ("symmetric", "antisymmetric", "ranking", "mlpk")

SETTINGS = {
    "A": "both objects known",
    "B": "new left objects",
    "C": "new right objects",
    "D": "both objects new",
}


def plan_pairs(data: Path, settings: Settings) -> Plan:
    """Read pairs, and decide task and kernels where the user did not.

    Parameters
    ----------
    data : Path
    settings : Settings

    Returns
    -------
    Plan
    """
    why_not = "is for single examples, not for pairs: leave it out."
    refuse_options(why_not, taxonomy=settings.taxonomy, share=settings.share)
    refuse_options("is not for pairs: leave it out.", sequence=settings.sequence)
    X, y, layout, objects = read_training_pairs(data, settings.left, settings.right, settings.target)  # fmt: skip
    task, task_reason, y = decided(settings.task, y)
    pairwise_kernel, why = _pairwise_kernel(settings, layout)
    kind = PairwiseLogisticRegression if task == CLASSIFICATION else PairwiseRidge
    estimator = kind(**_parameters(settings, pairwise_kernel))
    used = X.compact()[0]
    setting = settings.setting or "A"
    asked = f"kernel parameters, by cross-validation for setting {setting}, {SETTINGS[setting]}"
    decisions = [
        ("Pairs", f"{len(X)}, {100 * len(X) / (used.n_left * used.n_right):.1f} % of all"),
        ("Target", f"{layout.target}: {target_summary(task, y)} ({task_reason})"),
        *_objects(layout, used),
        ("Left out", ", ".join(layout.left_out)),
        ("Kernel of objects", f"{settings.kernel or 'rbf'} ({'--kernel' if settings.kernel else 'default'})"),
        ("Kernel of pairs", f"{pairwise_kernel} ({why})"),
        ("Model", kind.__name__),
        ("Learned", asked if settings.optimize else ""),
    ]  # fmt: skip
    pipeline = Pipeline([("model", estimator)])
    return Plan(pipeline, task, X, y, layout.with_labels(y), decisions, objects)


def _pairwise_kernel(settings: Settings, layout: PairLayout) -> tuple[str, str]:
    """Return the kernel of pairs, and why."""
    if settings.pairwise_kernel is None:
        if layout.homogeneous:
            return "symmetric", "one table of objects"
        return "kronecker", "default"
    if settings.pairwise_kernel in ONE_KIND and not layout.homogeneous:
        raise UserError(
            f"--pairwise-kernel {settings.pairwise_kernel} is for pairs of one kind of object: give one table, --left, "
            "or use --pairwise-kernel kronecker."
        )
    return settings.pairwise_kernel, "--pairwise-kernel"


def _parameters(settings: Settings, pairwise_kernel: str) -> dict[str, Any]:
    """Return the parameters of the estimator."""
    kernel, one_kind = settings.kernel, pairwise_kernel in ONE_KIND
    if settings.setting is not None and settings.optimize is None:
        raise UserError(
            f"--setting {settings.setting} says for which pairs to learn: add --optimize cv."
        )
    parameters: dict[str, Any] = {"pairwise_kernel": pairwise_kernel}
    if pairwise_kernel != "gaussian":
        parameters["left_kernel"] = kernel or "rbf"
        parameters["right_kernel"] = None if one_kind else kernel or "rbf"
    elif kernel not in (None, "rbf"):
        raise UserError(
            f"--pairwise-kernel gaussian is of rbf kernels: leave --kernel {kernel} out."
        )
    if settings.regularization is not None:
        parameters["regularization"] = settings.regularization
    if settings.optimize is not None:
        parameters["optimize"] = settings.optimize
        parameters["cv"] = PairKFold(settings.setting or "A", symmetric=one_kind)
    return parameters


def _objects(layout: PairLayout, used: Pairs) -> list[tuple[str, str]]:
    """Say what the pairs are made of: the objects that occur, and their features."""
    left, right = layout.left, layout.right
    sides = [(f"Left: {left.column}", used.n_left), (f"Right: {right.column}", used.n_right)]
    if layout.homogeneous:
        sides = [(f"Objects: {left.column} with {right.column}", used.n_left)]
    said = []
    for (name, number), side in zip(sides, (left, right), strict=False):
        done = [f"{kind.lower()}: {what}" for kind, what in preprocessing(side.features)[1]]
        done += [f"left out: {it} ({why})" for it, why in side.features.left_out.items()]
        said.append((name, f"{number} objects; {'; '.join(done)}"))
    return said
