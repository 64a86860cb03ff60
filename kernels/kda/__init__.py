"""Kimi Delta Attention (Kimi Linear, arXiv 2510.26692): the delta rule with one decay per key channel."""
