"""Systems to measure beside each other: each a process of its own that trains in slices, when it is told to.

Nothing here imports regard but `ours.py`, and nothing a peer but its own file: each runs in an environment that holds
that one peer. Names such as `src` and `tgt` belong to the peers.
"""
