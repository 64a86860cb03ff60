"""Performer attention (Choromanski et al., arXiv 2009.14794): softmax by positive random features."""
