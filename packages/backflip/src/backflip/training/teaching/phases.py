"""Phases of `teach` that are long enough for clips, so that queries show the agent.

Clips are cut from what the agent did in the newest phase. A phase that is shorter than a clip has
none, unless episodes end in it.
"""

import dataclasses
from collections.abc import Container

from backflip.algorithms.interface import Settings
from backflip.training.planning import phases_of_length, plan
from backflip.training.teaching.config import SHORTEST_CLIP, TeachConfig
from runshelf.errors import UsageError


def with_phases(
    config: TeachConfig, own: Settings, updates: int, given: Container[str], *, asks: bool
) -> TeachConfig:
    """Return the settings with as many phases as clips fit into, unless the user gave a number.

    If not even two phases have room for a clip, clips are half as long as a phase, unless the user
    gave a length.

    Args:
        config: the settings of teaching.
        own: the settings of the algorithm.
        updates: updates after the first queries could be made.
        given: the names of the user's settings.
        asks: whether the run makes queries.
    """
    if "phases" in given:
        return config
    config = dataclasses.replace(config, phases=min(config.phases, updates))
    if not asks:
        return config
    config = dataclasses.replace(config, phases=phases_for_clips(config, own, updates))
    room = plan(updates, config.phases)[0] * own.rollout_length
    if "clip_length" in given or config.phases < 2 or room >= config.clip_length:
        return config
    return dataclasses.replace(config, clip_length=max(SHORTEST_CLIP, room // 2))


def phases_for_clips(config: TeachConfig, own: Settings, updates: int) -> int:
    """Return the largest number of phases with enough clips in each, at most those of `config`.

    It is at least two, if those of `config` are.
    """
    least = -(-config.clip_env_steps(own.num_envs) // own.rollout_length)
    return phases_of_length(updates, least, config.phases)


def usual_phases(config: TeachConfig, own: Settings, updates: int) -> int:
    """Return the number of phases that a message suggests."""
    usual = dataclasses.replace(config, phases=min(TeachConfig.phases, updates))
    return phases_for_clips(usual, own, updates)


def refuse_short_phases(config: TeachConfig, own: Settings, updates: int) -> None:
    """Refuse phases that end before a clip does, if queries follow them.

    Raises:
        UsageError: the message has values to use instead.
    """
    length, phases = own.rollout_length, plan(updates, config.phases)
    room = min(config.clip_rollouts, phases[0]) * length
    if len(phases) == 1 or room >= config.clip_length:
        return
    needed = -(-config.clip_length // length)
    fewer = phases_for_clips(config, own, updates)
    tries: list[str] = []
    if config.clip_rollouts < needed <= phases[0]:
        tries.append(f"--set clip_rollouts={needed}")
    elif config.clip_rollouts >= needed and plan(updates, fewer)[0] >= needed:
        tries.append(f"--set phases={fewer}")
    if room >= SHORTEST_CLIP:
        tries.append(f"--set clip_length={max(SHORTEST_CLIP, room // 2)}")
    raise UsageError(
        f"queries would not show the agent: a clip of {config.clip_length} env steps is longer "
        f"than the {room} env steps of each environment that clips are cut from after a phase; "
        f"try {' or '.join([*tries, 'more --env-steps'])}"
    )
