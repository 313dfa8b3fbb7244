"""Episodes of a trained policy, with its value and entropy at every env step."""

from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import numpy as np
from jaxtyping import Float, Int

from backflip.algorithms.interface import Algorithm
from backflip.drivers.driver import OnEnvSteps, ignore_progress
from backflip.envs.spec import HostEnv, HostStep
from backflip.inspect.episode_recorder import (
    MAX_RECORDED_STEPS,
    EpisodeRecorder,
    EpisodeRecording,
)
from backflip.inspect.learned_episode import EpisodeSteps

SEED_DOMAIN = 0x3A7C  # keeps these seeds apart from other uses of the same number
MOST_BYTES = 2**26  # of observations of the first episode that are kept


class PolicyEpisodes(NamedTuple):
    """K episodes of one policy, and details of the first.

    Attributes:
        returns: true returns.
        lengths: lengths in env steps.
        recording: the first episode, up to `MAX_RECORDED_STEPS`.
        tracks: for each of the L env steps of the first episode, `reward` and what the algorithm
            reports for a state, such as `value` and `entropy`.
        steps: the first episode, up to `MOST_BYTES`, or longer if the recording is.
    """

    returns: Float[np.ndarray, " K"]
    lengths: Int[np.ndarray, " K"]
    recording: EpisodeRecording
    tracks: dict[str, Float[np.ndarray, " L"]]
    steps: EpisodeSteps


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
        self,
        env: HostEnv,
        state: Any,
        seed: int,
        on_progress: OnEnvSteps = ignore_progress,
        *,
        recorded: int = MAX_RECORDED_STEPS,
    ) -> PolicyEpisodes:
        """Play one episode in every row. The same seed gives the same initial states.

        Without a time limit, an episode is stopped after 10,000 env steps. `on_progress` is called
        with the number of each env step. At most `recorded` env steps are recorded for a clip.
        """
        rows, longest = env.num_envs, env.spec.longest_episode
        drawn = np.random.default_rng([SEED_DOMAIN, seed]).integers(2**31, size=rows)
        obs, alive = env.reset(drawn.tolist()), np.ones(rows, bool)
        returns, lengths = np.zeros(rows), np.zeros(rows, np.int64)
        track_rows: list[dict[str, float]] = []
        recorder, kept = EpisodeRecorder(env, recorded), _FirstSteps(recorded)
        first = jax.random.key(seed)
        for number in range(longest):
            key = jax.random.fold_in(first, number)
            on_progress(number)
            assessed = self.assess(state, obs)
            recorder.before_step()
            actions = self.evaluation_action(state, obs, key)
            step = env.step(actions)
            returns, lengths = returns + np.where(alive, step.reward, 0.0), lengths + alive
            if alive[0]:
                row = {name: float(x[0]) for name, x in assessed.items()}
                track_rows.append(row | {"reward": float(step.reward[0])})
                kept.add(obs, actions, step)
            recorder.after_step(obs, step)
            alive = alive & ~(step.terminated | step.truncated)
            obs = step.obs
            if not alive.any():
                break
        tracks = {name: np.array([row[name] for row in track_rows]) for name in track_rows[0]}
        return PolicyEpisodes(returns, lengths, recorder.recording(), tracks, kept.steps())


@final
class _FirstSteps:
    """The steps of row 0, as many as fit in `MOST_BYTES`, and at least `least`."""

    def __init__(self, least: int) -> None:
        self._least, self._bytes = least, 0
        self._rows: list[tuple[np.ndarray, ...]] = []

    def add(self, obs: np.ndarray, actions: np.ndarray, step: HostStep) -> None:
        if self._bytes > MOST_BYTES and len(self._rows) >= self._least:
            return
        row = tuple(x[0].copy() for x in (obs, actions, step.next_obs, step.terminated))
        self._rows.append((*row, np.asarray(step.reward[0], np.float64)))
        self._bytes += row[0].nbytes + row[2].nbytes

    def steps(self) -> EpisodeSteps:
        return EpisodeSteps(*(np.stack(field) for field in zip(*self._rows, strict=True)))
