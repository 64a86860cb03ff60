"""Mamba-2: a linear state with one decay per head."""
