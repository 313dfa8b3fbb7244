"""Probe environments that each detect one fault which the probes of `probes` do not detect.

The correct result of learning is known; each docstring states it, and the faults that give another
result.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.native.probes import (
    ProbeState,
    StartsAtZero,
    StartsWithACoin,
    end,
    interval,
    run_on,
    sign,
)
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

ROWS = 4  # kinds of episodes of `probe:row`, and env steps per episode
CENTRE, SIGNAL = 1000.0, 1e-3  # `probe:scale` shows CENTRE ± SIGNAL
NOISE, CONSTANTS = 4, 2  # irrelevant dimensions of `probe:distractor`
RECALLED = 2  # the env step of `probe:memory`, from 0, whose reward depends on the action


@dataclass(frozen=True)
class IdleChoice(StartsAtZero):
    """One env step with reward 1 and two actions, which have no effect.

    Correct: V(0) = 1, with any policy. Otherwise the loss of a policy that keeps choosing both
    actions moves the value.
    """

    env_id: ClassVar[str] = "probe:idle"
    action: ClassVar[Box | Discrete] = Discrete(2)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1."""
        del action, key
        return end(state, jnp.ones(()))


class RowState(NamedTuple):
    """The kind of the episode and the number of env steps."""

    row: Int[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class OneRowReward:
    """Episodes of 4 kinds; kind i has reward 1 in env step i only. Kind and step are observed.

    Correct: V(i, t) = γ^(i - t) for t <= i, else 0. Otherwise rewards and observations are shifted
    by a step, or the axes of time and environments are mixed up.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: kind and step are one-hot."""
        high = np.ones(2 * ROWS, np.float32)
        return EnvSpec("probe:row", Box(0 * high, high, high.dtype), Discrete(1), None)

    def reset(self, key: PRNGKeyArray) -> RowState:
        """Return the start of an episode of a random kind."""
        return RowState(jax.random.randint(key, (), 0, ROWS), jnp.zeros((), jnp.int32))

    def step(self, state: RowState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Give reward 1 if the env step equals the kind; end after four env steps."""
        del action, key
        reward = (state.row == state.env_steps).astype(jnp.float32)
        after = state._replace(env_steps=state.env_steps + 1)
        over = after.env_steps == ROWS
        return NativeStep(after, reward, over, jnp.zeros_like(over))

    def observe(self, state: RowState) -> Float[Array, " 8"]:
        """Return kind and step, both one-hot; the step is all 0 after the last one."""
        kinds = jnp.arange(ROWS)
        seen = jnp.concatenate([kinds == state.row, kinds == state.env_steps])
        return seen.astype(jnp.float32)


@dataclass(frozen=True)
class FarFromZero(StartsWithACoin):
    """Shows 1000.001 or 999.999; reward 1 for action 1 at the larger, action 0 at the smaller.

    Other actions have reward -1. Correct: V = 1 for both. Otherwise observations are not
    normalised (then V = 0), or their variance is lost to rounding or to a constant added to it.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification."""
        centre = np.full(1, CENTRE, np.float32)
        observation = Box(centre - 1, centre + 1, centre.dtype)
        return EnvSpec("probe:scale", observation, Discrete(2), None)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1 for the matching action, else -1."""
        del key
        return end(state, sign(action) * state.shown)

    def observe(self, state: ProbeState) -> Float[Array, " 1"]:
        """Return 1000 ± 0.001."""
        return CENTRE + SIGNAL * state.shown[None]


@dataclass(frozen=True)
class BestAtBound(StartsAtZero):
    """One env step whose reward is the action, a in [-1, 1].

    Correct: the policy chooses 1. Otherwise actions are not scaled to their bounds, or a squashed
    policy cannot reach them, or a clipped policy has no gradient there.
    """

    env_id: ClassVar[str] = "probe:bound"
    action: ClassVar[Box | Discrete] = interval()

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """End the episode with the action, clipped to [-1, 1], as the reward."""
        del key
        return end(state, jnp.clip(action[0], -1.0, 1.0))


@dataclass(frozen=True)
class BestAtZero(StartsAtZero):
    """One env step with reward -a².

    Correct: the policy chooses 0. Otherwise actions are shifted, or the policy saturates at its
    bounds, where it has no gradient.
    """

    env_id: ClassVar[str] = "probe:zero"
    action: ClassVar[Box | Discrete] = interval()

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward -a² for the action clipped to [-1, 1]."""
        del key
        return end(state, -jnp.square(jnp.clip(action[0], -1.0, 1.0)))


class MemoryState(NamedTuple):
    """The coin of the episode and the number of env steps."""

    coin: Float[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class RememberedReward:
    """Shows a coin, ±1, in the first env step only; the third action must match it.

    The third reward is 1 if the action matches, else -1. Correct with memory, of the policy or by
    `stack=3`: V = γ² at the start and the third action matches. Correct without memory: V = 0
    where the coin is not shown. (Where it is shown, a third action that prefers one side has some
    value.) Otherwise hidden information leaks.

    Attributes:
        stack: number of latest observations shown together, oldest first.

    Raises:
        UsageError: `stack` is less than 1.
    """

    stack: int = 1

    def __post_init__(self) -> None:
        """Check `stack`."""
        if self.stack < 1:
            raise UsageError(
                f"`stack` of probe:memory must be at least 1, got {self.stack}; "
                "try --env-arg stack=3"
            )

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: coin and step, `stack` times."""
        high = np.ones(2 * self.stack, np.float32)
        return EnvSpec("probe:memory", Box(-high, high, high.dtype), Discrete(2), None)

    def reset(self, key: PRNGKeyArray) -> MemoryState:
        """Return an initial state with a random coin."""
        coin = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        return MemoryState(coin, jnp.zeros((), jnp.int32))

    def step(self, state: MemoryState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Reward the match and end in the third env step."""
        del key
        last = state.env_steps == RECALLED
        after = state._replace(env_steps=state.env_steps + 1)
        reward = jnp.where(last, sign(action) * state.coin, 0.0)
        return NativeStep(after, reward, last, jnp.zeros_like(last))

    def observe(self, state: MemoryState) -> Float[Array, " D"]:
        """Return coin (or 0) and step / 3 of each stacked env step; 0 before the first one."""
        moments = state.env_steps - jnp.arange(self.stack - 1, -1, -1)
        coins = jnp.where(moments == 0, state.coin, 0.0)
        steps = jnp.maximum(moments, 0).astype(jnp.float32) / (RECALLED + 1)
        return jnp.stack([coins, steps], -1).reshape(-1)


class DistractedState(NamedTuple):
    """A coin, noise, and the number of env steps."""

    coin: Float[Array, ""]
    noise: Float[Array, " 4"]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class Distracted:
    """Shows a coin, noise and constants; reward 1 if the action matches the coin, else -1.

    Correct: V = 1 and the matching action for any noise. Otherwise a constant is divided by its
    standard deviation of 0, or noise is fitted.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: seven numbers, of which only the first matters."""
        high = np.ones(1 + NOISE + CONSTANTS, np.float32)
        return EnvSpec("probe:distractor", Box(-high, high, high.dtype), Discrete(2), None)

    def reset(self, key: PRNGKeyArray) -> DistractedState:
        """Return an initial state with a random coin, and noise uniform in [-1, 1]."""
        drawn = jax.random.uniform(key, (1 + NOISE,), minval=-1.0)
        coin = jnp.where(drawn[0] < 0, -1.0, 1.0)
        return DistractedState(coin, drawn[1:], jnp.zeros((), jnp.int32))

    def step(self, state: DistractedState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1 for the matching action, else -1."""
        del key
        after = state._replace(env_steps=state.env_steps + 1)
        over = jnp.ones((), bool)
        return NativeStep(after, sign(action) * state.coin, over, ~over)

    def observe(self, state: DistractedState) -> Float[Array, " 7"]:
        """Return the coin, the noise, and ones."""
        return jnp.concatenate([state.coin[None], state.noise, jnp.ones(CONSTANTS)])


@dataclass(frozen=True)
class ActionReward(StartsAtZero):
    """The observation is always 0; the reward is the number of the action, 0 or 1.

    Correct: V = 1/(1-γ) and action 1. Otherwise a reward model ignores the action.

    Attributes:
        max_episode_steps: the time limit in env steps.
    """

    max_episode_steps: int = 20

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification."""
        limit = self.max_episode_steps
        return EnvSpec("probe:action", interval(), Discrete(2), limit, terminates=False)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Give the number of the action as the reward."""
        del key
        return run_on(state, action.astype(jnp.float32), self.max_episode_steps)
