"""The figures people know, and what the rules that kernels are tested with today say of a run."""
