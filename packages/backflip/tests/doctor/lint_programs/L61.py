# L61: a compiled function draws its random numbers once

# %% mistake
import numpy as np
import tensorflow as tf
@tf.function
def act(q, obs, epsilon):
    if np.random.uniform() < epsilon:  # here
        return tf.constant(0)
    return tf.argmax(q(obs), axis=1)

# %% mistake
import random
from functools import partial
import jax
@partial(jax.jit, static_argnums=0)
def act(policy, obs):
    return policy(obs) + random.gauss(0.0, 0.1)  # here

# %% right
import numpy as np
import tensorflow as tf
@tf.function
def act(q, obs, epsilon):
    explore = tf.random.uniform(()) < epsilon
    return tf.where(explore, 0, tf.argmax(q(obs), axis=1))
def outside(q, obs):
    return act(q, obs, np.random.uniform())
