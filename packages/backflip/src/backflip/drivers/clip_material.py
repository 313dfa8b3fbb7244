"""The transitions that clips are cut from."""

from typing import Any

import jax
import numpy as np

from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.types import Transition


def clip_material(spec: EnvSpec, batch: Transition, envs: int) -> Transition:
    """Return the transitions of the first `envs` environments, with only the newest frames.

    Args:
        spec: of the environment.
        batch: axes (..., N), environments last, in JAX's or NumPy's arrays.
        envs: number of environments.
    """
    before = (slice(None),) * (batch.valid.ndim - 1)

    def first(x: Any) -> Any:
        return x[(*before, slice(envs))]

    few = jax.tree.map(first, batch._replace(extra=()))
    return few._replace(obs=newest_frame(spec, few.obs), next_obs=newest_frame(spec, few.next_obs))


def cut_after(rollout: Transition) -> Transition:
    """Return a recorded rollout (..., T, M) whose episodes go no further than its last row.

    After a rollout of an algorithm that restarts, new episodes begin in all environments. An
    episode that has not ended by then is truncated, so that no clip goes on into the next one.
    """
    length = rollout.valid.shape[-2]
    last = (np.arange(length) == length - 1)[:, None]
    unfinished = last & rollout.valid & ~rollout.terminated
    return rollout._replace(truncated=rollout.truncated | unfinished)
