"""Kernels in floating point: how far rounding takes them from the recurrence they compute."""
