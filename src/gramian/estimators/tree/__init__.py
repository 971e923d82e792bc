"""Classes in a taxonomy."""
