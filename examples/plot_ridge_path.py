"""
A path of λ in one solve
========================

How strongly should kernel ridge regression be regularised? The usual way is a loop that fits once
for each λ. Here all of them are columns of one problem: they advance in lockstep, and each pass over
the Gram matrix serves them all.
"""

# %%
# A function of one variable, seen 80 times with noise.

import numpy as np

rng = np.random.default_rng(0)


def truth(x):
    return np.sin(6 * x) + 0.5 * np.sin(17 * x)


x = np.sort(rng.uniform(0, 2, 80))
y = truth(x) + 0.3 * rng.normal(size=x.size)
X = x[:, None]

# %%
# One `Problem` with an array of λ. The targets have shape (n, C, q): examples, outputs, and the
# columns of the lockstep; here C is 1, and one set of targets is shared by all q values of λ.

from gramian.kernels import RBF
from gramian.losses import Squared
from gramian.operators import Dense
from gramian.solvers import Problem, kernel_cg

kernel = RBF(0.15)
path = np.logspace(-4, 2, 25)
problem = Problem(Dense(kernel, X), Squared(), y[:, None], regularization=path)
solution = kernel_cg(problem, tol=1e-10)
print(solution.status, "after", solution.n_products, "products, for all", path.size, "values of λ")

# %%
# Each column has its own certificate.

print(f"largest duality gap: {solution.gaps.max():.1e}")

# %%
# The columns are the models that separate fits would give.

from gramian import KernelRidge

single = KernelRidge(kernel, regularization=path[8], intercept_variance=0.0).fit(X, y)
difference = np.abs(single.predict(X) - (kernel(X) @ solution.coefficients[:, 0, 8])).max()
print(f"largest difference from a fit of its own: {difference:.1e}")

# %%
# The curves for three values of λ, and the error along the path.

from matplotlib import pyplot as plt

grid = np.linspace(0, 2, 400)
curves = kernel(grid[:, None], X) @ solution.coefficients[:, 0, :]
train_error = np.sqrt(
    np.mean((kernel(X) @ solution.coefficients[:, 0, :] - y[:, None]) ** 2, axis=0)
)
true_error = np.sqrt(np.mean((curves - truth(grid)[:, None]) ** 2, axis=0))
best = int(true_error.argmin())
chosen = {0: "#D55E00", best: "#0072B2", path.size - 4: "#009E73"}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(x, y, ".", color="0.6", label="data")
left.plot(grid, truth(grid), "--", color="0.3", linewidth=1, label="truth")
for column, color in chosen.items():
    left.plot(grid, curves[:, column], color=color, label=f"λ = {path[column]:.2g}")
left.set(xlabel="x", ylabel="y", title="Three columns of one solve")
left.set_ylim(-2.4, 3.4)
left.legend(ncols=3, loc="upper center", frameon=False)
right.semilogx(path, train_error, color="0.6", label="to the data")
right.semilogx(path, true_error, color="k", label="to the truth")
for column, color in chosen.items():
    right.plot(path[column], true_error[column], "o", color=color)
right.set(xlabel="λ", ylabel="Root mean squared distance", title="The whole path")
right.set_ylim(bottom=0)
right.legend(frameon=False)
plt.show()
