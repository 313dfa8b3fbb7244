"""Probe environments that each look for one fault which the simple probes let pass.

What a right algorithm learns is known beforehand, as in `backflip.envs.native.probes`; each heading
says it, and after "or" what is broken where something else is learnt.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.envs.native.probes import (
    ProbeState,
    StartsAtZero,
    StartsWithACoin,
    end,
    interval,
    probe_spec,
    sign,
)
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

ROWS = 4  # kinds of episode of `probe:row`, and env steps of each
CENTRE, SIGNAL = 1000.0, 1e-3  # what `probe:scale` shows: CENTRE ± SIGNAL
NOISE, CONSTANTS = 4, 2  # numbers of `probe:distractor` that mean nothing
RECALLED = 2  # the env step of `probe:memory` that pays


class RowState(NamedTuple):
    """Which kind of episode it is, and its age."""

    row: Int[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class OneRowReward:
    """Episodes of kind i of 4, which is seen with the step t, pay 1 in their step i alone.

    V(i, t) = γ^(i - t) for t <= i, else 0; or rewards and observations are a step apart, or axes
    of time and environments are mixed up, so that rows get each other's rewards.
    """

    @property
    def spec(self) -> EnvSpec:
        """Kind and step in, both one-hot, one action out."""
        high = np.ones(2 * ROWS, np.float32)
        return EnvSpec("probe:row", Box(0 * high, high, high.dtype), Discrete(1), None)

    def reset(self, key: PRNGKeyArray) -> RowState:
        """Return the first step of an episode of any kind."""
        return RowState(jax.random.randint(key, (), 0, ROWS), jnp.zeros((), jnp.int32))

    def step(self, state: RowState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 if it is the kind's own step; end after the fourth."""
        del action, key
        reward = (state.row == state.env_steps).astype(jnp.float32)
        after = state._replace(env_steps=state.env_steps + 1)
        over = after.env_steps == ROWS
        return NativeStep(after, reward, over, jnp.zeros_like(over))

    def observe(self, state: RowState) -> Float[Array, " 8"]:
        """Return kind and step; after the last step no step is marked."""
        kinds = jnp.arange(ROWS)
        seen = jnp.concatenate([kinds == state.row, kinds == state.env_steps])
        return seen.astype(jnp.float32)


@dataclass(frozen=True)
class FarFromZero(StartsWithACoin):
    """Shows 1000.001 or 999.999; pays 1 for action 1 at the larger and 0 at the smaller, else -1.

    V = 1 for both; or observations are not normalised (then both look alike and V = 0), or their
    variance is lost in rounding or beside a constant added to it.
    """

    @property
    def spec(self) -> EnvSpec:
        """One number near 1000 in, two actions out."""
        centre = np.full(1, CENTRE, np.float32)
        observation = Box(centre - 1, centre + 1, centre.dtype)
        return EnvSpec("probe:scale", observation, Discrete(2), None)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 for the action that matches what was seen, -1 for the other, and end."""
        del key
        return end(state, sign(action) * state.shown)

    def observe(self, state: ProbeState) -> Float[Array, " 1"]:
        """Return the coin, hardly visible."""
        return CENTRE + SIGNAL * state.shown[None]


@dataclass(frozen=True)
class BestAtBound(StartsAtZero):
    """One step that pays its action, a in [-1, 1].

    The policy's action is 1; or actions are not scaled to their bounds, or a squashed policy cannot
    reach them, or a clipped one has no gradient there.
    """

    @property
    def spec(self) -> EnvSpec:
        """One number in, one number in [-1, 1] out."""
        return probe_spec("probe:bound", interval())

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """Pay the action clipped to [-1, 1], and end."""
        del key
        return end(state, jnp.clip(action[0], -1.0, 1.0))


@dataclass(frozen=True)
class BestAtZero(StartsAtZero):
    """One step that pays -a².

    The policy's action is 0; or actions are shifted, or a policy is drawn to its bounds, where a
    saturated one has no gradient that would bring it back.
    """

    @property
    def spec(self) -> EnvSpec:
        """One number in, one number in [-1, 1] out."""
        return probe_spec("probe:zero", interval())

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """Pay -a² of the action clipped to [-1, 1], and end."""
        del key
        return end(state, -jnp.square(jnp.clip(action[0], -1.0, 1.0)))


class MemoryState(NamedTuple):
    """The coin that was shown first, and the age of the episode."""

    coin: Float[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class RememberedReward:
    """Shows a coin, ±1, in its first step only; the third pays 1 for its match by action, else -1.

    With memory, be it of the policy or by `stack=3`, V = γ² at the start and the third action
    matches. Without any, V = 0 where the coin is not shown, whatever the policy (where it is, a
    third action that leans to one side is worth something); or what should not be known leaks.

    Attributes:
        stack: how many of the latest observations are seen together, oldest first.

    Raises:
        UsageError: `stack` is less than 1.
    """

    stack: int = 1

    def __post_init__(self) -> None:
        """Refuse to show nothing."""
        if self.stack < 1:
            raise UsageError(
                f"`stack` of probe:memory must be at least 1, got {self.stack}; "
                "try --env-arg stack=3"
            )

    @property
    def spec(self) -> EnvSpec:
        """Coin and step in, as often as stacked, two actions out."""
        high = np.ones(2 * self.stack, np.float32)
        return EnvSpec("probe:memory", Box(-high, high, high.dtype), Discrete(2), None)

    def reset(self, key: PRNGKeyArray) -> MemoryState:
        """Return the outcome of a toss."""
        coin = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        return MemoryState(coin, jnp.zeros((), jnp.int32))

    def step(self, state: MemoryState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay for the match in the third step, and end."""
        del key
        last = state.env_steps == RECALLED
        after = state._replace(env_steps=state.env_steps + 1)
        reward = jnp.where(last, sign(action) * state.coin, 0.0)
        return NativeStep(after, reward, last, jnp.zeros_like(last))

    def observe(self, state: MemoryState) -> Float[Array, " D"]:
        """Return coin or 0 and the step as a share of 3, of each moment stacked; before all: 0."""
        moments = state.env_steps - jnp.arange(self.stack - 1, -1, -1)
        coins = jnp.where(moments == 0, state.coin, 0.0)
        steps = jnp.maximum(moments, 0).astype(jnp.float32) / (RECALLED + 1)
        return jnp.stack([coins, steps], -1).reshape(-1)


class DistractedState(NamedTuple):
    """A coin, noise beside it, and the age of the episode."""

    coin: Float[Array, ""]
    noise: Float[Array, " 4"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class Distracted:
    """Shows a coin among numbers that are noise and numbers that never change; pays for its match.

    V = 1, and the right action, whatever the noise; or a constant is divided by its deviation of 0,
    or noise is fitted.
    """

    @property
    def spec(self) -> EnvSpec:
        """Seven numbers in, of which the first one counts, two actions out."""
        high = np.ones(1 + NOISE + CONSTANTS, np.float32)
        return EnvSpec("probe:distractor", Box(-high, high, high.dtype), Discrete(2), None)

    def reset(self, key: PRNGKeyArray) -> DistractedState:
        """Return the outcome of a toss, and noise uniform in [-1, 1]."""
        drawn = jax.random.uniform(key, (1 + NOISE,), minval=-1.0)
        coin = jnp.where(drawn[0] < 0, -1.0, 1.0)
        return DistractedState(coin, drawn[1:], jnp.zeros((), jnp.int32))

    def step(self, state: DistractedState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay 1 for the action that matches the coin, -1 for the other, and end."""
        del key
        after = state._replace(env_steps=state.env_steps + 1)
        over = jnp.ones((), bool)
        return NativeStep(after, sign(action) * state.coin, over, ~over)

    def observe(self, state: DistractedState) -> Float[Array, " 7"]:
        """Return the coin, the noise, and ones."""
        return jnp.concatenate([state.coin[None], state.noise, jnp.ones(CONSTANTS)])


@dataclass(frozen=True)
class ActionReward(StartsAtZero):
    """Nothing to be seen; every step pays 1 for action 1 and 0 for action 0, until it is cut.

    V = 1/(1-γ), and action 1; or a reward model sees observations alone, which tell it nothing.

    Attributes:
        max_episode_steps: the time limit, in env steps.
    """

    max_episode_steps: int = 20

    @property
    def spec(self) -> EnvSpec:
        """One number in, two actions out, and a time limit."""
        limit = self.max_episode_steps
        return probe_spec("probe:action", Discrete(2), limit, terminates=False)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Pay the number of the action."""
        del key
        after = state._replace(env_steps=state.env_steps + 1)
        truncated = after.env_steps >= self.max_episode_steps
        reward = action.astype(jnp.float32)
        return NativeStep(after, reward, jnp.zeros_like(truncated), truncated)
