"""Gram matrices of examples: each file is one way to multiply with M."""
