"""Handwritten digits, scaled and split."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch


def load_digits_split(*, test_size: float | int = 0.5, random_state: Any = 0) -> Bunch:
    """Load scikit-learn's 1797 digits of 8 × 8 pixels, in [0, 1], split with equal class shares.

    Parameters
    ----------
    test_size : float or int, default=0.5
        Fraction, or number, of the examples in the test part.
    random_state : int or RandomState, default=0
        The same number gives the same split.

    Returns
    -------
    Bunch
        With ``X_train``, ``X_test`` of shape (n, 64), ``y_train``, ``y_test`` of shape (n,),
        ``target_names`` of shape (10,) and ``DESCR``.

    Examples
    --------
    >>> from gramian.datasets import load_digits_split
    >>> data = load_digits_split()
    >>> data.X_train.shape, data.X_test.shape
    ((898, 64), (899, 64))
    >>> float(data.X_train.min()), float(data.X_train.max())
    (0.0, 1.0)
    """
    source = load_digits()
    X, y = source.data / 16.0, source.target
    parts = train_test_split(X, y, test_size=test_size, random_state=random_state, stratify=y)
    return Bunch(
        **dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True)),
        target_names=source.target_names,
        DESCR=source.DESCR + "\nScaled from 0..16 to [0, 1] and split, stratified by class.\n",
    )
