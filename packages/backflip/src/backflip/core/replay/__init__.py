"""The memory of off-policy learning: the last env steps, and minibatches drawn from them.

A `Replay` is a ring of L rows, one for each moment, by C columns, one for each environment. The
same functions serve JAX arrays, which they copy, and NumPy arrays, which they write in place.
A row is added and drawn in a time that does not depend on L, with priorities in O(log L).
"""
