"""Peers for outputs that share: scikit-learn's independent Gaussian processes, and GPyTorch's multitask kernel."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

STEPS, RATE = 150, 0.05  # of Adam, as in GPyTorch's examples with twice the steps


def independent_processes(X, Y, X_new):
    """One process for each output, on the examples whose target is known; kernels by marginal likelihood."""
    predicted = []
    for y in Y.T:
        known = ~np.isnan(y)
        kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
            predicted.append(process.fit(X[known], y[known]).predict(X_new))
    return np.column_stack(predicted)


def gpytorch_multitask(X, Y, X_new, rank=2):
    """An RBF kernel times an index kernel of rank two on known cells, by marginal likelihood; None without torch."""
    try:
        import gpytorch
        import torch
    except ImportError:
        return None
    rows, outputs = np.nonzero(~np.isnan(Y))

    class Multitask(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.RBFKernel()
            self.task = gpytorch.kernels.IndexKernel(num_tasks=Y.shape[1], rank=rank)

        def forward(self, x, i):
            covariance = self.covar_module(x).mul(self.task(i))
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)

    torch.manual_seed(0)
    tensor = torch.from_numpy
    inputs = tensor(X[rows]), tensor(outputs)[:, None]
    targets = tensor(Y[rows, outputs])
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Multitask(inputs, targets, likelihood).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = -marginal(model(*inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        columns = [
            model(tensor(X_new), torch.full((len(X_new), 1), c)).mean.numpy()
            for c in range(Y.shape[1])
        ]
    return np.column_stack(columns)
