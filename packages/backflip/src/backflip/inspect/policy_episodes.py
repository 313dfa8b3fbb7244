"""Episodes of a trained policy, with what it thought at every env step."""

from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import numpy as np
from jaxtyping import Float, Int

from backflip.algorithms.interface import Algorithm
from backflip.drivers.driver import LONGEST_EPISODE, OnProgress, ignore_progress
from backflip.envs.spec import HostEnv
from backflip.inspect.clip_files import EpisodeRecording
from backflip.inspect.random_episodes import MAX_RECORDED_STEPS
from backflip.inspect.open_env import scenes_of

PERFORMANCE = 0x3A7C
FIRST = ("value",)  # of what an algorithm says, drawn above the rest


class PolicyEpisodes(NamedTuple):
    """K episodes of one policy, and the first of them in detail.

    Attributes:
        returns: true, of each episode.
        lengths: in env steps.
        recording: the first episode, or its beginning.
        tracks: of the first episode, a number for each of its L env steps: `reward`, and what the
            algorithm can say of a state, as `value` and `entropy`.
    """

    returns: Float[np.ndarray, " K"]
    lengths: Int[np.ndarray, " K"]
    recording: EpisodeRecording
    tracks: dict[str, Float[np.ndarray, " L"]]


@final
class PolicyPlayer:
    """Plays episodes by states of one algorithm; compiled once for all of them."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._exploit = jax.jit(algorithm.evaluation_action)
        self._assess: Callable[..., Any] | None = None
        if algorithm.assess is not None:
            self._assess = jax.jit(algorithm.assess)

    def assess(self, state: Any, obs: np.ndarray) -> dict[str, np.ndarray]:
        """Return what the algorithm says of each observation; nothing if it says nothing."""
        if self._assess is None:
            return {}
        said: dict[str, Any] = self._assess(state, obs)  # JAX has sorted it by name
        order = sorted(said, key=lambda name: (name not in FIRST, name))
        return {name: np.asarray(said[name]) for name in order}

    def evaluation_action(self, state: Any, obs: np.ndarray, key: Any) -> np.ndarray:
        """Return the actions of the policy."""
        return np.asarray(self._exploit(state, obs, key))

    def play(
        self, env: HostEnv, state: Any, seed: int, on_progress: OnProgress = ignore_progress
    ) -> PolicyEpisodes:
        """Return one episode in every row; the same seed, the same starts.

        Where there is no time limit an episode is stopped after 10,000 env steps. `on_progress` is told of
        each.
        """
        rows, longest = env.num_envs, env.spec.max_episode_steps or LONGEST_EPISODE
        drawn = np.random.default_rng([PERFORMANCE, seed]).integers(2**31, size=rows)
        obs, alive = env.reset(drawn.tolist()), np.ones(rows, bool)
        returns, lengths = np.zeros(rows), np.zeros(rows, np.int64)
        seen: list[dict[str, float]] = []
        frames: list[tuple[np.ndarray, ...]] = []
        first = jax.random.key(seed)
        for number in range(longest):
            key = jax.random.fold_in(first, number)
            on_progress(number)
            thought, scene = self.assess(state, obs), scenes_of(env)
            step = env.step(self.evaluation_action(state, obs, key))
            returns, lengths = returns + np.where(alive, step.reward, 0.0), lengths + alive
            if alive[0]:
                said = {name: float(x[0]) for name, x in thought.items()}
                seen.append(said | {"reward": float(step.reward[0])})
                if len(frames) < MAX_RECORDED_STEPS:
                    place = np.zeros(0, np.float32) if scene is None else scene[0]
                    frames.append((obs[0], step.next_obs[0], place, step.reward[0]))
            alive = alive & ~(step.terminated | step.truncated)
            obs = step.obs
            if not alive.any():
                break
        tracks = {name: np.array([one[name] for one in seen]) for name in seen[0]}
        return PolicyEpisodes(returns, lengths, EpisodeRecording.of(frames), tracks)
