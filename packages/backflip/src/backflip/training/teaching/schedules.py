"""How long the schedules of an algorithm last in `teach`: they end with the run.

If the networks start again in the middle (`backflip.training.restart`), schedules begin again, and
last for the updates that are left. A child goes on with the schedules of its parent.
"""

from backflip.algorithms.interface import Settings
from backflip.algorithms.rollouts import rollouts_of
from backflip.training.parents import Before
from backflip.training.planning import MANY_PHASES, planned_phases
from backflip.training.restart import restart_phase
from backflip.training.teaching.config import TeachConfig


def schedule_updates(config: TeachConfig, own: Settings, before: Before) -> int:
    """Return the updates that schedules last, of an algorithm without a replay.

    Args:
        config: the settings of teaching.
        own: the settings of the algorithm.
        before: what the parents had done.
    """
    if before.updates:
        return own.updates - before.uncounted
    skipped = updates_before_restart(config, own)
    if skipped and not config.pretrain_env_steps and len(_phases(config, own)) >= MANY_PHASES:
        # All figures were measured with this share. A new start waits for the beginning of a phase,
        # so its place differs by up to 4 % of the updates.
        return max(1, round((1 - config.restart_at) * own.updates))
    return own.updates - skipped


def updates_before_restart(config: TeachConfig, own: Settings) -> int:
    """Return the updates after which schedules start again, without a parent; 0 if they do not."""
    phases = _phases(config, own)
    at = restart_phase(config.restart_at, len(phases))
    return sum(phases[:at]) if at is not None and config.restart_schedules else 0


def _phases(config: TeachConfig, own: Settings) -> list[int]:
    first = rollouts_of(config.pretrain_env_steps, own.num_envs, own.rollout_length)
    return planned_phases(own.updates, config.phases, first)
