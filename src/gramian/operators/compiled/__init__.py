"""Compiled products that operators are made from."""
