"""Episodes of a random policy, and what is measured in them."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HostEnv
from backflip.inspect.episode_recorder import EpisodeRecorder, EpisodeRecording
from backflip.inspect.observation_stats import ObservationStats, RunningStats
from backflip.inspect.open_env import own_render

OnProgress = Callable[[str, float], None]  # called with the current activity and its finished share
Warn = Callable[[str], None]  # called with a warning


class RandomEpisodes(NamedTuple):
    """Measurements of E episodes of a random policy.

    Attributes:
        returns: undiscounted returns.
        lengths: lengths in env steps.
        terminated: the task's own rule ended the episode.
        truncated: the time limit ended the episode. If neither holds, the episode was
            stopped (`EnvSpec.longest_episode`).
        rewards: the rewards of all S env steps.
        obs_stats: statistics of the observations acted on.
        largest_changes: the largest change of each observed number in one env step; 0 for pixels.
        recording: the beginning of the first episode.
        env_steps_per_second: speed of all rows together, with the measurements, without drawing.
    """

    returns: Float[np.ndarray, " E"]
    lengths: Int[np.ndarray, " E"]
    terminated: Bool[np.ndarray, " E"]
    truncated: Bool[np.ndarray, " E"]
    rewards: Float[np.ndarray, " S"]
    obs_stats: ObservationStats
    largest_changes: Float[np.ndarray, " D"]
    recording: EpisodeRecording
    env_steps_per_second: float


def play_randomly(
    env: HostEnv, episodes: int, seed: int, on_progress: OnProgress
) -> RandomEpisodes:
    """Play and measure episodes of a uniformly random policy.

    Each round plays one episode per row, each with its own seed. Without a time limit, an episode
    is stopped after 10,000 env steps. The same seed gives the same episodes.

    Args:
        env: a batch of environments.
        episodes: number of episodes, at least 1.
        seed: the seed of all randomness.
        on_progress: called with the finished share.
    """
    rounds = -(-episodes // env.num_envs)
    stats = RunningStats()
    env.reset([seed] * env.num_envs)
    actions = random_actions_on_host(env.spec.action, np.random.default_rng(0), env.num_envs)
    env.step(actions)  # compile before measuring the speed
    began = time.perf_counter()
    drawing = own_render(env)
    drawn_before = 0.0 if drawing is None else drawing.seconds
    played: list[RandomRound] = []
    for number in range(rounds):
        rows = min(env.num_envs, episodes - number * env.num_envs)
        played.append(RandomRound(env, stats, rows, records=number == 0))

        def on_share(share: float, number: int = number) -> None:
            on_progress("random", (number + share) / rounds)

        played[-1].play([seed, number], on_share)
    drawn = 0.0 if drawing is None else drawing.seconds - drawn_before
    seconds = max(time.perf_counter() - began - drawn, 1e-9)

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name)[: one.rows] for one in played])

    rewards = np.concatenate([reward for one in played for reward in one.rewards])
    return RandomEpisodes(
        returns=joined("returns"),
        lengths=joined("lengths"),
        terminated=joined("terminated"),
        truncated=joined("truncated"),
        rewards=rewards,
        obs_stats=stats.result(),
        largest_changes=np.max([one.largest_changes for one in played], axis=0),
        recording=played[0].recorder.recording(),
        env_steps_per_second=len(rewards) / seconds,
    )


class RandomRound:
    """One episode in each of the first `rows` rows, played in parallel."""

    def __init__(self, env: HostEnv, stats: RunningStats, rows: int, *, records: bool) -> None:
        self._env, self._stats, self.rows, self._records = env, stats, rows, records
        self.recorder = EpisodeRecorder(env)
        self.returns, self.lengths = np.zeros(rows), np.zeros(rows, np.int64)
        self.terminated, self.truncated = np.zeros(rows, bool), np.zeros(rows, bool)
        self.rewards: list[np.ndarray] = []
        self.largest_changes = np.zeros(int(np.prod(env.spec.observation.shape)))

    def play(self, entropy: list[int], on_share: Callable[[float], None]) -> None:
        """Play until the episode of every row has ended."""
        env, rng = self._env, np.random.default_rng(entropy)
        limit = env.spec.longest_episode
        obs = env.reset(rng.integers(2**31, size=env.num_envs).tolist())
        alive, env_steps = np.ones(self.rows, bool), 0
        while alive.any() and env_steps < limit:
            if self._records:
                self.recorder.before_step()
            step = env.step(random_actions_on_host(env.spec.action, rng, env.num_envs))
            self._stats.add(obs[: self.rows][alive])
            self._measure_changes(obs[: self.rows][alive], step.next_obs[: self.rows][alive])
            reward = step.reward[: self.rows]
            self.rewards.append(reward[alive])
            self.returns += np.where(alive, reward, 0.0)
            self.lengths += alive
            if self._records:
                self.recorder.after_step(obs, step)
            self.terminated |= alive & step.terminated[: self.rows]
            self.truncated |= alive & step.truncated[: self.rows]
            alive &= ~(self.terminated | self.truncated)
            obs, env_steps = step.obs, env_steps + 1
            on_share(max(1.0 - float(alive.mean()), env_steps / limit))

    def _measure_changes(self, obs: np.ndarray, next_obs: np.ndarray) -> None:
        if len(obs) and not self._env.spec.is_image:
            changes = np.abs(next_obs.astype(np.float64) - obs).reshape(len(obs), -1).max(0)
            self.largest_changes = np.maximum(self.largest_changes, changes)
