"""What the games of MinAtar share: actions, sticky actions, a board of 10x10 cells, a time limit.

A game's rules are pure functions of its state, an action and uniform numbers, all drawn here, so
that a game can be replayed from recorded numbers. What is seen is one plane of 0 and 1 per kind of
thing: uint8 (10, 10, channels).

Source: Young & Tian 2019, arXiv:1903.03176; rules and constants as in their package `minatar`
1.0.15, against whose recorded games ours are tested step by step. Departures: the action before the
first of an episode is no-op (theirs is the previous episode's last), and the end of Freeway, which
nothing on the board announces, is a time limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

SIDE = 10  # cells along each edge of the board
NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


class Moment(NamedTuple):
    """What a game comes to after one env step."""

    state: Any
    reward: Float[Array, ""]
    lost: Bool[Array, ""]


class Game(NamedTuple):
    """The rules of one game.

    Attributes:
        name: as in `MinAtar/NAME-v1`.
        channels: the kind of thing that each plane shows.
        actions: those that have an effect in this game.
        start_draws: how many uniform numbers the start of an episode takes.
        draws: how many an env step takes.
        start: (numbers (start_draws,)) -> the first state.
        advance: (state, action, numbers (draws,), ramping) -> what comes of it.
        planes: (state) -> one bool (10, 10) for each channel, as (row, column).
        can_be_lost: something but a time limit ends an episode.
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
    """The game's own state, the action it was last given, and the age of the episode."""

    game: Any
    last_action: Int[Array, ""]
    env_steps: Int[Array, ""]


@dataclass(frozen=True)
class MinAtar:
    """One game of MinAtar; its classes say which, and which actions there are.

    Attributes:
        sticky: the chance that an env step repeats the action before instead of the one chosen.
        ramping: the game becomes harder as it goes on.
        max_episode_steps: the time limit, in env steps; None: MinAtar has none.

    Raises:
        UsageError: `sticky` is no probability or the time limit no whole number above 0.
    """

    sticky: float = 0.1
    ramping: bool = True
    max_episode_steps: int | None = None
    game: ClassVar[Game]
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse what no episode could be played with."""
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
        """A plane of 0 and 1 per kind of thing in, the game's actions out."""
        empty = np.zeros((SIDE, SIDE, len(self.game.channels)), np.uint8)
        observation = Box(empty, np.ones_like(empty), empty.dtype)
        action = Discrete(len(self._actions))
        limit, terminates = self.max_episode_steps, self.game.can_be_lost
        return EnvSpec(self._id, observation, action, limit, terminates=terminates)

    def facts(self) -> list[tuple[str, str]]:
        """Return what id and arguments come down to, as a table of names and meanings."""
        which = "all six, used or not" if self.version == 0 else "those the game knows"
        return [
            ("planes", ", ".join(self.game.channels)),
            ("sticky actions", f"{self.sticky:g}: the chance to repeat the action before"),
            ("ramping", "the game becomes harder" if self.ramping else "as hard all along"),
            ("actions", f"{len(self._actions)}, {which}"),
            ("ids", "-v1 has the actions that the game knows, -v0 all six"),
        ]

    def reset(self, key: PRNGKeyArray) -> MinAtarState:
        """Return the start of an episode."""
        drawn = jax.random.uniform(key, (self.game.start_draws,))
        zero = jnp.zeros((), jnp.int32)
        return MinAtarState(self.game.start(drawn), jnp.int8(NOOP), zero)

    def step(self, state: MinAtarState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state one frame later; the first number drawn decides if an action sticks."""
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
        """Return the planes: which things are where."""
        return jnp.stack(self.game.planes(state.game), -1).astype(jnp.uint8)

    @property
    def _id(self) -> str:
        return f"MinAtar/{self.game.name}-v{self.version}"

    @property
    def _actions(self) -> tuple[int, ...]:
        """The game's actions by number: those with an effect, or in version 0 all six."""
        return self.game.actions if self.version else tuple(range(6))


def cell(x: Int[Array, ""], y: Int[Array, ""]) -> Bool[Array, "10 10"]:
    """Return a plane with one thing in it."""
    row, column = jnp.arange(SIDE, dtype=jnp.int8) == y, jnp.arange(SIDE, dtype=jnp.int8) == x
    return row[:, None] & column[None, :]


def moved(
    position: Int[Array, ""],
    back: Bool[Array, ""],
    forth: Bool[Array, ""],
    low: int = 0,
    high: int = SIDE - 1,
) -> Int[Array, ""]:
    """Return a position one cell back or forth, or where it was, between two bounds."""
    return jnp.clip(position + forth.astype(jnp.int8) - back.astype(jnp.int8), low, high)


def cooled(timer: Int[Array, "..."]) -> Int[Array, "..."]:
    """Return a timer one env step later; it stays at 0."""
    return jnp.maximum(timer - 1, 0)


def choice(number: Float[Array, "..."], options: int | Int[Array, ""]) -> Int[Array, "..."]:
    """Return which of so many equally likely options a uniform number stands for: ⌊u n⌋."""
    return jnp.floor(number * jnp.float32(options)).astype(jnp.int8)
