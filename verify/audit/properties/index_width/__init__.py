"""Offsets past 32 bits, read from the source of Triton kernels."""
