"""Classes that were not in the training data: every class is described, and a pair (example, class) is right or wrong.

A class unseen in training is just a new right object (Airola & Pahikkala §1): with signatures s_c of the classes,
f(x, s) is trained on all pairs of examples and seen classes, and an example gets the class with the largest f(x, s_c).
Ridge regression with linear kernels is the method of Romera-Paredes & Torr (2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from gramian._core.validation import check_sample_weight
from gramian.estimators.pairs.machine import PairwiseMachine
from gramian.estimators.pairs.regression import PairwiseRidge
from gramian.estimators.record import Fitted
from gramian.estimators.zero_shot.signatures import ClassDescriptions
from gramian.pairs import Pairs


@dataclass(eq=False, repr=False)
class ZeroShotClassifier(ClassDescriptions):
    """Classification by descriptions of the classes, also of classes without training examples.

    Parameters
    ----------
    signatures : DataFrame of shape (n_classes, n_attributes), mapping of labels to vectors, or None, default=None
        Features of the classes; the index of the DataFrame holds the labels. Classes that are not in y are unseen ones.
        None describes each class in y by itself alone: an ordinary classifier.
    estimator : estimator for pairs, default=None
        Any of `PairwiseRidge`, `PairwiseLogisticRegression`, `PairwiseSVC`, `PairwiseRanker`; examples are the left
        objects, classes the right ones. None is
        ``PairwiseRidge(right_kernel="linear", regularization=1.0, tol=1e-14)``.
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
    attribute_names_ : ndarray of shape (n_attributes,)
        Columns of ``signatures``, if it is a DataFrame.
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

    signatures: Any = None
    estimator: Any = None
    candidates: Any = "auto"

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
        classes = self._training_classes(X, y)
        X, codes = classes.X, classes.codes
        pairs = Pairs.complete(X, classes.stacked(classes.seen, X.dtype))
        model = self.estimator
        if model is None:
            model = PairwiseRidge(right_kernel="linear", regularization=1.0, tol=1e-14)
        if not isinstance(model, PairwiseMachine):
            raise TypeError(
                f"estimator must be an estimator for pairs, such as PairwiseRidge() or PairwiseSVC(), got {model!r}."
            )
        model = clone(model)
        right = codes[pairs.left_index] == pairs.right_index
        targets = right.astype(np.int64) if is_classifier(model) else 2.0 * right - 1.0
        weights = check_sample_weight(sample_weight, np.empty((len(codes), 1)))
        model.fit(pairs, targets, None if weights is None else weights[pairs.left_index])
        self._fitted = Fitted(classes.fitted(X.dtype) | {"estimator_": model})
        return self

    def _class_scores(self, X: Any, classes: np.ndarray, signatures: np.ndarray) -> np.ndarray:
        pairs = Pairs.complete(X, signatures)
        model = self.estimator_
        score = model.decision_function if is_classifier(model) else model.predict
        return score(pairs).reshape(X.shape[0], classes.size)
