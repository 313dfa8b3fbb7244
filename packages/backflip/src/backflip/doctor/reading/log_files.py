"""Reads logs of other libraries: event files of TensorBoard, CSV files, and files of W&B."""

import math
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.log import CALLS, OF_ENVS, ROWS, SAVED, Log, Signal
from backflip.doctor.reading.interpreting import (
    RUNTIME,
    interpreted,
    series_of,
    with_episodes,
    with_seconds,
)
from backflip.doctor.reading.naming import Logged
from backflip.doctor.reading.saved_models import unneeded_mib
from backflip.doctor.reading.scalar_files import scalars_in
from backflip.doctor.reading.step_counts import placed
from backflip.doctor.reading.tables import (
    OF_MONITOR,
    columns,
    notes_of,
    of_monitors,
    steps_of,
    trainings,
)
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop.csv_files import read_csv
from runshelf.interop.event_columns import Column
from runshelf.interop.event_files import Settings
from runshelf.interop.import_tables import wandb_steps
from runshelf.interop.log_folders import LogFolder, NoLogs, find_log_folders, without_unreadable
from runshelf.interop.log_survey import FolderName, columns_of, parse_folder_name, text_of
from runshelf.interop.metric_names import library_of
from runshelf.interop.neighbours import joined
from runshelf.interop.spinup_files import spinup_settings
from runshelf.interop.wandb_files import find_wandb_files, read_wandb
from runshelf.snapshot.command_settings import parse_value
from runshelf.store.machine_metrics import is_of_machine
from runshelf.store.paths import is_file

# Endings of files that are read as CSV, alone and in a folder without any other log. In a folder,
# text files are left out: few of them are logs.
_TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_TABLES_IN_FOLDERS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
OF_CALLBACK = "doctor.csv"  # the usual file of `backflip.doctor.sb3.DoctorCallback`
_MOST_TABLES = 1_000
READABLE = (
    "event files of TensorBoard (`*tfevents*`), files of W&B (`*.wandb`), and CSV files (`.csv`, "
    "`.tsv` and `.txt`, also with `.gz`)"
)
_TABLE_ROW = re.compile(r"^\|?([^|]+)\|([^|]*)\|?$", re.MULTILINE)


def logs_in(path: Path, mapping: Mapping[str, str]) -> list[Log]:
    """Return the logs in a folder, or that of one file.

    Args:
        path: a folder, an event file, a file of W&B, or any CSV file.
        mapping: our names by logged names.

    Raises:
        UsageError: there is no log, or the mapping is wrong.
        UserFacingError: a file cannot be read.
    """
    if is_file(path) and _is_table(path.name, _TABLES):
        return _of_table(path, mapping)
    notes = list[str]()
    found = _of_wandb(path, mapping, notes)
    sources = [without_unreadable(whole) for whole in joined(_folders(path, notes))]
    notes += [file.why for source, bad in sources if not source.files for file in bad]
    for source, bad in sources:
        if source.files:
            found.append(_of_folder(source, [file.why for file in bad], mapping))
    used = {source.folder for source, _ in sources}
    found = _with_tables(found, used, path, mapping, notes)
    why = list(dict.fromkeys(notes))  # a `progress.csv` is tried as a table, too
    if found:
        kept = [one for one in found if not _is_of_machine(one)] or found
        return [replace(one, notes=(*why, *one.notes)) for one in kept]
    if not why:
        raise UsageError(f"there is no log in `{path}` that can be read; readable are {READABLE}")
    if len(why) == 1:
        raise DamagedFile(why[0])
    raise UserFacingError(f"no log in `{path}` can be read: {'; '.join(why)}")


def _is_of_machine(log: Log) -> bool:
    """Return whether a log is about the machine only, and has not even the speed of a training run.

    `backflip export` writes the machine's metrics of a run beside the folders of its seeds.
    """
    signals = [signal for name, signal in log.signals.items() if name != "seconds"]
    names = [*(signal.logged_as for signal in signals), *log.unknown]
    return not log.has("env_steps_per_second") and all(map(is_of_machine, names))


def _with_tables(
    found: list[Log], used: set[Path], path: Path, mapping: Mapping[str, str], notes: list[str]
) -> list[Log]:
    """Return logs of folders, and of CSV files that belong to none of them.

    A file of `DoctorCallback` has more than what the library logs beside it, and replaces that.
    Beside other logs, a CSV file counts if a name in it has a meaning. Those that cannot be read
    are noted.
    """
    if not found:
        return _of_tables(path, mapping, notes)
    try:
        tables = _tables(path)
    except UsageError as error:  # too many; the logs of libraries are enough
        notes.append(str(error))
        return found
    free = [one for one in tables if one.parent not in used]
    callbacks = [one for one in tables if one.parent in used and one.name == OF_CALLBACK]
    for file in (*free, *callbacks):
        logs = _beside_others(file, mapping, notes)
        if file in callbacks and logs:
            beside = [one for one in found if one.name == str(file.parent)]
            found = [one for one in found if one not in beside]
            said = f"`{file}` is read; it has more than what the library logs beside it"
            logs = [replace(one, notes=(*one.notes, said)) for one in logs]
        found += [one for one in logs if one.signals]
    return found


def _beside_others(path: Path, mapping: Mapping[str, str], notes: list[str]) -> list[Log]:
    """Return the logs of a CSV file that is beside other logs; empty if they are none of its own.

    If the file cannot be read, `notes` say why.
    """
    try:
        return [] if scalars_in(path) else _of_table(path, mapping)
    except UsageError:  # the mapping is about the other logs
        return []
    except UserFacingError as error:
        notes.append(str(error))
        return []


def _folders(path: Path, notes: list[str]) -> list[LogFolder]:
    """Return folders of event files, `monitor.csv`, `progress.csv` or `.txt`; empty without any."""
    try:
        return find_log_folders(path, notes.append)
    except NoLogs:
        return []


def _is_table(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether a file is read as CSV; files of a monitor belong together."""
    return name.endswith(endings) and not f".{name}".endswith(".monitor.csv")


def _of_tables(path: Path, mapping: Mapping[str, str], notes: list[str]) -> list[Log]:
    """Return the log of each CSV file in a folder; those that cannot be read are noted.

    Files of one name each, in a folder `scalars`, are one log.
    """
    found, folders = list[Log](), defaultdict[Path, dict[str, Logged]](dict)
    for file in _tables(path):
        try:
            scalars = scalars_in(file)
            if scalars is None:
                found += _of_table(file, mapping)
            else:
                folders[scalars.folder][scalars.name] = scalars.logged
        except UsageError:  # the mapping is wrong
            raise
        except UserFacingError as error:
            notes.append(str(error))
    return [*found, *(_of_scalars(at, logged, mapping) for at, logged in folders.items())]


def _of_scalars(folder: Path, logged: Mapping[str, Logged], mapping: Mapping[str, str]) -> Log:
    in_env_steps = placed(logged, mapping)
    notes = list(in_env_steps.notes)
    log = interpreted(str(folder), in_env_steps.logged, {}, notes, mapping, _about(folder))
    return replace(log, counts=in_env_steps.counts)


def _tables(path: Path) -> list[Path]:
    """Return the CSV files below a folder; links and pipes are left out."""
    walked = os.walk(path, followlinks=False)
    files = (Path(at) / name for at, _, names in walked for name in names)
    named = (one for one in files if _is_table(one.name, _TABLES_IN_FOLDERS))
    found = sorted(one for one in named if one.is_file() and not one.is_symlink())
    if len(found) > _MOST_TABLES:
        raise UsageError(f"`{path}` has more than {_MOST_TABLES} CSV files: name a subfolder")
    return found


def _of_table(path: Path, mapping: Mapping[str, str]) -> list[Log]:
    """Return the log of each training run of a CSV file."""
    table, said = read_csv(path), list[str]()
    if {*OF_MONITOR} <= {*table.names}:
        parts, has_steps = {"": of_monitors([path], said)}, True
    else:
        rows, axis = list(table.rows), steps_of(table.names, mapping)
        has_steps = axis is not None
        said += notes_of(path, table, rows, axis)
        parts = {name: columns(some, axis) for name, some in trainings(rows, axis).items()}
    found, algorithm = list[Log](), table.head.get("algorithm")
    for name, logged in parts.items():
        settings = _settings_of(table.head)
        if library_of(table.names) == "spinup":
            settings = spinup_settings(path.parent) | settings
        in_env_steps = placed(logged, mapping)
        notes = [*said, *in_env_steps.notes]
        log = interpreted(
            f"{path} {name}".strip(), in_env_steps.logged, settings, notes, mapping, _about(path)
        )
        log = replace(log, counts=in_env_steps.counts if has_steps else ROWS)
        found.append(replace(log, algorithm=str(algorithm)) if algorithm else log)
    return found


def _of_wandb(path: Path, mapping: Mapping[str, str], notes: list[str]) -> list[Log]:
    """Return the log of each file of W&B; those that cannot be read are noted."""
    found = list[Log]()
    for file in find_wandb_files(path):
        try:
            kept = read_wandb(file)
        except UserFacingError as error:
            notes.append(str(error))
            continue
        said = list[str]()
        if kept.damage.count:
            said.append(f"`{file.name}`: {kept.damage.count} records skipped; {kept.damage.first}")
        rows = _as_in_event_files(kept.rows)
        logged, counts, more = placed(_of_wandb_rows(rows, mapping), mapping)
        said, logged = [*said, *more], dict(logged)
        times = logged.pop(RUNTIME, None)
        about = parse_folder_name(LogFolder(file.parent / (kept.name or file.stem), [file.name]))
        log = interpreted(str(file), logged, kept.config, said, mapping, about)
        counts = CALLS if log.library == "unknown" and _are_calls(rows, mapping) else counts
        found.append(replace(with_seconds(log, times, RUNTIME), counts=counts))
    return found


def _about(path: Path) -> FolderName:
    return parse_folder_name(LogFolder(path.parent, [path.name]))


def _as_in_event_files(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return rows with `charts/SPS` for `charts.SPS`, if a library is known by such names.

    W&B names what is in nested dictionaries with dots.
    """
    names = {name for row in rows for name in row}
    if library_of(names) or not library_of(name.replace(".", "/") for name in names):
        return rows
    return [{name.replace(".", "/"): value for name, value in row.items()} for row in rows]


def _are_calls(rows: Sequence[Mapping[str, float]], mapping: Mapping[str, str]) -> bool:
    """Return whether rows are over W&B's own count of calls, 0, 1, 2, ...: no steps were given."""
    if steps_of({name for row in rows for name in row}, mapping) or wandb_steps(rows) != "_step":
        return False
    steps = [row["_step"] for row in rows if "_step" in row]
    return len(steps) > 1 and steps == list(range(len(steps)))


def _of_wandb_rows(rows: list[dict[str, float]], mapping: Mapping[str, str]) -> dict[str, Logged]:
    """Return columns over env steps; a row without env steps has those of the row before."""
    axis = steps_of({name for row in rows for name in row}, mapping) or wandb_steps(rows)
    at = math.nan
    for row in rows:
        at = row.setdefault(axis, at)
    found = columns(rows, axis)
    return {name: found[name] for name in found if name not in ("_step", "_timestamp")}


def _settings_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in the first line of a file of `DoctorCallback`, or of a monitor."""
    settings = facts.get("settings")
    env = text_of(facts.get("env_id"))
    about = {} if env is None else {"env_id": env}
    return about | (dict(settings) if isinstance(settings, dict) else {})


def _of_folder(source: LogFolder, notes: list[str], mapping: Mapping[str, str]) -> Log:
    settings = dict[str, Any]()
    logged, counts, said = placed(_of_events(source, settings, notes), mapping)
    notes, logged = [*notes, *said], dict(logged)
    times = logged.pop(RUNTIME, None)
    if source.progress:
        logged = _of_progress(source.progress, notes, mapping) | logged
    if library_of(logged) == "spinup":
        settings |= spinup_settings(source.folder)
    episodes = of_monitors(source.monitors, notes) if source.monitors else {}
    if "rollout/ep_rew_mean" not in logged:
        logged |= episodes
    for path in source.monitors[:1]:  # of one training run: all have the same environment
        settings = _settings_of(read_csv(path).head) | settings
    about = parse_folder_name(source)
    log = interpreted(str(source.folder), logged, settings, notes, mapping, about)
    said = (*log.notes, *_note_on_steps(log, source, mapping, counts))
    log = replace(with_seconds(log, times, "times of events"), counts=counts, notes=said)
    log = with_episodes(log, episodes, len(source.monitors))
    saved = unneeded_mib(source.folder)
    if saved is None:
        return log
    signal = Signal(np.asarray([log.end]), np.asarray([saved]), SAVED)
    return replace(log, signals={**log.signals, SAVED: signal})


def _note_on_steps(
    log: Log, source: LogFolder, mapping: Mapping[str, str], counts: str
) -> tuple[str, ...]:
    """Return a note if nothing says that the steps of event files are env steps."""
    is_known = log.library != "unknown" or "env_steps" in {*mapping.values(), *log.signals}
    if not source.events or not log.signals or is_known or counts != OF_ENVS:
        return ()
    return (
        "the steps of the events are taken for env steps; if they count something else, such as "
        "updates, shares of the budget are right, and what needs env steps is not",
    )


def _of_progress(path: Path, notes: list[str], mapping: Mapping[str, str]) -> dict[str, Logged]:
    table = read_csv(path)
    rows, axis = list(table.rows), steps_of(table.names, mapping)
    notes += notes_of(path, table, rows, axis)
    return columns(rows, axis)


def _of_events(source: LogFolder, settings: dict[str, Any], notes: list[str]) -> dict[str, Logged]:
    files = [columns_of(path, notes) for path in source.events]
    for entry in (entry for file in files for entry in file.others):
        if isinstance(entry.content, Settings):
            settings.update(entry.content.values)
        elif isinstance(entry.content, str) and entry.tag.startswith("hyperparameters"):
            settings.update(_settings_in(entry.content))
    parts: dict[str, list[Column]] = {}
    for tag, column in (pair for file in files for pair in file.numbers.items()):
        parts.setdefault(tag, []).append(column)
    return series_of(parts)


def _settings_in(text: str) -> dict[str, Any]:
    rows = _TABLE_ROW.findall(text)
    return {name.strip(): parse_value(value.strip()) for name, value in rows[2:]}
