"""The moving dot: a white square to be brought to a goal, seen through Atari's usual glasses.

A 210x160 black frame holds a white square of 4x4 pixels. Five actions (stay, down, right, up,
left) move it one pixel; it cannot leave the frame's margin. One raw step pays +1, 0 or -1 as the
Euclidean distance to the goal shrinks, stays or grows. The agent sees what an Atari agent would:
1 to 30 no-ops at the start, every action repeated for 4 raw steps and the rewards' sum clipped to
its sign, the pixelwise maximum of the last two raw frames, averaged by area to 84x84 grey values,
the last four of them stacked. An episode is cut at the first agent step that reaches raw step
1000, about 247 agent steps in all.

Source: Rahtz's gym-moving-dot (facts of the task), Mnih et al. 2015 (the preprocessing).
The square and its two-frame maximum are axis-parallel rectangles, because one agent step moves
along one axis; so a frame is an outer product of two coverages and no large frame is ever drawn.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.envs.spec import NativeStep
from runshelf.errors import UsageError

FRAME = np.array([160, 210])  # raw pixels, (x, y)
HALF = 2  # half the square's side, in raw pixels
LOWEST, HIGHEST = np.array([HALF, HALF]), FRAME - HALF - 1  # where the square's centre may be
SEEN = 84  # side of what the agent sees, in pixels
STACK = 4  # frames in one observation
SKIP = 4  # raw steps in one agent step
MAX_NOOPS = 30
MAX_RAW_STEPS = 1000
MOVES = np.array([[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]])  # stay, down, right, up, left


class DotState(NamedTuple):
    """Where the square is, and the rectangles of the last four frames, oldest first.

    `corners` holds, per frame, the first covered pixel and the one after the last, as (x, y).
    """

    position: Int[Array, " 2"]
    corners: Int[Array, "4 2 2"]
    raw_steps: Int[Array, ""]


@dataclass(frozen=True)
class Dot:
    """The moving dot with its goal at `goal`, in raw pixels (x, y); default: the frame's centre.

    Raises:
        UsageError: the goal is not a pair of whole numbers the square's centre can reach.
    """

    goal: tuple[int, int] = (80, 105)

    def __post_init__(self) -> None:
        """Refuse a goal that cannot be reached, before any training starts."""
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
        """Pixels in, five actions out, and a time limit."""
        shape = (SEEN, SEEN, STACK)
        black, white = np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8)
        limit = -(-(MAX_RAW_STEPS - 1) // SKIP)
        pixels = Box(black, white, np.dtype(np.uint8))
        return EnvSpec("dot", pixels, Discrete(len(MOVES)), limit, frame_stack=STACK)

    def reset(self, key: PRNGKeyArray) -> DotState:
        """Return a uniformly random position after 1 to 30 no-ops, the first frame four times."""
        place, noops = jax.random.split(key)
        position = jax.random.randint(place, (2,), LOWEST, HIGHEST + 1)
        corners = jnp.broadcast_to(_corners(position, position), (STACK, 2, 2))
        return DotState(position, corners, jax.random.randint(noops, (), 1, MAX_NOOPS + 1))

    def step(self, state: DotState, action: Int[Array, ""], key: PRNGKeyArray) -> NativeStep:
        """Return the state four raw steps later; the randomness is all in `reset`."""
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
        """Return the last four frames, averaged by area, oldest first."""
        columns = _coverage(state.corners[:, :, 0], int(FRAME[0]))
        rows = _coverage(state.corners[:, :, 1], int(FRAME[1]))
        grey = 255 * rows.T[:, None, :] * columns.T[None, :, :]
        return jnp.round(grey).astype(jnp.uint8)

    def scene(self, state: DotState) -> Float[Array, " 2"]:
        """Return where the square's centre is, in raw pixels (x, y)."""
        return state.position.astype(jnp.float32)

    def optimum(self, state: DotState) -> Float[Array, ""]:
        """Return the most an episode can pay from `state`: Σ over both axes ⌊d/4⌋ + [d mod 4 = 3].

        d is the distance along the axis. Every 4 pixels nearer pay 1; of a rest of 3 pixels, 3
        raw steps approach and 1 overshoots, which pays too; shorter rests pay nothing. Walks
        that return to a place pay 0 in all, so there is nothing more to be had.
        """
        away = jnp.abs(state.position - jnp.asarray(self.goal))
        return jnp.sum(away // SKIP + (away % SKIP == SKIP - 1)).astype(jnp.float32)


def _corners(before: Int[Array, " 2"], after: Int[Array, " 2"]) -> Int[Array, "2 2"]:
    """Return the rectangle that the squares at two neighbouring positions cover together."""
    return jnp.stack([jnp.minimum(before, after) - HALF, jnp.maximum(before, after) + HALF])


def _coverage(edges: Int[Array, "4 2"], raw_pixels: int) -> Float[Array, "4 84"]:
    """Return the share of each seen row (or column) that lies between two raw edges."""
    width = raw_pixels / SEEN
    left = jnp.arange(SEEN, dtype=jnp.float32) * width
    edges = edges.astype(jnp.float32)
    overlap = jnp.minimum(edges[:, 1:], left[None] + width) - jnp.maximum(edges[:, :1], left[None])
    return jnp.clip(overlap, 0) / width
