"""Derivations written out at small sizes and decided by SymPy's rational-function arithmetic."""

from typing import Any

from verify.derive.instances import World, chains, residuals
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "sympy"
KINDS = frozenset({"derivation", "induction"})


def judge(obligation: Obligation) -> Check:
    """``bounded`` when every residual cancels to zero at the stated sizes; ``refuted`` when a rational one
    does not; ``undecided`` when one with exp or log does not cancel.
    """
    import sympy

    by = f"sympy {sympy.__version__}"
    sizes = []
    for chain in chains(dict(obligation.data)):
        for instance in chain["setting"]["instances"]:
            for found in residuals(chain, _world(chain["setting"], instance, sympy)):
                rest = _reduced(found.value, sympy)
                if rest != 0:
                    rational = not rest.has(sympy.exp, sympy.log)
                    verdict = Verdict.REFUTED if rational else Verdict.UNDECIDED
                    detail = f"{found.label} leaves {str(rest)[:120]} with sizes {instance}"
                    return Check(by, "engine", verdict, detail)
            sizes.append(", ".join(f"{name} = {value}" for name, value in instance.items()))
    written = "; ".join(dict.fromkeys(size for size in sizes if size)) or "no sizes to choose"
    return Check(by, "engine", Verdict.BOUNDED, f"every residual cancels to zero ({written})")


def _world(setting: dict[str, Any], sizes: dict[str, int], sympy: Any) -> World:
    positive = set(setting["positive"])
    return World(
        number=sympy.Rational,
        exp=sympy.exp,
        log=sympy.log,
        value=lambda name: sympy.Symbol(name, real=True, positive=name.split("[", 1)[0] in positive or None),
        sizes=sizes,
    )


def _reduced(rest: Any, sympy: Any) -> Any:
    """Zero for a rational identity in the variables and in independent exponentials and logarithms."""
    spread = sympy.expand(sympy.expand_log(rest), power_exp=True)
    bases: dict[Any, Any] = {}
    powers = {}
    for atom in spread.atoms(sympy.exp, sympy.log):
        ratio, base = atom.args[0].as_coeff_Mul() if atom.func is sympy.exp else (sympy.Integer(1), atom)
        whole = base if ratio.is_Integer else atom
        powers[atom] = bases.setdefault(whole, sympy.Dummy()) ** (ratio if ratio.is_Integer else 1)
    cancelled = sympy.cancel(spread.xreplace(powers))
    return cancelled if cancelled == 0 else rest
