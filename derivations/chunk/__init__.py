"""Chunkwise forms of the recurrent mechanisms."""
