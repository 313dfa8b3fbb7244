# L66: the last action is never explored

# %% mistake
import numpy as np
rng = np.random.default_rng(0)
def act(values, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(0, values.size - 1))  # here
    return int(values.argmax())

# %% mistake
import torch
def act(q, obs, eps, n_actions, draw):
    return torch.randint(n_actions - 1, (1,)) if draw < eps else q(obs).argmax(1)  # here

# %% right
import random
import numpy as np
rng = np.random.default_rng(0)
def act(values, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(values.size))
    return int(values.argmax())
def other(values, epsilon, n):
    if rng.random() < epsilon:
        return random.randint(0, n - 1)
    return int(values.argmax())
def rows(memory):
    return rng.integers(0, len(memory) - 1, size=32)

# %% right
import numpy as np
def act(epsilon, rng, n):
    if rng.random() < epsilon:
        return np.random.randint(low=0, high=n)
    return 0
