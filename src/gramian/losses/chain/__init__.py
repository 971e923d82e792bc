"""Losses of label sequences: the likelihood of a linear chain, its recursions, and decoding."""
