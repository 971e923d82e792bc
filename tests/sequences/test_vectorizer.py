"""SequenceVectorizer: from lists of tokens to sparse Sequences."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gramian.sequences import Sequences, SequenceVectorizer, token_features

SENTENCES = [["The", "cat", "sat"], [], ["Stop", "!"]]


def size_and_ending(tokens, t):
    """A number and a text for each token."""
    return {"size": len(tokens[t]), "ending": tokens[t][-1]}


class TestTokenFeatures:
    def test_in_the_middle(self):
        assert token_features(["In", "Berlin", "1989"], 1) == {
            "word": "Berlin",
            "lower": "berlin",
            "suffix2": "in",
            "suffix3": "lin",
            "shape": "Xx",
            "previous": "In",
            "next": "1989",
        }

    def test_at_the_ends(self):
        alone = token_features(["A"], 0)
        assert alone["first"] == alone["last"] == 1
        assert "previous" not in alone
        assert "next" not in alone
        assert alone["suffix3"] == "A"

    @pytest.mark.parametrize(
        "word, shape",
        [("Table23", "Xxd"), ("U.S.", "X.X."), ("3,000", "d,d"), ("eBay", "xXx"), ("", "")],
    )
    def test_shapes(self, word, shape):
        assert token_features([word], 0)["shape"] == shape

    def test_tuples(self):
        found = token_features([("cat", "NN", "B-NP"), ("sat", "VB", "B-VP")], 0)
        assert found["word"] == "cat"
        assert found["next"] == "sat"
        assert (found["field1"], found["field2"]) == ("NN", "B-NP")


class TestVectorizer:
    def test_one_row_for_each_token(self):
        X = SequenceVectorizer(size_and_ending).fit_transform(SENTENCES)
        assert isinstance(X, Sequences)
        assert isinstance(X.positions, sp.csr_array)
        assert X.lengths.tolist() == [3, 0, 2]
        names = ["ending=!", "ending=e", "ending=p", "ending=t", "size"]
        expected = [
            [0, 1, 0, 0, 3],
            [0, 0, 0, 1, 3],
            [0, 0, 0, 1, 3],
            [0, 0, 1, 0, 4],
            [1, 0, 0, 0, 1],
        ]
        np.testing.assert_array_equal(X.positions.toarray(), expected)
        fitted = SequenceVectorizer(size_and_ending).fit(SENTENCES)
        assert fitted.get_feature_names_out().tolist() == names
        np.testing.assert_array_equal(fitted.transform(SENTENCES).positions.toarray(), expected)

    def test_default_features(self):
        X = SequenceVectorizer().fit(SENTENCES)
        assert "lower=the" in X.get_feature_names_out()
        alone = SequenceVectorizer(token_features).fit_transform(SENTENCES).positions
        np.testing.assert_array_equal(alone.toarray(), X.transform(SENTENCES).positions.toarray())
        assert np.all(alone.data == 1)  # no stored zeros

    @pytest.mark.parametrize(
        "X",
        [
            tuple(map(tuple, SENTENCES)),
            np.fromiter(SENTENCES, dtype=object),
            [np.array(tokens, dtype=str) for tokens in SENTENCES],
            pd.Series(SENTENCES),
            iter(SENTENCES),
        ],
        ids=["tuples", "objects", "arrays", "Series", "iterator"],
    )
    def test_collections_of_any_kind(self, X):
        expected = SequenceVectorizer().fit_transform(SENTENCES).positions.toarray()
        found = SequenceVectorizer().fit_transform(X)
        np.testing.assert_array_equal(found.positions.toarray(), expected)

    def test_new_words_and_nothing(self):
        fitted = SequenceVectorizer(size_and_ending).fit(SENTENCES)
        assert fitted.transform([["Dog"]])[0].toarray().tolist() == [[0, 0, 0, 0, 3]]
        for nothing in ([], [[]], [[], []]):
            X = fitted.transform(nothing)
            assert X.shape == (len(nothing), 5)
            assert X.n_positions == 0

    def test_hasher(self):
        hasher = FeatureHasher(16, input_type="dict")
        stream = SequenceVectorizer(vectorizer=hasher).fit(SENTENCES)
        X = stream.transform(SENTENCES)
        assert X.shape == (3, 16)
        assert stream.transform([[]]).shape == (1, 16)
        assert stream.vectorizer_ is not hasher
        rows = hasher.transform(
            token_features(tokens, t) for tokens in SENTENCES for t in range(len(tokens))
        )
        np.testing.assert_array_equal(X.positions.toarray(), rows.toarray())
        with pytest.raises(AttributeError, match="get_feature_names_out"):
            stream.get_feature_names_out()

    def test_vectorizers_that_read_twice(self):
        class Sizes(TransformerMixin, BaseEstimator):
            def fit(self, X, y=None):
                self.largest_ = max(x["size"] for x in X)
                return self

            def transform(self, X):
                return np.array([[x["size"] / self.largest_] for x in X])

        X = SequenceVectorizer(size_and_ending, vectorizer=Sizes()).fit_transform(SENTENCES)
        assert X.positions.ravel().tolist() == [0.75, 0.75, 0.75, 1.0, 0.25]
        weighted = make_pipeline(DictVectorizer(), TfidfTransformer())
        X = SequenceVectorizer(vectorizer=weighted).fit_transform(SENTENCES)
        np.testing.assert_allclose(sp.linalg.norm(X.positions, axis=1), 1.0)

    def test_clones_and_copies(self):
        first = SequenceVectorizer(size_and_ending, vectorizer=DictVectorizer(separator=":"))
        first.fit(SENTENCES)
        assert first.get_feature_names_out()[0] == "ending:!"
        other = clone(first)
        assert other.features is size_and_ending
        assert not hasattr(other, "vectorizer_")
        stored = pickle.loads(pickle.dumps(first)).transform(SENTENCES)
        expected = first.transform(SENTENCES)
        np.testing.assert_array_equal(stored.positions.toarray(), expected.positions.toarray())

    def test_output_is_never_wrapped(self):
        with sklearn.config_context(transform_output="pandas"):
            assert isinstance(SequenceVectorizer().fit_transform(SENTENCES), Sequences)
            assert isinstance(SequenceVectorizer().fit(SENTENCES).transform([[]]), Sequences)


class TestBadInput:
    @pytest.mark.parametrize(
        "X, error, message",
        [
            ("The cat", TypeError, r"X must be a list .* got the text 'The cat'.*text\.split\(\)"),
            (
                ["The cat"],
                TypeError,
                r"X\[0\] must be a list of tokens, got 'The cat'.*text\.split",
            ),
            ([["a"], 3], TypeError, r"X\[1\] must be a list of tokens, got 3"),
            ([[], []], ValueError, r"X must have a token.* all of its 2 sequences are empty"),
        ],
    )
    def test_tokens(self, X, error, message):
        for method in ("fit", "fit_transform"):
            with pytest.raises(error, match=message):
                getattr(SequenceVectorizer(), method)(X)

    def test_features(self):
        with pytest.raises(TypeError, match=r"features must be a function.* got 'word'"):
            SequenceVectorizer("word").fit(SENTENCES)
        with pytest.raises(TypeError, match=r"position 0 of X\[0\] it returned 'The'"):
            SequenceVectorizer(lambda tokens, t: tokens[t]).fit(SENTENCES)

    def test_not_fitted(self):
        for call in (lambda v: v.transform(SENTENCES), lambda v: v.get_feature_names_out()):
            with pytest.raises(NotFittedError):
                call(SequenceVectorizer())


class CommonLabel(BaseEstimator):
    """Labels every position of new sequences by the most common label; takes Sequences only."""

    def fit(self, X, y):
        labels, counts = np.unique(X.flat(y).astype(str), return_counts=True)
        self.label_ = labels[np.argmax(counts)]
        return self

    def predict(self, X):
        return X.split([self.label_] * X.n_positions)

    def score(self, X, y):
        return np.mean(X.flat(self.predict(X)) == X.flat(y))


class TestPipeline:
    y = [["D", "N", "N"], [], ["N", "P"]]

    def test_before_an_estimator_for_sequences(self):
        model = make_pipeline(SequenceVectorizer(), CommonLabel()).fit(SENTENCES, self.y)
        assert [part.tolist() for part in model.predict([["A", "dog"], []])] == [["N", "N"], []]
        assert model.score(SENTENCES, self.y) == 0.6
        assert model[:-1].get_feature_names_out()[0] == "first"

    def test_search_over_features(self):
        search = GridSearchCV(
            make_pipeline(SequenceVectorizer(), CommonLabel()),
            {"sequencevectorizer__features": [token_features, size_and_ending]},
            cv=3,
            error_score="raise",
        )
        search.fit(SENTENCES * 2, self.y * 2)
        assert search.best_estimator_.predict(SENTENCES).shape == (3,)
