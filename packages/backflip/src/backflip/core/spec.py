"""The public facts of an environment: what an algorithm may know of it before the first step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backflip.core.settings import LARGEST_COUNT
from runshelf.errors import UsageError

UNLIMITED = 1_000  # env steps that an episode without a time limit is assumed to last
LARGEST_DISCRETE = 100_000  # a network has a number for each of them
LARGEST_BOUND = 1e38  # of an action: sums and differences of two are float32, too


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
    """The integers start .. start + n - 1; an algorithm's start at 0."""

    n: int
    start: int = 0


def has_room(low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether actions can lie between float32 bounds, and be scaled to them."""
    small = (abs(low) <= LARGEST_BOUND) & (abs(high) <= LARGEST_BOUND)
    return low.size > 0 and bool((small & (low < high)).all())


def within(space: Box | Discrete, action: Any) -> Any:
    """Return an action of NumPy or JAX moved to the nearest one that the space has.

    A Gaussian policy knows no bounds. What learns keeps the action it drew, which is the one that
    its probability is of; this is what an environment is given.
    """
    return action if isinstance(space, Discrete) else action.clip(space.low, space.high)


@dataclass(frozen=True, eq=False)
class OwnSpaces:
    """The spaces of an environment as it has them itself, of which its spec's are made.

    Attributes:
        observation: of any shape; a `Discrete` one is one-hot in the spec.
        action: of any shape and dtype, or from any start.
    """

    observation: Box | Discrete
    action: Box | Discrete

    def take(self, actions: np.ndarray) -> np.ndarray:
        """Return a batch of actions of the spec as the environment takes them."""
        if isinstance(self.action, Discrete):
            return actions.astype(np.int64) + self.action.start
        shape = (len(actions), *self.action.shape)
        return within(self.action, actions.reshape(shape).astype(self.action.dtype))


@dataclass(frozen=True, eq=False)
class EnvSpec:
    """The public facts of an environment.

    Attributes:
        id: the name a person typed.
        observation: shape, bounds and dtype of one observation.
        action: `Discrete`, or a bounded `Box`.
        max_episode_steps: the time limit in env steps, or None where there is none.
        frame_stack: how many frames an image observation holds in its channels, oldest first.
        terminates: some state ends the task by its own rule; where none does, only a time limit
            ends episodes, and undiscounted values would be infinite.
        repeats_first_frame: a stack at an episode's start has its first frame several times, not
            black ones before it.
        own: the environment's spaces where they may be others than these, else None.

    Raises:
        UsageError: the time limit is below 1, or beyond what can be counted.
    """

    id: str
    observation: Box
    action: Box | Discrete
    max_episode_steps: int | None
    frame_stack: int = 1
    terminates: bool = True
    repeats_first_frame: bool = True
    own: OwnSpaces | None = None

    def __post_init__(self) -> None:
        """Refuse a time limit in which nothing could happen, or that nothing could count to."""
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
    """Return what an algorithm made for one environment finds otherwise in another, or nothing."""
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
    """Return the newest frame of stacked pixels; other observations as they are."""
    if spec.frame_stack == 1:
        return obs
    return obs[..., -(obs.shape[-1] // spec.frame_stack) :]
