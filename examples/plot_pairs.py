"""
Pairs of objects, known and new
===============================

Which drug binds to which protein? An example is a pair here, and a pair can be new in four ways: both
objects were in the training data (setting A), the left one was not (B), the right one was not (C), or
neither was (D). A model has four qualities, then, and it should be stopped, tuned and tested for the
setting it is needed in.
"""

# %%
# 120 drugs and 80 proteins, generated. Half of all pairs were measured. The response is mostly an
# interaction, something that neither object explains alone. Five features of each object matter; the
# drugs have five more that do not.

import numpy as np

from gramian import PairKFold, Pairs, PairwiseRidge
from gramian.datasets import make_interactions

pairs, y = make_interactions(n_left=120, n_right=80, density=0.5, noise=0.5, random_state=0)
rng = np.random.default_rng(0)
drugs = np.hstack([pairs.left, rng.normal(size=(120, 5))])
pairs = Pairs(drugs, pairs.right, pairs.left_index, pairs.right_index)
pairs

# %%
# The four settings
# -----------------
#
# We train on half of the measured pairs of the first 70 drugs and 45 proteins. Pairs of the next 20
# drugs and 15 proteins are set aside for later. The others are for testing and fall into all four
# settings. `scores_by_setting` tells them apart; the concordance is the share of comparisons between two
# pairs that come out right, 0.5 by chance.

from gramian.metrics import scores_by_setting

drug, protein = pairs.left_index, pairs.right_index
train = (drug < 70) & (protein < 45) & (rng.random(len(pairs)) < 0.5)
aside = (drug >= 70) & (drug < 90) & (protein >= 45) & (protein < 60)
test = ~train & ~aside
model = PairwiseRidge(regularization=1.0).fit(pairs[train], y[train])


def show_scores(name, model):
    scores = scores_by_setting(pairs[train], pairs[test], y[test], model.predict(pairs[test]))
    numbers = "".join(f"{score['concordance']:8.3f}" for score in scores.values())
    print(f"{name:22}{numbers}")


print(" " * 22 + "".join(f"{setting:>8}" for setting in "ABCD"))
show_scores("λ = 1, one width", model)

# %%
# Observed and predicted, new objects behind the thick lines. Objects with the largest mean response
# come first. Grey pairs were not measured. Predictions are paler than the truth, as those of a
# regularised model are, and palest where both objects are new.

from matplotlib import pyplot as plt

from gramian.plot import IterationDisplay, PairMatrixDisplay

PairMatrixDisplay.from_estimator(model, pairs, y, train=pairs[train])
plt.show()

# %%
# Stopping early
# --------------
#
# Each iteration of the solver is one product with the kernel matrix of all pairs, by the sampled vec
# trick. Few of them are needed: given validation pairs, `fit` scores each iteration and keeps the best
# one. They must be of the setting that matters, here D: the pairs that were set aside. With little
# regularisation, the risk on the training pairs goes on falling while predictions for new objects get
# worse again.

stopped = [
    PairwiseRidge(regularization=value, patience=1000, tol=1e-4).fit(
        pairs[train], y[train], X_val=pairs[aside], y_val=y[aside]
    )
    for value in (0.01, 0.1, 1.0, 10.0)
]
IterationDisplay.from_estimators(stopped, score_name="Concordance, both objects new")
plt.show()

# %%
# On the test pairs, a λ that is far too small loses little if it is stopped in time, in all settings.

converged = PairwiseRidge(regularization=0.01, tol=1e-4).fit(pairs[train], y[train])
show_scores("λ = 0.01, to the end", converged)
show_scores("λ = 0.01, stopped", stopped[0])
show_scores("λ = 1, to the end", model)

# %%
# Learning the widths of the kernels
# ----------------------------------
#
# ``optimize="cv"`` learns a width for each feature on both sides, and λ, by the gradient of the
# cross-validated loss. ``cv=PairKFold("D")`` makes folds as they are in setting D: objects of a test
# block are in none of its training pairs, and pairs that share one object with the block are left out.

from gramian.kernels import RBF

folds = PairKFold("D", n_splits=3)
print(folds.summary(pairs[train])[0])
widths = PairwiseRidge(
    RBF(np.full(10, 3.0)), RBF(np.full(5, 3.0)), optimize="cv", cv=folds
).fit(pairs[train], y[train])  # fmt: skip
show_scores("λ = 1, one width", model)
show_scores("all widths learned", widths)

# %%
# A wide kernel does not look at its feature: these are the reciprocal widths. The five features
# without meaning were found.

left, right = widths.kernel_.right.left, widths.kernel_.right.right
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
for ax, kernel, name in zip(axes, (left, right), ("drugs", "proteins"), strict=True):
    ax.bar(np.arange(len(kernel.length_scale)) + 1, 1 / kernel.length_scale, color="#3b528b")
    ax.set(title=name, xlabel="feature", xticks=np.arange(len(kernel.length_scale)) + 1)
axes[0].set_ylabel("1 / width")
plt.show()

# %%
# Which kernel of pairs?
# ----------------------
#
# The kernels of the two objects can be put together in several ways. `PairKFold` goes wherever
# scikit-learn takes a ``cv``. The linear kernel adds up what each object does and misses the
# interaction; the cartesian kernel looks only at pairs with an object in common, so it knows nothing in
# setting D. λ is given, so that nothing is learned in the 90 fits of this comparison.

import warnings

from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

from gramian.metrics import concordance_index

scorer = make_scorer(concordance_index)
print(" " * 22 + "".join(f"{setting:>8}" for setting in "ABCD"))
for name in ("linear", "poly2d", "kronecker", "gaussian", "cartesian"):
    candidate = PairwiseRidge(pairwise_kernel=name, regularization=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cartesian kernel says that it is of no use in D
        means = [
            cross_val_score(candidate, pairs, y, cv=PairKFold(setting), scoring=scorer).mean()
            for setting in "ABCD"
        ]
    print(f"{name:22}" + "".join(f"{mean:8.3f}" for mean in means))
