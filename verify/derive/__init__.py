"""The derivation language: what claims are written in."""

from verify.derive.derivation import Chain, Induction, Minimum, Rule, Step
from verify.derive.setting import Definition, Hypothesis, Setting

__all__ = ["Chain", "Definition", "Hypothesis", "Induction", "Minimum", "Rule", "Setting", "Step"]
