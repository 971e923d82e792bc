"""Prior correlations of labels: where they come from, and whether they are positive semidefinite."""
