"""Source text of a call that does more than pass inputs and take results: buffers, states in place."""

from verify.audit.case import Case
from verify.audit.convention.convention import Convention


def is_plain(convention: Convention) -> bool:
    """Whether inputs go over as the definition takes them, and results come back as return values."""
    c = convention
    forms = (c.gate_form, c.beta_form, c.qk_norm, c.head_order)
    written = c.output_buffer or c.state_buffer or c.written
    return forms == ("value", "value", "none", "repeated") and not written and c.token_layout != "THD"


def function(case: Case, convention: Convention, arguments: str) -> list[str]:
    """A function ``call`` of the named inputs x that gives the output and the final state, or None."""
    c, s = convention, case.shape
    lines = ["def call(x):", "    x = dict(x)"]
    shapes, dtypes = c.promised(case, s.B), "dtype=torch."
    names = {"output": c.output_buffer, "final_state": c.state_buffer}
    for result, name in names.items():
        if name:
            shape, dtype = shapes[result]
            lines.append(f"    x[{name!r}] = torch.full({shape}, torch.nan, {dtypes}{dtype})")
            arguments += f", {name}=x[{name!r}]"
    state = c.arguments.get("initial_state", "")
    slots = list(range(2 * s.B - 1, 0, -2))
    if c.state_indices:
        inner = "(2 * len(y) + 1, *y.shape[1:])"
        lines += [
            f"    y = x[{state!r}]",
            f"    x[{state!r}] = y.new_full({inner}, torch.nan).index_copy(0, torch.tensor({slots}), y)",
            f"    x[{c.state_indices!r}] = torch.tensor({slots}, dtype=torch.int32)",
        ]
        arguments += f", {c.state_indices}=x[{c.state_indices!r}]"
    if c.token_layout == "THD":
        offsets = [b * s.T for b in range(s.B + 1)]
        arguments += f", {c.cu_seqlens}=torch.tensor({offsets})"
    back = {"output": "out", "output-first": "out, *_", "nothing": "_"}.get(c.returns, "out, final")
    lines.append(f"    {back} = target({arguments})")
    out = f"x[{c.output_buffer!r}]" if c.output_buffer else "out"
    final = "final" if c.returns == "output-and-state" else "None"
    if c.state_buffer:
        final = f"x[{c.state_buffer!r}]"
    elif c.state_in_place:
        final = f"x[{state!r}]" + (f"[{slots}]" if c.state_indices else "")
    return [*lines, f"    return {out}, {final}"]
