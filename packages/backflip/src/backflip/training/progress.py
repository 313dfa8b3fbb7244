"""The progress of a run, and its one-line form."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from runshelf.durations import duration

# Metrics of the health line: label and number of decimals.
HEALTH = {
    "episode_return_mean": ("true return", 1),
    "entropy": ("entropy", 2),
    "approx_kl": ("KL", 4),
    "explained_variance": ("explained variance", 2),
    "grad_norm": ("gradient", 2),
    "labels": ("labels", 0),
    "reward_model_collapsed": ("REPRESENTATION COLLAPSED, share of seeds", 2),
    "fresh_agreement": ("teacher agrees", 2),
    "fresh_evidence": ("REWARD ALARM, evidence", 0),
    "careless_people": ("CARELESS ANSWERS, people", 0),
}
VERY_LARGE = 1e12  # larger numbers are shown in scientific notation


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes:
        phase: finished phases.
        phases: all phases.
        env_steps: finished env steps of each seed.
        env_steps_per_second: speed of the newest phase, all seeds together, without compiling.
        eta_seconds: expected seconds of training left, at the speed of this session.
        health: newest metrics, averaged over the seeds that have them.
        note: a message to show once, or None.
        waiting_for: what training waits for, or empty.
        share: finished share of the current phase, below 1; 0 if unknown.
        doing: an activity outside phases and its progress, or empty.
        folder: the run's folder, from the first phase on.
    """

    phase: int
    phases: int
    env_steps: int
    env_steps_per_second: float
    eta_seconds: float
    health: Mapping[str, float]
    note: str | None = None
    waiting_for: str = ""
    share: float = 0.0
    doing: str = ""
    folder: Path | None = None


Report = Callable[[Progress], None]


def plain_line(progress: Progress) -> str:
    """Return the progress as one line."""
    parts = [
        f"{_tenths(progress.phase + progress.share)}/{progress.phases}",
        f"{progress.env_steps:,} env steps",
        time_and_speed(progress),
        health_line(progress.health),
    ]
    return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class Pace:
    """The state at the start of a phase, from which progress within the phase is computed.

    Attributes:
        before: the progress when the phase began.
        seeds: the number of seeds.
        phases: phases finished in this session.
        seconds: seconds of training that these phases took, without compiling.
        answering_seconds: expected seconds of answering, in addition to training.
    """

    before: Progress
    seeds: int
    phases: int
    seconds: float
    answering_seconds: float

    def at(self, share: float, env_steps: int, seconds: float) -> Progress:
        """Return the progress within the phase.

        Args:
            share: the finished share of the phase, in [0, 1); 0 if unknown.
            env_steps: total env steps of each seed.
            seconds: seconds of training since the phase began, without compiling.
        """
        seconds = max(seconds, 1e-9)
        done, rate = self.phases + share, self.before.env_steps_per_second
        each = (self.seconds + seconds) / done if done else math.nan
        to_go = self.before.phases - self.before.phase - share
        if share:
            rate = self.seeds * (env_steps - self.before.env_steps) / seconds
        return replace(
            self.before,
            share=share,
            env_steps=env_steps,
            env_steps_per_second=rate,
            eta_seconds=each * to_go + self.answering_seconds,
        )


def _tenths(phases: float) -> str:
    """Return phases rounded down to one decimal."""
    return f"{math.floor(phases * 10 + 1e-6) / 10:g}"


def health_line(health: Mapping[str, float]) -> str:
    """Return the newest metrics with short names; the entropy with its largest possible value."""
    parts: list[str] = []
    for name, value in health.items():
        if name == "entropy_max":
            continue
        label, decimals = HEALTH.get(name, (name.replace("_", " "), 3))
        text = f"{label} {decimal(value, decimals)}"
        if name == "entropy" and "entropy_max" in health:
            text += f"/{health['entropy_max']:.{decimals}f}"
        parts.append(text)
    return " · ".join(parts)


def decimal(value: float, decimals: int, style: str = "") -> str:
    """Return a number with `decimals` decimals, or as in 2e+31 if it is very large."""
    return f"{value:g}" if abs(value) >= VERY_LARGE else f"{value:{style}.{decimals}f}"


def time_and_speed(progress: Progress) -> str:
    """Return the remaining time and the speed, if they are known."""
    if math.isnan(progress.eta_seconds):
        return "the remaining time is known after the first phase"
    rate = f"{progress.env_steps_per_second:,.0f} env steps/s"
    if progress.phase == progress.phases:
        return rate
    return f"{duration(progress.eta_seconds)} to go · {rate}"
