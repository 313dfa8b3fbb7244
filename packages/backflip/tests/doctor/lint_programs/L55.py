# L55: probability is lost in the projection

# %% mistake
import torch
def project(p, b, m, offset):
    lower, upper = b.floor().long(), b.ceil().long()
    m.index_add_(0, lower + offset, p * (upper.float() - b))  # here
    m.index_add_(0, upper + offset, p * (b - lower.float()))
    return m

# %% mistake
import numpy as np
def project(p, m, b):
    l, u = np.floor(b), np.ceil(b)
    m[int(l)] += p * (u - b)  # here
    m[int(u)] += p * (b - l)
    return m

# %% right
def project(p, b, m, offset, n):
    lower, upper = b.floor().long(), b.ceil().long()
    lower[(upper > 0) & (lower == upper)] -= 1
    upper[(lower < n - 1) & (lower == upper)] += 1
    m.index_add_(0, lower + offset, p * (upper.float() - b))
    m.index_add_(0, upper + offset, p * (b - lower.float()))
    return m

# %% right
import jax.numpy as jnp
def project(p, b, m):
    l = jnp.clip(jnp.floor(b), 0, 50)
    u = jnp.clip(jnp.ceil(b), 0, 50)
    d = (u + (l == u) - b) * p
    return m, d, (b - l) * p
