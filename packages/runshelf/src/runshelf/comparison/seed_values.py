"""One value for each seed of each environment: what all statistics of a comparison are made of.

The unit is the training run of one seed. Episodes and records are averaged within it first, so they
can never pass for runs.
"""

import contextlib
import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from runshelf.comparison.sides import Side
from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.index.grouping import Sample, samples
from runshelf.index.identity import without_seeds
from runshelf.index.rows import Repeat, RunRow
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.outlines import (
    MANY,
    Outline,
    is_outlined,
    read_outlines,
    write_outlines,
)
from runshelf.store.results import result_metric, usual_first
from runshelf.store.summary import summarise

UNNAMED = "unnamed environment"  # of runs that do not say where they were trained
# A run in one of these states ended without finishing its work by itself.
CRASHED = ("failed", "lost")
CUT = ("interrupted", "stopped")

_MOST_READ = 5  # runs whose metrics are listed for a message
OnRead = Callable[[int, int], None]


@final
@dataclass(frozen=True)
class SeedValue:
    """The value of one seed.

    Attributes:
        run: the short form of the run's id.
        seed: the seed; None if the run does not say.
        value: the mean of the metric in the final window; NaN for a failure without values.
        area: the mean height of the curve; NaN where a value is NaN.
        failure: why it counts as a failure; empty if it does not.
        outline: its curve; None without values.
        state: the state of its run.
        folder: the folder of its run.
        manifest: what the run's manifest says of registration and sweep, when it was created, and
            a digest of its settings without seeds.
    """

    run: str
    seed: int | None
    value: float
    area: float
    failure: str
    outline: Outline | None
    state: str
    folder: Path
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """Its name: the seed, or the run if the seed is unknown."""
        return f"run {self.run}" if self.seed is None else f"seed {self.seed}"

    @property
    def is_tuning(self) -> bool:
        """Whether it was used to choose settings."""
        return is_tuning(self.manifest)


@final
@dataclass(frozen=True)
class SideValues:
    """The values of one side.

    Attributes:
        side: the side.
        values: the values of its seeds by environment.
        repeats: seeds of runs that are not counted, since another run has them.
        running: the number of runs that are left out because they have not ended.
        pooled: the groups that it consists of.
    """

    side: Side
    values: dict[str, list[SeedValue]]
    repeats: list[Repeat]
    running: int
    pooled: list[str]


def values_of(
    sides: Sequence[Side],
    metric: str,
    window: int,
    on_read: OnRead | None = None,
    *,
    keeps: bool = True,
) -> list[SideValues]:
    """Return one value for each seed of each environment of each side.

    Args:
        sides: the sides.
        metric: the metric.
        window: the value of a seed is the mean over the last `window` per cent of its curve.
        on_read: called with the number of seeds read, and of all.
        keeps: whether the outlines of long curves are written for the next time.

    Raises:
        UsageError: no run of a side has the metric, or no environment is common to two sides.
        UserFacingError: a file cannot be read.
    """
    total = sum(len(side.rows) for side in sides)
    done = 0
    found: list[SideValues] = []
    for side in sides:
        ended = [row for row in side.rows if row.state != "running"]
        by_env: dict[str, list[RunRow]] = {}
        for row in ended:
            by_env.setdefault(row.env or UNNAMED, []).append(row)
        values: dict[str, list[SeedValue]] = {}
        repeats: list[Repeat] = []
        for env in sorted(by_env):
            counted = samples(by_env[env])
            repeats += counted.repeats
            values[env] = _read_all(counted.counted, metric, window)
            if keeps:
                _keep_outlines(by_env[env], values[env])
            done += len(by_env[env])
            if on_read:
                on_read(done, total)
        _check(side, ended, values, metric)
        groups = list(dict.fromkeys(row.group for row in ended))
        running = len(side.rows) - len(ended)
        found.append(SideValues(side, values, repeats, running, groups))
    return _in_same_environment(found)


def common_metric(sides: Sequence[Side], named: str | None) -> str:
    """Return the result metric of most runs that every side has.

    Args:
        sides: the sides.
        named: the metric that the user has named for the home.

    Raises:
        UsageError: no metric is common to all sides.
    """
    results = [[row.result.metric for row in side.rows if row.result] for side in sides]
    everywhere = set(results[0]).intersection(*results[1:]) if results else set[str]()
    if everywhere:
        every = [metric for of in results for metric in of]
        return max(sorted(everywhere), key=lambda one: (one == named, every.count(one)))
    known = [_metrics(side) for side in sides]
    shared = set(known[0]).intersection(*known[1:])
    metric = result_metric(dict.fromkeys(shared, 1), named)
    if metric is None:
        lists = "; ".join(
            f"{side.label}: {', '.join(usual_first(names)[:5]) or 'none'}"
            for side, names in zip(sides, known, strict=True)
        )
        raise UsageError(f"no metric is common to all groups ({lists}); try --metric NAME")
    return metric


@functools.lru_cache(maxsize=50_000)  # a registration is looked for before the values are read
def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the part of a run's manifest that a comparison looks at; empty if it is damaged."""
    try:
        whole = parse_record(read_whole(folder, "run.json") or b"")
    except (ValueError, UserFacingError):
        return {}
    kept = {key: whole[key] for key in ("registered", "sweep", "tuning", "created") if key in whole}
    settings = json.dumps(without_seeds(whole.get("config")), sort_keys=True, default=str)
    return kept | {"settings": hash(settings)}


def is_tuning(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run was used to choose settings: it says so, or its sweep does."""
    sweep = manifest.get("sweep")
    purpose = sweep.get("purpose") if isinstance(sweep, Mapping) else None
    return manifest.get("tuning") is True or purpose == "tuning"


def _read_all(counted: Iterable[Sample], metric: str, window: int) -> list[SeedValue]:
    found: list[SeedValue] = []
    by_run: dict[str, tuple[RunRow, list[int | None]]] = {}
    for row, seed in counted:
        by_run.setdefault(row.ulid, (row, []))[1].append(seed)
    for row, seeds in by_run.values():
        found += _of_run(row, seeds, metric, window)
    return sorted(found, key=lambda one: (one.seed is None, one.seed or 0, one.run))


def _of_run(row: RunRow, seeds: Sequence[int | None], metric: str, window: int) -> list[SeedValue]:
    """Return the values of the counted seeds of one run."""
    outlines = read_outlines(row.folder, metric)
    about = manifest_of(row.folder)
    if seeds == [None]:  # the run does not say its seeds, but its records may
        seeds = [seed for seed in outlines if seed is not None] or [None]
    found: list[SeedValue] = []
    for seed in seeds:
        one = outlines.get(seed)
        if one is None and len(seeds) == 1:  # records of a single seed need not repeat it
            one = outlines.get(None)
        value = math.nan if one is None else one.last(window)
        area = math.nan if one is None else one.area
        failure = _failure(row, one, value, metric)
        found.append(
            SeedValue(
                run=row.short,
                seed=seed,
                value=value,
                area=area,
                failure=failure,
                outline=one,
                state=row.state,
                folder=row.folder,
                manifest=about,
            )
        )
    return found


def _failure(row: RunRow, one: Outline | None, value: float, metric: str) -> str:
    if row.state in CRASHED:
        return f"{row.state}: {row.note}" if row.note else row.state
    if one is None:
        return f"no value of {metric}"
    if not math.isfinite(value):
        return "NaN in the final window" if math.isnan(value) else "infinite in the final window"
    return ""


def _keep_outlines(rows: Sequence[RunRow], values: Sequence[SeedValue]) -> None:
    """Write the outlines of runs with many values, if they are not written yet."""
    sizes: dict[Path, int] = {}
    for one in values:
        if one.outline:
            sizes[one.folder] = sizes.get(one.folder, 0) + one.outline.values
    for row in rows:
        if sizes.get(row.folder, 0) >= MANY and not is_outlined(row.folder):
            with contextlib.suppress(UserFacingError):  # the folder cannot be written
                write_outlines(row.folder)


def _check(
    side: Side, ended: Sequence[RunRow], values: Mapping[str, Sequence[SeedValue]], metric: str
) -> None:
    if not ended:
        raise UsageError(f"all runs of `{side.label}` are still running: wait until one has ended")
    if any(one.outline for of in values.values() for one in of):
        return
    known = usual_first(_metrics(side))
    if metric in known or all(row.state in CRASHED for row in ended):
        return  # every seed is a failure, which is said
    hint = did_you_mean(metric, known) or f": known are {', '.join(known[:10]) or 'none'}"
    raise UsageError(f"no run of `{side.label}` has a metric `{metric}`{hint}")


def _metrics(side: Side) -> list[str]:
    names: dict[str, None] = {}
    for row in side.rows[:_MOST_READ]:
        try:
            names |= dict.fromkeys(summarise(row.folder))
        except UserFacingError:
            continue
    return list(names)


def _in_same_environment(sides: list[SideValues]) -> list[SideValues]:
    """Let logs that do not name their environment have the one of the others, if it is only one.

    Raises:
        UsageError: no environment is common to two sides.
    """
    named = {env for one in sides for env in one.values if env != UNNAMED}
    if len(named) == 1:
        (env,) = named
        for one in sides:
            if list(one.values) == [UNNAMED]:
                one.values[env] = one.values.pop(UNNAMED)
                one.side.notes.append(f"its logs name no environment: taken for {env}")
    counts = [env for one in sides for env in one.values]
    if len(sides) > 1 and max(map(counts.count, counts)) < 2:
        lists = "; ".join(f"`{one.side.label}`: {', '.join(one.values)}" for one in sides)
        raise UsageError(f"no environment is common to two groups ({lists})")
    return sides
