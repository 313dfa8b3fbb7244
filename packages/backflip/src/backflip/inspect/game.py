"""An environment that a person plays, and the record of the scores."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from backflip.core.spaces import Discrete
from backflip.core.spec import newest_frame
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.views.choose import view_of
from backflip.envs.views.view import Interpolates, view_for
from backflip.inspect.clip_files import drawable
from backflip.inspect.env_facts import action_meanings
from backflip.inspect.episode_recorder import joined
from backflip.inspect.key_bindings import actions, dials, is_turn_based
from backflip.inspect.open_env import open_env, scene_of
from backflip.inspect.pictures import agent_frame, png, shows_the_same
from backflip.inspect.saved_episodes import SavedEpisodes
from runshelf.errors import UsageError
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import RunWriter

METRICS = "play"  # name of the metrics writer
MOST_NUMBERS = 60  # longest observation that the page also shows as text


@final
class Game:
    """One environment played by a person. Not thread-safe.

    Args:
        env_id: an id that `backflip.envs.registry` accepts.
        env_args: constructor arguments.
        seed: determines the seed of each episode.
        save: the file that gets all env steps, which are in memory as long; None for none.

    Attributes:
        scores: the return of each finished episode.
        spec: the environment's spec.
        saved: all env steps; None without a file for them.

    Raises:
        UsageError: the environment does not exist.
    """

    def __init__(
        self, env_id: str, env_args: Mapping[str, Any], seed: int, save: Path | None = None
    ) -> None:
        self._env = open_env(env_id, env_args, 1)
        self.spec = self._env.spec
        self._meanings = action_meanings(env_id, env_args)
        self._view, self.note = drawable(view_of(env_id, self.spec, env_args), self._env)
        self._seed = seed
        self._began = time.monotonic()
        self._obs: np.ndarray = np.zeros(0)
        self._largest: np.ndarray = np.zeros(self.spec.observation.shape, np.float32)
        self._episode, self._env_steps, self._length, self._return = 0, 0, 0, 0.0
        self._ended = "not begun"
        self.scores: list[float] = []
        self._metrics: MetricsWriter | None = None
        self.saved = None if save is None else SavedEpisodes(self.spec, save)
        self._warm_up()

    def _warm_up(self) -> None:
        """Take one env step before the game, so that JAX compiles it."""
        self._env.reset([self._seed])
        rng = np.random.default_rng(self._seed)
        self._env.step(random_actions_on_host(self.spec.action, rng, 1))

    def keep_in(self, writer: RunWriter) -> None:
        """Write the score of every episode from now on into a run."""
        self._metrics = MetricsWriter(writer.folder, METRICS)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the game that never change."""
        spec, action = self.spec, self.spec.action
        discrete = isinstance(action, Discrete)
        still = not spec.is_image and not isinstance(self._view, Interpolates)
        return {
            "env": spec.id,
            "actions": [one._asdict() for one in actions(spec, self._meanings)]
            if discrete
            else None,
            "dials": None if isinstance(action, Discrete) else [d._asdict() for d in dials(action)],
            "step_seconds": self._view.step_seconds(),
            "waits": still or is_turn_based(spec.id),
            "limit": spec.max_episode_steps,
            "views": self._views(),
            "pixels": spec.is_image,
            "pixelated": self._view.pixelated,
            "frames": spec.frame_stack,
            "note": self.note,
        }

    def begin(self) -> dict[str, Any]:
        """Begin the next episode; return its first observation and the score."""
        if self.saved is not None:
            self.saved.cut()
        entropy = np.random.default_rng([self._seed, self._episode])
        self._obs = self._env.reset([int(entropy.integers(2**31))])[0]
        self._episode, self._length, self._return, self._ended = self._episode + 1, 0, 0.0, ""
        return self._fields(0.0)

    def act(self, action: Any) -> dict[str, Any]:
        """Take one env step; return the new observation and the score.

        Raises:
            UsageError: the action is invalid, or no episode is running.
            EnvironmentFailed: the environment returned invalid data.
        """
        chosen = self._valid_action(action)
        if self._ended:
            raise UsageError("no episode is running: begin one")
        step = self._env.step(chosen)
        before, self._obs = self._obs, step.next_obs[0]
        self._env_steps, self._length = self._env_steps + 1, self._length + 1
        reward = float(step.reward[0])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        self._return += reward
        if self.saved is not None:
            self.saved.add(
                before, chosen[0], self._obs, reward, terminated=terminated, truncated=truncated
            )
        if terminated or truncated:
            self._ended = "terminated" if terminated else "truncated"
            self._keep_score()
            if self.saved is not None:
                self.saved.end_episode()
        return self._fields(reward)

    def close(self) -> None:
        """Close the environment and the metrics file."""
        self._env.close()
        if self._metrics is not None:
            self._metrics.close()

    def _views(self) -> list[str]:
        """Return the views that the page offers, the default one first."""
        if shows_the_same(self._view, self.spec):
            return ["agent"]
        frames = self.spec.is_image and self.spec.frame_stack > 1
        return ["agent", "both", "person"] if frames else ["both", "agent", "person"]

    def _valid_action(self, action: Any) -> np.ndarray:
        """Return an action as a batch of size one, clipped to its bounds."""
        space = self.spec.action
        if isinstance(space, Discrete):
            if isinstance(action, bool) or not isinstance(action, int) or not 0 <= action < space.n:
                raise UsageError(f"`action` must be a whole number below {space.n}")
            return np.array([action], np.int32)
        try:
            numbers = np.asarray(action, np.float32).reshape(1, *space.shape)
        except (TypeError, ValueError):
            numbers = np.full(1, np.nan)
        if not np.isfinite(numbers).all():
            raise UsageError(f"`action` must be {space.low.size} numbers")
        return np.clip(numbers, space.low, space.high)

    def _keep_score(self) -> None:
        self.scores.append(self._return)
        if self._metrics is None:
            return
        self._metrics.write(
            {
                "seed": self._seed,
                "env_steps": self._env_steps,
                "seconds": time.monotonic() - self._began,
                "episode_return": self._return,
                "episode_length": self._length,
            }
        )

    def _fields(self, reward: float) -> dict[str, Any]:
        flat = self._obs.reshape(-1)
        self._largest = np.maximum(self._largest, np.abs(self._obs))
        numbers = not self.spec.is_image and flat.size <= MOST_NUMBERS
        return {
            "episode": self._episode,
            "length": self._length,
            "reward": reward,
            "return": self._return,
            "best": max(self.scores, default=None),
            "ended": self._ended,
            "numbers": [float(f"{x:.4g}") for x in flat.tolist()] if numbers else None,
        }

    def picture(self, which: str) -> bytes:
        """Return the current state as a PNG: the `agent`'s observation or the `person`'s view."""
        if which == "agent":
            return png(agent_frame(self.spec, self._obs, self._largest))
        seen = newest_frame(self.spec, self._obs)[None]
        scene = joined([scene_of(self._env)])
        view = view_for(self._view, scene)
        return png(view.draw(view.poses(seen, seen, scene)[:1])[0])
