"""Small networks as plain dictionaries of arrays.

Parameters are drawn on the host with NumPy: drawing them inside a compiled program costs seconds
of compile time. `apply` functions take a batch (B, ...) of inputs, which `preprocess` makes from
observations without parameters, so that an observation that is used several times is preprocessed
once.
"""
