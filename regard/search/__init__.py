"""A step in, written tokens out: greedy, beam and sampling for every model, because they know none.

All of them see `step(token_R, state) → (logits_RV, state)` and an opaque state whose rows `layers.rows` can pick.
"""
