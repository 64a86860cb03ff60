"""Attention kernels in PyTorch and Triton, written apart from the derivations that judge them."""
