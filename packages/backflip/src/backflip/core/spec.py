"""The public facts of an environment, known before the first step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backflip.core.settings import LARGEST_COUNT
from runshelf.errors import UsageError

UNLIMITED = 1_000  # env steps that an episode without a time limit is assumed to last
LARGEST_DISCRETE = 100_000  # actions: a network has one output for each
LARGEST_BOUND = 1e38  # of an action: sums and differences of two bounds are still float32


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays of one shape between `low` and `high`, elementwise (bounds may be infinite)."""

    low: np.ndarray
    high: np.ndarray
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one element."""
        return self.low.shape

    @property
    def bounded(self) -> np.ndarray:
        """Which elements have bounds on both sides."""
        return np.isfinite(self.low) & np.isfinite(self.high)


@dataclass(frozen=True)
class Discrete:
    """The integers start .. start + n - 1; start is 0 in an `EnvSpec`."""

    n: int
    start: int = 0


def has_room(low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether float32 actions can be scaled to these bounds."""
    small = (abs(low) <= LARGEST_BOUND) & (abs(high) <= LARGEST_BOUND)
    return low.size > 0 and bool((small & (low < high)).all())


def within(space: Box | Discrete, action: Any) -> Any:
    """Return a NumPy or JAX action, clipped to the space.

    A Gaussian policy may choose actions outside the bounds. The algorithm keeps the action that the
    policy chose, to which its log-probability belongs; the environment gets the clipped one.
    """
    return action if isinstance(space, Discrete) else action.clip(space.low, space.high)


@dataclass(frozen=True, eq=False)
class OwnSpaces:
    """The spaces that the environment itself has, from which its spec's spaces are derived.

    Attributes:
        observation: of any shape; a `Discrete` one is one-hot in the spec.
        action: of any shape and dtype; a `Discrete` one may start anywhere.
    """

    observation: Box | Discrete
    action: Box | Discrete

    def take(self, actions: np.ndarray) -> np.ndarray:
        """Return a batch of the spec's actions in the environment's own action space."""
        if isinstance(self.action, Discrete):
            return actions.astype(np.int64) + self.action.start
        shape = (len(actions), *self.action.shape)
        return within(self.action, actions.reshape(shape).astype(self.action.dtype))


@dataclass(frozen=True, eq=False)
class EnvSpec:
    """The public facts of an environment.

    Attributes:
        id: the name that the user typed.
        observation: shape, bounds and dtype of one observation.
        action: `Discrete`, or a bounded `Box`.
        max_episode_steps: the time limit in env steps, or None.
        frame_stack: frames in the channels of an image observation, oldest first.
        terminates: some state ends the task by its own rule; if not, only a time limit ends
            episodes, and undiscounted values would be infinite.
        repeats_first_frame: at the start of an episode, a stack repeats the first frame instead of
            black ones.
        own: the environment's own spaces if they may differ from these, else None.
        number_names: the names of the observed numbers; empty if the environment states none.

    Raises:
        UsageError: the time limit is below 1 or too large.
    """

    id: str
    observation: Box
    action: Box | Discrete
    max_episode_steps: int | None
    frame_stack: int = 1
    terminates: bool = True
    repeats_first_frame: bool = True
    own: OwnSpaces | None = None
    number_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an invalid time limit."""
        limit = self.max_episode_steps
        if limit is not None and not 1 <= limit <= LARGEST_COUNT:
            wanted = "at least 1" if limit < 1 else f"at most {LARGEST_COUNT:,}"
            raise UsageError(
                f"`max_episode_steps` of {self.id} must be {wanted}, got {limit}; "
                "try --env-arg max_episode_steps=500"
            )

    @property
    def is_pixels(self) -> bool:
        """Whether observations are images: uint8 with axes (height, width, channels)."""
        return self.observation.dtype == np.uint8 and len(self.observation.shape) == 3


def changes(before: EnvSpec, now: EnvSpec) -> str:
    """Return how the spaces of an environment have changed, in words; empty if they have not."""
    said = [
        ("observation", _in_words(before.observation), _in_words(now.observation)),
        ("action", _in_words(before.action), _in_words(now.action)),
    ]
    return " and ".join(f"its {role} was {old}, now {new}" for role, old, new in said if old != new)


def _in_words(space: Box | Discrete) -> str:
    if isinstance(space, Discrete):
        return f"one of {space.n}"
    return str(space.shape) if space.dtype == np.float32 else f"{space.shape} of {space.dtype}"


def newest_frame(spec: EnvSpec, obs: Any) -> Any:
    """Return the newest frame of stacked images; other observations unchanged."""
    if spec.frame_stack == 1:
        return obs
    return obs[..., -(obs.shape[-1] // spec.frame_stack) :]
