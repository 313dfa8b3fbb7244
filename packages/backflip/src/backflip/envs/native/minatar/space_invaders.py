"""MinAtar Space Invaders: shoot rows of aliens that come down and shoot back.

The aliens move sideways together. When one is at the edge, they turn and move down one row. The
fewer are left, the faster they move. Every tenth env step the alien nearest to the cannon's column
shoots. A hit alien has reward 1. A bullet or an alien at the cannon, or an alien below the last
row, loses the game. After the last alien a new, faster wave appears. Only sticky actions are
random.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from backflip.envs.native.minatar.base import (
    FIRE,
    LEFT,
    NOOP,
    RIGHT,
    SIDE,
    Game,
    MinAtar,
    Moment,
    cell,
    cooled,
    moved,
)

START = 5  # the cannon's first column
FLOOR = SIDE - 1  # the cannon's row
RELOAD = 5  # env steps between two shots of the cannon
SHOT_EVERY = 10  # env steps between two shots of the aliens
MOVE_EVERY = 12  # env steps between two moves of the first wave; fewer with less than 12 aliens
FASTEST = 6  # the same for the fastest wave
WAVE = np.zeros((SIDE, SIDE), bool)
WAVE[:4, 2:8] = True


class SpaceInvadersState(NamedTuple):
    """The cannon, planes of aliens and bullets, and timers in env steps."""

    x: Int[Array, ""]
    shots: Bool[Array, "10 10"]
    bombs: Bool[Array, "10 10"]
    aliens: Bool[Array, "10 10"]
    to_right: Bool[Array, ""]
    move_every: Int[Array, ""]
    move_timer: Int[Array, ""]
    bomb_timer: Int[Array, ""]
    reload: Int[Array, ""]


def start(drawn: Float[Array, " 0"]) -> SpaceInvadersState:
    """Return the initial state: the first wave moves to the left."""
    del drawn
    none, move = jnp.zeros((SIDE, SIDE), bool), jnp.int8(MOVE_EVERY)
    aliens, left = jnp.asarray(WAVE), jnp.zeros((), bool)
    timers = (move, move, jnp.int8(SHOT_EVERY), jnp.int8(0))
    return SpaceInvadersState(jnp.int8(START), none, none, aliens, left, *timers)


def advance(
    state: SpaceInvadersState, action: Int[Array, ""], drawn: Float[Array, " 0"], ramping: bool
) -> Moment:
    """Return the game after cannon, bullets and aliens moved, in this order."""
    del drawn
    fires = (action == FIRE) & (state.reload == 0)
    x = moved(state.x, action == LEFT, action == RIGHT)
    at_cannon = cell(x, jnp.int8(FLOOR))
    shots = _down(state.shots | (at_cannon & fires), -1)
    bombs = _down(state.bombs, 1)
    lost = (at_cannon & (bombs | state.aliens)).any()
    aliens, to_right, landed = _marched(state)
    lost = lost | landed | (at_cannon & aliens).any()
    count, moves, drops = (
        state.aliens.sum(dtype=jnp.int8),
        state.move_timer == 0,
        state.bomb_timer == 0,
    )
    move_timer = jnp.where(moves, jnp.minimum(count, state.move_every), state.move_timer)
    bombs = bombs | (drops & _bomber(aliens, x))
    hit = aliens & shots
    aliens, shots = aliens & ~hit, shots & ~hit
    cleared = ~aliens.any()
    faster = cleared & (state.move_every > FASTEST) & ramping
    after = SpaceInvadersState(
        x=x,
        shots=shots,
        bombs=bombs,
        aliens=aliens | (cleared & jnp.asarray(WAVE)),
        to_right=to_right,
        move_every=state.move_every - faster.astype(jnp.int8),
        move_timer=move_timer - 1,
        bomb_timer=jnp.where(drops, SHOT_EVERY, state.bomb_timer) - 1,
        reload=cooled(jnp.where(fires, RELOAD, state.reload)),
    )
    return Moment(after, hit.sum(dtype=jnp.float32), lost)


def _marched(
    state: SpaceInvadersState,
) -> tuple[Bool[Array, "10 10"], Bool[Array, ""], Bool[Array, ""]]:
    """Return the aliens after a move that is due, their direction, and whether one has landed."""
    aliens, moves = state.aliens, state.move_timer == 0
    edge = jnp.where(state.to_right, aliens[:, -1].any(), aliens[:, 0].any())
    turns, shifts = moves & edge, moves & ~edge
    landed = turns & aliens[FLOOR].any()
    sideways = jnp.where(state.to_right, jnp.roll(aliens, 1, 1), jnp.roll(aliens, -1, 1))
    marched = jnp.where(turns, jnp.roll(aliens, 1, 0), jnp.where(shifts, sideways, aliens))
    return marched, state.to_right ^ turns, landed


def _down(plane: Bool[Array, "10 10"], rows: int) -> Bool[Array, "10 10"]:
    """Return a plane shifted one row down (1) or up (-1), without wrapping."""
    empty = jnp.zeros((1, SIDE), bool)
    return jnp.concatenate([empty, plane[:-1]] if rows > 0 else [plane[1:], empty])


def _bomber(aliens: Bool[Array, "10 10"], x: Int[Array, ""]) -> Bool[Array, "10 10"]:
    """Return the cell of the lowest alien in the column nearest to `x`; a tie goes left."""
    columns = jnp.arange(SIDE, dtype=jnp.int8)
    far = 2 * jnp.abs(columns - x) + (columns > x).astype(jnp.int8)
    far = jnp.where(aliens.any(0), far, 2 * SIDE)
    row = jnp.where(aliens, columns[:, None], -1)
    lowest = (row == row.max(0, keepdims=True)) & aliens
    return lowest & (far == far.min())[None, :]


def planes(state: SpaceInvadersState) -> list[Bool[Array, "10 10"]]:
    """Return the cannon, all aliens, those moving left, those moving right, shots and bombs."""
    left, right = state.aliens & ~state.to_right, state.aliens & state.to_right
    cannon = cell(state.x, jnp.int8(FLOOR))
    return [cannon, state.aliens, left, right, state.shots, state.bombs]


SPACE_INVADERS = Game(
    name="SpaceInvaders",
    channels=("cannon", "alien", "alien_left", "alien_right", "friendly_bullet", "enemy_bullet"),
    actions=(NOOP, LEFT, RIGHT, FIRE),
    start_draws=0,
    draws=0,
    start=start,
    advance=advance,
    planes=planes,
)


class SpaceInvaders(MinAtar):
    """The game with four actions: nothing, left, right, fire."""

    game = SPACE_INVADERS


class SpaceInvadersV0(SpaceInvaders):
    """The game with all six actions, some without effect."""

    version = 0
