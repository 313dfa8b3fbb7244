"""What must be equal, or said, before two sides are compared: seeds, budgets, lengths, failures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, final

from runshelf.comparison.groups import differences
from runshelf.comparison.seed_values import CUT, SeedValue, SideValues
from runshelf.errors import UsageError
from runshelf.formatting import count, plural
from runshelf.store.run import open_run

_NEAR = 0.02  # lengths and budgets that differ by less are the same
_MOST_NAMED = 5


@final
class Budget(NamedTuple):
    """What a side spent in one environment.

    Attributes:
        side: the label of the side.
        env: the environment.
        env_steps: the median of the last position on the curves of its seeds; NaN without curves.
        shortest: the shortest curve.
        longest: the longest curve.
        configurations: how many configurations its sweep tried; None if no sweep says so.
    """

    side: str
    env: str
    env_steps: float
    shortest: float
    longest: float
    configurations: int | None


def check_tuning(sides: Sequence[SideValues], *, allowed: bool) -> list[str]:
    """Return what to say about seeds that were used to choose settings.

    Raises:
        UsageError: there are such seeds, and the user has not allowed them.
    """
    notes: list[str] = []
    for one in sides:
        seeds = [seed for of in one.values.values() for seed in of]
        tuning = [seed for seed in seeds if seed.is_tuning]
        if not tuning:
            continue
        label = one.side.label
        if len(tuning) < len(seeds):
            what = (
                f"`{label}` mixes {len(tuning)} tuning seeds with {len(seeds) - len(tuning)} others"
            )
        else:
            what = f"all {len(seeds)} seeds of `{label}` are tuning seeds"
        if not allowed:
            raise UsageError(
                f"{what}: its settings were chosen because they did well on these seeds, so they "
                "flatter it. Run new seeds, or add --allow-tuning-seeds to compare all the same"
            )
        notes.append(f"{what}: its settings were chosen on them, so its values are too good")
    return notes


def budgets(sides: Sequence[SideValues]) -> list[Budget]:
    """Return what each side spent in each environment."""
    return [
        _budget(one.side.label, env, seeds) for one in sides for env, seeds in one.values.items()
    ]


def notes_on(sides: Sequence[SideValues], metric: str) -> list[str]:
    """Return what a reader must know about the seeds, one sentence each."""
    notes: list[str] = []
    for one in sides:
        notes += _on_side(one, metric)
    notes += _on_budgets(budgets(sides))
    return notes + _on_pairs(sides)


def _budget(label: str, env: str, seeds: Iterable[SeedValue]) -> Budget:
    seeds = list(seeds)
    ends = sorted(one.outline.end for one in seeds if one.outline)
    middle = ends[len(ends) // 2] if ends else math.nan
    tried = [n for one in seeds if (n := _configurations(one.manifest)) is not None]
    least, most = (ends[0], ends[-1]) if ends else (math.nan, math.nan)
    return Budget(label, env, middle, least, most, max(tried, default=None))


def _configurations(manifest: Mapping[str, object]) -> int | None:
    """Return the number of configurations that the sweep of a run tried, if it says so."""
    sweep = manifest.get("sweep")
    tried = sweep.get("tried") if isinstance(sweep, Mapping) else None
    return tried if type(tried) is int and tried > 0 else None


def _on_side(one: SideValues, metric: str) -> list[str]:
    label, notes = one.side.label, [f"{one.side.label}: {note}" for note in one.side.notes]
    if one.running:
        notes.append(f"{label}: {plural(one.running, 'run')} still running, left out")
    if one.repeats:
        seeds = plural(len(one.repeats), "repeated seed")
        notes.append(f"{label}: {seeds} not counted; each seed counts once, in its newest run")
    if len(one.pooled) > 1:
        named = ", ".join(f"`{group}`" for group in one.pooled[:_MOST_NAMED])
        more = f" and {len(one.pooled) - _MOST_NAMED} more" if len(one.pooled) > _MOST_NAMED else ""
        notes.append(f"{label} pools {len(one.pooled)} groups: {named}{more}")
    for env, seeds in one.values.items():
        found = [*_on_settings(seeds), *_on_seeds(seeds, metric)]
        notes += [f"{label}, {env}: {note}" for note in found]
    return notes


def _on_settings(seeds: Sequence[SeedValue]) -> list[str]:
    """Return a note if the seeds of one side are of different settings."""
    newest = {one.manifest.get("settings"): one.folder for one in seeds}
    if len(newest) < 2:
        return []
    runs = [open_run(folder) for folder in list(newest.values())[:_MOST_NAMED]]
    apart = [str(one) for one in differences(runs) if one.separates]
    return [f"its seeds are of {len(newest)} different settings: {'; '.join(apart)}"]


def _on_seeds(seeds: Sequence[SeedValue], metric: str) -> list[str]:
    notes: list[str] = []
    failed = [one for one in seeds if one.failure]
    if failed:
        why = ", ".join(f"{one.name} ({one.failure})" for one in failed[:_MOST_NAMED])
        more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
        notes.append(f"{len(failed)} of {len(seeds)} seeds count as failures: {why}{more}")
    good = [one for one in seeds if not one.failure]
    if cut := [one for one in good if one.state in CUT]:
        named = ", ".join(one.name for one in cut[:_MOST_NAMED])
        notes.append(f"{named}: stopped before the end, with the values up to there")
    if early := [one for one in good if one.outline and one.outline.invalid]:
        named = ", ".join(one.name for one in early[:_MOST_NAMED])
        notes.append(f"{named}: NaN or infinite before the final window")
    if len(good) > 1 and len({one.value for one in good}) == 1:
        notes.append(
            f"all {len(good)} seeds have the same value of {metric}: is the seed used, and does "
            "the metric vary?"
        )
    if len(seeds) == 1:
        notes.append("one seed: nothing can be said about the spread of its values")
    ends = [one.outline.end for one in good if one.outline]
    if ends and min(ends) < (1 - _NEAR) * max(ends):
        notes.append(
            f"curves of unequal length ({count(round(min(ends)))} to {count(round(max(ends)))}): "
            "each value is from the end of its own curve"
        )
    return notes


def _on_budgets(found: Sequence[Budget]) -> list[str]:
    notes: list[str] = []
    for env in dict.fromkeys(one.env for one in found):
        here = [one for one in found if one.env == env]
        known = [one for one in here if math.isfinite(one.env_steps)]
        steps = [one.env_steps for one in known]
        if len(steps) > 1 and min(steps) < (1 - _NEAR) * max(steps):
            named = ", ".join(f"{one.side} {count(round(one.env_steps))}" for one in known)
            notes.append(f"{env}: unequal budgets, env steps of the median seed: {named}")
        tried = {one.side: one.configurations for one in here}
        if len({*tried.values()}) > 1:
            named = ", ".join(f"{side} {n or 'unknown'}" for side, n in tried.items())
            notes.append(f"{env}: unequal tuning, configurations tried: {named}")
    return notes


def _on_pairs(sides: Sequence[SideValues]) -> list[str]:
    """Return a note if seeds have the same numbers on two sides."""
    for env in dict.fromkeys(env for one in sides for env in one.values):
        here = [{s.seed for s in one.values.get(env, ()) if s.seed is not None} for one in sides]
        shared = [seed for seed in here[0] for of in here[1:] if seed in of]
        if shared:
            return [
                "the same seed numbers occur on several sides: they are treated as independent, "
                "not as pairs"
            ]
    return []
