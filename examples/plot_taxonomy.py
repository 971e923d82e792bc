"""
Classes that are the leaves of a tree
=====================================

Classes often come with a tree, and with few examples each. The tree says which classes are alike, so
that they can learn from each other. It also says how grave a mistake is, and it allows answers and
labels that stop halfway.
"""

# %%
# 36 classes in a tree of three levels, generated: the mean of a node is that of its parent plus a
# random step. Each class has three examples for training.

import numpy as np

from gramian.labels import Taxonomy

rng = np.random.default_rng(2)
paths = [f"{a}/{a}{b}/{a}{b}{c}" for a in "ABC" for b in "123" for c in "wxyz"]
tree = Taxonomy.from_paths(paths)
means = np.zeros((tree.n_nodes, 20))
for node in range(1, tree.n_nodes):
    step = (1.0, 0.7, 0.5)[tree.depth[node] - 1]
    means[node] = means[tree.parent[node]] + step * rng.normal(size=20)


def draw(n_each):
    nodes = np.repeat(tree.leaves, n_each)
    return means[nodes] + rng.normal(size=(len(nodes), 20)), tree.names[nodes]


X, y = draw(3)
X_test, y_test = draw(40)
tree

# %%
# Three models: flat; with the tree; with the tree and a kernel for each level. Their parameters are
# learned by cross-validation, with three folds because there are three examples of a class.

from sklearn.metrics import log_loss

from gramian import KernelLogisticRegression
from gramian.metrics import parent_accuracy, taxo_loss

models = {
    "flat": KernelLogisticRegression(optimize="cv", cv=3),
    "tree": KernelLogisticRegression(hierarchy=tree, optimize="cv", cv=3),
    "levels": KernelLogisticRegression(hierarchy=tree, share="level", optimize="cv", cv=3),
}


def show_scores(name, model):
    predicted = model.predict(X_test)
    numbers = (
        np.mean(predicted == y_test),
        parent_accuracy(y_test, predicted, tree),
        taxo_loss(y_test, predicted, tree),
        log_loss(y_test, model.predict_proba(X_test)),
    )
    print(f"{name:8}" + "".join(f"{number:14.3f}" for number in numbers))


print(
    " " * 8 + "".join(f"{name:>14}" for name in ("right", "right parent", "taxo-loss", "log loss"))
)
for name, model in models.items():
    show_scores(name, model.fit(X, y))

# %%
# "taxo-loss" is half the number of edges between truth and prediction. The tree helps most with the
# parent of the class and with the probabilities; which of four siblings it is, it cannot tell.

# %%
# Labels that stop halfway
# ------------------------
#
# Coarse labels are cheaper. Here are ten more examples of each class, of which only the parent is
# known. `fit` takes names of inner nodes as they are and spreads such an example over the leaves
# below by expectation maximisation. Kernels are learned from the examples with a full label only, so
# those of above serve here, too.

X_more, y_more = draw(10)
coarse = tree.names[tree.parent[tree.index(y_more)]]
print(coarse[:3])
both = KernelLogisticRegression(models["tree"].kernel_, hierarchy=tree)
both.fit(np.concatenate([X, X_more]), np.concatenate([y, coarse]))
show_scores("both", both)

# %%
# Where are the mistakes? An example is right at a node if truth and prediction both lie below it.

from matplotlib import pyplot as plt

from gramian.plot import HierarchicalConfusionDisplay, TaxonomyDisplay

figure, axes = plt.subplots(1, 2, figsize=(11, 8), layout="constrained")
for ax, name, model in zip(axes, ("flat", "both"), (models["flat"], both), strict=True):
    TaxonomyDisplay.from_estimator(model, X_test, y_test, taxonomy=tree, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# The confusions of the last model stay in the blocks of siblings.

figure, ax = plt.subplots(figsize=(9, 8), layout="constrained")
HierarchicalConfusionDisplay.from_estimator(both, X_test, y_test, ax=ax)
plt.show()

# %%
# Answers that stop halfway
# -------------------------
#
# A probability of an inner node is the sum over its leaves. So a model can answer with an inner node
# where that has the smaller expected loss.

nodes = both.decide(X_test, loss="taxonomic", allow_inner=True)
depth = tree.depth[tree.index(nodes)]
print("answers at depth 0, 1, 2, 3:", np.bincount(depth, minlength=4))
for name, answers in (("leaves only", both.predict(X_test)), ("any node", nodes)):
    below = tree.lowest_common_ancestor(tree.index(answers), tree.index(y_test))
    true = np.mean(below == tree.index(answers))
    print(f"{name}: {true:.3f} true, taxo-loss {taxo_loss(y_test, answers, tree):.3f}")

# %%
# One example, down its most probable path:

row = int(np.flatnonzero(depth == 2)[0])
probability = both.predict_node_proba(X_test[[row]])[0]
for node in tree.path(both.predict(X_test[[row]])[0])[1:]:
    print(f"{node:10} {probability[tree.index(node)]:.2f}")
print("truth:", y_test[row], "  answer:", nodes[row])
