"""MinAtar Asterix: collect treasure and avoid enemies that cross the board.

The player moves freely in rows 1 to 8. Each of these rows has at most one object, which enters at
one side and moves to the other. Treasure has reward 1; touching an enemy loses the game. Over time
objects appear more often and move faster.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from backflip.envs.native.minatar.base import (
    DOWN,
    LEFT,
    NOOP,
    RIGHT,
    SIDE,
    UP,
    Game,
    MinAtar,
    Moment,
    cell,
    choice,
    moved,
)

LANES = 8  # rows 1 .. 8
START = 5  # the player's first row and column
SPAWN_EVERY = 10  # initial env steps between two new objects
MOVE_EVERY = 5  # initial env steps between two moves of an object
RAMP_EVERY = 100  # start value of the timer between two increases of difficulty
EMPTY, ENEMY, TREASURE = range(3)
EARLIER = np.tri(LANES, k=-1, dtype=bool)  # [i, j]: lane j is above lane i


class AsterixState(NamedTuple):
    """The player, the object in each lane, and timers in env steps."""

    x: Int[Array, ""]
    y: Int[Array, ""]
    kind: Int[Array, " 8"]
    column: Int[Array, " 8"]
    to_right: Bool[Array, " 8"]
    spawn_every: Int[Array, ""]
    spawn_timer: Int[Array, ""]
    move_every: Int[Array, ""]
    move_timer: Int[Array, ""]
    ramp_timer: Int[Array, ""]
    ramps: Int[Array, ""]


def start(drawn: Float[Array, " 0"]) -> AsterixState:
    """Return the initial state: the player alone in the middle."""
    del drawn
    lanes, middle = jnp.zeros(LANES, jnp.int8), jnp.int8(START)
    spawn, move = jnp.int8(SPAWN_EVERY), jnp.int8(MOVE_EVERY)
    timers = (spawn, spawn, move, move, jnp.int8(RAMP_EVERY), jnp.int8(0))
    return AsterixState(middle, middle, lanes, lanes, lanes > 0, *timers)


def advance(
    state: AsterixState, action: Int[Array, ""], drawn: Float[Array, " 3"], ramping: bool
) -> Moment:
    """Return the game after an object appeared, the player moved, and the objects moved.

    Args:
        state: the state before.
        action: the player's action.
        drawn: random numbers for side, kind and lane of a new object.
        ramping: whether the game becomes harder over time.
    """
    spawns = state.spawn_timer == 0
    kind, column, to_right = _with_new(state, spawns, drawn)
    spawn_timer = jnp.where(spawns, state.spawn_every, state.spawn_timer) - 1
    x = moved(state.x, action == LEFT, action == RIGHT)
    y = moved(state.y, action == UP, action == DOWN, 1, LANES)
    in_lane = jnp.arange(1, LANES + 1, dtype=jnp.int8) == y
    before = in_lane & (column == x)
    taken, lost = before & (kind == TREASURE), (before & (kind == ENEMY)).any()
    kind = jnp.where(taken, EMPTY, kind)
    moves = state.move_timer == 0
    column = column + jnp.where(moves, jnp.where(to_right, 1, -1), 0)
    kind = jnp.where((column < 0) | (column >= SIDE), EMPTY, kind)
    after = in_lane & (column == x) & moves
    taken_now, lost_now = after & (kind == TREASURE), (after & (kind == ENEMY)).any()
    kind = jnp.where(taken_now, EMPTY, kind)
    move_timer = jnp.where(moves, state.move_every, state.move_timer) - 1
    reward = (taken | taken_now).any().astype(jnp.float32)
    timers = (state.spawn_every, spawn_timer, state.move_every, move_timer)
    game = AsterixState(x, y, kind, column, to_right, *timers, state.ramp_timer, state.ramps)
    return Moment(_harder(game) if ramping else game, reward, lost | lost_now)


def _with_new(
    state: AsterixState, spawns: Bool[Array, ""], drawn: Float[Array, " 3"]
) -> tuple[Int[Array, " 8"], Int[Array, " 8"], Bool[Array, " 8"]]:
    """Return kinds, columns and directions with a new object in a free lane, if any."""
    from_left, treasure = drawn[0] < 1 / 2, drawn[1] < 1 / 3
    free = state.kind == EMPTY
    rank = (free[None, :] & EARLIER).sum(1, dtype=jnp.int8)  # of each lane among the free ones
    new = spawns & free & (rank == choice(drawn[2], free.sum()))
    kind = jnp.where(new, jnp.where(treasure, TREASURE, ENEMY), state.kind)
    column = jnp.where(new, jnp.where(from_left, 0, SIDE - 1), state.column)
    return kind, column, jnp.where(new, from_left, state.to_right)


def _harder(state: AsterixState) -> AsterixState:
    """Return the game after one env step of the difficulty timer.

    Each increase shortens the time between new objects by one env step, and every second one also
    the time between moves.
    """
    ramps = (state.spawn_every > 1) | (state.move_every > 1)
    rises = ramps & (state.ramp_timer < 0)
    timer = jnp.where(ramps, state.ramp_timer - 1, state.ramp_timer)
    second = state.ramps % 2 == 1
    return state._replace(
        move_every=jnp.where(
            rises & second, jnp.maximum(state.move_every - 1, 1), state.move_every
        ),
        spawn_every=jnp.where(rises, jnp.maximum(state.spawn_every - 1, 1), state.spawn_every),
        ramp_timer=jnp.where(rises, RAMP_EVERY, timer),
        ramps=state.ramps + rises.astype(jnp.int8),
    )


def planes(state: AsterixState) -> list[Bool[Array, "10 10"]]:
    """Return the player, the enemies, the cell behind each object, and the treasure."""
    columns = jnp.arange(SIDE, dtype=jnp.int8)[None, :]
    at = state.column[:, None] == columns
    behind = (state.column - jnp.where(state.to_right, 1, -1))[:, None] == columns
    lanes = [
        at & (state.kind == ENEMY)[:, None],
        behind & (state.kind != EMPTY)[:, None],
        at & (state.kind == TREASURE)[:, None],
    ]
    enemies, trails, treasure = (jnp.pad(lane, ((1, 1), (0, 0))) for lane in lanes)
    return [cell(state.x, state.y), enemies, trails, treasure]


ASTERIX = Game(
    name="Asterix",
    channels=("player", "enemy", "trail", "gold"),
    actions=(NOOP, LEFT, UP, RIGHT, DOWN),
    start_draws=0,
    draws=3,
    start=start,
    advance=advance,
    planes=planes,
)


class Asterix(MinAtar):
    """The game with five actions: nothing, left, up, right, down."""

    game = ASTERIX


class AsterixV0(Asterix):
    """The game with all six actions, one without effect."""

    version = 0
