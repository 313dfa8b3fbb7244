# L67: the state of the optimiser is thrown away

# %% mistake
import optax
def step(optimiser, gradients, state, parameters):
    updates, _ = optimiser.update(gradients, state, parameters)  # here
    return optax.apply_updates(parameters, updates), state

# %% right
import optax
def step(optimiser, gradients, state, parameters, averages):
    updates, state = optimiser.update(gradients, state, parameters)
    kept, _ = averages.update(updates)
    return optax.apply_updates(parameters, updates), state, kept
