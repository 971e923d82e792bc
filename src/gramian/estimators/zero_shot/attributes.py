"""Classes that were not in the training data, through attributes: predict those, then see which class has them.

Every class c has signs s_ca = ±1 of attributes a. A multi-label classifier learns attributes from examples of the seen
classes, which have the attributes of their class. Its scores u_a(x) or probabilities p_a(x) give a class:

    nearest    the largest (1/L) Σ_a s_ca u_a(x).
        M3L predicts the signs y ∈ {±1}^L with the largest ⟨y, u(x)⟩ (Hariharan, Vishwanathan & Varma 2012, eq. 4);
        here y is one of the candidates' signatures. As all of these have the same length, it is also the signature that
        is nearest to u(x).
    direct     the largest log p(c) + Σ_a log q_ca(x) / q_ca,   q_ca = p_a where s_ca = 1, 1 − p_a otherwise,
        direct attribute prediction (Lampert, Nickisch & Harmeling 2009): p_a without x is the share of the seen
        classes that have a. Attributes that all seen classes have, or none, are left out: nothing was learned of them,
        so that p_a(x) should be p_a. Probabilities closer to 0 or 1 than 10⁻⁶ are moved there, lest one attribute
        rules out a class.

With M3L as the multi-label classifier its prior is R = Σ_c p(c) s_c s_cᵀ over the candidates, shrunk towards I
(§7.2.1 there): which attributes go together among the classes to come, whatever the training examples say.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from gramian._core.caller import level_of_caller
from gramian._core.validation import check_number, check_sample_weight, listed
from gramian.estimators.margin.multilabel import M3LClassifier
from gramian.estimators.record import Fitted
from gramian.estimators.rules import check_parameters, choice, optional_classifier
from gramian.estimators.zero_shot.signatures import ClassDescriptions, TrainingClasses
from gramian.labels.correlation.inputs import in_class_order, name_of, normalized_weights
from gramian.labels.correlation.sources import class_correlation

SEARCHES = (GridSearchCV, RandomizedSearchCV)
FLOOR = 1e-6  # least probability of an attribute, and of its absence


def _maps_probabilities(classifier: AttributeClassifier) -> bool:
    if classifier.mapping != "direct":
        raise AttributeError("predict_proba needs AttributeClassifier(mapping='direct').")
    return True


@dataclass(eq=False, repr=False)
class AttributeClassifier(ClassDescriptions):
    """Classification through attributes of the classes, also of classes without training examples.

    A multi-label classifier learns the attributes; a class is then chosen by its signature. In contrast to
    `ZeroShotClassifier`, which learns one function of example and signature, each attribute is predicted and can be
    looked at.

    Parameters
    ----------
    signatures : DataFrame of shape (n_classes, n_attributes), mapping of labels to vectors, or None, default=None
        Which class has which attributes, in 0/1, ±1 or booleans; the index of the DataFrame holds the labels. Classes
        that are not in y are unseen ones. None describes each class in y by itself alone: an ordinary classifier.
    estimator : multi-label classifier, default=None
        Anything that takes y of shape (n_samples, n_attributes) and has ``decision_function`` or ``predict_proba``.
        None is `M3LClassifier` with C = 1, for ``mapping="direct"`` with probabilities calibrated on five shuffled
        folds.

        An `M3LClassifier` with ``label_correlation=None``, also as the last step of a pipeline or inside a search, is
        given the correlation of the attributes among the candidates, made from ``priors`` and ``shrinkage``. A matrix
        or a callable is kept. For independent attributes set ``shrinkage=1``.
    mapping : {"nearest", "direct"}, default="nearest"
        How attributes give a class. "nearest": by the mean over attributes of sign in the signature × score; the class
        of the signature nearest to the scores. "direct": by probabilities, as if attributes were independent given
        the example (direct attribute prediction). Its ``estimator`` needs ``predict_proba``.
    candidates : {"auto", "seen", "unseen", "all"} or list of labels, default="auto"
        The classes to choose from in `predict`. "auto" is "unseen" if there are such classes, else "seen".
    priors : mapping or Series of label: float, or array of shape (n_candidates,), default=None
        How frequent the candidates will be, up to a factor; an array in the order of ``classes_``. All are equally
        frequent by default. Other classes with a signature may be named, too, and do not count.
    shrinkage : float, default=0.1
        From 0, the correlation of the signatures as they are, to 1, none; see `gramian.labels.class_correlation`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_candidates,)
        The classes to choose from, sorted.
    seen_classes_ : ndarray
        The classes in y.
    signatures_ : ndarray of int of shape (n_candidates, n_attributes)
        Signatures of ``classes_``.
    attribute_names_ : ndarray of shape (n_attributes,)
        Columns of ``signatures``, if it is a DataFrame.
    class_prior_ : ndarray of shape (n_candidates,)
        Probabilities of ``classes_``, from ``priors``.
    attribute_prior_ : ndarray of shape (n_attributes,)
        Share of the seen classes that have each attribute.
    estimator_ : multi-label classifier
        Fitted to attributes in 0/1.
    label_correlation_ : ndarray of shape (n_attributes, n_attributes) or None
        Prior correlation of the attributes; None if ``estimator`` is no `M3LClassifier`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    Hariharan, Vishwanathan & Varma (2012), Efficient max-margin multi-label classification with applications to
    zero-shot learning, Machine Learning 88.

    Lampert, Nickisch & Harmeling (2009), Learning to detect unseen object classes by between-class attribute
    transfer, CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import AttributeClassifier
    >>> signatures = {
    ...     "horse": [0, 0],
    ...     "zebra": [0, 1],
    ...     "tiger": [1, 1],
    ...     "lion": [1, 0],
    ... }  # fangs, stripes
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["horse", "tiger", "lion"], 20)
    >>> X = np.array([signatures[label] for label in y]) + rng.normal(scale=0.2, size=(60, 2))
    >>> model = AttributeClassifier(signatures, candidates="all").fit(X, y)
    >>> model.predict_attributes([[0.0, 1.0]])
    array([[0, 1]])
    >>> model.predict([[0.0, 1.0]])
    array(['zebra'], dtype='<U5')
    """

    signatures: Any = None
    estimator: Any = None
    _: KW_ONLY
    mapping: str = "nearest"
    candidates: Any = "auto"
    priors: Any = None
    shrinkage: float = 0.1

    _rules = {
        "estimator": optional_classifier,
        "mapping": choice("nearest", "direct"),
        "shrinkage": partial(check_number, high=1),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        known = hasattr(self.estimator, "__sklearn_tags__")
        given = get_tags(self.estimator).input_tags if known else None
        tags.input_tags.sparse = given is None or given.sparse
        tags.input_tags.pairwise = given is not None and given.pairwise
        return tags

    # --- fit --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AttributeClassifier:
        """Fit attributes to the examples, which have those of their classes.

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
        check_parameters(self, self._rules)
        classes = self._training_classes(X, y)
        prior = self._class_prior(classes)
        of_seen = classes.stacked(classes.seen, np.int64) == 1
        if (of_seen == of_seen[0]).all():
            raise ValueError(
                f"signatures of the classes in y must differ, but {listed(classes.seen.tolist())} have the same "
                "attributes: there is nothing to learn."
            )
        fitted = classes.fitted(np.int64)
        _warn_of_twins(classes.candidates, fitted["signatures_"])
        attributes = of_seen.astype(np.int64)[classes.codes]
        weights = check_sample_weight(sample_weight, np.empty((len(attributes), 1)))
        model = self._new_estimator(fitted["signatures_"], prior)
        if _m3l_of(model) is not None and classes.names is not None:
            attributes = _like_frame(self.signatures, attributes)  # for correlations with names
        model.fit(classes.X, attributes, **_weight_argument(model, weights))
        m3l = _m3l_of(model)
        fitted |= {
            "estimator_": model,
            "label_correlation_": None if m3l is None else m3l.label_correlation_,
            "class_prior_": prior,
            "attribute_prior_": of_seen.mean(axis=0),
        }
        self._fitted = Fitted(fitted)
        return self

    def _check_signatures(self, known: dict[Any, np.ndarray], names: np.ndarray | None) -> None:
        low = -1.0 if any((vector == -1).any() for vector in known.values()) else 0.0
        for label, vector in known.items():
            wrong = np.flatnonzero((vector != 1) & (vector != low))
            if wrong.size:
                value, attribute = (
                    vector[wrong[0]],
                    name_of(wrong[0], None if names is None else names.tolist()),
                )
                raise ValueError(
                    f"signatures must hold 0 and 1, or -1 and 1, got {value:g}{' beside -1' if value == 0 else ''} for "
                    f"class {label!r}, attribute {attribute}. Say which classes have it, for instance by "
                    "signatures > signatures.mean(); ZeroShotClassifier takes other numbers."
                )

    def _class_prior(self, classes: TrainingClasses) -> np.ndarray:
        """Probabilities of the candidates."""
        labels = classes.candidates.tolist()
        priors = in_class_order(self.priors, labels, classes.known)
        return normalized_weights("priors", priors, len(labels), "candidate")

    def _new_estimator(self, signatures: np.ndarray, prior: np.ndarray) -> Any:
        """The multi-label classifier, not fitted, with the correlation of the candidates if it takes one."""
        direct = self.mapping == "direct"
        folds = KFold(5, shuffle=True, random_state=0)  # y is often sorted by class
        default = M3LClassifier(1.0, probability=direct, cv=folds)
        model = clone(default if self.estimator is None else self.estimator)
        needed = ("predict_proba",) if direct else ("decision_function", "predict_proba")
        if not any(hasattr(model, name) for name in needed):
            other = "Set its probability=True" if _m3l_of(model) else "Use another one"
            advice = other + (", or mapping='nearest'." if direct else ".")
            raise ValueError(
                f"estimator must have {' or '.join(needed)} for mapping={self.mapping!r}, unlike {model!r}. {advice}"
            )
        m3l = _m3l_of(model)
        if m3l is not None and m3l.label_correlation is None:
            R = class_correlation(signatures, prior, shrinkage=self.shrinkage)
            m3l.set_params(label_correlation=R)
        if m3l is not None and isinstance(m3l.shrinkage, str):
            # folds of seen classes would overrule what is known about those to come
            m3l.set_params(shrinkage=0.0)
        return model

    # --- predict ----------------------------------------------------------------------------

    def _attribute_proba(self, X: Any) -> np.ndarray:
        """Probability of each attribute, shape (n_samples, n_attributes)."""
        P = self.estimator_.predict_proba(X)
        if isinstance(
            P, list
        ):  # for each attribute a column for each value that it has in training
            present = zip(P, self.estimator_.classes_, strict=True)
            return np.column_stack([p[:, np.equal(values, 1)].sum(axis=1) for p, values in present])
        n_attributes = self.signatures_.shape[1]
        return P[:, 1:] if n_attributes == 1 and P.shape[1] == 2 else P

    def _attribute_scores(self, X: Any) -> np.ndarray:
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(X).reshape(X.shape[0], -1)
        return 2.0 * self._attribute_proba(X) - 1.0

    def _class_scores(self, X: Any, classes: np.ndarray, signatures: np.ndarray) -> np.ndarray:
        has = signatures == 1
        if self.mapping == "nearest":
            return self._attribute_scores(X) @ np.where(has, 1.0, -1.0).T / has.shape[1]
        learned = (self.attribute_prior_ > 0) & (self.attribute_prior_ < 1)
        P = np.clip(self._attribute_proba(X)[:, learned].astype(np.float64), FLOOR, 1.0 - FLOOR)
        prior, has = self.attribute_prior_[learned], has[:, learned]
        scores = np.log(P / prior) @ has.T + np.log((1.0 - P) / (1.0 - prior)) @ ~has.T
        if classes is self.classes_:  # others are equally frequent
            with np.errstate(divide="ignore"):  # a class may be ruled out
                scores += np.log(self.class_prior_)
        return scores

    @available_if(_maps_probabilities)
    def predict_proba(self, X: Any, signatures: Any = None) -> np.ndarray:
        """Return the probability of each class, given that it is one of the candidates; for ``mapping="direct"``.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        signatures : as in the constructor, default=None
            Other classes to choose from, equally frequent.

        Returns
        -------
        ndarray of shape (n_samples, n_candidates)
        """
        return softmax(self._scores(X, signatures)[0], axis=1)

    def attribute_scores(self, X: Any) -> np.ndarray:
        """Return a number for each attribute, positive where an example rather has it.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_attributes)
            Decision values of ``estimator_``; if it has none, 2 × probability − 1.
        """
        check_is_fitted(self)
        return self._attribute_scores(self._new_examples(X))

    def predict_attributes(self, X: Any) -> np.ndarray:
        """Return which attributes each example has, in the numbers of the signatures.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int of shape (n_samples, n_attributes)
            1 where the score is positive, and 0, or −1 if signatures are ±1, where not.
        """
        scores = self.attribute_scores(X)
        return np.where(scores > 0, 1, -1 if (self.signatures_ == -1).any() else 0)


def _m3l_of(model: Any) -> M3LClassifier | None:
    """The M3LClassifier that gets the attributes as they are, if there is one: in a pipeline or search, too."""
    if isinstance(model, Pipeline):
        return _m3l_of(model.steps[-1][1])
    if isinstance(model, SEARCHES):
        return _m3l_of(getattr(model, "best_estimator_", model.estimator))
    return model if isinstance(model, M3LClassifier) else None


def _weight_argument(model: Any, weights: Any) -> dict[str, Any]:
    """Sample weights as an argument of fit of the model."""
    if weights is None:
        return {}
    name, inner = "sample_weight", model
    while isinstance(inner, (Pipeline, *SEARCHES)):
        if isinstance(inner, Pipeline):
            step, inner = inner.steps[-1]
            name = f"{step}__{name}"
        else:
            inner = inner.estimator
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(f"sample_weight must be None, as estimator {inner!r} takes none.")
    return {name: weights}


def _like_frame(frame: Any, values: np.ndarray) -> Any:
    """Values as a DataFrame with the columns of another."""
    return type(frame)(values, columns=frame.columns)


def _warn_of_twins(classes: np.ndarray, signatures: np.ndarray) -> None:
    first, group = np.unique(signatures, axis=0, return_index=True, return_inverse=True)[1:]
    if first.size < classes.size:
        groups = [classes[group == k].tolist() for k in range(first.size)]
        twins = next(labels for labels in groups if len(labels) > 1)
        warnings.warn(
            f"Candidates {listed(twins)} have the same attributes: nothing tells them apart.",
            UserWarning,
            stacklevel=level_of_caller(),
        )
