"""Stepping the environments of S seeds outside JAX: the N of each seed are rows of one batch."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Integer, Shaped

from backflip.core.types import Transition
from backflip.envs.spec import DrawsItself, HasScenes, HostEnv

PHASE_START = 0x09A5E000


def env_seeds(entropy: Integer[np.ndarray, "S words"], count: int) -> list[int]:
    """Return `count` environment seeds below 2^31 for each row of numbers, row by row."""
    drawn = [
        np.random.SeedSequence([PHASE_START, *row.tolist()]).generate_state(count)
        for row in entropy
    ]
    return (np.concatenate(drawn) >> 1).tolist()


def by_seed(rows: Shaped[np.ndarray, "rows ..."], seeds: int) -> Shaped[np.ndarray, "S N ..."]:
    """Return (S N, ...) as (S, N, ...)."""
    return rows.reshape(seeds, -1, *rows.shape[1:])


def step_all(
    env: HostEnv,
    obs: Shaped[np.ndarray, "rows ..."],
    action: Shaped[np.ndarray, "S N ..."],
    *,
    drawn: Sequence[int] | None,
) -> tuple[Transition, np.ndarray]:
    """Step every environment; return the transitions (S, N, ...) and the next observations.

    Unless `drawn` is None, the transitions have the scene of `obs`, read before the step: the step
    may reset the environment. Environments that draw themselves draw only the rows in `drawn`.
    """
    scene = env.scenes(drawn) if drawn is not None and isinstance(env, HasScenes) else None
    step = env.step(action.reshape(-1, *action.shape[2:]))
    fold = partial(by_seed, seeds=action.shape[0])
    row = Transition(
        obs=fold(obs),
        action=action,
        reward=fold(step.reward),
        terminated=fold(step.terminated),
        truncated=fold(step.truncated),
        next_obs=fold(step.next_obs),
        valid=fold(step.valid),
        extra=(),
        scene=() if scene is None else fold(scene),
    )
    return row, step.obs


class PicturePlan(NamedTuple):
    """Which env steps of a record get a picture, where environments draw themselves.

    Attributes:
        rows: of the batch of S N environments.
        first: the first env step of the record, from 0, that is drawn.
    """

    rows: list[int]
    first: int

    def at(self, env_step: int) -> list[int]:
        """Return the rows that are drawn at an env step of the record."""
        return self.rows if env_step >= self.first else []


def plan_pictures(
    env: HostEnv, seeds: int, envs: int, env_steps: int, pictures: int
) -> PicturePlan:
    """Return the plan for at most `pictures` of each seed, and make the rows ready to be drawn.

    Whole trajectories are drawn, because clips are cut from them: first environments, as many as
    the pictures suffice for, but at least one, of which the end is drawn.

    Args:
        env: the batch; it must be reset afterwards.
        seeds: number of seeds S.
        envs: recorded environments of each seed.
        env_steps: of the record.
        pictures: most pictures of each seed.
    """
    if not pictures or not isinstance(env, DrawsItself):
        return PicturePlan([], 0)
    each = env.num_envs // seeds
    few = min(max(pictures // env_steps, 1), envs, each)
    rows = [seed * each + row for seed in range(seeds) for row in range(few)]
    env.draw_rows(rows)
    return PicturePlan(rows, max(env_steps - pictures // few, 0))


def stack_steps(rows: Sequence[Transition]) -> Transition:
    """Return T transitions (S, N, ...) as one with axes (S, T, N, ...)."""

    def stack(*steps: Any) -> np.ndarray:
        return np.stack(steps, 1)

    return jax.tree.map(stack, *rows)


def cut_at_end(batch: Transition, cut: bool) -> Transition:
    """Return transitions (S, T, N), with the last row truncated if `cut` is true."""
    truncated = batch.truncated.copy()
    truncated[:, -1] |= cut & ~batch.terminated[:, -1]
    return batch._replace(truncated=truncated)
