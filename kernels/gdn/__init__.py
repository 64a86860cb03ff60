"""Gated DeltaNet (arXiv 2412.06464): the delta rule with one decay per value head."""
