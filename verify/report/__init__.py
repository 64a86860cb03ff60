"""Pages, plots and LaTeX made from result files alone."""
