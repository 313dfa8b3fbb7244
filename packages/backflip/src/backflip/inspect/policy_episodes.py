"""Episodes of a trained policy, with its value and entropy at every env step."""

from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import numpy as np
from jaxtyping import Float, Int

from backflip.algorithms.interface import Algorithm
from backflip.drivers.driver import LONGEST_EPISODE, OnEnvSteps, ignore_progress
from backflip.envs.spec import HostEnv
from backflip.inspect.episode_recorder import EpisodeRecorder, EpisodeRecording

SEED_DOMAIN = 0x3A7C  # keeps these seeds apart from other uses of the same number


class PolicyEpisodes(NamedTuple):
    """K episodes of one policy, and details of the first.

    Attributes:
        returns: true returns.
        lengths: lengths in env steps.
        recording: the first episode, up to `MAX_RECORDED_STEPS`.
        tracks: for each of the L env steps of the first episode, `reward` and what the algorithm
            reports for a state, such as `value` and `entropy`.
    """

    returns: Float[np.ndarray, " K"]
    lengths: Int[np.ndarray, " K"]
    recording: EpisodeRecording
    tracks: dict[str, Float[np.ndarray, " L"]]


@final
class PolicyPlayer:
    """Plays episodes with different states of one algorithm; compiles it once."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._exploit = jax.jit(algorithm.evaluation_action)
        self._assess: Callable[..., Any] | None = None
        if algorithm.assess is not None:
            self._assess = jax.jit(algorithm.assess)

    def assess(self, state: Any, obs: np.ndarray) -> dict[str, np.ndarray]:
        """Return what the algorithm reports for each observation by name, `value` first."""
        if self._assess is None:
            return {}
        report: dict[str, Any] = self._assess(state, obs)
        order = sorted(report, key=lambda name: (name != "value", name))
        return {name: np.asarray(report[name]) for name in order}

    def evaluation_action(self, state: Any, obs: np.ndarray, key: Any) -> np.ndarray:
        """Return the policy's evaluation actions."""
        return np.asarray(self._exploit(state, obs, key))

    def play(
        self, env: HostEnv, state: Any, seed: int, on_progress: OnEnvSteps = ignore_progress
    ) -> PolicyEpisodes:
        """Play one episode in every row. The same seed gives the same initial states.

        Without a time limit, an episode is stopped after 10,000 env steps. `on_progress` is called
        with the number of each env step.
        """
        rows, longest = env.num_envs, env.spec.max_episode_steps or LONGEST_EPISODE
        drawn = np.random.default_rng([SEED_DOMAIN, seed]).integers(2**31, size=rows)
        obs, alive = env.reset(drawn.tolist()), np.ones(rows, bool)
        returns, lengths = np.zeros(rows), np.zeros(rows, np.int64)
        track_rows: list[dict[str, float]] = []
        recorder = EpisodeRecorder(env)
        first = jax.random.key(seed)
        for number in range(longest):
            key = jax.random.fold_in(first, number)
            on_progress(number)
            assessed = self.assess(state, obs)
            recorder.before_step()
            step = env.step(self.evaluation_action(state, obs, key))
            returns, lengths = returns + np.where(alive, step.reward, 0.0), lengths + alive
            if alive[0]:
                row = {name: float(x[0]) for name, x in assessed.items()}
                track_rows.append(row | {"reward": float(step.reward[0])})
            recorder.after_step(obs, step)
            alive = alive & ~(step.terminated | step.truncated)
            obs = step.obs
            if not alive.any():
                break
        tracks = {name: np.array([row[name] for row in track_rows]) for name in track_rows[0]}
        return PolicyEpisodes(returns, lengths, recorder.recording(), tracks)
