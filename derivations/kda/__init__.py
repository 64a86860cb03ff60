"""Kimi Delta Attention (KDA): the delta rule after one decay per channel."""
