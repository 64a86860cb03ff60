"""DeltaNet (arXiv 2406.06484): the delta rule without decay."""
