"""Estimators for pairs of objects."""
