"""F5: ``-x.clamp(max=-floor)`` clamps before it negates: a constant growth for every gate (fla#1013).

Right is ``(-x).clamp(max=-floor)``, which leaves gates below the floor alone. Shows with every input that has
a state to decay; hides in one token after an empty state, and from a comparison of the layer with itself.
"""

from skeleton import recurrent

FLOOR = 0.1


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    x = -g
    return recurrent(q, k, v, -x.clamp(max=-FLOOR), beta, scale=scale, **options)


recurrent_kda = recurrent_gdn
