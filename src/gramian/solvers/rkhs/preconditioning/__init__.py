"""Preconditioners from functions of few examples, and when they pay."""
