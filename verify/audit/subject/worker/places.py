"""Where a function writes results instead of returning them: buffers, a state in place, a pool of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tensors import mutation

if TYPE_CHECKING:
    import torch


def prepare(places: dict[str, Any], inputs: dict[str, torch.Tensor], device: str) -> None:
    """Add buffers full of NaN, and put the state into the named slots of a pool full of NaN."""
    import torch

    for argument, shape, dtype in places["buffers"].values():
        inputs[argument] = torch.full(shape, torch.nan, dtype=getattr(torch, dtype), device=device)
    if places["pool"] is not None:
        argument, slots = places["pool"]
        state = inputs[places["in_place"]]
        pool = state.new_full((2 * len(slots) + 1, *state.shape[1:]), torch.nan)
        pool[slots] = state
        inputs[places["in_place"]] = pool
        inputs[argument] = torch.tensor(slots, dtype=torch.int32, device=device)


def written(places: dict[str, Any], inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The results that the function wrote into its arguments, by name."""
    results = {name: inputs[argument] for name, (argument, *_) in places["buffers"].items()}
    if places["in_place"] is not None:
        state = inputs[places["in_place"]]
        results["final_state"] = state if places["pool"] is None else state[places["pool"][1]]
    return results


def broken_promise(
    places: dict[str, Any], before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]
) -> str | None:
    """The first change of something that the function may not write into, as a sentence."""
    free = {argument for argument, *_ in places["buffers"].values()} | set(places["overwrites"])
    after = {name: tensor for name, tensor in after.items() if name not in free}
    name = places["in_place"]
    if name is not None:
        after[name] = after[name].detach().clone()
        own = slice(None) if places["pool"] is None else places["pool"][1]
        after[name][own] = before[name][own].to(after[name].device)
    return mutation({name: before[name] for name in after}, after)
