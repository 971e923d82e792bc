"""What a label correlation must be, and how to make one of a matrix that is none.

A correlation R of labels is a symmetric positive definite matrix with a row for each label. M3L penalises the functions
of the labels through R⁻¹, so R must have one.

Nearest correlation
    minimise ‖X − G‖_F    subject to    X = Xᵀ,  x_ll = 1,  every eigenvalue ≥ floor.

    Alternating projections: eigenvalues are raised to the floor, then the diagonal is set to one. Plain alternation
    ends in the intersection, but not at its nearest point; Dykstra's correction, which is taken off before each
    projection on the cone, makes it so: Higham (2002), Computing the nearest correlation matrix, algorithm 3.3. The
    diagonal is an affine constraint and needs no correction. One eigendecomposition, O(L³), for each of some tens to
    hundreds of rounds; convergence is linear.

    Deviation: a floor above zero, for a definite and not a semidefinite matrix; and since the last projection is on
    the diagonal, a last shrinkage towards I (of the order of the tolerance) makes the floor exact.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from gramian._core.validation import check_number, check_shape
from gramian.labels.correlation.inputs import name_of, symmetric_array

_ROUNDS = 1000
_TOLERANCE = 1e-9  # relative change of a round
# relative error of eigenvalues: sums over many examples are not exact to the last digit
_ROUNDING = 1e-12


def shrunk(R: Any, shrinkage: float) -> np.ndarray:
    """Shrink a correlation towards its diagonal: (1 − s) R + s diag(R).

    Where R has a unit diagonal, that is the identity: unrelated labels. Eigenvalues move towards the mean, so that a
    semidefinite R becomes definite for any shrinkage above zero.

    Parameters
    ----------
    R : array of shape (n_labels, n_labels)
        Symmetric.
    shrinkage : float
        s, from 0 (R itself) to 1 (the diagonal alone).

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> from gramian.labels import shrunk
    >>> shrunk([[1.0, -0.8], [-0.8, 1.0]], 0.25)
    array([[ 1. , -0.6],
           [-0.6,  1. ]])
    """
    matrix = symmetric_array("R", R)
    check_number("shrinkage", shrinkage, high=1)
    result = (1.0 - shrinkage) * matrix
    np.fill_diagonal(result, np.diagonal(matrix))
    return result


def nearest_correlation(matrix: Any, *, floor: float = 1e-6) -> np.ndarray:
    """Return the nearest positive definite matrix with a unit diagonal, in the Frobenius norm.

    A `UserWarning` says how far it is and what was wrong. A matrix that is a correlation already comes back as it is,
    without a warning.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        Symmetric. Divide a covariance by its standard deviations first: its diagonal would be cut to one.
    floor : float, default=1e-6
        The smallest eigenvalue of the result, above 0 and below 1. Solvers are faster with a larger one.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    See Also
    --------
    shrunk : Keeps the pattern of the matrix and only weakens it.

    Examples
    --------
    Labels that go with a third one, but not with each other: that cannot be.

    >>> import warnings
    >>> from gramian.labels import nearest_correlation
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     R = nearest_correlation([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> R.round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    >>> print(caught[0].message)
    matrix is not a correlation: its smallest eigenvalue is -0.414. The nearest one with ...
    """
    given = symmetric_array("matrix", matrix)
    check_number("floor", floor, high=1, strict=True)
    smallest = float(np.linalg.eigvalsh(given)[0])
    unit = bool(np.all(np.diagonal(given) == 1.0))
    if unit and smallest >= floor - _ROUNDING:
        return given
    nearest = _alternating_projections(given, floor)
    lowest = float(np.linalg.eigvalsh(nearest)[0])
    if lowest < floor:
        nearest = shrunk(nearest, (floor - lowest) / (1.0 - lowest))
    distance = float(np.linalg.norm(nearest - given))
    share = distance / max(float(np.linalg.norm(given)), np.finfo(float).tiny)
    diagonal = "" if unit else " and not all entries of its diagonal are 1"
    warnings.warn(
        f"matrix is not a correlation: its smallest eigenvalue is {smallest:.3g}{diagonal}. The nearest one with "
        f"eigenvalues of at least {floor:g} is {distance:.3g} away in the Frobenius norm ({share:.1%} of the matrix).",
        UserWarning,
        stacklevel=2,
    )
    return nearest


def check_correlation(
    R: Any, n_labels: int, names: Any = None, *, argument: str = "label_correlation"
) -> np.ndarray:
    """Return a label correlation as a C-contiguous float64 array, or say what is wrong with it.

    Parameters
    ----------
    R : array or DataFrame of shape (n_labels, n_labels)
        Symmetric up to rounding and positive definite. The diagonal need not be one: it is the prior variance of each
        label's function.
    n_labels : int
    names : sequence of length n_labels, default=None
        Names of the labels. The rows and columns of a DataFrame are brought into this order, and those of other labels
        are left out; one whose rows and columns are only numbered is taken as it is.
    argument : str, default="label_correlation"
        What errors call it.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> from gramian.labels import check_correlation
    >>> check_correlation([[1, 0.5], [0.5, 1]], n_labels=2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> check_correlation([[1, 2], [2, 1]], n_labels=2)
    Traceback (most recent call last):
    ...
    ValueError: label_correlation must be positive definite, but its smallest eigenvalue is -1. Use ...
    """
    matrix = symmetric_array(argument, R, names)
    check_shape(argument, matrix, (n_labels, n_labels), "one row and one column for each label")
    diagonal = np.diagonal(matrix)
    if diagonal.min() <= 0:
        worst = int(diagonal.argmin())
        raise ValueError(
            f"{argument} must have a positive diagonal, got {diagonal[worst]:.3g} for label {name_of(worst, names)}. "
            "Use 1 for a label like the others."
        )
    refuse_indefinite(
        matrix,
        argument,
        "Use gramian.labels.shrunk(R, 0.1) if it is zero up to rounding, gramian.labels.nearest_correlation(R) if it "
        "is negative.",
    )
    return matrix


def refuse_indefinite(matrix: np.ndarray, name: str, advice: str) -> None:
    """Raise an error unless all eigenvalues are positive by more than rounding errors."""
    largest = float(np.abs(matrix).sum(axis=1).max())  # a bound on the eigenvalues
    try:
        cholesky(matrix - _ROUNDING * largest * np.eye(len(matrix)), overwrite_a=True)
    except LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        raise ValueError(
            f"{name} must be positive definite, but its smallest eigenvalue is {smallest:.3g}. {advice}"
        ) from None


def _alternating_projections(given: np.ndarray, floor: float) -> np.ndarray:
    unit, correction = given, np.zeros_like(given)
    for _ in range(_ROUNDS):
        corrected = unit - correction
        values, vectors = np.linalg.eigh(corrected)
        definite = (vectors * np.maximum(values, floor)) @ vectors.T
        correction = definite - corrected
        before, unit = unit, (definite + definite.T) / 2
        np.fill_diagonal(unit, 1.0)
        change = max(np.linalg.norm(unit - before), np.linalg.norm(unit - definite))
        if change <= _TOLERANCE * np.linalg.norm(unit):
            break
    return unit
