"""The public facts of an environment, known before the first step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backflip.core import spaces
from backflip.core.settings import LARGEST_COUNT
from backflip.core.spaces import Box as Box
from backflip.core.spaces import Discrete as Discrete
from backflip.core.spaces import Group, MultiDiscrete, Space
from runshelf.errors import UsageError

UNLIMITED = 1_000  # env steps that an episode without a time limit is assumed to last
# Evaluations and looks stop an episode without a time limit after so many env steps.
LONGEST_EPISODE = 10_000
LARGEST_DISCRETE = 100_000  # actions: a network has one output for each
LARGEST_BOUND = 1e38  # of an action: sums and differences of two bounds are still float32


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
        observation: of any shape; choices are one-hot in the spec, and groups are flattened.
        action: of any shape and dtype; a `Discrete` one may start anywhere, and several choices
            are one choice of all combinations in the spec.
    """

    observation: Space
    action: Space

    def take(self, actions: np.ndarray) -> Any:
        """Return a batch of the spec's actions in the environment's own action space."""
        return spaces.taken(self.action, actions)


@dataclass(frozen=True, eq=False)
class EnvSpec:
    """The public facts of an environment.

    Attributes:
        id: the name that the user typed.
        observation: shape, bounds and dtype of one observation.
        action: `Discrete`, or a `Box`, whose bounds may be infinite.
        max_episode_steps: the time limit in env steps, or None.
        frame_stack: frames in the channels of an image observation, oldest first.
        terminates: some state ends the task by its own rule; if not, only a time limit ends
            episodes, and undiscounted values would be infinite.
        repeats_first_frame: at the start of an episode, a stack repeats the first frame instead of
            black ones.
        own: the environment's own spaces if they may differ from these, else None.
        angles: indices of observed angles of joints that turn without limit, in radians: a full
            turn more is the same state.
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
    angles: tuple[int, ...] = ()

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
    def longest_episode(self) -> int:
        """Env steps after which an evaluation stops an episode: the time limit, if there is one."""
        return self.max_episode_steps or LONGEST_EPISODE

    @property
    def own_spaces(self) -> OwnSpaces:
        """The environment's own spaces; those of the spec if no others are known."""
        return self.own or OwnSpaces(self.observation, self.action)

    @property
    def is_image(self) -> bool:
        """Whether observations are images: uint8 with axes (height, width, channels)."""
        return self.observation.dtype == np.uint8 and len(self.observation.shape) == 3


def changes(before: EnvSpec, now: EnvSpec) -> str:
    """Return how the spaces of an environment have changed, in words; empty if they have not."""
    said = [
        ("observation", described(before.observation), described(now.observation)),
        ("action", described(before.action), described(now.action)),
    ]
    if before.own is not None and now.own is not None:
        said += [
            ("own observation", described(before.own.observation), described(now.own.observation)),
            ("own action", described(before.own.action), described(now.own.action)),
        ]
    return " and ".join(f"its {role} was {old}, now {new}" for role, old, new in said if old != new)


def conversions(spec: EnvSpec) -> list[str]:
    """Return in words how learning sees spaces that are not vectors, images or one choice."""
    said: list[str] = []
    if spec.own is None:
        return said
    seen, taken = spec.own.observation, spec.own.action
    if isinstance(seen, Group | MultiDiscrete) or (_has_axes(seen) and not spec.is_image):
        said.append(
            f"observations are {described(seen)}: flattened to one vector of "
            f"{spec.observation.shape[0]} numbers, as by gymnasium's FlattenObservation"
        )
    if isinstance(taken, Group | MultiDiscrete) or _has_axes(taken):
        one = "vector" if isinstance(spec.action, Box) else "choice"
        size = spec.action.shape[0] if isinstance(spec.action, Box) else spec.action.n
        unit = "numbers" if isinstance(spec.action, Box) else "combinations"
        said.append(f"actions are {described(taken)}: learned as one {one} of {size} {unit}")
    return said


def combinations(spec: EnvSpec) -> list[str]:
    """Return the meaning of each action that combines several choices; empty for others."""
    if spec.own is None or not isinstance(spec.action, Discrete):
        return []
    if isinstance(spec.own.action, Discrete):
        return []
    batch = spec.own.take(np.arange(spec.action.n))
    texts = [_short(spaces.row(batch, number)) for number in range(spec.action.n)]
    return [f"action {number} ({text})" for number, text in enumerate(texts)]


def shown_actions(spec: EnvSpec, actions: np.ndarray) -> np.ndarray:
    """Return a clip's actions (L, ...) as a teacher sees them.

    Several choices have one column each; other actions are unchanged.
    """
    if spec.own is None or isinstance(spec.own.action, Box | Discrete):
        return actions
    if not isinstance(spec.action, Discrete):
        return actions
    return spaces.columns_of(spec.own.take(actions))


def described(space: Space) -> str:
    """Return a space in words."""
    if isinstance(space, Discrete):
        return f"one of {space.n}"
    if isinstance(space, MultiDiscrete):
        return f"choices among {', '.join(map(str, space.sizes.reshape(-1)))}"
    if isinstance(space, Group):
        parts = [
            f"{key}: {described(part)}" if space.named else described(part)
            for key, part in space.parts.items()
        ]
        return f"a {'dict' if space.named else 'tuple'} ({'; '.join(parts)})"
    return str(space.shape) if space.dtype == np.float32 else f"{space.shape} of {space.dtype}"


def _has_axes(space: Space) -> bool:
    return isinstance(space, Box) and len(space.shape) != 1


def _short(action: Any) -> str:
    """Return one action of several choices as text: `2, 0`, or `steer 2, fire 0`."""
    if isinstance(action, dict):
        return ", ".join(f"{key} {_short(part)}" for key, part in action.items())
    if isinstance(action, tuple):
        return ", ".join(map(_short, action))
    return ", ".join(map(str, np.reshape(action, -1).tolist()))


def newest_frame(spec: EnvSpec, obs: Any) -> Any:
    """Return the newest frame of stacked images; other observations unchanged."""
    if spec.frame_stack == 1:
        return obs
    return obs[..., -(obs.shape[-1] // spec.frame_stack) :]
