"""What a run of `teach` sees of random actions before its first queries."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.preferences.clips import Clip, episode_start
from backflip.rewards.interface import RewardModel
from backflip.training.progress_reporter import ProgressReporter
from backflip.training.queries.candidate_clips import RandomClips
from backflip.training.teaching.config import TeachConfig

RANDOM_CLIPS = 64  # of each kind and seed


class RandomPolicy(NamedTuple):
    """Clips of random actions.

    Attributes:
        first: the start of an episode, of the first seed with a long enough one; None without any.
        clips: of each seed.
    """

    first: Clip | None
    clips: list[RandomClips]


class FirstClips(NamedTuple):
    """Clips of what was before the agent: of random actions, or recorded ones in their place.

    Attributes:
        policy: clips of random actions.
        recorded: those that the first queries show, of all seeds; empty if there are none.
    """

    policy: RandomPolicy
    recorded: Sequence[Clip]

    def random(self, row: int) -> Sequence[Clip]:
        """Return the usual clips of random actions of a seed."""
        return self.policy.clips[row].usual

    def shown(self, row: int) -> Sequence[Clip]:
        """Return the clips that the first queries of a seed show."""
        return self.recorded or self.random(row)


def watch_random_policy(
    driver: Driver,
    model: RewardModel,
    config: TeachConfig,
    seeds: Sequence[int],
    reporter: ProgressReporter,
    *,
    pictures: int,
    shown: bool,
) -> RandomPolicy:
    """Return clips of each seed's random policy, after the reward model has seen its transitions.

    Args:
        driver: of the environment.
        model: observes the transitions.
        config: the settings of teaching.
        seeds: the seeds of the run.
        reporter: reports the progress.
        pictures: most pictures of each seed, where the environment draws itself.
        shown: whether the teacher may look at pictures of the clips.
    """
    first, clips = None, list[RandomClips]()
    for seed in seeds:  # one at a time, because images need hundreds of MiB
        record = _record(driver, config, seed, reporter, pictures)
        model.observe(record)
        first = first or episode_start(record, config.clip_length)
        rng = np.random.default_rng([seed, 0])
        early, length = round(config.early_share * RANDOM_CLIPS), config.clip_length
        clips.append(RandomClips.of(rng, record, length, RANDOM_CLIPS, early=early, shown=shown))
    return RandomPolicy(first, clips)


def _record(
    driver: Driver, config: TeachConfig, seed: int, reporter: ProgressReporter, pictures: int
) -> Transition:
    """Return the transitions (T, N) of one seed's random policy."""
    envs, env_steps = config.random_envs, config.random_env_steps
    what = f"watching random actions of seed {seed}"
    records = driver.random_record(
        [seed],
        envs=envs,
        env_steps=env_steps,
        repeat=config.repeat,
        pictures=pictures,
        on_progress=reporter.acting_at_random(what, envs * env_steps, envs),
    )
    return row_of(records, 0)
