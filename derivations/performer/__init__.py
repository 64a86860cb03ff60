"""Random features for the exponential kernel."""
