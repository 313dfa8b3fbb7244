"""The length of the episodes that an algorithm is trained on outside JAX.

Two departures from the environment's own time limit, which evaluations keep:

* **Shorter episodes**, if the algorithm has a limit of its own (`Algorithm.episode_steps`). A robot
  that falls after 100 env steps and lies there for 900 fills nine tenths of each batch with states
  that teach nothing. The algorithm bootstraps from V of the last state, so what it learns is still
  the value of the whole episode (partial-episode bootstrapping, Pardo et al. 2018,
  arXiv:1712.00378, section 4). A share of the environments keeps whole episodes
  (`Algorithm.whole_share`), because a policy that never sees the later env steps does not learn
  what to do there.
* **Staggered starts.** If only a time limit ends episodes, N environments that are reset together
  stay together: with a limit of 1,000 env steps and rollouts of 128, every batch has one eighth of
  the episode, the same one for all N, and the learner forgets the other seven. So the first episode
  of environment i of N is truncated after (i + 1) / N of the limit. The episode statistics leave it
  out, because its return is that of a part.
"""

import numpy as np
from jaxtyping import Bool, Int

from backflip.algorithms.interface import Algorithm
from backflip.core.spec import EnvSpec
from backflip.drivers.driver import Learner
from backflip.envs.spec import CanShorten, HostEnv

UNLIMITED = np.iinfo(np.int64).max
PARTIAL = np.float32(np.nan)  # the length of an episode that does not count


def shorten_episodes(
    env: HostEnv, spec: EnvSpec, algorithm: Algorithm, learners: Learner
) -> Learner:
    """Shorten the episodes of all rows, which have just begun; return the learners."""
    limits = training_limits(spec, algorithm)
    if limits is None or not isinstance(env, CanShorten):
        return learners
    first = first_limits(spec, algorithm, limits)
    seeds = env.num_envs // algorithm.num_envs
    if not env.shorten_episodes(np.tile(first, seeds).tolist(), np.tile(limits, seeds).tolist()):
        return learners
    lengths = np.where(first < limits, PARTIAL, np.float32(0))
    return learners._replace(episode_length=np.tile(lengths, (seeds, 1)))


def training_limits(spec: EnvSpec, algorithm: Algorithm) -> Int[np.ndarray, " N"] | None:
    """Return the most env steps of a training episode in each environment; None without limits."""
    own = spec.max_episode_steps or UNLIMITED
    shortened = min(algorithm.episode_steps or UNLIMITED, own)
    whole = whole_episodes(algorithm.num_envs, algorithm.whole_share)
    return None if shortened == UNLIMITED else np.where(whole, own, shortened)


def whole_episodes(envs: int, share: float) -> Bool[np.ndarray, " N"]:
    """Return which of N environments keep whole episodes, evenly spread.

    Environment i does if ⌈share (i + 1)⌉ > ⌈share i⌉.
    """
    return np.diff(np.ceil(share * np.arange(envs + 1))) > 0


def first_limits(
    spec: EnvSpec, algorithm: Algorithm, limits: Int[np.ndarray, " N"]
) -> Int[np.ndarray, " N"]:
    """Return the most env steps of the first episodes: staggered among those of one limit."""
    first = limits.copy()
    for limit in np.unique(limits).tolist():
        if limit < UNLIMITED and needs_staggering(spec, algorithm, limit):
            rows = np.flatnonzero(limits == limit)
            first[rows] = staggered(len(rows), limit)
    return first


def needs_staggering(spec: EnvSpec, algorithm: Algorithm, limit: int) -> bool:
    """Return whether episodes that begin together would leave out most of an episode in each batch.

    They would not if states terminate episodes, which spreads them, if the algorithm learns from a
    replay or restarts at each rollout, or if a rollout is as long as an episode.
    """
    on_policy = algorithm.replay is None and not algorithm.restarts
    return on_policy and not spec.terminates and algorithm.rollout_length < limit


def staggered(envs: int, limit: int) -> Int[np.ndarray, " N"]:
    """Return the env steps of the first episodes, ⌈limit (i + 1) / N⌉ for i = 0, ..., N - 1."""
    return -(-limit * np.arange(1, envs + 1) // envs)
