"""Smooth losses: solvers in the inner product of the reproducing kernel Hilbert space."""
