"""Top-k attention that keeps enough keys for a proved bound on the softmax mass it drops."""
