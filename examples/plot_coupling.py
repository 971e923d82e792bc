"""
Outputs that find out what they have in common
==============================================

Twelve classes with six examples each. Their functions are mixtures of two, but nobody says so. A learned
coupling finds it out, and examples of one class then say something about the others.
"""

# %%
# The data are generated: two smooth functions of four features, and classes that like more or less of each.

import numpy as np

rng = np.random.default_rng(3)
angles = np.arange(12) * 2 * np.pi / 12
mixture = 1.5 * np.stack([np.cos(angles), np.sin(angles)])
directions = rng.normal(size=(4, 2))


def draw(n):
    X = rng.normal(size=(n, 4))
    U = 5 * np.tanh(X @ directions) @ mixture
    return X, (U + rng.gumbel(size=U.shape)).argmax(axis=1)


X, y = draw(3000)
few = np.concatenate([np.flatnonzero(y == c)[:6] for c in range(12)])
X_test, y_test = draw(3000)

# %%
# One model with unrelated classes, and one that may couple them. The second is the first one unless folds
# that took no part in learning the coupling approve of it.

from sklearn.metrics import log_loss

from gramian import KernelLogisticRegression

for coupling in (None, "auto"):
    model = KernelLogisticRegression(optimize="cv", coupling=coupling).fit(X[few], y[few])
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"coupling={coupling}: log loss {loss:.2f}, accuracy {model.score(X_test, y_test):.2f}")
print(model.solution_.choices[1])

# %%
# The classes lie on a circle, and class 11 is beside class 0. The map of the coupling shows it: classes that
# share much are in the same direction, opposite ones exclude each other.

from gramian.plot import CouplingDisplay

display = CouplingDisplay.from_estimator(model)
