"""REINFORCE with a linear softmax policy: the smallest algorithm that the drivers can run.

Williams 1992, "Simple statistical gradient-following algorithms", without a baseline:

    ∇J ≈ 1/n Σ_t (G_t - mean G) / std G · ∇ log π(a_t | s_t),   G_t = Σ_k γ^k r_{t+k+1}

A built-in algorithm has two files: the functions (`algorithms/NAME.py`) and the entry
(`algorithms/entries/NAME.py`), which must not import JAX. Here both are in one file.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import Bounds, Count, Fraction


@dataclass(frozen=True)
class ReinforceConfig:
    """Settings of REINFORCE.

    Attributes:
        env_steps: env steps of one seed in total.
        num_envs: N, environments side by side.
        rollout_length: T, env steps of each environment between two updates.
        discount: γ, per env step.
        step_size: of gradient ascent.
    """

    env_steps: Count = 100_000
    num_envs: Count = 16
    rollout_length: Count = 256
    discount: Fraction = 0.99
    step_size: Annotated[float, Bounds(0, 10)] = 1.0

    @property
    def updates(self) -> int:
        """Updates of one seed in total."""
        return rollouts_of(self.env_steps, self.num_envs, self.rollout_length)


class ReinforceState(NamedTuple):
    """The weights, (D, actions): logits are obs @ weights."""

    weights: jax.Array


def reinforce(config, spec):
    """Return the algorithm for vectors and discrete actions."""

    def init(seed):
        del seed  # the uniform policy
        return ReinforceState(np.zeros((*spec.observation.shape, spec.action.n), np.float32))

    def act(state, obs, key):
        return jax.random.categorical(key, obs @ state.weights), ()

    def evaluation_action(state, obs, key):
        del key
        return (obs @ state.weights).argmax(-1)

    def update(state, batch, key):
        del key
        returns = discounted_returns(batch, config.discount)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-8)

        def objective(weights):
            log_pi = jax.nn.log_softmax(batch.obs @ weights)
            chosen = jnp.take_along_axis(log_pi, batch.action[..., None], -1)[..., 0]
            return jnp.where(batch.valid, advantages * chosen, 0.0).mean()

        value, gradient = jax.value_and_grad(objective)(state.weights)
        weights = state.weights + config.step_size * gradient
        return ReinforceState(weights), {"policy_loss": -value}

    return Algorithm(
        name="reinforce",
        num_envs=config.num_envs,
        rollout_length=config.rollout_length,
        init=init,
        act=act,
        evaluation_action=evaluation_action,
        update=update,
        policy=lambda state: state,
        with_policy=lambda state, part: part,
    )


def discounted_returns(batch, discount):
    """Return G_t of every step (T, N); the end of the rollout ends the sum."""
    ended = batch.terminated | batch.truncated

    def backward(later, step):
        reward, over = step
        now = reward + discount * jnp.where(over, 0.0, later)
        return now, now

    zeros = jnp.zeros_like(batch.reward[0])
    return jax.lax.scan(backward, zeros, (batch.reward, ended), reverse=True)[1]


ENTRY = AlgorithmEntry(
    name="reinforce",
    config=ReinforceConfig,
    function="algorithm:reinforce",
    continuous=False,
    images="neither",
)
