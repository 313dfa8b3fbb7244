"""Probe environments: tasks so small that what a right algorithm learns is known beforehand.

Each adds one thing to the one before, so the first that fails names the broken part.
`backflip.envs.native.extra_probes` has those that look for one fault each.
Source: Andy Jones, "Debugging RL, Without the Agonizing Pain", 2021, for the first five.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.envs.spec import NativeStep


class ProbeState(NamedTuple):
    """The only number seen, and the age of the episode."""

    shown: Float[Array, ""]
    env_steps: Int[Array, ""]


class _OneNumberSeen:
    """What all probes share: an observation of one number in [-1, 1]."""

    def observe(self, state: ProbeState) -> Float[Array, " 1"]:
        """Return the number."""
        return state.shown[None]


class StartsAtZero(_OneNumberSeen):
    """Episodes start with 0 to be seen."""

    def reset(self, key: PRNGKeyArray) -> ProbeState:
        """Return the one start there is."""
        del key
        return ProbeState(jnp.zeros(()), jnp.zeros((), jnp.int32))


class StartsWithACoin(_OneNumberSeen):
    """Episodes start with -1 or 1 to be seen, equally likely."""

    def reset(self, key: PRNGKeyArray) -> ProbeState:
        """Return the outcome of a toss."""
        shown = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        return ProbeState(shown, jnp.zeros((), jnp.int32))


@dataclass(frozen=True)
class ConstantReward(StartsAtZero):
    """Probe 1: one step, one action, reward 1. V(0) = 1, or the value loss is broken."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, one action out."""
        return probe_spec("probe:1", Discrete(1))

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 and end."""
        del action, key
        return end(state, jnp.ones(()))


@dataclass(frozen=True)
class ObservedReward(StartsWithACoin):
    """Probe 2: one step, one action, reward what was seen. V(s) = s, or obs get mixed up."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, one action out."""
        return probe_spec("probe:2", Discrete(1))

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay what was seen and end."""
        del action, key
        return end(state, state.shown)


@dataclass(frozen=True)
class DelayedReward(StartsAtZero):
    """Probe 3: sees 0, then 1; reward 1 at the end. V(0) = γ, V(1) = 1, or γ is lost."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, one action out."""
        return probe_spec("probe:3", Discrete(1))

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay nothing for the first step, 1 for the second, then end."""
        del action, key
        last = state.env_steps == 1
        after = ProbeState(jnp.ones(()), state.env_steps + 1)
        return NativeStep(after, last.astype(jnp.float32), last, jnp.zeros_like(last))


@dataclass(frozen=True)
class ChosenReward(StartsAtZero):
    """Probe 4: action 1 pays 1, action 0 pays -1. The policy takes 1, or its loss is broken."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, two actions out."""
        return probe_spec("probe:4", Discrete(2))

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 for action 1, -1 for action 0, and end."""
        del key
        return end(state, sign(action))


@dataclass(frozen=True)
class MatchedReward(StartsWithACoin):
    """Probe 5: pays 1 if the action is 1 where 1 was seen and 0 where -1 was, else -1.

    V(s) = 1 of the learned policy, or observations and actions of a batch do not belong together.
    """

    @property
    def spec(self) -> EnvSpec:
        """One number in, two actions out."""
        return probe_spec("probe:5", Discrete(2))

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 for the action that matches what was seen, -1 for the other, and end."""
        del key
        return end(state, sign(action) * state.shown)


@dataclass(frozen=True)
class EndlessReward(StartsAtZero):
    """Reward 1 for ever, cut after 10 steps. V(0) = 1/(1-γ), or a time limit is taken for death.

    Attributes:
        max_episode_steps: the time limit, in env steps.
    """

    max_episode_steps: int = 10

    @property
    def spec(self) -> EnvSpec:
        """One number in, one action out, and a time limit that cannot be seen coming."""
        limit = self.max_episode_steps
        return probe_spec("probe:truncation", Discrete(1), limit, terminates=False)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1."""
        del action, key
        after = state._replace(env_steps=state.env_steps + 1)
        truncated = after.env_steps >= self.max_episode_steps
        return NativeStep(after, jnp.ones(()), jnp.zeros_like(truncated), truncated)


@dataclass(frozen=True)
class QuadraticReward(StartsAtZero):
    """One step that pays -(a - 0.5)². The policy's mean is 0.5, or its gradient is broken."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, one number in [-1, 1] out."""
        return probe_spec("probe:continuous", interval())

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """Pay -(a - 0.5)² of the action clipped to [-1, 1], and end."""
        del key
        return end(state, -jnp.square(jnp.clip(action[0], -1.0, 1.0) - 0.5))


def probe_spec(
    env_id: str,
    action: Box | Discrete,
    max_episode_steps: int | None = None,
    terminates: bool = True,
) -> EnvSpec:
    """Return the facts of a probe that shows one number."""
    return EnvSpec(env_id, interval(), action, max_episode_steps, terminates=terminates)


def interval() -> Box:
    """Return one number in [-1, 1]."""
    one = np.ones(1, np.float32)
    return Box(-one, one, one.dtype)


def sign(action: Int[Array, ""]) -> Float[Array, ""]:
    """Return 1 for action 1 and -1 for action 0."""
    return 2 * action.astype(jnp.float32) - 1


def end(state: ProbeState, reward: Float[Array, ""]) -> NativeStep:
    """Return the episode's last step; what is seen stays as it was."""
    after = state._replace(env_steps=state.env_steps + 1)
    return NativeStep(after, reward, jnp.ones((), bool), jnp.zeros((), bool))
