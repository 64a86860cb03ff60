"""Rigorous bounds of the rounding error of straight-line float programs over whole boxes of inputs.

`program` reads expressions; `intervals` has vectorised outward-rounded intervals; `model` bounds the error on
one box; `bound` divides boxes until the bound is tight; `observed` runs the rounded program and so bounds the
worst error from below; `softmax` treats a whole attention row in closed form.
"""
