"""Classes that were not in the training data: every class is described, and a pair (example, class) is right or wrong.

A class unseen in training is just a new right object (Airola & Pahikkala §1): with signatures s_c of the classes,
f(x, s) is trained on all pairs of examples and seen classes, and an example gets the class with the largest f(x, s_c).
Ridge regression with linear kernels is the method of Romera-Paredes & Torr (2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian._inputs import all_or_nothing
from gramian._pairwise import PairwiseMachine
from gramian._validation import check_sample_weight, naming_text
from gramian.pairs import Pairs
from gramian.pairwise import PairwiseRidge

__all__ = ["ZeroShotClassifier"]

CANDIDATES = ("auto", "seen", "unseen", "all")


class ZeroShotClassifier(ClassifierMixin, BaseEstimator):
    """Classification by descriptions of the classes, also of classes without training examples.

    Parameters
    ----------
    signatures : DataFrame of shape (n_classes, n_attributes), mapping of labels to vectors, or None, default=None
        Features of the classes; the index of the DataFrame holds the labels. Classes that are not in y are unseen ones.
        None describes each class in y by itself alone: an ordinary classifier.
    estimator : estimator for pairs, default=None
        Any of `PairwiseRidge`, `PairwiseLogisticRegression`, `PairwiseSVC`, `PairwiseRanker`; examples are the left
        objects, classes the right ones. None is ``PairwiseRidge(right_kernel="linear", tol=1e-12)``.
    candidates : {"auto", "seen", "unseen", "all"} or list of labels, default="auto"
        The classes to choose from in `predict`. "auto" is "unseen" if there are such classes, else "seen".

    Attributes
    ----------
    classes_ : ndarray of shape (n_candidates,)
        The classes to choose from, sorted.
    seen_classes_ : ndarray
        The classes in y.
    estimator_ : estimator for pairs
        Fitted on all pairs of examples and seen classes.
    signatures_ : ndarray of shape (n_candidates, n_attributes)
        Signatures of ``classes_``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import ZeroShotClassifier
    >>> signatures = {"horse": [0, 0], "zebra": [0, 1], "tiger": [1, 1], "lion": [1, 0]}
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["horse", "tiger", "lion"], 20)
    >>> X = np.array([signatures[label] for label in y]) + rng.normal(scale=0.2, size=(60, 2))
    >>> model = ZeroShotClassifier(signatures, candidates="all").fit(X, y)
    >>> model.predict([[0.0, 1.0]])
    array(['zebra'], dtype='<U5')
    """

    def __init__(self, signatures: Any = None, estimator: Any = None, candidates: Any = "auto"):
        self.signatures = signatures
        self.estimator = estimator
        self.candidates = candidates

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ZeroShotClassifier:
        """Fit on all pairs of examples and classes in y.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, each with a signature.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            with naming_text(X):
                X, y = validate_data(
                    self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]
                )
            check_classification_targets(y)
            seen, codes = np.unique(y, return_inverse=True)
            if seen.size < 2:
                raise ValueError(
                    f"y must hold at least two classes, got one class: {seen[0].item()!r}."
                )
            known = _signatures(self.signatures, seen)
            missing = [label for label in seen.tolist() if label not in known]
            if missing:
                raise ValueError(
                    f"signatures must describe every class in y; missing: {missing[:5]!r}"
                    f"{' and more' if len(missing) > 5 else ''}."
                )
            classes = self._chosen(known, seen)
            pairs = Pairs.complete(X, _stacked(known, seen, X.dtype))
            model = (
                PairwiseRidge(right_kernel="linear", tol=1e-12)
                if self.estimator is None
                else self.estimator
            )
            if not isinstance(model, PairwiseMachine):
                raise TypeError(f"estimator must be one for pairs, got {model!r}.")
            model = clone(model)
            right = codes[pairs.left_index] == pairs.right_index
            targets = right.astype(np.int64) if is_classifier(model) else 2.0 * right - 1.0
            weights = check_sample_weight(sample_weight, np.empty((len(y), 1)))
            model.fit(pairs, targets, None if weights is None else weights[pairs.left_index])
            self.estimator_ = model
            self.seen_classes_ = seen
            self.classes_ = classes
            self.signatures_ = _stacked(known, classes, X.dtype)
        return self

    def _chosen(self, known: dict, seen: np.ndarray) -> np.ndarray:
        """Sorted labels to choose from."""
        every = np.array(list(known), dtype=seen.dtype if self.signatures is None else None)
        every = np.unique(every)
        unseen = np.setdiff1d(every, seen)
        if isinstance(self.candidates, str):
            if self.candidates not in CANDIDATES:
                raise ValueError(
                    f"candidates must be one of {', '.join(map(repr, CANDIDATES))} or a list of labels; "
                    f"got {self.candidates!r}."
                )
            default = "unseen" if unseen.size else "seen"
            kind = default if self.candidates == "auto" else self.candidates
            chosen = {"seen": seen, "unseen": unseen, "all": every}[kind]
        else:
            chosen = np.unique(np.asarray(self.candidates))
            strangers = [label for label in chosen.tolist() if label not in known]
            if strangers:
                raise ValueError(f"candidates must have signatures; missing: {strangers[:5]!r}.")
        if chosen.size == 0:
            raise ValueError(
                f"candidates={self.candidates!r} leaves no class to choose from: signatures describe {len(known)} "
                f"classes, and all of them are in y."
            )
        return chosen

    def _scores(self, X: Any, signatures: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores of shape (n_samples, n_candidates), and the candidates."""
        check_is_fitted(self)
        with naming_text(X):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
            )
        classes, table = self.classes_, self.signatures_
        if signatures is not None:
            known = _signatures(signatures, classes)
            classes = np.unique(np.array(list(known)))
            table = _stacked(known, classes, self.signatures_.dtype)
            if table.shape[1] != self.signatures_.shape[1]:
                raise ValueError(
                    f"signatures must have {self.signatures_.shape[1]} attributes as in fit, got {table.shape[1]}."
                )
        pairs = Pairs.complete(X, table)
        model = self.estimator_
        score = model.decision_function if is_classifier(model) else model.predict
        return score(pairs).reshape(X.shape[0], classes.size), classes

    def decision_function(self, X: Any, signatures: Any = None) -> np.ndarray:
        """Return how well each class suits each example.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        signatures : as in the constructor, default=None
            Other classes to choose from, also such as were not known in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_candidates), or (n_samples,) for two classes: the second minus the first
        """
        scores, classes = self._scores(X, signatures)
        return scores[:, 1] - scores[:, 0] if classes.size == 2 else scores

    def predict(self, X: Any, signatures: Any = None) -> np.ndarray:
        """Return the class that suits each example best.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        signatures : as in the constructor, default=None
            Other classes to choose from, also such as were not known in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores, classes = self._scores(X, signatures)
        return classes[np.argmax(scores, axis=1)]


def _signatures(signatures: Any, seen: np.ndarray) -> dict[Any, np.ndarray]:
    """Vector of each class."""
    if signatures is None:
        return dict(zip(seen.tolist(), np.eye(seen.size), strict=True))
    if hasattr(signatures, "iloc"):
        rows = signatures.to_numpy()
        labels = list(signatures.index)
        if len(set(labels)) < len(labels):
            raise ValueError("signatures must have one row for each class; its index has repeats.")
        signatures = dict(zip(labels, rows, strict=True))
    if not isinstance(signatures, Mapping) or not signatures:
        raise TypeError(
            f"signatures must be a DataFrame with labels as its index, or a mapping of labels to vectors; "
            f"got {type(signatures).__name__}."
        )
    table: dict[Any, np.ndarray] = {}
    for label, vector in signatures.items():
        try:
            values = np.asarray(vector, dtype=float)
        except (TypeError, ValueError):
            values = np.empty((0, 0))
        if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
            raise ValueError(
                f"signatures must hold vectors of finite numbers, got {vector!r} for {label!r}."
            )
        table[label.item() if isinstance(label, np.generic) else label] = values
    lengths = {values.size for values in table.values()}
    if len(lengths) > 1:
        raise ValueError(
            f"signatures must have the same attributes for all classes, got lengths {sorted(lengths)}."
        )
    return table


def _stacked(known: dict, labels: np.ndarray, dtype: Any) -> np.ndarray:
    return np.array([known[label] for label in labels.tolist()], dtype=dtype)
