"""Gradients of a kernel: what they should be, how far a correct kernel may stay from that, what is wrong."""
