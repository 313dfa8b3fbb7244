"""How far a run is, and how that is said on one line."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from runshelf.durations import duration

# What is told of learning on one line, what it is called there, and how many decimals it needs.
HEALTH = {
    "episode_return_mean": ("true return", 1),
    "entropy": ("entropy", 2),
    "approx_kl": ("KL", 4),
    "explained_variance": ("explained variance", 2),
    "grad_norm": ("gradient", 2),
    "labels": ("labels", 0),
}
VERY_LARGE = 1e12  # of more digits nobody sees how many there are


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        phase: phases done.
        phases: phases in all.
        env_steps: env steps done, of each seed.
        env_steps_per_second: in the newest phase, all seeds together, compilation left out.
        eta_seconds: until training ends, going on as in this sitting.
        health: newest metrics, averaged over the seeds that have them.
        note: something to tell the user once, or None.
        waiting_for: what work cannot go on without at the moment, or nothing.
        share: done of the phase under way, below 1; 0 where nobody tells.
        doing: what is under way that is no phase, and how far it is, or nothing.
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


Report = Callable[[Progress], None]


def plain_line(progress: Progress) -> str:
    """Return everything about the progress on one line."""
    parts = [
        f"{_tenths(progress.phase + progress.share)}/{progress.phases}",
        f"{progress.env_steps:,} env steps",
        time_and_speed(progress),
        health_line(progress.health),
    ]
    return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class Pace:
    """What a phase under way is measured against.

    Attributes:
        before: how far the run was when the phase began.
        seeds: how many learn at once.
        phases: finished in this sitting.
        seconds: of training that these took, compilation left out.
        answering_seconds: that answers will take beside training.
    """

    before: Progress
    seeds: int
    phases: int
    seconds: float
    answering_seconds: float

    def at(self, share: float, env_steps: int, seconds: float) -> Progress:
        """Return the progress when a share of the phase is done, at `env_steps` of each seed.

        Args:
            share: in [0, 1); 0 where nobody knows.
            env_steps: in all.
            seconds: of training since the phase began, compilation left out.
        """
        seconds = max(seconds, 1e-9)
        known, rate = self.phases + share, self.before.env_steps_per_second
        each = (self.seconds + seconds) / known if known else math.nan
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
    """Return phases rounded down, so that only what is done is called done."""
    return f"{math.floor(phases * 10 + 1e-6) / 10:g}"


def health_line(health: Mapping[str, float]) -> str:
    """Return the newest metrics by short names; the entropy beside its largest possible value."""
    parts: list[str] = []
    for name, value in health.items():
        if name == "entropy_max":
            continue
        words, decimals = HEALTH.get(name, (name.replace("_", " "), 3))
        text = f"{words} {decimal(value, decimals)}"
        if name == "entropy" and "entropy_max" in health:
            text += f"/{health['entropy_max']:.{decimals}f}"
        parts.append(text)
    return " · ".join(parts)


def decimal(value: float, decimals: int, style: str = "") -> str:
    """Return a number with so many decimals, but one of very many digits as 2e+31."""
    return f"{value:g}" if abs(value) >= VERY_LARGE else f"{value:{style}.{decimals}f}"


def time_and_speed(progress: Progress) -> str:
    """Return the time to go and the speed, if they are known."""
    if math.isnan(progress.eta_seconds):
        return "the time to go is known after the first phase"
    rate = f"{progress.env_steps_per_second:,.0f} env steps/s"
    if progress.phase == progress.phases:
        return rate
    return f"{duration(progress.eta_seconds)} to go · {rate}"
