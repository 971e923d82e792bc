"""Hinge losses of contrasts between outputs, with orthogonal penalties."""
