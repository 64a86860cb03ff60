"""Linear attention (Katharopoulos et al., arXiv 2006.16236), with or without its normaliser."""
