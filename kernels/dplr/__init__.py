"""The generalized delta rule: transitions that are diagonal plus rank one (DPLR), as RWKV-7 has them."""
