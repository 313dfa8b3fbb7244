"""The moving dot: move a white square to a goal, with Atari's preprocessing.

A black frame of 210 x 160 pixels holds a white square of 4 x 4 pixels. Five actions (stay, down,
right, up, left) move it by one pixel inside the frame's margin. The reward of a raw step is +1, 0
or -1 if the Euclidean distance to the goal shrinks, stays or grows. Preprocessing is as for Atari:
1 to 30 no-ops at the start; each action repeated for 4 raw steps and the sum of rewards clipped to
its sign; the pixelwise maximum of the last two raw frames, averaged by area to 84 x 84 grey values;
four such frames stacked. An episode is truncated at the first env step that reaches raw step 1000,
after about 247 env steps.

The square and its two-frame maximum are axis-parallel rectangles, because an env step moves along
one axis. So a frame is computed as an outer product of two coverages.

Source: Rahtz's gym-moving-dot (the task), Mnih et al. 2015 (the preprocessing).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

FRAME = np.array([160, 210])  # raw pixels, (x, y)
HALF = 2  # half the square's side, in raw pixels
LOWEST, HIGHEST = np.array([HALF, HALF]), FRAME - HALF - 1  # range of the square's centre
SEEN = 84  # side of an observation, in pixels
STACK = 4  # frames in one observation
SKIP = 4  # raw steps per env step
MAX_NOOPS = 30
MAX_RAW_STEPS = 1000
MOVES = np.array([[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]])  # stay, down, right, up, left


class DotState(NamedTuple):
    """The position of the square, and the rectangles of the last four frames, oldest first.

    `corners` has, per frame, the first covered pixel and the one after the last, as (x, y).
    """

    position: Int[Array, " 2"]
    corners: Int[Array, "4 2 2"]
    raw_steps: Int[Array, ""]


@dataclass(frozen=True)
class Dot:
    """The environment with a goal in raw pixels (x, y), by default the frame's centre.

    Raises:
        UsageError: the goal is not a pair of whole numbers that the square's centre can reach.
    """

    goal: tuple[int, int] = (80, 105)

    def __post_init__(self) -> None:
        """Check the goal."""
        goal = np.asarray(self.goal)
        whole = (
            goal.shape == (2,) and np.issubdtype(goal.dtype, np.number) and (goal % 1 == 0).all()
        )
        if not whole or (goal < LOWEST).any() or (goal > HIGHEST).any():
            raise UsageError(
                f"`goal` of dot must be two whole numbers x,y with {LOWEST[0]} <= x <= "
                f"{HIGHEST[0]} and {LOWEST[1]} <= y <= {HIGHEST[1]}, got {self.goal!r}; "
                "try --env-arg goal=80,105"
            )

    @property
    def spec(self) -> EnvSpec:
        """The environment's specification: images observed, five actions."""
        shape = (SEEN, SEEN, STACK)
        black, white = np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8)
        limit = -(-(MAX_RAW_STEPS - 1) // SKIP)
        pixels = Box(black, white, np.dtype(np.uint8))
        return EnvSpec("dot", pixels, Discrete(len(MOVES)), limit, frame_stack=STACK)

    def reset(self, key: PRNGKeyArray) -> DotState:
        """Return an initial state: a uniform position, 1 to 30 no-ops, four equal frames."""
        place, noops = jax.random.split(key)
        position = jax.random.randint(place, (2,), LOWEST, HIGHEST + 1)
        corners = jnp.broadcast_to(_corners(position, position), (STACK, 2, 2))
        return DotState(position, corners, jax.random.randint(noops, (), 1, MAX_NOOPS + 1))

    def step(self, state: DotState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state four raw steps later."""
        del key
        move = jnp.asarray(MOVES)[action]
        raw = jnp.arange(SKIP + 1)[:, None]  # the path is a clipped straight line
        path = jnp.clip(state.position[None] + raw * move[None], LOWEST[None], HIGHEST[None])
        distance = jnp.square(path - jnp.asarray(self.goal)[None]).sum(1)
        reward = jnp.sign(jnp.sign(distance[:-1] - distance[1:]).sum()).astype(jnp.float32)
        corners = jnp.concatenate([state.corners[1:], _corners(path[-2], path[-1])[None]])
        raw_steps = state.raw_steps + SKIP
        after = DotState(path[-1], corners, raw_steps)
        return NativeStep(after, reward, jnp.zeros((), bool), raw_steps >= MAX_RAW_STEPS)

    def observe(self, state: DotState) -> UInt8[Array, "84 84 4"]:
        """Return the last four frames, oldest first."""
        columns = _coverage(state.corners[:, :, 0], int(FRAME[0]))
        rows = _coverage(state.corners[:, :, 1], int(FRAME[1]))
        grey = 255 * rows.T[:, None, :] * columns.T[None, :, :]
        return jnp.round(grey).astype(jnp.uint8)

    def scene(self, state: DotState) -> Float[Array, " 2"]:
        """Return the square's centre in raw pixels (x, y)."""
        return state.position.astype(jnp.float32)

    def optimum(self, state: DotState) -> Float[Array, ""]:
        """Return the largest return from `state`: Σ over both axes ⌊d/4⌋ + [d mod 4 = 3].

        d is the distance along the axis. Each env step of 4 pixels towards the goal has reward 1.
        For a remainder of 3 pixels, 3 raw steps approach and 1 overshoots, which also has reward
        1; smaller remainders have reward 0. Walks that return to a position have return 0.
        """
        away = jnp.abs(state.position - jnp.asarray(self.goal))
        last = (away % SKIP == SKIP - 1).astype(away.dtype)
        return jnp.sum(away // SKIP + last).astype(jnp.float32)


def _corners(before: Int[Array, " 2"], after: Int[Array, " 2"]) -> Int[Array, "2 2"]:
    """Return the rectangle that covers the squares at two neighbouring positions."""
    return jnp.stack([jnp.minimum(before, after) - HALF, jnp.maximum(before, after) + HALF])


def _coverage(edges: Int[Array, "4 2"], raw_pixels: int) -> Float[Array, "4 84"]:
    """Return the share of each observed row (or column) that lies between two raw edges."""
    width = raw_pixels / SEEN
    left = jnp.arange(SEEN, dtype=jnp.float32) * width
    edges = edges.astype(jnp.float32)
    overlap = jnp.minimum(edges[:, 1:], left[None] + width) - jnp.maximum(edges[:, :1], left[None])
    return jnp.clip(overlap, 0) / width
