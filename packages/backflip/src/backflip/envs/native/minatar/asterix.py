"""MinAtar Asterix: treasure is to be touched and enemies not, both of which cross the board.

The player moves freely in rows 1 to 8. Each of these rows holds at most one thing, which comes in
at a side and moves to the other. Treasure pays 1; an enemy's touch loses the game. As the game goes
on, things come more often and move faster.
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
SPAWN_EVERY = 10  # env steps between two things' coming in, at first
MOVE_EVERY = 5  # env steps between two of their moves, at first
RAMP_EVERY = 100  # env steps that become harder together, nearly
EMPTY, ENEMY, TREASURE = range(3)
EARLIER = np.tri(LANES, k=-1, dtype=bool)  # [i, j]: lane j is above lane i


class AsterixState(NamedTuple):
    """The player, what is in each lane, and timers in env steps."""

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
    """Return the player alone in the middle."""
    del drawn
    lanes, middle = jnp.zeros(LANES, jnp.int8), jnp.int8(START)
    spawn, move = jnp.int8(SPAWN_EVERY), jnp.int8(MOVE_EVERY)
    timers = (spawn, spawn, move, move, jnp.int8(RAMP_EVERY), jnp.int8(0))
    return AsterixState(middle, middle, lanes, lanes, lanes > 0, *timers)


def advance(
    state: AsterixState, action: Int[Array, ""], drawn: Float[Array, " 3"], ramping: bool
) -> Moment:
    """Return the game after something came in, the player moved, and things moved.

    Args:
        state: the game before.
        action: what the player does.
        drawn: numbers for side, kind and lane of what may come in.
        ramping: the game becomes harder as it goes on.
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
    """Return kinds, columns and directions with a new thing in one free lane, if there is one."""
    from_left, treasure = drawn[0] < 1 / 2, drawn[1] < 1 / 3
    free = state.kind == EMPTY
    rank = (free[None, :] & EARLIER).sum(1, dtype=jnp.int8)  # of a lane among the free ones
    new = spawns & free & (rank == choice(drawn[2], free.sum()))
    kind = jnp.where(new, jnp.where(treasure, TREASURE, ENEMY), state.kind)
    column = jnp.where(new, jnp.where(from_left, 0, SIDE - 1), state.column)
    return kind, column, jnp.where(new, from_left, state.to_right)


def _harder(state: AsterixState) -> AsterixState:
    """Return the game with its timers one env step nearer to the next rise, or risen.

    Things come one env step sooner after each rise, and move one sooner after every second.
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
    """Return the player, the enemies, the cell behind each thing, and the treasure."""
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
    """The game with all six actions, one of them without effect."""

    version = 0
