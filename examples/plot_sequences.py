"""
Label sequences: digits that count
==================================

A handwritten digit alone may be hard to read. In a sequence its neighbours help, if there is a rule that they follow.
Here the images are scikit-learn's digits, strung into sequences that mostly count upwards: 3 4 5 5 6 7. The images are
made noisy, so that a classifier of single digits makes many mistakes.
"""

# %%
# Each sequence has five to ten digits. The next digit is one more with a probability of 0.8, else any. Images come from
# separate halves of the data for training and testing.

import numpy as np
from sklearn.datasets import load_digits

from gramian import KernelCRF, KernelLogisticRegression, Sequences

images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)


def counting(n_sequences, pool):
    """Sequences of noisy images from a pool of numbers of images, and their digits."""
    lengths = rng.integers(5, 11, size=n_sequences)
    labels = []
    for length in lengths:
        labels.append(rng.integers(10))
        for _ in range(length - 1):
            labels.append((labels[-1] + 1) % 10 if rng.random() < 0.8 else rng.integers(10))
    rows = [rng.choice(pool[digits[pool] == label]) for label in labels]
    noisy = images[rows] / 16 + 0.7 * rng.normal(size=(len(rows), images.shape[1]))
    X = Sequences(noisy, lengths)
    return X, X.split(np.array(labels))


half = rng.permutation(len(images))
X, y = counting(60, half[: len(images) // 2])
X_test, y_test = counting(200, half[len(images) // 2 :])
X

# %%
# One digit at a time, and as sequences
# -------------------------------------
#
# Both models have the same kind of kernel, and both learn its width and variance by cross-validation. The conditional
# random field learns the scores of transitions as well.

alone = KernelLogisticRegression().fit(X.positions, X.flat(y).astype(int))
chain = KernelCRF().fit(X, y)

single = alone.score(X_test.positions, X_test.flat(y_test).astype(int))
print(
    f"single digits: {1 - single:.1%} wrong, sequences: {1 - chain.score(X_test, y_test):.1%} wrong"
)
print(f"relative gap {chain.solution_.relative_gap:.1e}, {chain.solution_.n_products} products")

# %%
# What it has learned about sequences: from each digit (row) to the next (column).

from matplotlib import pyplot as plt

from gramian.plot import SequenceDisplay, TransitionDisplay

TransitionDisplay.from_estimator(chain)
plt.show()

# %%
# One sequence of the test part: marginal probabilities as shades, the most probable sequence as a line, and the true
# digits as circles.

SequenceDisplay.from_estimator(chain, X_test[:12], index=7, y_true=y_test[:12])
plt.show()

# %%
# Half of the labels
# ------------------
#
# Labels may be missing. Those that are there still tell about their neighbours, so it is better to give the model whole
# sequences with gaps than the labelled digits alone.

gaps = [[label if rng.random() < 0.5 else None for label in labels] for labels in y]
known = np.array([label is not None for label in X.flat(gaps)])
partial = KernelCRF().fit(X, gaps)
fewer = KernelLogisticRegression().fit(X.positions[known], X.flat(y)[known].astype(int))
single = fewer.score(X_test.positions, X_test.flat(y_test).astype(int))
print(
    f"single digits: {1 - single:.1%} wrong, sequences with gaps: {1 - partial.score(X_test, y_test):.1%} wrong"
)
