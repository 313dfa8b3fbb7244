"""The two interfaces of environments, and the records their steps yield.

A `NativeEnv` is written in JAX: single-environment pure functions that a driver vmaps and scans.
A `HostEnv` steps a batch of environments in NumPy. Both yield the same facts, so that both can
feed `backflip.core.types.Transition`. Observations are always arrays: a discrete observation is
one-hot by the time it gets here.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from backflip.core.spec import EnvSpec, within


class NativeStep(NamedTuple):
    """What one step of a native environment yields.

    `truncated` already knows the time limit. Where both flags would hold, only `terminated` does:
    nothing is left to bootstrap from.
    """

    state: Any
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class NativeEnv(Protocol):
    """One environment in JAX. No auto-reset: drivers do that, and keep the true successor."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        ...

    def reset(self, key: PRNGKeyArray) -> Any:
        """Return the state at the start of a new episode."""
        ...

    def step(self, state: Any, action: Any, key: PRNGKeyArray) -> NativeStep:
        """Return the state after `action`, which is within its space, with reward and flags."""
        ...

    def observe(self, state: Any) -> Any:
        """Return what the agent sees of `state`."""
        ...


def step_within_bounds(env: NativeEnv, state: Any, action: Any, key: PRNGKeyArray) -> NativeStep:
    """Step one environment, which is given no action outside its space."""
    return env.step(state, within(env.spec.action, action), key)


@runtime_checkable
class KnowsOptimum(Protocol):
    """An environment that can say what the best policy would earn from a state."""

    def optimum(self, state: Any) -> Float[Array, ""]:
        """Return the largest undiscounted return from `state` to the episode's end."""
        ...


@runtime_checkable
class HasScene(Protocol):
    """An environment of which the observations do not suffice to draw pictures for a person."""

    def scene(self, state: Any) -> Float[Array, " S"]:
        """Return float32 numbers from which `backflip.envs.views` can draw `state`."""
        ...


class HostStep(NamedTuple):
    """What one step of a batch of N host environments yields, as NumPy arrays with leading axis N.

    Attributes:
        obs: what to act on next (the first observation of a new episode where one began).
        reward: float32.
        terminated: bool.
        truncated: bool; false wherever `terminated` is true.
        next_obs: the true successor of the observation acted on.
        valid: false for reset rows, which are no transitions.
    """

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next_obs: np.ndarray
    valid: np.ndarray


@runtime_checkable
class HostEnv(Protocol):
    """A batch of N environments stepped outside JAX."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        ...

    @property
    def num_envs(self) -> int:
        """N, the number of environments."""
        ...

    def reset(self, seeds: list[int]) -> np.ndarray:
        """Start a new episode in every environment, row i from seed i; return (N, ...) obs."""
        ...

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment; raise `EnvironmentFailed` naming environment, step and value."""
        ...

    def close(self) -> None:
        """Free what the environments hold."""
        ...


@runtime_checkable
class HasFacts(Protocol):
    """An environment of which more is to be known than its spec says."""

    def facts(self) -> list[tuple[str, str]]:
        """Return that, as a table of names and meanings."""
        ...


@runtime_checkable
class HasScenes(Protocol):
    """A batch of environments of which observations may not suffice to draw pictures."""

    def scenes(self) -> np.ndarray | None:
        """Return float32 (N, S), from which the present state of every row can be drawn, or None.

        Present is the state that the last observations to act on are of. None: whoever draws has
        to make do with the observations.
        """
        ...


@runtime_checkable
class HasDrawingState(Protocol):
    """A Gymnasium environment that gives its own state to draw from."""

    def drawing_state(self) -> np.ndarray:
        """Return float64 (S,), from which `backflip.envs.views` can draw the present state."""
        ...
