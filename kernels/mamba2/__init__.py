"""Mamba-2's state-space duality (arXiv 2405.21060): one decay per head and nothing erased."""
