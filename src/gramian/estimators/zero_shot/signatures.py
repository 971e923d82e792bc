"""What classifiers by descriptions of the classes share: reading the signatures, choosing candidates, predicting.

No mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian._core.validation import check_present, naming_text
from gramian.estimators.classes import distinct
from gramian.estimators.record import FLOATS, Model, validated

CANDIDATES = ("auto", "seen", "unseen", "all")


class TrainingClasses(NamedTuple):
    """Examples, and what is known about their classes and those to choose from.

    Attributes
    ----------
    X : array or CSR array of shape (n_samples, n_features)
    codes : ndarray of int of shape (n_samples,)
        Number of the class of each example in ``seen``.
    seen : ndarray
        Labels in y, sorted.
    candidates : ndarray
        Labels to choose from, sorted.
    known : dict of label: ndarray of shape (n_attributes,)
        Signatures of these classes and all others.
    names : ndarray of shape (n_attributes,) or None
        Names of the attributes, if signatures are a data frame.
    described : dict
        Fitted attributes that describe the features.
    """

    X: Any
    codes: np.ndarray
    seen: np.ndarray
    candidates: np.ndarray
    known: dict[Any, np.ndarray]
    names: np.ndarray | None
    described: dict[str, Any]

    def stacked(self, labels: np.ndarray, dtype: Any) -> np.ndarray:
        """Return the signatures of some classes as the rows of a matrix."""
        return stacked_signatures(self.known, labels, dtype)

    def fitted(self, dtype: Any) -> dict[str, Any]:
        """Return the fitted attributes that say what the classes are."""
        fitted = dict(self.described, seen_classes_=self.seen, classes_=self.candidates)
        fitted["signatures_"] = self.stacked(self.candidates, dtype)
        return fitted if self.names is None else fitted | {"attribute_names_": self.names}


class ClassDescriptions(ClassifierMixin, Model):
    """Base of classifiers with parameters ``signatures`` and ``candidates``; a subclass says how well a class suits."""

    def _class_scores(self, X: Any, classes: np.ndarray, signatures: np.ndarray) -> np.ndarray:
        """How well each class suits each example, shape (n_samples, n_classes)."""
        raise NotImplementedError

    def _check_signatures(self, known: dict[Any, np.ndarray], names: np.ndarray | None) -> None:
        """Refuse signatures that this classifier cannot use."""

    def _training_classes(self, X: Any, y: Any) -> TrainingClasses:
        X, y, described = validated(self, X, y, dtype=FLOATS)
        seen, codes = distinct(y)
        known, names = _read(self.signatures, seen)
        check_present("signatures must describe every class in y", seen.tolist(), known)
        self._check_signatures(known, names)
        chosen = self._chosen(known, seen)
        return TrainingClasses(X, codes, seen, chosen, known, names, described)

    def _chosen(self, known: dict[Any, np.ndarray], seen: np.ndarray) -> np.ndarray:
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
            check_present("candidates must have signatures", chosen.tolist(), known)
        if chosen.size == 0:
            raise ValueError(
                f"candidates={self.candidates!r} leaves no class to choose from: signatures describe {len(known)} "
                f"classes, and all of them are in y."
            )
        return chosen

    def _new_examples(self, X: Any) -> Any:
        with naming_text(X):
            return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _other_classes(self, signatures: Any) -> tuple[np.ndarray, np.ndarray]:
        """Classes and signatures that were not given in fit, with the attributes in the order of fit."""
        names = self._fitted.values.get("attribute_names_")
        if names is not None and hasattr(signatures, "iloc"):
            demand = "signatures must have the attributes of fit"
            check_present(demand, names.tolist(), signatures.columns)
            signatures = signatures[names.tolist()]
        known, names = _read(signatures, self.classes_)
        self._check_signatures(known, names)
        classes = np.unique(np.array(list(known)))
        table = stacked_signatures(known, classes, self.signatures_.dtype)
        if table.shape[1] != self.signatures_.shape[1]:
            raise ValueError(
                f"signatures must have {self.signatures_.shape[1]} attributes as in fit, got {table.shape[1]}."
            )
        return classes, table

    def _scores(self, X: Any, signatures: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores of shape (n_samples, n_candidates), and the candidates."""
        check_is_fitted(self)
        X = self._new_examples(X)
        classes, table = self.classes_, self.signatures_
        if signatures is not None:
            classes, table = self._other_classes(signatures)
        return self._class_scores(X, classes, table), classes

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


def stacked_signatures(known: dict[Any, np.ndarray], labels: np.ndarray, dtype: Any) -> np.ndarray:
    """Signatures of the classes as the rows of a matrix."""
    return np.array([known[label] for label in labels.tolist()], dtype=dtype)


def _read(signatures: Any, seen: np.ndarray) -> tuple[dict[Any, np.ndarray], np.ndarray | None]:
    """Vector of each class, and names of the attributes if there are any."""
    if signatures is None:
        return dict(zip(seen.tolist(), np.eye(seen.size), strict=True)), None
    names = None
    if hasattr(signatures, "iloc"):
        rows = signatures.to_numpy()
        labels = list(signatures.index)
        if len(set(labels)) < len(labels):
            raise ValueError("signatures must have one row for each class; its index has repeats.")
        names = np.asarray(list(signatures.columns))
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
    return table, names
