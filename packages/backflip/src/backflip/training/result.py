"""The result of a finished run."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backflip.core.paths import from_here
from backflip.training.policy import Policy, load_policy
from runshelf.store.run_ids import short_id


@dataclass(frozen=True)
class Result:
    """The result of `train` or `teach`.

    Attributes:
        folder: the run's folder.
        run: the run's id.
        env: the environment's id.
        algorithm: the algorithm's name.
        seeds: the seeds, in order.
        env_steps: env steps of training of each seed.
        labels: labels of each seed; None for `train`.
        returns: mean true return of each seed's final policy, in the environment's unit.
        optimum: the best possible mean return from the same starts, per seed, if known.
        seconds: `setup`, `compile`, `train`, `answers` (waiting for people), `evaluate` and
            `total`, over all sessions of the run.
        teacher: who answered the queries; None for `train`.
        reward_alarm: what the fresh pairs say about the learned reward (docs/reward-alarm.md);
            None for `train` and for runs without fresh pairs.
        careless: the people who seem to have answered carelessly, each with the evidence
            (docs/teachers.md); None if there are no such people.
        reward_measures: what the learned reward is worth, means over seeds; None if unknown.
        parent: the id of the run that this run carried on, if any. `env_steps` and `labels` then
            include those of the parent.
        cut_episodes: evaluation episodes, of all seeds, that were stopped before they ended
            (`EnvSpec.longest_episode`); None if all ended.
        own_env_steps: env steps of this run alone, if it has a parent.
        own_labels: labels of this run alone, if it has a parent.
        more: a command line that carries the run on, with an example of a budget.
    """

    folder: Path
    run: str
    env: str
    algorithm: str
    seeds: Sequence[int]
    env_steps: int
    labels: int | None
    returns: Sequence[float]
    optimum: Sequence[float] | None
    seconds: Mapping[str, float]
    teacher: str | None = None
    reward_alarm: Mapping[str, Any] | None = None
    careless: Mapping[str, str] | None = None
    reward_measures: Mapping[str, Any] | None = None
    cut_episodes: int | None = None
    parent: str | None = None
    own_env_steps: int | None = None
    own_labels: int | None = None
    more: str | None = None

    @property
    def score(self) -> list[float | None] | None:
        """Return divided by optimum, per seed; None where the optimum is 0, or if none is known."""
        if self.optimum is None or not any(self.optimum):
            return None
        return [a / b if b else None for a, b in zip(self.returns, self.optimum, strict=True)]

    def summary(self) -> str:
        """Return the result as one line."""
        returns = sum(self.returns) / len(self.returns)
        best = ""
        if self.optimum is not None:
            best = f" of at most {sum(self.optimum) / len(self.optimum):.4g}"
        labels = "" if self.labels is None else f"{_of_all(self.labels, self.own_labels)} labels, "
        steps = f"{labels}{_of_all(self.env_steps, self.own_env_steps)} env steps"
        return f"{steps}; true return {returns:.4g}{best}; run {short_id(self.run)}"

    def policy(self, seed: int | None = None) -> Policy:
        """Return the trained policy of a seed, by default the first."""
        return load_policy(self.folder, seed)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, without those that are None."""
        fields = {
            "run": self.run,
            "env": self.env,
            "algorithm": self.algorithm,
            "seeds": list(self.seeds),
            "env_steps": self.env_steps,
            "labels": self.labels,
            "teacher": self.teacher,
            "reward_alarm": None if self.reward_alarm is None else dict(self.reward_alarm),
            "careless": None if self.careless is None else dict(self.careless),
            "reward_measures": None if self.reward_measures is None else dict(self.reward_measures),
            "parent": self.parent,
            "own_env_steps": self.own_env_steps,
            "own_labels": self.own_labels,
            "more": self.more,
            "returns": list(self.returns),
            "cut_episodes": self.cut_episodes,
            "optimum": None if self.optimum is None else list(self.optimum),
            "score": self.score,
            "seconds": dict(self.seconds),
            "folder": str(from_here(self.folder)),
        }
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, folder: Path, fields: Mapping[str, Any]) -> "Result":
        """Return the result of the run in `folder` from the result of `to_json`."""
        known = {field.name for field in dataclasses.fields(cls)} - {"folder"}
        given: dict[str, Any] = {"labels": None, "optimum": None}
        given |= {name: value for name, value in fields.items() if name in known}
        return cls(folder=folder, **given)


def _of_all(number: int, own: int | None) -> str:
    """Return a number; of a run with a parent, also how many of them are its own."""
    return f"{number:,}" if own is None else f"{number:,} ({own:,} in this run)"
