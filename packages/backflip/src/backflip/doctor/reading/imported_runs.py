"""Reads runs that were imported from logs of other libraries, as the logs themselves are read.

An import keeps every series under its own name, and a copy under our name if it has an equivalent.
The copies are left out here: what a library means by its name is part of the diagnosis.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from backflip.doctor.log import Log
from backflip.doctor.reading.interpreting import (
    RUNTIME,
    interpreted,
    series_of,
    with_episodes,
    with_seconds,
)
from backflip.doctor.reading.naming import Logged
from backflip.doctor.reading.step_counts import placed
from backflip.doctor.reading.tables import OF_MONITOR, over_env_steps
from runshelf.interop.event_columns import Column as Events
from runshelf.interop.log_survey import FolderName
from runshelf.interop.metric_names import library_of, normaliser
from runshelf.store.columns import Column
from runshelf.store.run import Run
from runshelf.store.series import NOT_METRICS

MEANS = "rollout/ep_rew_mean"  # of Stable-Baselines3, beside which single episodes are no series
_MONITOR_FILE, _EVENT_FILE = "monitor.csv", "tfevents"


def log_of_import(run: Run, columns: Mapping[str, Column]) -> Log:
    """Return the log of an imported run.

    Args:
        run: the run.
        columns: its metrics.
    """
    episodes = _episodes(columns)
    left_out = NOT_METRICS | _copies(columns) | ({*OF_MONITOR} if episodes else set())
    own = [name for name in columns if name not in left_out]
    logged = series_of({name: [_events(columns, name)] for name in own})
    if MEANS not in logged:
        logged |= episodes
    in_env_steps = placed(logged, {})
    logged = dict(in_env_steps.logged)
    times = logged.pop(RUNTIME, None) if _files(run, _EVENT_FILE) else None
    logged.pop(RUNTIME, None)
    manifest = run.manifest
    name, notes = manifest.get("name") or run.short, in_env_steps.notes
    about = FolderName(manifest.get("env"), manifest.get("algorithm"), None, {})
    log = interpreted(name, logged, manifest["config"], notes, {}, about)
    log = replace(log, run=str(run.folder), counts=in_env_steps.counts)
    envs = max(1, len(_files(run, _MONITOR_FILE)))
    return with_episodes(with_seconds(log, times, "times of events"), episodes, envs)


def _copies(columns: Mapping[str, Column]) -> set[str]:
    """Return our names under which an import has written what it also has under its own name."""
    normalised = [normaliser(library_of(columns))]
    if {*OF_MONITOR} <= {*columns}:
        normalised.append(normaliser("monitor"))
    ours = ((name, one(name, 1.0)) for one in normalised for name in columns)
    return {one[0] for name, one in ours if one is not None and one[0] != name}


def _events(columns: Mapping[str, Column], name: str) -> Events:
    """Return the numbers of a name with their steps and times; rows without a step are left out."""
    column = columns[name]
    places = (columns[one].at(column.rows) for one in ("step", "env_steps") if one in columns)
    steps, known = np.zeros(len(column.rows)), np.zeros(len(column.rows), np.bool_)
    for found, has in places:
        steps, known = np.where(known, steps, found), known | has
    times = columns["time"].at(column.rows)[0] if "time" in columns else np.zeros(len(steps))
    return Events(
        times[known].astype(np.float64),
        steps[known].astype(np.int64),
        column.values[known].astype(np.float64),
    )


def _episodes(columns: Mapping[str, Column]) -> dict[str, Logged]:
    """Return the episodes of monitor files; empty if the run has none."""
    if not {*OF_MONITOR} <= {*columns}:
        return {}
    rows = columns["r"].rows
    found = [columns[name].at(rows) for name in ("t", "r", "l")]
    if not all(known.all() for _, known in found):
        return {}
    return over_env_steps(np.stack([values.astype(np.float64) for values, _ in found]))


def _files(run: Run, part: str) -> list[str]:
    """Return the imported files that have some text in their names."""
    files: list[object] = run.manifest["imported"].get("files") or []
    return [str(one) for one in files if part in str(one)]
