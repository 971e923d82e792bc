"""From tokens to features: a dictionary for each position, and a sparse row from each dictionary."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction import DictVectorizer
from sklearn.utils.validation import check_is_fitted

from gramian.sequences.container import Sequences
from gramian.sequences.values import as_list, is_sequence


def token_features(tokens: Sequence[Any], t: int) -> dict[str, Any]:
    """Describe a word in its sentence by what taggers use most.

    Parameters
    ----------
    tokens : list of str, or of tuples of str
        The first entry of a tuple is the word.
    t : int
        The position to describe.

    Returns
    -------
    dict
        The word, the word in lower case, its last two and last three characters, its shape, the previous and the next
        word as ``previous`` and ``next``, and ``first`` or ``last`` where the sentence begins or ends. Further entries
        of a tuple are ``field1``, ``field2`` and so on. A shape has X for capitals, x for other letters and d for
        digits, each once for a run of them.

    Examples
    --------
    >>> from gramian.sequences import token_features
    >>> found = token_features(["See", "Table23", "."], 1)
    >>> found["word"], found["lower"], found["suffix3"], found["shape"]
    ('Table23', 'table23', 'e23', 'Xxd')
    >>> found["previous"], found["next"], "first" in found
    ('See', '.', False)
    """
    word = _word(tokens[t])
    features: dict[str, Any] = {
        "word": word,
        "lower": word.lower(),
        "suffix2": word[-2:],
        "suffix3": word[-3:],
        "shape": "".join(kind for kind, _ in groupby(map(_kind, word))),
    }
    # What does not hold is left out: a zero would take a place in each sparse row.
    if t == 0:
        features["first"] = 1
    else:
        features["previous"] = _word(tokens[t - 1])
    if t == len(tokens) - 1:
        features["last"] = 1
    else:
        features["next"] = _word(tokens[t + 1])
    if not isinstance(tokens[t], str):
        features |= {f"field{k}": field for k, field in enumerate(tokens[t]) if k > 0}
    return features


def _word(token: Any) -> str:
    """The token, or its first entry."""
    return token if isinstance(token, str) else token[0]


def _kind(character: str) -> str:
    """One character of the shape of a word."""
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "d" if character.isdigit() else character


class _Dictionaries:
    """The features of one position after the other, computed whenever a vectorizer goes through them, never kept."""

    def __init__(self, sequences: list[list[Any]], describe: Callable[[Sequence[Any], int], Any]):
        self.sequences = sequences
        self.describe = describe

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for i, tokens in enumerate(self.sequences):
            for t in range(len(tokens)):
                found = self.describe(tokens, t)
                if not isinstance(found, Mapping):
                    raise TypeError(
                        "features must return a dictionary from names to numbers or text; for position "
                        f"{t} of X[{i}] it returned {reprlib.repr(found)}."
                    )
                yield found


# scikit-learn must not wrap what transform returns into a DataFrame, which has no sequences: hence no keys.
class SequenceVectorizer(  # pyright: ignore[reportGeneralTypeIssues]
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,  # pyright: ignore[reportCallIssue]
):
    """Turn sequences of tokens into `Sequences` of sparse features.

    Parameters
    ----------
    features : callable, default=None
        ``features(tokens, t)`` returns a dictionary for position t of one sequence: from the name of a feature to a
        number, or to text, which becomes an indicator of that name and text. None: `token_features`.
    vectorizer : transformer of dictionaries, default=None
        None: scikit-learn's ``DictVectorizer``, which learns the names of features. Instead,
        ``FeatureHasher(input_type="dict")`` has a fixed number of columns, for streams and vocabularies that grow.

    Attributes
    ----------
    vectorizer_ : transformer
        The fitted copy of `vectorizer`.

    See Also
    --------
    gramian.sequences.read_conll : Tokens and labels from files.

    Examples
    --------
    >>> from gramian.sequences import SequenceVectorizer
    >>> sentences = [["Rain", "fell"], ["Snow"], []]
    >>> SequenceVectorizer().fit_transform(sentences)
    Sequences(n=3, 3 positions x 18, lengths 0 to 2)
    >>> def features(tokens, t):
    ...     return {"length": len(tokens[t]), "ending": tokens[t][-1]}
    >>> short = SequenceVectorizer(features).fit(sentences)
    >>> short.get_feature_names_out()
    array(['ending=l', 'ending=n', 'ending=w', 'length'], dtype=object)
    >>> short.transform([["Thaw"]])[0].toarray()
    array([[0., 0., 1., 4.]])
    """

    def __init__(
        self,
        features: Callable[[Sequence[Any], int], Mapping[str, Any]] | None = None,
        *,
        vectorizer: Any = None,
    ):
        self.features = features
        self.vectorizer = vectorizer

    def fit(self, X: Any, y: Any = None) -> SequenceVectorizer:
        """Learn the names of features.

        Parameters
        ----------
        X : list with a list of tokens for each sequence
            Tokens are text, tuples of text, or whatever `features` takes.
        y : ignored

        Returns
        -------
        self
        """
        self._fresh_vectorizer().fit(self._dictionaries(_checked_tokens(X, fitting=True)))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn the names of features and return the features, which are computed only once.

        Parameters
        ----------
        X : list with a list of tokens for each sequence
        y : ignored

        Returns
        -------
        Sequences
        """
        sequences = _checked_tokens(X, fitting=True)
        table = self._fresh_vectorizer().fit_transform(self._dictionaries(sequences))
        return _as_sequences(table, sequences)

    def transform(self, X: Any) -> Sequences:
        """Return the features of new sequences. Names that were not seen in training are left out.

        Parameters
        ----------
        X : list with a list of tokens for each sequence

        Returns
        -------
        Sequences
        """
        check_is_fitted(self)
        sequences = _checked_tokens(X)
        if any(sequences):
            table = self.vectorizer_.transform(self._dictionaries(sequences))
        else:
            # Vectorizers refuse to transform nothing, so one empty dictionary says how many columns there are.
            table = self.vectorizer_.transform([{}])[:0]
        return _as_sequences(table, sequences)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns; a hasher does not know them and has no such method.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        object ndarray of shape (d,)
        """
        check_is_fitted(self)
        return self.vectorizer_.get_feature_names_out()

    def _fresh_vectorizer(self) -> Any:
        """Replace what an earlier fit has learned by a vectorizer that has learned nothing."""
        if self.features is not None and not callable(self.features):
            raise TypeError(
                f"features must be a function of (tokens, t), or None; got {reprlib.repr(self.features)}."
            )
        if self.vectorizer is None:
            # A sparse table cannot become a DataFrame, whatever scikit-learn is told to return in general.
            self.vectorizer_ = DictVectorizer().set_output(transform="default")
        else:
            self.vectorizer_ = clone(self.vectorizer)
        return self.vectorizer_

    def _dictionaries(self, sequences: list[list[Any]]) -> _Dictionaries:
        """The features of all positions."""
        return _Dictionaries(sequences, token_features if self.features is None else self.features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _checked_tokens(X: Any, *, fitting: bool = False) -> list[list[Any]]:
    """Return the tokens of each sequence as lists; text in place of a list of tokens is an error."""
    if isinstance(X, str):
        raise TypeError(
            f"X must be a list with a list of tokens for each sequence, got the text {reprlib.repr(X)}. "
            "Use [text.split()] for one sequence."
        )
    sequences = []
    for i, tokens in enumerate(X):
        if not is_sequence(tokens):
            raise TypeError(
                f"X[{i}] must be a list of tokens, got {reprlib.repr(tokens)}. "
                "Split text into tokens first: [text.split() for text in X]."
            )
        sequences.append(as_list(tokens))
    if fitting and not any(sequences):
        raise ValueError(
            f"X must have a token to learn features from; all of its {len(sequences)} sequences are empty."
        )
    return sequences


def _as_sequences(table: Any, sequences: list[list[Any]]) -> Sequences:
    """Rows of features as sequences; scikit-learn's sparse matrices become sparse arrays."""
    table = sp.csr_array(table) if sp.issparse(table) else table
    return Sequences(table, [len(tokens) for tokens in sequences])
