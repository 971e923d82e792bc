"""
Digits with certified probabilities
===================================

Kernel logistic regression learns all ten classes at once, with one joint softmax. This example fits
the digits of scikit-learn, reads the certificate of the fit, and asks whether the probabilities can
be believed.
"""

# %%
# Half of the 1797 images are for training. Pixels lie in [0, 1].

from gramian.datasets import load_digits_split

data = load_digits_split()
print(data.X_train.shape, data.X_test.shape)

# %%
# Fit. The length scale and λ were chosen by cross-validation within the training half.

from gramian import KernelLogisticRegression
from gramian.kernels import RBF

model = KernelLogisticRegression(RBF(1.5), regularization=1e-4)
model.fit(data.X_train, data.y_train)
print(f"Test error: {100 * (1 - model.score(data.X_test, data.y_test)):.2f} %")

# %%
# Every fit has a certificate. The duality gap is the distance between the objective and a proven
# lower bound, so the optimum cannot be further away than this:

solution = model.solution_
print(f"{solution.status}: objective {solution.objective:.6f}, gap {solution.gap:.1e}")
print(f"{solution.n_iter} Newton steps, {solution.n_products} products with the Gram matrix")

# %%
# Newton and kernel conjugate gradient share the certificate, so they can be compared on one axis:
# products with the Gram matrix, each for all ten classes.

other = KernelLogisticRegression(RBF(1.5), regularization=1e-4, solver="kernel_cg")
other.fit(data.X_train, data.y_train)
print(f"Kernel CG: {other.solution_.n_products} products in {other.n_iter_} iterations")

# %%
# Reliability compares the probability of the predicted class with how often it is right. Bars are
# 95 % intervals: a bin of few examples says little.

from matplotlib import pyplot as plt

from gramian.plot import ConvergenceDisplay, ReliabilityDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
ConvergenceDisplay.from_solutions(
    {"Newton": model.solution_, "Kernel CG": other.solution_},
    tol=model.tol,
    ax=left,
    curve_kwargs=[
        {"color": "#0072B2"},
        {"color": "#D55E00", "marker": None},
    ],
)
left.set_title("Proven distance to the optimum")
ReliabilityDisplay.from_estimator(
    model,
    data.X_test,
    data.y_test,
    n_bins=10,
    name="Test half",
    ax=right,
    curve_kwargs={"color": "#0072B2"},
)
right.set_title("Reliability of the probabilities")
plt.show()
