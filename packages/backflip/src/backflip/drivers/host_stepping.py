"""Stepping the environments of S seeds outside JAX: the N of each seed are rows of one batch."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Integer, Shaped

from backflip.core.types import Transition
from backflip.envs.spec import HasScenes, HostEnv

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
    recorded: bool,
) -> tuple[Transition, np.ndarray]:
    """Step every environment; return the transitions (S, N, ...) and the next observations.

    A `recorded` row has the scene of `obs`, read before the step: the step may reset the
    environment.
    """
    scene = env.scenes() if recorded and isinstance(env, HasScenes) else None
    step = env.step(action.reshape(-1, *action.shape[2:]))
    fold = partial(by_seed, seeds=action.shape[0])
    row = Transition(
        fold(obs),
        action,
        fold(step.reward),
        fold(step.terminated),
        fold(step.truncated),
        fold(step.next_obs),
        fold(step.valid),
        extra=(),
        scene=() if scene is None else fold(scene),
    )
    return row, step.obs


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
