"""Trees of classes: the taxonomy, how it is read, and what it means for outputs and decisions."""
