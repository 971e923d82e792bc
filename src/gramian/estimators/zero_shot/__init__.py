"""Classes that are described rather than seen."""
