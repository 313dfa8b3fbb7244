"""The common part of all MinAtar games: actions, sticky actions, board and time limit.

The rules of a game are pure functions of its state, an action and uniform random numbers. All
random numbers are drawn here, so that recorded games can be replayed. The observation has one
binary plane per kind of object: uint8 (10, 10, channels).

Source: Young & Tian 2019, arXiv:1903.03176; rules and constants from their package `minatar`
1.0.15, with whose recorded games the tests compare every step. Departures: the action before the
first of an episode is no-op (theirs is the last of the previous episode), and the end of Freeway,
which is not visible on the board, is a time limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

SIDE = 10  # cells along each edge of the board
NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


class Moment(NamedTuple):
    """The result of one env step of a game."""

    state: Any
    reward: Float[Array, ""]
    lost: Bool[Array, ""]


class Game(NamedTuple):
    """The rules of one game.

    Attributes:
        name: the name in `MinAtar/NAME-v1`.
        channels: the kind of object in each plane.
        actions: the actions that have an effect.
        start_draws: how many random numbers the initial state needs.
        draws: how many random numbers an env step needs.
        start: (numbers (start_draws,)) -> the initial state.
        advance: (state, action, numbers (draws,), ramping) -> the result of an env step.
        planes: (state) -> one bool (10, 10) per channel, as (row, column).
        can_be_lost: whether a state can terminate.
    """

    name: str
    channels: tuple[str, ...]
    actions: tuple[int, ...]
    start_draws: int
    draws: int
    start: Callable[[Any], Any]
    advance: Callable[[Any, Any, Any, bool], Moment]
    planes: Callable[[Any], list[Any]]
    can_be_lost: bool = True


class MinAtarState(NamedTuple):
    """The game's state, the last action executed, and the env steps."""

    game: Any
    last_action: Int[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class MinAtar:
    """The base class of all games; subclasses set the rules and the version.

    Attributes:
        sticky: the probability of executing the previous action instead of the chosen one.
        ramping: whether the game becomes harder over time.
        max_episode_steps: the time limit in env steps; None for no limit.

    Raises:
        UsageError: `sticky` is not a probability, or the time limit is not a whole number above 0.
    """

    sticky: float = 0.1
    ramping: bool = True
    max_episode_steps: int | None = None
    game: ClassVar[Game]
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        limit: Any = self.max_episode_steps
        if not 0 <= self.sticky <= 1:
            raise UsageError(
                f"`sticky` of {self._id} must be a probability in [0, 1], got {self.sticky}; "
                "try --env-arg sticky=0.1"
            )
        if limit is not None and (type(limit) is not int or limit < 1):
            raise UsageError(
                f"`max_episode_steps` of {self._id} must be a whole number above 0, got {limit}; "
                "try --env-arg max_episode_steps=1000"
            )

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: binary planes observed, discrete actions."""
        empty = np.zeros((SIDE, SIDE, len(self.game.channels)), np.uint8)
        observation = Box(empty, np.ones_like(empty), empty.dtype)
        action = Discrete(len(self._actions))
        limit, terminates = self.max_episode_steps, self.game.can_be_lost
        return EnvSpec(self._id, observation, action, limit, terminates=terminates)

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts of the game with its arguments as (name, text) pairs."""
        which = "all six, used or not" if self.version == 0 else "those the game uses"
        return [
            ("planes", ", ".join(self.game.channels)),
            ("sticky actions", f"{self.sticky:g}: probability to repeat the previous action"),
            ("ramping", "the game becomes harder" if self.ramping else "constant difficulty"),
            ("actions", f"{len(self._actions)}, {which}"),
            ("ids", "-v1 has the actions that the game uses, -v0 all six"),
        ]

    def reset(self, key: PRNGKeyArray) -> MinAtarState:
        """Return an initial state."""
        drawn = jax.random.uniform(key, (self.game.start_draws,))
        zero = jnp.zeros((), jnp.int32)
        return MinAtarState(self.game.start(drawn), jnp.int8(NOOP), zero)

    def step(self, state: MinAtarState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state one frame later; the first random number decides on a sticky action."""
        drawn = jax.random.uniform(key, (1 + self.game.draws,))
        action = jnp.asarray(self._actions, jnp.int8)[action]
        action = jnp.where(drawn[0] < self.sticky, state.last_action, action)
        game, reward, lost = self.game.advance(state.game, action, drawn[1:], self.ramping)
        after = MinAtarState(game, action, state.env_steps + 1)
        if self.max_episode_steps is None:
            return NativeStep(after, reward, lost, jnp.zeros((), bool))
        truncated = ~lost & (after.env_steps >= self.max_episode_steps)
        return NativeStep(after, reward, lost, truncated)

    def observe(self, state: MinAtarState) -> UInt8[Array, "10 10 C"]:
        """Return the planes."""
        return jnp.stack(self.game.planes(state.game), -1).astype(jnp.uint8)

    @property
    def _id(self) -> str:
        return f"MinAtar/{self.game.name}-v{self.version}"

    @property
    def _actions(self) -> tuple[int, ...]:
        """The actions: those with an effect, or all six in version 0."""
        return self.game.actions if self.version else tuple(range(6))


def cell(x: Int[Array, ""], y: Int[Array, ""]) -> Bool[Array, "10 10"]:
    """Return a plane with a single true cell."""
    row, column = jnp.arange(SIDE, dtype=jnp.int8) == y, jnp.arange(SIDE, dtype=jnp.int8) == x
    return row[:, None] & column[None, :]


def moved(
    position: Int[Array, ""],
    back: Bool[Array, ""],
    forth: Bool[Array, ""],
    low: int = 0,
    high: int = SIDE - 1,
) -> Int[Array, ""]:
    """Return a position moved one cell back or forth, clipped to the bounds."""
    return jnp.clip(position + forth.astype(jnp.int8) - back.astype(jnp.int8), low, high)


def cooled(timer: Int[Array, "..."]) -> Int[Array, "..."]:
    """Return a timer one env step later, at least 0."""
    return jnp.maximum(timer - 1, 0)


def choice(number: Float[Array, "..."], options: int | Int[Array, ""]) -> Int[Array, "..."]:
    """Return one of n equally likely options from a uniform number u: ⌊u n⌋."""
    return jnp.floor(number * jnp.float32(options)).astype(jnp.int8)
