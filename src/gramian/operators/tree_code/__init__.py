"""Products with a Gram matrix of points in few dimensions, within a proven bound on the error."""
