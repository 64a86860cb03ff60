"""First-order expansions of softmax attention."""
