"""Where the expansions of softmax attention around equal logits fail."""
