"""The two interfaces of environments, and the results of their env steps.

A `NativeEnv` is written in JAX: pure functions of a single environment, which a driver vmaps and
scans. A `HostEnv` steps a batch of environments in NumPy. Both provide the fields of
`backflip.core.types.Transition`. Observations are always arrays; discrete ones are one-hot.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from backflip.core.spec import EnvSpec, within

if TYPE_CHECKING:
    from backflip.envs.rendering import OwnRender


class NativeStep(NamedTuple):
    """The result of one env step of a native environment.

    `truncated` includes the time limit. If an env step both terminates and reaches the time limit,
    only `terminated` is true.
    """

    state: Any
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class NativeEnv(Protocol):
    """One environment in JAX, without auto-reset: drivers reset, and keep the true next state."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification."""
        ...

    def reset(self, key: PRNGKeyArray) -> Any:
        """Return the initial state of an episode."""
        ...

    def step(self, state: Any, action: Any, key: PRNGKeyArray) -> NativeStep:
        """Return state, reward and flags after `action`, which is inside the action space."""
        ...

    def observe(self, state: Any) -> Any:
        """Return the observation of `state`."""
        ...


def step_within_bounds(env: NativeEnv, state: Any, action: Any, key: PRNGKeyArray) -> NativeStep:
    """Step one environment with the action clipped to its space."""
    return env.step(state, within(env.spec.action, action), key)


@runtime_checkable
class KnowsOptimum(Protocol):
    """An environment whose optimal return is known."""

    def optimum(self, state: Any) -> Float[Array, ""]:
        """Return the largest expected undiscounted return from `state` to the episode's end."""
        ...


@runtime_checkable
class HasScene(Protocol):
    """An environment that cannot be drawn from observations alone."""

    def scene(self, state: Any) -> Float[Array, " S"]:
        """Return float32 numbers from which `backflip.envs.views` can draw `state`."""
        ...


class HostStep(NamedTuple):
    """The result of one env step of N host environments, as NumPy arrays with leading axis N.

    Attributes:
        obs: the observations to act on next: the first of a new episode where one began.
        reward: float32.
        terminated: bool.
        truncated: bool; false where `terminated` is true.
        next_obs: the true next observations of this env step.
        valid: false for rows that only reset, which are not transitions.
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
        """The environment's specification."""
        ...

    @property
    def num_envs(self) -> int:
        """The batch size N."""
        ...

    def reset(self, seeds: list[int]) -> np.ndarray:
        """Start a new episode in every row, row i from seed i; return observations (N, ...)."""
        ...

    def step(self, actions: np.ndarray) -> HostStep:
        """Step every environment.

        Raises:
            EnvironmentFailed: an environment raised or returned invalid data; names environment,
                env step and value.
        """
        ...

    def close(self) -> None:
        """Free the environments' resources."""
        ...


@runtime_checkable
class CanShorten(Protocol):
    """A batch of environments whose episodes can be shortened until the next `reset`."""

    def shorten_episodes(self, first: Sequence[int], later: Sequence[int]) -> bool:
        """Truncate the episode that row i has just begun after first[i] env steps.

        Later episodes of row i are truncated after later[i] env steps, if their own limit is not
        smaller. Return false, and do nothing, if that is impossible.
        """
        ...


@runtime_checkable
class KnowsAngles(Protocol):
    """A batch of environments that knows which observed angles grow with every turn."""

    @property
    def angles(self) -> tuple[int, ...]:
        """Indices of the observed angles of joints that turn without limit, in radians."""
        ...


@runtime_checkable
class HasFacts(Protocol):
    """An environment with facts that its spec does not contain."""

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts as (name, text) pairs."""
        ...


@runtime_checkable
class HasScenes(Protocol):
    """A batch of environments that may not be drawable from observations alone."""

    def scenes(self, rows: Sequence[int]) -> np.ndarray | None:
        """Return what to draw the current states from, the states of the last `obs`.

        These are numbers, float32 (N, S), or pictures (N,), which cost time and are drawn for the
        given rows only (see `backflip.envs.pictures`). None if observations suffice.
        """
        ...


@runtime_checkable
class DrawsItself(Protocol):
    """A batch of environments that may have a `render()` of their own."""

    @property
    def own_render(self) -> "OwnRender | None":
        """What draws the environments; None if a view of ours does."""
        ...

    def draw_rows(self, rows: Sequence[int]) -> None:
        """Make rows ready to be drawn by `scenes`. All rows must be reset afterwards."""
        ...


@runtime_checkable
class HasDrawingState(Protocol):
    """A Gymnasium environment that provides the numbers to draw it from."""

    def drawing_state(self) -> np.ndarray:
        """Return float64 (S,) from which `backflip.envs.views` can draw the current state."""
        ...
