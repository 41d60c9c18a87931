"""A step in, written tokens out: greedy, beam and sampling for every model, because they know none.

All of them see `step(token_R, state) → (logits_RV, state)` and an opaque state whose rows `layers.rows` can pick.
What the text must match, be among or hold is a `constrain.Constraint`, which knows no model either.
"""
