"""The generalized delta rule: transitions that are diagonal plus rank one (DPLR)."""
