"""How far a run is, and how that is said on one line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# What health is called on one line, and how many decimals it needs.
HEALTH = {
    "episode_return_mean": ("true return", 1),
    "entropy": ("entropy", 2),
    "approx_kl": ("KL", 4),
    "explained_variance": ("explained variance", 2),
    "grad_norm": ("gradient", 2),
    "labels": ("labels", 0),
}


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        phase: phases done.
        phases: phases in all.
        env_steps: env steps done, of each seed.
        env_steps_per_second: in the last phase, all seeds together, compilation left out.
        eta_seconds: until training ends, going on as in this sitting.
        health: newest metrics, averaged over the seeds that have them.
        note: something to tell the user once, or None.
        waiting_for: what work cannot go on without at the moment, or nothing.
    """

    phase: int
    phases: int
    env_steps: int
    env_steps_per_second: float
    eta_seconds: float
    health: Mapping[str, float]
    note: str | None = None
    waiting_for: str = ""


Report = Callable[[Progress], None]


def plain_line(progress: Progress) -> str:
    """Return everything about the progress on one line."""
    parts = [
        f"{progress.phase}/{progress.phases}",
        f"{progress.env_steps:,} env steps",
        ahead(progress),
        health_line(progress.health),
    ]
    return " · ".join(part for part in parts if part)


def health_line(health: Mapping[str, float]) -> str:
    """Return the newest metrics by short names; the entropy beside its largest possible value."""
    parts: list[str] = []
    for name, value in health.items():
        if name == "entropy_max":
            continue
        words, decimals = HEALTH.get(name, (name.replace("_", " "), 3))
        text = f"{words} {value:.{decimals}f}"
        if name == "entropy" and "entropy_max" in health:
            text += f"/{health['entropy_max']:.{decimals}f}"
        parts.append(text)
    return " · ".join(parts)


def ahead(progress: Progress) -> str:
    """Return the time to go and the speed."""
    rate = f"{progress.env_steps_per_second:,.0f} env steps/s"
    if progress.phase == progress.phases:
        return rate
    return f"{duration(progress.eta_seconds)} to go · {rate}"


def duration(seconds: float) -> str:
    """Return seconds as a person says them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
