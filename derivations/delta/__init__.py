"""The delta rule (DeltaNet): erase what a key held, write the new value."""
