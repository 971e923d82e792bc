"""Complete pairs: ridge regression in closed form."""
