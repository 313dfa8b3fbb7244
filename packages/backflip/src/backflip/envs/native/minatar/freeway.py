"""MinAtar Freeway: cross eight lanes of traffic as often as possible.

The chicken moves along the middle of the board, one cell in three env steps. At the top the reward
is 1, the chicken returns to the bottom, and all cars get new speeds and directions. A hit also
returns it to the bottom. Cars that leave the board enter again on the other side. An episode is
truncated after 2501 env steps: the board does not show the remaining time, so this is a time limit
here, while the original terminates.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from backflip.envs.native.minatar.base import (
    DOWN,
    NOOP,
    SIDE,
    UP,
    Game,
    MinAtar,
    Moment,
    cell,
    choice,
    cooled,
    moved,
)

LANES = 8  # rows 1 .. 8
COLUMN = 4  # the chicken's
BOTTOM = SIDE - 1  # the chicken's first row
MOVE_EVERY = 3  # env steps between two moves of the chicken
SLOWEST = 5  # env steps between two moves of the slowest car
TIME_LIMIT = 2501


class FreewayState(NamedTuple):
    """The chicken and one car per lane, which moves every `pace` env steps."""

    y: Int[Array, ""]
    move_timer: Int[Array, ""]
    column: Int[Array, " 8"]
    wait: Int[Array, " 8"]
    pace: Int[Array, " 8"]
    to_right: Bool[Array, " 8"]


def start(drawn: Float[Array, " 8"]) -> FreewayState:
    """Return the initial state: the chicken at the bottom, all cars at the left edge."""
    pace, to_right = _traffic(drawn)
    bottom, wait = jnp.int8(BOTTOM), jnp.int8(MOVE_EVERY)
    return FreewayState(bottom, wait, jnp.zeros(LANES, jnp.int8), pace, pace, to_right)


def advance(
    state: FreewayState, action: Int[Array, ""], drawn: Float[Array, " 8"], ramping: bool
) -> Moment:
    """Return the game after the chicken and then the cars moved.

    Args:
        state: the state before.
        action: the chicken's action.
        drawn: random numbers for the cars' new speeds and directions at the top.
        ramping: ignored.
    """
    del ramping
    ready = state.move_timer == 0
    up, down = ready & (action == UP), ready & (action == DOWN)
    y = moved(state.y, up, down)
    timer = jnp.where(up | down, MOVE_EVERY, state.move_timer)
    arrived = y == 0
    y = jnp.where(arrived, BOTTOM, y)
    new_pace, new_to_right = _traffic(drawn)
    pace = jnp.where(arrived, new_pace, state.pace)
    to_right = jnp.where(arrived, new_to_right, state.to_right)
    wait = jnp.where(arrived, new_pace, state.wait)
    moves = wait == 0
    column = _along(state.column, to_right, moves)
    on_way = (state.column == COLUMN) | (column == COLUMN)
    hit = (on_way & (jnp.arange(1, LANES + 1, dtype=jnp.int8) == y)).any()
    wait = jnp.where(moves, pace, wait - 1)
    y = jnp.where(hit, BOTTOM, y)
    after = FreewayState(y, cooled(timer), column, wait, pace, to_right)
    return Moment(after, arrived.astype(jnp.float32), jnp.zeros((), bool))


def _traffic(drawn: Float[Array, " 8"]) -> tuple[Int[Array, " 8"], Bool[Array, " 8"]]:
    """Return a pace in 1 .. 5 and a direction for each car, all ten pairs equally likely."""
    pair = choice(drawn, 2 * SLOWEST)
    return 1 + pair % SLOWEST, pair >= SLOWEST


def _along(
    column: Int[Array, " 8"], to_right: Bool[Array, " 8"], moves: Bool[Array, " 8"]
) -> Int[Array, " 8"]:
    """Return the columns after one move of the cars in `moves`, wrapped around the board."""
    column = column + jnp.where(moves, jnp.where(to_right, 1, -1), 0)
    return jnp.where(column < 0, SIDE - 1, jnp.where(column >= SIDE, 0, column))


def planes(state: FreewayState) -> list[Bool[Array, "10 10"]]:
    """Return the chicken, the cars, and the cell behind each car, one plane per pace."""
    columns = jnp.arange(SIDE, dtype=jnp.int8)[None, :]
    cars = state.column[:, None] == columns
    behind = _along(state.column, ~state.to_right, jnp.ones(LANES, bool))[:, None] == columns
    trails = [behind & (state.pace == pace)[:, None] for pace in range(1, SLOWEST + 1)]
    lanes = [jnp.pad(lane, ((1, 1), (0, 0))) for lane in (cars, *trails)]
    return [cell(jnp.int8(COLUMN), state.y), *lanes]


FREEWAY = Game(
    name="Freeway",
    channels=("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5"),
    actions=(NOOP, UP, DOWN),
    start_draws=LANES,
    draws=LANES,
    start=start,
    advance=advance,
    planes=planes,
    can_be_lost=False,
)


@dataclass(frozen=True)
class Freeway(MinAtar):
    """The game with three actions: nothing, up, down."""

    max_episode_steps: int = TIME_LIMIT
    game = FREEWAY


class FreewayV0(Freeway):
    """The game with all six actions, some without effect."""

    version = 0
