"""MinAtar Breakout: keep a ball in play with a paddle and break three rows of bricks.

The ball moves one cell diagonally per env step. Sides and ceiling reflect it. When it meets a
brick, the brick breaks, the reward is 1 and the ball is thrown back, unless it also met one in the
env step before. If the ball comes down in the paddle's column, it is reflected upwards; if the
paddle is in the column that the ball enters, the ball returns the way it came. Otherwise the game
is lost. After the last brick three new rows appear when the ball reaches the paddle's row.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from backflip.envs.native.minatar.base import (
    LEFT,
    NOOP,
    RIGHT,
    SIDE,
    Game,
    MinAtar,
    Moment,
    cell,
    moved,
)

TOP, ROWS = 1, 3  # first row of bricks, number of rows
FLOOR = SIDE - 1  # the paddle's row
START_ROW = 3
START_PADDLE = 4


class BreakoutState(NamedTuple):
    """Paddle, bricks, and the ball's position now and one env step before.

    `striking` is true if the ball met a brick in its last env step.
    """

    paddle: Int[Array, ""]
    x: Int[Array, ""]
    y: Int[Array, ""]
    last_x: Int[Array, ""]
    last_y: Int[Array, ""]
    to_right: Int[Array, ""]
    downwards: Int[Array, ""]
    bricks: Bool[Array, "3 10"]
    striking: Bool[Array, ""]


def start(drawn: Float[Array, " 1"]) -> BreakoutState:
    """Return the initial state: the ball moves down from the left or right wall."""
    from_right = drawn[0] >= 0.5
    x = jnp.where(from_right, jnp.int8(SIDE - 1), jnp.int8(0))
    y, one = jnp.int8(START_ROW), jnp.int8(1)
    to_right = jnp.where(from_right, -one, one)
    bricks = jnp.ones((ROWS, SIDE), bool)
    paddle = jnp.int8(START_PADDLE)
    return BreakoutState(
        paddle=paddle,
        x=x,
        y=y,
        last_x=x,
        last_y=y,
        to_right=to_right,
        downwards=one,
        bricks=bricks,
        striking=jnp.zeros((), bool),
    )


def advance(
    state: BreakoutState, action: Int[Array, ""], drawn: Float[Array, " 0"], ramping: bool
) -> Moment:
    """Return the game after the paddle and then the ball moved; `ramping` has no effect."""
    del drawn, ramping
    paddle = moved(state.paddle, action == LEFT, action == RIGHT)
    x, y = state.x + state.to_right, state.y + state.downwards
    wall = (x < 0) | (x >= SIDE)
    x, to_right = jnp.clip(x, 0, SIDE - 1), jnp.where(wall, -state.to_right, state.to_right)
    at_ball = cell(x, y)[TOP : TOP + ROWS]
    met = (state.bricks & at_ball).any()
    broken = met & ~state.striking
    low = y == FLOOR
    held, clipped = low & (state.x == paddle), low & (state.x != paddle) & (x == paddle)
    back = broken | held | clipped  # returns to the row it came from
    ceiling = y < 0
    bricks = state.bricks & ~(at_ball & broken)
    after = BreakoutState(
        paddle=paddle,
        x=x,
        y=jnp.where(ceiling, 0, jnp.where(back, state.y, y)),
        last_x=state.x,
        last_y=state.y,
        to_right=jnp.where(clipped, -to_right, to_right),
        downwards=jnp.where(ceiling | back, -state.downwards, state.downwards),
        bricks=bricks | (low & ~bricks.any()),
        striking=met,
    )
    return Moment(after, broken.astype(jnp.float32), low & ~back)


def planes(state: BreakoutState) -> list[Bool[Array, "10 10"]]:
    """Return the paddle, the ball, the ball one env step before, and the bricks."""
    bricks = jnp.pad(state.bricks, ((TOP, SIDE - TOP - ROWS), (0, 0)))
    paddle = cell(state.paddle, jnp.int8(FLOOR))
    return [paddle, cell(state.x, state.y), cell(state.last_x, state.last_y), bricks]


BREAKOUT = Game(
    name="Breakout",
    channels=("paddle", "ball", "trail", "brick"),
    actions=(NOOP, LEFT, RIGHT),
    start_draws=1,
    draws=0,
    start=start,
    advance=advance,
    planes=planes,
)


class Breakout(MinAtar):
    """The game with three actions: nothing, left, right."""

    game = BREAKOUT


class BreakoutV0(Breakout):
    """The game with all six actions, some without effect."""

    version = 0
