"""
Learning a kernel for each class
================================

How wide should the kernel be? ``optimize="cv"`` follows the gradient of the cross-validated loss
instead of searching a grid, so it makes little difference whether there are two parameters or
twenty. Then each class can have a kernel of its own.
"""

# %%
# A map with four classes. In the west, sea and land part smoothly and cannot be told apart exactly.
# In the east, field and wood alternate in narrow strips.

import numpy as np

CLASSES = np.array(["field", "land", "sea", "wood"])


def probabilities(X):
    """Of the four classes, at places X."""
    x, z = X.T
    east = 1 / (1 + np.exp(-20 * x))
    sea = 1 / (1 + np.exp(-4 * (z - 0.3 * np.sin(3 * x))))
    field = 1 / (1 + np.exp(-8 * np.sin(4 * np.pi * (x + z))))
    return np.stack(
        [east * field, (1 - east) * (1 - sea), (1 - east) * sea, east * (1 - field)], axis=1
    )


def draw(n, rng):
    X = rng.uniform(-1, 1, (n, 2))
    chosen = (probabilities(X).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return X, CLASSES[chosen]


rng = np.random.default_rng(2)
X, y = draw(600, rng)
X_test, y_test = draw(3000, rng)

# %%
# One kernel for all classes has two parameters: length scale and variance. λ is not learned, because
# the variance does the same. The search starts from the numbers in `kernel`.

from sklearn.metrics import log_loss

from gramian import KernelLogisticRegression
from gramian.kernels import RBF

tied = KernelLogisticRegression(RBF(0.2), optimize="cv").fit(X, y)
print(tied.kernel_)

# %%
# With ``share="class"`` there are eight.

own = KernelLogisticRegression(RBF(0.2), share="class", optimize="cv").fit(X, y)
for label, kernel in zip(own.classes_, own.kernels_, strict=True):
    print(f"{label:6}{kernel}")

# %%
# Sea and land get long scales, field and wood short ones. One kernel for all must be as narrow as the
# strips need, and then it also believes in the accidents of the west. Cross-validation sees this, and
# so do new examples:

for name, model in (("one kernel", tied), ("one for each class", own)):
    path = model.optimization_path_
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name}: {len(path.loss)} evaluations, {path.products.sum()} products;")
    print(f"  log loss {model.cv_log_loss_:.3f} cross-validated, {loss:.3f} on new examples")

# %%
# The colours of the classes, mixed by their probabilities.

from matplotlib import pyplot as plt

colours = np.array([[0.90, 0.62, 0.00], [0.84, 0.80, 0.72], [0.34, 0.71, 0.91], [0.0, 0.45, 0.35]])
ticks = np.linspace(-1, 1, 150)
places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
maps = {
    "truth, and the examples": probabilities(places),
    "one kernel": tied.predict_proba(places),
    "one for each class": own.predict_proba(places),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
for ax, (title, P) in zip(axes, maps.items(), strict=True):
    ax.imshow((P @ colours).reshape(150, 150, 3), origin="lower", extent=(-1, 1, -1, 1))
    ax.set(title=title, xticks=[], yticks=[])
for label, colour in zip(CLASSES, colours, strict=True):
    axes[0].plot(*X[y == label].T, "o", color=colour, mec="k", mew=0.5, ms=3.5, label=label)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %%
# How the eight parameters were found. Each evaluation is a fit of all five folds at once and one more
# solve for the gradient.

from gramian.plot import HyperparameterPathDisplay, RejectCurveDisplay

figure, ax = plt.subplots(figsize=(10, 6), layout="constrained")
HyperparameterPathDisplay.from_estimator(own, ax=ax)
plt.show()

# %%
# Is a wrong answer at least an unsure one? If a model may decline to answer where it is unsure, it
# errs less. The right ends are the ordinary error rates.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
first = RejectCurveDisplay.from_estimator(tied, X_test, y_test, name="one kernel", ax=left)
second = RejectCurveDisplay.from_estimator(own, X_test, y_test, name="one for each class", ax=left)
second.plot(right, baseline=first)
right.set_title("Errors saved")
plt.show()

# %%
# The criterion has more than one valley. From a wide kernel the single-kernel search takes the
# strips for noise and stays wide; it converges, but to a worse loss. Compare `cv_log_loss_` when in
# doubt.

wide = KernelLogisticRegression(RBF(2.0), optimize="cv").fit(X, y)
print(wide.kernel_)
print(f"log loss {wide.cv_log_loss_:.3f} instead of {tied.cv_log_loss_:.3f}")
