"""Softmax attention (Vaswani et al., arXiv 1706.03762), with window, sink and additive decay."""
