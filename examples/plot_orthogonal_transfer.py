"""
Lower levels that need other features
=====================================

What tells sports from politics is of no use to tell football from hockey: near the leaves of a taxonomy other features
matter than near the root. :class:`~gramian.HierarchicalSVC` has a normal for each node and pushes it to be orthogonal
to those of its ancestors (Zhou, Xiao & Wu 2011). Transfer by *similarity* says the opposite: children resemble their
parents. Here are both, on data that were made for the first.
"""

# %%
# 18 classes in three levels. A node adds words of its own to a document, and each level has its own vocabulary of 20.
# Higher levels are louder, by an amount that differs from document to document: that is what misleads a classifier
# that should look at the level below. There are four examples of each class.

import numpy as np

from gramian.labels import Taxonomy

tree = Taxonomy.from_paths([f"{a}/{a}{b}/{a}{b}{c}" for a in "ABC" for b in "12" for c in "xyz"])
loudness = {1: 3.0, 2: 1.5, 3: 0.75}


def draw(rng, n_train=4, n_test=40):
    """Two sets of examples with their classes."""
    words = np.zeros((tree.n_nodes, 60))
    for node in range(1, tree.n_nodes):
        first = 20 * (tree.depth[node] - 1)
        words[node, first : first + 20] = np.abs(rng.normal(size=20)) / np.sqrt(20)

    def examples(n_each):
        nodes = np.repeat(tree.leaves, n_each)
        X = rng.normal(size=(nodes.size, 60)) / np.sqrt(60)
        for row, leaf in enumerate(nodes):
            for node in [leaf, *tree.ancestors(leaf)[:-1]]:
                varied = 1.0 if node == leaf else rng.lognormal(sigma=0.5)
                X[row] += loudness[tree.depth[node]] * varied * words[node]
        return X / np.linalg.norm(X, axis=1, keepdims=True), tree.names[nodes]

    return *examples(n_train), *examples(n_test)


# %%
# Two fits, and the cosines of the angles between their normals. Rows and columns go through the tree depth first.
# Framed are the three branches and, inside, the pairs of a node and those below it.

from matplotlib import pyplot as plt

from gramian import HierarchicalSVC
from gramian.labels import orthogonality_weights
from gramian.plot import NormalCosineDisplay

X, y, X_test, y_test = draw(np.random.default_rng(0))
figure, axes = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
for ax, method in zip(axes, ("orthogonal", "similarity"), strict=True):
    # the weights of the paper, and no intercept
    K = orthogonality_weights(tree) if method == "orthogonal" else None
    model = HierarchicalSVC(tree, method, C=10.0, K=K, intercept_variance=0.0).fit(X, y)
    NormalCosineDisplay.from_estimator(model, ax=ax, colorbar=ax is axes[-1])
    ax.set_title(method)
plt.show()

# %%
# At the left ancestors and descendants are orthogonal. Siblings are opposed, as they always are: they are told apart.
# At the right all of a branch leans to where the branch does.
#
# Is it better? Eight draws and several C; *flat* is the multi-class SVM of Crammer & Singer, which has no tree. The
# tree loss is half the length of the path between answer and truth: mistakes in another branch cost most.

from gramian.metrics import taxo_loss

methods = ["orthogonal", "similarity", "flat"]
penalties = [1.0, 3.0, 10.0, 30.0]
errors, losses = np.empty((2, 8, len(methods), len(penalties)))
for i in range(len(errors)):
    X, y, X_test, y_test = draw(np.random.default_rng(i))
    for j, method in enumerate(methods):
        for k, C in enumerate(penalties):
            K = orthogonality_weights(tree) if method == "orthogonal" else None
            model = HierarchicalSVC(tree, method, C=C, K=K, intercept_variance=0.0, tol=1e-2)
            model.fit(X, y)
            predicted = model.predict(X_test)
            errors[i, j, k] = np.mean(predicted != y_test)
            losses[i, j, k] = taxo_loss(y_test, predicted, tree)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, values, name in zip(axes, (errors, losses), ("Wrong leaves", "Tree loss"), strict=True):
    for j, method in enumerate(methods):
        ax.plot(penalties, values[:, j].mean(axis=0), marker="o", label=method)
    ax.set(xscale="log", xlabel="C", ylabel=name, xticks=penalties)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(edgecolor="none")
plt.show()

for values, name in ((errors, "wrong leaves"), (losses, "tree loss")):
    print(f"{name}: difference from orthogonal, and its standard error; C = 1, 3, 10, 30")
    for j, method in enumerate(methods[1:], start=1):
        difference = values[:, j] - values[:, 0]
        error = difference.std(axis=0, ddof=1) / np.sqrt(len(values))
        columns = zip(difference.mean(axis=0), error, strict=True)
        print(f"  {method:11}" + "".join(f"  {mean:+.3f} ± {width:.3f}" for mean, width in columns))

# %%
# With strong regularisation, C of 3 and less, orthogonality is worth two to four standard errors against similarity.
# With larger C the examples overrule either penalty, and the two meet: at its best C each has about the same loss.
# So orthogonality is knowledge that helps where little can be learned, and makes the choice of C less important. The
# flat SVM finds about as many leaves at its best C, but more of its mistakes lead to other branches: its tree loss is
# the largest for every C.

# %%
# How sure the optimum is
# -----------------------
#
# All methods are convex, and the solver proves how far it is from the minimum. The paper has dual averaging, whose
# lower bound comes from averaged subgradients. The estimator climbs a dual in coefficients and signs: its bounds meet
# sooner. The minimum lies in the shaded band.

from gramian.labels import orthogonality_weights
from gramian.labels.margins.tree_margins import Orthogonal
from gramian.plot import ConvergenceDisplay
from gramian.solvers import ContrastProblem, ContrastSplit, contrast_ascent, dual_averaging

labels, codes = np.unique(tree.index(y), return_inverse=True)
margins = Orthogonal(tree, labels, orthogonality_weights(tree, 0.7))
units = margins.units(codes, np.full(len(y), 10.0))
problem = ContrastProblem(X, contrasts=margins.contrasts, penalty=margins.penalty, **units)
contrast_ascent(problem, tol=0.1)  # loads compiled code, so that it is not timed
dual_averaging(ContrastSplit(problem), epsilon=np.inf)
solutions = {
    "dual averaging": dual_averaging(
        ContrastSplit(problem), epsilon=lambda upper: problem.allowed_gap(upper, 1e-2)
    ),
    "contrast ascent": contrast_ascent(problem, tol=1e-4),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, ordinate in zip(axes, ("bounds", "relative_gap"), strict=True):
    ConvergenceDisplay.from_solutions(
        solutions, x="seconds", y=ordinate, ax=ax, curve_kwargs={"marker": ""}
    )
minimum = solutions["contrast ascent"].objective
axes[0].set_ylim(0.8 * minimum, 1.2 * minimum)
plt.show()
for name, found in solutions.items():
    lower, upper = found.objective - found.gap, found.objective
    print(f"{name}: {found.n_iter} steps, {lower:.2f} ≤ minimum ≤ {upper:.2f}")
