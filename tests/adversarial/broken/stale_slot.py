"""I3: a sequence without an initial state starts from what the slot's last one left (tpu-inference#2431).

Shows from the second sequence on; hides while the slot is clean.
"""

from skeleton import recurrent

SLOTS = {}


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    slot = (*v.shape[::2], q.shape[-1], v.shape[-1])
    state = SLOTS.get(slot) if initial_state is None else initial_state
    o, SLOTS[slot] = recurrent(q, k, v, g, beta, scale=scale, initial_state=state, output_final_state=True)
    return o, SLOTS[slot].clone() if output_final_state else None


recurrent_kda = recurrent_gdn
