"""Episodes of a policy that chooses at random, and everything measured in them."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.drivers.driver import LONGEST_EPISODE
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HostEnv
from backflip.inspect.clip_files import EpisodeRecording
from backflip.inspect.observation_stats import ObservationStats, RunningStats
from backflip.inspect.open_env import scenes_of

MAX_RECORDED_STEPS = 300  # env steps of the first episode that are kept for a clip

OnProgress = Callable[[str, float], None]  # what is being done, and which share of it is done
Warn = Callable[[str], None]  # what a person should know at once


class RandomEpisodes(NamedTuple):
    """What E episodes of a random policy showed.

    Attributes:
        returns: undiscounted.
        lengths: in env steps.
        terminated: ended by the task's own rule.
        truncated: ended by the time limit; episodes that are neither were stopped by us.
        rewards: of every env step of every episode.
        scale: of the observations acted on.
        recording: the beginning of the first episode.
        env_steps_per_second: all rows together, what is measured here included.
    """

    returns: Float[np.ndarray, " E"]
    lengths: Int[np.ndarray, " E"]
    terminated: Bool[np.ndarray, " E"]
    truncated: Bool[np.ndarray, " E"]
    rewards: Float[np.ndarray, " S"]
    scale: ObservationStats
    recording: EpisodeRecording
    env_steps_per_second: float


def play_randomly(env: HostEnv, episodes: int, seed: int, on_progress: OnProgress) -> RandomEpisodes:
    """Return what `episodes` episodes of a uniformly random policy showed.

    They are played in rounds, one in each row, each from a seed of its own; where there is no time
    limit an episode is stopped after 10,000 env steps. The same seed gives the same episodes.

    Args:
        env: a batch of environments.
        episodes: how many, at least 1.
        seed: from which all randomness comes.
        on_progress: is told how far it is.
    """
    rounds = -(-episodes // env.num_envs)
    scales = RunningStats()
    env.reset([seed] * env.num_envs)
    anything = random_actions_on_host(env.spec.action, np.random.default_rng(0), env.num_envs)
    env.step(anything)  # compiles
    began = time.perf_counter()
    played: list[RandomRound] = []
    for number in range(rounds):
        rows = min(env.num_envs, episodes - number * env.num_envs)
        played.append(RandomRound(env, scales, rows, films=number == 0))

        def told(share: float, number: int = number) -> None:
            on_progress("random", (number + share) / rounds)

        played[-1].play([seed, number], told)
    seconds = max(time.perf_counter() - began, 1e-9)

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name)[: one.rows] for one in played])

    rewards = np.concatenate([reward for one in played for reward in one.rewards])
    return RandomEpisodes(
        joined("returns"),
        joined("lengths"),
        joined("terminated"),
        joined("truncated"),
        rewards,
        scales.result(),
        played[0].recording(),
        len(rewards) / seconds,
    )


class RandomRound:
    """One episode in each of the first `rows` rows, played side by side."""

    def __init__(self, env: HostEnv, scales: RunningStats, rows: int, *, films: bool) -> None:
        self._env, self._scales, self.rows, self._films = env, scales, rows, films
        self.returns, self.lengths = np.zeros(rows), np.zeros(rows, np.int64)
        self.terminated, self.truncated = np.zeros(rows, bool), np.zeros(rows, bool)
        self.rewards: list[np.ndarray] = []
        self._frames: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]] = []

    def play(self, entropy: list[int], on_progress: Callable[[float], None]) -> None:
        """Play until every row has ended."""
        env, rng = self._env, np.random.default_rng(entropy)
        limit = env.spec.max_episode_steps or LONGEST_EPISODE
        obs = env.reset(rng.integers(2**31, size=env.num_envs).tolist())
        alive, env_steps = np.ones(self.rows, bool), 0
        while alive.any() and env_steps < limit:
            scene = scenes_of(env) if self._films else None
            step = env.step(random_actions_on_host(env.spec.action, rng, env.num_envs))
            self._scales.add(obs[: self.rows][alive])
            reward = step.reward[: self.rows]
            self.rewards.append(reward[alive])
            self.returns += np.where(alive, reward, 0.0)
            self.lengths += alive
            if self._films and alive[0] and len(self._frames) < MAX_RECORDED_STEPS:
                drawn = np.zeros(0, np.float32) if scene is None else scene[0]
                self._frames.append((obs[0], step.next_obs[0], drawn, float(reward[0])))
            self.terminated |= alive & step.terminated[: self.rows]
            self.truncated |= alive & step.truncated[: self.rows]
            alive &= ~(self.terminated | self.truncated)
            obs, env_steps = step.obs, env_steps + 1
            on_progress(max(1.0 - float(alive.mean()), env_steps / limit))

    def recording(self) -> EpisodeRecording:
        """Return the beginning of the first row's episode."""
        return EpisodeRecording.of(self._frames)
