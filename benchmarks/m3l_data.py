"""Generated multi-label data for `m3l.py` and `m3l_scale.py`."""

from __future__ import annotations

import numpy as np
from scipy import sparse

CHUNK = 20_000  # documents generated at a time; each chunk has its own stream of random numbers
N_WORDS, N_LABELS = 47_236, 103
N_TOPICS, WORDS_A_TOPIC, TOKENS = 60, 400, 79.0
PLAIN, PARTIAL = (
    20,
    50,
)  # labels below are single topics; labels from here on are a random part of their topics
KEPT, WRONG = 0.4, 0.003  # what such labels keep; label noise


def rcv1_like(n: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Documents with the statistics of RCV1: 47 236 words, about 75 in a document, 103 labels.

    Words follow a power law. A document has one to three of 60 topics, and half of its words are typical of them. A
    label is a topic or a union of topics, 40 % of it for rare labels, and 0.3 % of all labels are wrong. Frequencies
    are 0.3 to 48 %. Values are weighted by rarity and rows have norm 1, as for tf-idf.

    Topics and labels are the same for every seed, so that further documents are test data. The first documents of a
    large set are those of a small one, if both have whole chunks of 20 000.

    Returns
    -------
    X : CSR array of shape (n, 47236), float32, indices int32
    signs : ndarray of int8 of shape (n, 103)
        +1 or −1.
    """
    rng = np.random.default_rng(2012)
    popularity = 1.0 / (np.arange(N_WORDS) + 10.0)
    popularity /= popularity.sum()
    typical = np.stack(
        [rng.choice(N_WORDS, WORDS_A_TOPIC, replace=False, p=popularity) for _ in range(N_TOPICS)]
    )
    survival = (1 + np.arange(N_TOPICS + 1) / 2) ** -0.8
    topic_cumulative = np.cumsum(-np.diff(survival)) / (1 - survival[-1])
    of_label = np.zeros((N_TOPICS, N_LABELS), dtype=bool)
    of_label[np.arange(PLAIN), np.arange(PLAIN)] = True
    for label in range(PLAIN, N_LABELS):
        n_united = min(1 + int(rng.pareto(1.2)), 6)
        of_label[rng.choice(N_TOPICS, n_united), label] = True
    world = np.cumsum(popularity), -np.log(popularity), typical, topic_cumulative, of_label
    sizes = np.diff([*range(0, n, CHUNK), n])
    chunks = [
        _documents(np.random.default_rng([seed, k]), int(size), *world)
        for k, size in enumerate(sizes)
    ]
    data, columns, lengths, signs = (list(part) for part in zip(*chunks, strict=True))
    # LIBLINEAR takes no indices of 64 bits
    indptr = np.cumsum([0, *np.concatenate(lengths)], dtype=np.int32)
    X = sparse.csr_array((np.concatenate(data), np.concatenate(columns), indptr), (n, N_WORDS))
    return X, np.concatenate(signs)


def _documents(rng, n, cumulative, rarity, typical, topic_cumulative, of_label):
    """Values, columns, lengths of rows and signs of labels of one chunk."""
    n_topics = rng.integers(1, 4, size=n)
    topic = np.searchsorted(topic_cumulative, rng.random((n, 3)))
    topic = np.minimum(topic, N_TOPICS - 1)
    tokens = np.clip(rng.poisson(TOKENS, size=n), 5, 400)
    rows = np.repeat(np.arange(n), tokens)
    words = np.searchsorted(cumulative, rng.random(rows.size)).clip(0, N_WORDS - 1)
    told = np.flatnonzero(rng.random(rows.size) < 0.5)  # words that their topic tells
    which = (rng.random(told.size) * n_topics[rows[told]]).astype(int)
    words[told] = typical[topic[rows[told], which], rng.integers(WORDS_A_TOPIC, size=told.size)]
    rows, columns = np.divmod(np.unique(rows * N_WORDS + words), N_WORDS)
    values = rarity[columns] * (1 + rng.exponential(0.5, size=columns.size))
    values /= np.sqrt(np.bincount(rows, values**2, minlength=n))[rows]
    has = np.zeros((n, N_TOPICS), dtype=np.float32)
    for place in range(3):
        documents = np.flatnonzero(place < n_topics)
        has[documents, topic[documents, place]] = 1
    positive = has @ of_label.astype(np.float32) > 0
    positive[:, PARTIAL:] &= rng.random((n, N_LABELS - PARTIAL)) < KEPT
    positive ^= rng.random((n, N_LABELS)) < WRONG
    lengths = np.bincount(rows, minlength=n)
    signs = np.where(positive, 1, -1).astype(np.int8)
    return values.astype(np.float32), columns.astype(np.int32), lengths, signs


def latent_factors(
    n: int, kind: str, seed: int = 0, *, n_features: int = 120, n_labels: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels which share 20 factors.

    Parameters
    ----------
    n : int
    kind : {"rare", "noisy"}
        Frequencies from a beta distribution with mean 5 %, and some noise; or half of the examples and more noise,
        with which most examples become support vectors.
    seed : int

    Returns
    -------
    X : ndarray of shape (n, n_features), float32
    signs : ndarray of int8 of shape (n, n_labels)
        +1 or −1.
    """
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(20, n_features))
    factors = rng.normal(size=(n, 20))
    X = factors @ loadings / np.sqrt(20) + 0.7 * rng.normal(size=(n, n_features))
    scores = np.tanh(factors) @ rng.normal(size=(20, n_labels)) / np.sqrt(20)
    scores += {"rare": 0.3, "noisy": 0.7}[kind] * rng.normal(size=scores.shape)
    frequency = np.full(n_labels, 0.5)
    if kind == "rare":
        frequency = np.clip(rng.beta(1, 20, size=n_labels), 0.003, 0.5)
    thresholds = [np.quantile(s, 1 - f) for s, f in zip(scores.T, frequency, strict=True)]
    return X.astype(np.float32), np.where(scores > thresholds, 1, -1).astype(np.int8)
