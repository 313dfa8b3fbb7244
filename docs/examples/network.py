"""A network of your own: one layer, then a residual block with layer normalisation.

Try it in this folder:

    backflip train ppo CartPole-v1 --set network=network:residual --env-steps 20000
    backflip train dqn CartPole-v1 --set network=network:residual --set hidden=64

The function gets the environment's spec and the setting `hidden`. It returns an object with `init`
and `apply` (`backflip.networks.own.Network`). backflip adds the last layer: actions and values.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Residual(NamedTuple):
    """x + W₂ relu(W₁ norm(x)), where x = W₀ obs."""

    inputs: int
    width: int

    def init(self, rng):
        """Draw the weights from `rng` as float32 arrays."""

        def weights(rows, columns):
            return rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)

        return {
            "first": weights(self.inputs, self.width),
            "inner": weights(self.width, self.width),
            "outer": weights(self.width, self.width),
        }

    def apply(self, params, obs):
        """Return the features (B, width) of a batch of observations; a pure JAX function."""
        x = obs.reshape(obs.shape[0], -1).astype(jnp.float32) @ params["first"]
        centred = x - x.mean(-1, keepdims=True)
        norm = centred / jnp.sqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return x + jax.nn.relu(norm @ params["inner"]) @ params["outer"]


def residual(spec, hidden):
    """Return the network for an environment; its width is the first number of `hidden`."""
    return Residual(int(np.prod(spec.observation.shape)), hidden[0])
