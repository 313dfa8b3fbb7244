"""The numbers that `look` reports about an environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.inspect.env_checks import ActionAudit, Repeatability
from backflip.inspect.observation_stats import ObservationStats
from backflip.inspect.random_episodes import RandomEpisodes

DIGITS = 6  # significant digits of measured numbers


@dataclass(frozen=True)
class Report:
    """All measurements of one environment.

    Attributes:
        env: its id.
        env_args: its constructor arguments.
        seed: the seed of all randomness.
        spec: its specification.
        discount: γ of the horizon.
        step_seconds: duration of an env step in the environment's own time, None if unknown.
        frame_skip: simulation steps per env step, None if unknown.
        episodes: episodes of a random policy.
        repeatability: comparison of 200 env steps played twice.
        actions: the effect of each action.
        facts: further facts that only some kinds of environments have, as (name, text) pairs.
    """

    env: str
    env_args: Mapping[str, Any]
    seed: int
    spec: EnvSpec
    discount: float
    step_seconds: float | None
    frame_skip: int | None
    episodes: RandomEpisodes
    repeatability: Repeatability
    actions: ActionAudit
    facts: list[tuple[str, str]]

    @property
    def horizon(self) -> float:
        """1 / (1 - γ): env steps after which a reward is discounted to 1/e; infinite for γ = 1."""
        return np.inf if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    @property
    def commonest_reward(self) -> float:
        """The most frequent reward."""
        values, counts = np.unique(self.episodes.rewards, return_counts=True)
        return float(values[counts.argmax()])

    @property
    def informative(self) -> float:
        """The share of env steps whose reward is not the most frequent one."""
        return float((self.episodes.rewards != np.float32(self.commonest_reward)).mean())

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        random, spec = self.episodes, self.spec
        return {
            "env": self.env,
            "env_args": dict(self.env_args),
            "seed": self.seed,
            "episodes": len(random.returns),
            "observation": _space(spec.observation),
            "action": _space(spec.action),
            "max_episode_steps": spec.max_episode_steps,
            "terminates": spec.terminates,
            "frame_stack": spec.frame_stack,
            "frame_skip": self.frame_skip,
            "step_seconds": self.step_seconds,
            "returns": summary(random.returns),
            "lengths": summary(random.lengths),
            "terminated_share": float(random.terminated.mean()),
            "truncated_share": float(random.truncated.mean()),
            "rewards": {
                **summary(random.rewards),
                "commonest": self.commonest_reward,
                "informative_share": self.informative,
            },
            "observations": self._observations(),
            "horizon": {
                "discount": self.discount,
                "env_steps": self.horizon,
                "seconds": self._seconds(self.horizon),
                "episode_env_steps": float(random.lengths.mean()),
                "episode_seconds": self._seconds(float(random.lengths.mean())),
            },
            "determinism": {
                "env_steps": self.repeatability.env_steps,
                "same": self.repeatability.first_difference is None,
                "first_difference": self.repeatability.first_difference,
            },
            "seeds": {
                "rows": self.repeatability.rows,
                "distinct_starts": self.repeatability.distinct_starts,
                "distinct_histories": self.repeatability.distinct_histories,
            },
            "actions": {
                **self.actions._asdict(),
                "choices": [choice._asdict() for choice in self.actions.choices],
            },
            "facts": dict(self.facts),
            "env_steps_per_second": round(random.env_steps_per_second),
        }

    def _seconds(self, env_steps: float) -> float | None:
        return None if self.step_seconds is None else env_steps * self.step_seconds

    def _observations(self) -> list[dict[str, Any]]:
        """Return the statistics of each dimension, or of each channel of an image."""
        stats, box = self.episodes.obs_stats, self.spec.observation
        if self.spec.is_image:
            stats = per_channel(stats, box.shape[-1])
        count = len(stats.mean)
        low, high = box.low.reshape(-1, count).min(0), box.high.reshape(-1, count).max(0)
        return [
            {
                "index": index,
                **_rounded(row),
                "largest_z": _short(stats.largest_z[index]),
                "bounds": [float(low[index]), float(high[index])],
            }
            for index, row in enumerate(zip(*stats, strict=True))
        ]


def per_channel(stats: ObservationStats, channels: int) -> ObservationStats:
    """Return the statistics of each channel, over all its pixels.

    A channel's variance is the mean of the pixels' variances plus the variance of their means.
    """
    low, mean, std, high = (part.reshape(-1, channels) for part in stats)
    spread = np.sqrt(np.square(std).mean(0) + mean.var(0))
    return ObservationStats(low.min(0), mean.mean(0), spread, high.max(0))


def summary(values: np.ndarray) -> dict[str, float]:
    """Return minimum, mean, standard deviation and maximum."""
    exact = values.astype(np.float64)
    return _rounded((exact.min(), exact.mean(), exact.std(), exact.max()))


def _rounded(values: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(("min", "mean", "std", "max"), map(_short, values), strict=True))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _space(space: Box | Discrete) -> dict[str, Any]:
    if isinstance(space, Discrete):
        return {"n": space.n}
    return {
        "shape": list(space.shape),
        "dtype": space.dtype.name,
        "low": float(space.low.min()),
        "high": float(space.high.max()),
    }
