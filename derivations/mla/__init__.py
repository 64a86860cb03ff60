"""Attention through a shared latent (multi-head latent attention)."""
