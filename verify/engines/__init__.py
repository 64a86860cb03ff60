"""One file per engine, one third-party library each."""
