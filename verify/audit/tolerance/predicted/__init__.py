"""Errors that the declared algorithm is predicted to make, from runs with random rounding."""
