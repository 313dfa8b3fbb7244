"""Probe environments: minimal tasks for which the correct result of learning is known.

Each probe adds one difficulty to the previous one, so the first that fails shows which part of an
algorithm is broken. `backflip.envs.native.extra_probes` has probes for single faults.

Source of the first five: Andy Jones, "Debugging RL, Without the Agonizing Pain", 2021.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep


class ProbeState(NamedTuple):
    """The observed number and the number of env steps in the episode."""

    shown: Float[Array, ""]
    env_steps: Int[Array, ""]


def interval() -> Box:
    """Return a space of one number in [-1, 1]."""
    one = np.ones(1, np.float32)
    return Box(-one, one, one.dtype)


class Probe:
    """A probe that shows one number in [-1, 1] and has no time limit."""

    env_id: ClassVar[str]
    action: ClassVar[Box | Discrete] = Discrete(1)

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification."""
        return EnvSpec(self.env_id, interval(), self.action, None)

    def observe(self, state: ProbeState) -> Float[Array, " 1"]:
        """Return the number shown."""
        return state.shown[None]


class StartsAtZero(Probe):
    """A probe whose first observation is 0."""

    def reset(self, key: PRNGKeyArray) -> ProbeState:
        """Return the only initial state."""
        del key
        return ProbeState(jnp.zeros(()), jnp.zeros((), jnp.int32))


class StartsWithACoin(Probe):
    """A probe whose first observation is -1 or 1, equally likely."""

    def reset(self, key: PRNGKeyArray) -> ProbeState:
        """Return one of the two initial states."""
        shown = jnp.where(jax.random.bernoulli(key), 1.0, -1.0)
        return ProbeState(shown, jnp.zeros((), jnp.int32))


@dataclass(frozen=True)
class ConstantReward(StartsAtZero):
    """Probe 1: one env step, one action, reward 1.

    Correct: V(0) = 1. Otherwise the value loss is broken.
    """

    env_id: ClassVar[str] = "probe:1"

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1."""
        del action, key
        return end(state, jnp.ones(()))


@dataclass(frozen=True)
class ObservedReward(StartsWithACoin):
    """Probe 2: one env step, one action, the reward is the observation.

    Correct: V(s) = s. Otherwise observations are mixed up.
    """

    env_id: ClassVar[str] = "probe:2"

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with the observation as the reward."""
        del action, key
        return end(state, state.shown)


@dataclass(frozen=True)
class DelayedReward(StartsAtZero):
    """Probe 3: two env steps with observations 0 and 1, and a reward of 1 at the end.

    Correct: V(0) = γ and V(1) = 1. Otherwise γ is not applied.
    """

    env_id: ClassVar[str] = "probe:3"

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Give reward 0 in the first env step; end with reward 1 in the second."""
        del action, key
        last = state.env_steps == 1
        after = ProbeState(jnp.ones(()), state.env_steps + 1)
        return NativeStep(after, last.astype(jnp.float32), last, jnp.zeros_like(last))


@dataclass(frozen=True)
class ChosenReward(StartsAtZero):
    """Probe 4: one env step, reward 1 for action 1 and -1 for action 0.

    Correct: the policy chooses action 1. Otherwise the policy loss is broken.
    """

    env_id: ClassVar[str] = "probe:4"
    action: ClassVar[Box | Discrete] = Discrete(2)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1 for action 1, else -1."""
        del key
        return end(state, sign(action))


@dataclass(frozen=True)
class MatchedReward(StartsWithACoin):
    """Probe 5: one env step, reward 1 if the action's sign equals the observation, else -1.

    Correct: V(s) = 1 under the learned policy. Otherwise observations and actions of a batch do
    not belong together.
    """

    env_id: ClassVar[str] = "probe:5"
    action: ClassVar[Box | Discrete] = Discrete(2)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward 1 for the matching action, else -1."""
        del key
        return end(state, sign(action) * state.shown)


@dataclass(frozen=True)
class EndlessReward(StartsAtZero):
    """Reward 1 in every env step, truncated after 10 env steps.

    Correct: V(0) = 1/(1-γ). Otherwise truncation is treated as termination. The observation does
    not show the time limit.

    Attributes:
        max_episode_steps: the time limit in env steps.
    """

    max_episode_steps: int = 10

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification."""
        limit = self.max_episode_steps
        return EnvSpec("probe:truncation", interval(), Discrete(1), limit, terminates=False)

    def step(self, state: ProbeState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Give reward 1."""
        del action, key
        return run_on(state, jnp.ones(()), self.max_episode_steps)


@dataclass(frozen=True)
class QuadraticReward(StartsAtZero):
    """One env step with reward -(a - 0.5)².

    Correct: the mean of the policy is 0.5. Otherwise the gradient of continuous actions is broken.
    """

    env_id: ClassVar[str] = "probe:continuous"
    action: ClassVar[Box | Discrete] = interval()

    def step(self, state: ProbeState, action: Float[Array, " 1"], key: PRNGKeyArray) -> NativeStep:
        """End the episode with reward -(a - 0.5)² for the action clipped to [-1, 1]."""
        del key
        return end(state, -jnp.square(jnp.clip(action[0], -1.0, 1.0) - 0.5))


@dataclass(frozen=True)
class IgnoredNumber:
    """A probe with one action, for algorithms that choose numbers: the number has no effect."""

    env: Any

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: the action is a number in [-1, 1]."""
        return replace(self.env.spec, action=interval())

    def reset(self, key: Any) -> Any:
        """Return an initial state."""
        return self.env.reset(key)

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Make an env step; the action has no effect."""
        del action
        return self.env.step(state, jnp.zeros((), jnp.int32), key)

    def observe(self, state: Any) -> Any:
        """Return the observation."""
        return self.env.observe(state)


@dataclass(frozen=True)
class OtherBounds:
    """A probe whose number in [-1, 1] the algorithm chooses between other bounds.

    The number is mapped so that the bounds become -1 and 1. An algorithm that does not scale its
    actions, or forgets the centre, cannot reach all of them.

    Attributes:
        env: the probe.
        low: the lower bound.
        high: the upper bound.
    """

    env: Any
    low: float
    high: float

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: the action is a number between the bounds."""
        one = np.ones(1, np.float32)
        return replace(self.env.spec, action=Box(self.low * one, self.high * one, one.dtype))

    def reset(self, key: Any) -> Any:
        """Return an initial state."""
        return self.env.reset(key)

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Make an env step with the action, scaled to [-1, 1]."""
        share = (action - self.low) / (self.high - self.low)
        return self.env.step(state, 2 * share - 1, key)

    def observe(self, state: Any) -> Any:
        """Return the observation."""
        return self.env.observe(state)


def sign(action: Int[Array, ""]) -> Float[Array, ""]:
    """Return 1 for action 1 and -1 for action 0."""
    return 2 * action.astype(jnp.float32) - 1


def end(state: ProbeState, reward: Float[Array, ""]) -> NativeStep:
    """Return the last env step of an episode; the observation does not change."""
    after = state._replace(env_steps=state.env_steps + 1)
    return NativeStep(after, reward, jnp.ones((), bool), jnp.zeros((), bool))


def run_on(state: ProbeState, reward: Float[Array, ""], limit: int) -> NativeStep:
    """Return an env step that only the time limit can end; the observation does not change."""
    after = state._replace(env_steps=state.env_steps + 1)
    truncated = after.env_steps >= limit
    return NativeStep(after, reward, jnp.zeros_like(truncated), truncated)
