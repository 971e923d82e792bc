"""
A map from 30 000 scattered points
==================================

A kernel matrix of 30 000 points has 900 million values: 6.7 GiB. With a short length scale nearly all of them are zero
for all practical purposes. ``operator="tree_code"`` leaves those out, within a proven bound.
"""

# %%
# A terrain: random waves, the longer the higher.

import numpy as np

rng = np.random.default_rng(0)
side = 512
frequencies = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
frequencies[0, 0] = np.inf
waves = rng.normal(size=(2, *frequencies.shape)) * frequencies**-1.9
terrain = np.fft.irfft2(waves[0] + 1j * waves[1], s=(side, side))
terrain -= terrain.mean()
terrain /= terrain.std()

# %%
# 30 000 places on it are measured, with some noise.

n = 30_000
places = rng.choice(side * side, size=n, replace=False)
X = np.column_stack(np.unravel_index(places, terrain.shape)) / side
y = terrain.ravel()[places] + 0.02 * rng.normal(size=n)

# %%
# Ridge regression, and its value at all 262 144 places. The length scale is a few distances between neighbours.

from time import perf_counter

from gramian import KernelRidge
from gramian.kernels import RBF

kernel = RBF(0.012)
start = perf_counter()
model = KernelRidge(kernel, regularization=0.02, operator="tree_code", tol=1e-3).fit(X, y)
fitted = perf_counter()
rows, columns = np.indices(terrain.shape).reshape(2, -1) / side
found = model.predict(np.column_stack([rows, columns])).reshape(terrain.shape)
print(
    f"fit {fitted - start:.1f} s, {model.n_iter_} iterations; predict {perf_counter() - fitted:.1f} s"
)
print(f"root mean squared error {np.sqrt(np.mean((found - terrain) ** 2)):.3f} standard deviations")

# %%
# What is saved? Each point needs the points near it, and their number does not depend on how large the map is: the
# more points of the same density, the more is left out. Wide RBF kernels have no far points; these go through a grid of
# nodes. The bound holds for each row of the matrix, whatever it is multiplied with.

from gramian.operators import Streamed, TreeCode

sizes = np.array([1_000, 2_000, 4_000, 8_000, 16_000])
seconds = {"all pairs": [], "tree code, narrow kernel": [], "tree code, wide kernel": []}
for size in sizes:
    Z, b = rng.random((size, 2)), rng.normal(size=(size, 1))
    narrow, wide = RBF(1.5 / np.sqrt(size)), RBF(0.5)
    operators = [Streamed(narrow, Z), TreeCode(narrow, Z), TreeCode(wide, Z)]
    for name, operator in zip(seconds, operators):
        operator @ b  # finds what is near
        trials = []
        for _ in range(3):
            start = perf_counter()
            operator @ b
            trials.append(perf_counter() - start)
        seconds[name].append(min(trials))
print("methods:", operators[1].methods[0], "and", operators[2].methods[0])
print(f"bounds: {operators[1].error_bound:.1e} and {operators[2].error_bound:.1e}")

# %%

import matplotlib.pyplot as plt

figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
limit = np.abs(terrain).max()
axes[0, 0].imshow(terrain, cmap="terrain", vmin=-limit, vmax=limit)
axes[0, 0].set_title("terrain")
axes[0, 1].imshow(found, cmap="terrain", vmin=-limit, vmax=limit)
axes[0, 1].set_title(f"from {n} points, {100 * n / side**2:.0f} % of the map")
image = axes[1, 0].imshow(found - terrain, cmap="RdBu", vmin=-0.2, vmax=0.2)
axes[1, 0].set_title("error, in standard deviations")
figure.colorbar(image, ax=axes[1, 0], location="bottom", shrink=0.8)
for axis in axes.flat[:3]:
    axis.set(xticks=[], yticks=[])
for name, values in seconds.items():
    axes[1, 1].loglog(sizes, 1e3 * np.array(values), marker="o", label=name)
axes[1, 1].set(xlabel="points", ylabel="milliseconds", title="one product")
axes[1, 1].set_xticks(sizes, labels=sizes)
axes[1, 1].minorticks_off()
axes[1, 1].legend()
plt.show()
