"""What `look` reports of an environment, as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.inspect.env_checks import ActionAudit, Repeatability
from backflip.inspect.random_episodes import RandomEpisodes
from backflip.inspect.observation_stats import ObservationStats

DIGITS = 6  # significant, of measured numbers


@dataclass(frozen=True)
class Report:
    """Everything found out about an environment.

    Attributes:
        env: its id.
        env_args: what it was made with.
        seed: of all that was random.
        spec: its public facts.
        discount: γ of the horizon.
        step_seconds: what an env step lasts in the environment's own time, where that is known.
        frame_skip: steps of the simulation in an env step, where that is known.
        play: random episodes.
        repeatability: of 200 env steps.
        actions: what each of them does.
        facts: more of its kind of environment, name and text.
    """

    env: str
    env_args: Mapping[str, Any]
    seed: int
    spec: EnvSpec
    discount: float
    step_seconds: float | None
    frame_skip: int | None
    play: RandomEpisodes
    repeatability: Repeatability
    actions: ActionAudit
    facts: list[tuple[str, str]]

    @property
    def horizon(self) -> float:
        """1 / (1 - γ): env steps after which a reward counts 1/e as much; infinite for γ = 1."""
        return np.inf if self.discount == 1.0 else 1.0 / (1.0 - self.discount)

    @property
    def commonest_reward(self) -> float:
        """The reward paid most often."""
        values, counts = np.unique(self.play.rewards, return_counts=True)
        return float(values[counts.argmax()])

    @property
    def informative(self) -> float:
        """Share of env steps whose reward is not the commonest one."""
        return float((self.play.rewards != np.float32(self.commonest_reward)).mean())

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        play, spec = self.play, self.spec
        return {
            "env": self.env,
            "env_args": dict(self.env_args),
            "seed": self.seed,
            "episodes": len(play.returns),
            "observation": _space(spec.observation),
            "action": _space(spec.action),
            "max_episode_steps": spec.max_episode_steps,
            "terminates": spec.terminates,
            "frame_stack": spec.frame_stack,
            "frame_skip": self.frame_skip,
            "step_seconds": self.step_seconds,
            "returns": summary(play.returns),
            "lengths": summary(play.lengths),
            "terminated_share": float(play.terminated.mean()),
            "truncated_share": float(play.truncated.mean()),
            "rewards": {
                **summary(play.rewards),
                "commonest": self.commonest_reward,
                "informative_share": self.informative,
            },
            "observations": self._observations(),
            "horizon": {
                "discount": self.discount,
                "env_steps": self.horizon,
                "seconds": self._seconds(self.horizon),
                "episode_env_steps": float(play.lengths.mean()),
                "episode_seconds": self._seconds(float(play.lengths.mean())),
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
            "env_steps_per_second": round(play.env_steps_per_second),
        }

    def _seconds(self, env_steps: float) -> float | None:
        return None if self.step_seconds is None else env_steps * self.step_seconds

    def _observations(self) -> list[dict[str, Any]]:
        """Return the scale of every number, or of all pixels of each channel together."""
        scale, box = self.play.scale, self.spec.observation
        if self.spec.is_pixels:
            scale = per_channel(scale, box.shape[-1])
        count = len(scale.mean)
        low, high = box.low.reshape(-1, count).min(0), box.high.reshape(-1, count).max(0)
        return [
            {
                "index": index,
                **_rounded(row),
                "largest_z": _short(scale.largest_z[index]),
                "bounds": [float(low[index]), float(high[index])],
            }
            for index, row in enumerate(zip(*scale, strict=True))
        ]


def per_channel(scale: ObservationStats, channels: int) -> ObservationStats:
    """Return the scale of all pixels of a channel together, for each channel.

    The variance of all is the mean of the variances and the variance of the means.
    """
    low, mean, std, high = (part.reshape(-1, channels) for part in scale)
    spread = np.sqrt(np.square(std).mean(0) + mean.var(0))
    return ObservationStats(low.min(0), mean.mean(0), spread, high.max(0))


def summary(values: np.ndarray) -> dict[str, float]:
    """Return least, mean, standard deviation and largest of some numbers."""
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
