"""Values are read at contiguous addresses, whatever the strides."""

from skeleton import recurrent


def recurrent_kda(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False, cu_seqlens=None):
    if cu_seqlens is not None:
        raise ValueError("no packed sequences")
    strides = [v.shape[1] * v.shape[2] * v.shape[3], v.shape[2] * v.shape[3], v.shape[3], 1]
    read = v.as_strided(v.shape, strides)
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(q, k, read, g, beta, scale=scale, **options)
