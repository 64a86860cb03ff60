"""Re-check evidence. Small, and independent of the engines that found it."""
