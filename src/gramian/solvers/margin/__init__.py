"""Hinge losses with correlated labels: dual coordinate ascent in three forms."""
