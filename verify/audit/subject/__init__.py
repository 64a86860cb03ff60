"""The kernel under test: finding it, running it in a process of its own, exchanging tensors."""
