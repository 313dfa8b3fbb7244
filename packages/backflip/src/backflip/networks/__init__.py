"""Small networks as plain dictionaries of arrays.

Parameters are drawn on the host with NumPy: drawing them inside a compiled program costs seconds
of compile time for nothing. `apply` functions take a batch (B, ...) of observations.
"""
