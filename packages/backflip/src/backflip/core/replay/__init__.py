"""The replay of off-policy learning: the last env steps, and minibatches drawn from them.

A `Replay` is a ring of L rows, one per time step, by C columns, one per environment. The same
functions serve JAX arrays, which they copy, and NumPy arrays, which they write in place. Adding and
drawing a row takes a time independent of L, with priorities O(log L).
"""
