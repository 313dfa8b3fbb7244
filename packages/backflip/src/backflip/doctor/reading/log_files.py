"""Reads logs of other libraries: event files of TensorBoard, CSV files, and files of W&B."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.log import SAVED, Log, Signal
from backflip.doctor.reading.from_settings import with_settings
from backflip.doctor.reading.guessing import (
    algorithm_of,
    number_of_actions,
    with_action_values,
    with_loss_of_q,
)
from backflip.doctor.reading.naming import Logged, named
from backflip.doctor.reading.saved_models import unneeded_mib
from backflip.doctor.reading.single_returns import monitored, unrolled
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop.csv_files import Csv, read_csv
from runshelf.interop.event_columns import Column
from runshelf.interop.event_files import Settings
from runshelf.interop.import_tables import STEPS
from runshelf.interop.log_folders import LogFolder, NoLogs, find_log_folders, without_unreadable
from runshelf.interop.log_survey import columns_of, parse_folder_name, text_of
from runshelf.interop.neighbours import joined
from runshelf.interop.wandb_files import find_wandb_files, read_wandb
from runshelf.snapshot.command_settings import parse_value

# Endings of files that are read as CSV, alone and in a folder without any other log. In a folder,
# text files are left out: few of them are logs.
_TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_TABLES_IN_FOLDERS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_MOST_TABLES = 1_000
MOST_COLUMNS, MOST_SHOWN = 4, 40  # columns, and characters of a value, in a note
_OF_MONITOR = ("r", "l", "t")
_CONSTANTS = {"clip_range": "train/clip_range"}  # settings by the series that log them
_COUNT = "time/episodes"  # until each line, of Stable-Baselines3
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
    if path.is_file() and _is_table(path.name, _TABLES):
        return [_of_table(path, mapping)]
    notes = list[str]()
    found = _of_wandb(path, mapping, notes)
    for whole in joined(_folders(path, notes)):
        source, bad = without_unreadable(whole)
        said = [*notes, *(file.why for file in bad)]
        if source.files:
            found.append(_of_folder(source, said, mapping))
        elif len(bad) == 1:
            raise DamagedFile(bad[0].why)
        else:
            notes += [file.why for file in bad]
    found = found or _of_tables(path, mapping, notes)
    if not found and not notes:
        raise UsageError(f"there is no log in `{path}` that can be read; readable are {READABLE}")
    if not found:
        raise UserFacingError(f"no log in `{path}` can be read: {'; '.join(notes)}")
    return found


def _folders(path: Path, notes: list[str]) -> list[LogFolder]:
    """Return folders of event files, `progress.csv` and `monitor.csv`; empty if there are none."""
    try:
        return find_log_folders(path, notes.append)
    except NoLogs:
        return []


def _is_table(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether a file is read as CSV; files of a monitor belong together."""
    return name.endswith(endings) and not f".{name}".endswith(".monitor.csv")


def _of_tables(path: Path, mapping: Mapping[str, str], notes: list[str]) -> list[Log]:
    """Return the log of each CSV file in a folder; those that cannot be read are noted."""
    found = list[Log]()
    for file in _tables(path):
        try:
            found.append(_of_table(file, mapping))
        except DamagedFile as error:
            notes.append(str(error))
    return found


def _tables(path: Path) -> list[Path]:
    """Return the CSV files below a folder; links and pipes are left out."""
    walked = os.walk(path, followlinks=False)
    files = (Path(at) / name for at, _, names in walked for name in names)
    named = (one for one in files if _is_table(one.name, _TABLES_IN_FOLDERS))
    found = sorted(one for one in named if one.is_file() and not one.is_symlink())
    if len(found) > _MOST_TABLES:
        raise UsageError(f"`{path}` has more than {_MOST_TABLES} CSV files: name a subfolder")
    return found


def _of_table(path: Path, mapping: Mapping[str, str]) -> Log:
    said = list[str]()
    table = read_csv(path)
    if {*_OF_MONITOR} <= {*table.names}:
        logged = _of_monitors([path], said)
    else:
        logged = _of_csv(path, table, said)
    log = _log(path, str(path), logged, _settings_of(table.head), said, mapping)
    algorithm = table.head.get("algorithm")
    return replace(log, algorithm=str(algorithm)) if algorithm else log


def _of_wandb(path: Path, mapping: Mapping[str, str], notes: list[str]) -> list[Log]:
    """Return the log of each file of W&B; those that cannot be read are noted."""
    found = list[Log]()
    for file in find_wandb_files(path):
        try:
            kept = read_wandb(file)
        except DamagedFile as error:
            notes.append(str(error))
            continue
        said = list[str]()
        if kept.damage.count:
            said.append(f"`{file.name}`: {kept.damage.count} records skipped; {kept.damage.first}")
        logged = _of_wandb_rows(kept.rows)
        times = logged.pop("_runtime", None)
        named_as = LogFolder(file.parent / (kept.name or file.stem), [file.name])
        log = _log(file, str(file), logged, kept.config, said, mapping, named_as)
        if times is not None and "seconds" not in log.signals:
            seconds = Signal(times.x, times.y, "_runtime")
            log = replace(log, signals={**log.signals, "seconds": seconds})
        found.append(log)
    return found


def _of_wandb_rows(rows: list[dict[str, float]]) -> dict[str, Logged]:
    """Return columns over env steps; a row without env steps has those of the row before."""
    names = {name for row in rows for name in row}
    axis = next((name for name in STEPS if name in names), "_step")
    at = math.nan
    for row in rows:
        at = row.setdefault(axis, at)
    found = _columns(rows, axis)
    return {name: found[name] for name in found if name not in ("_step", "_timestamp")}


def _settings_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in the first line of a file of `DoctorCallback`, or of a monitor."""
    settings = facts.get("settings")
    env = text_of(facts.get("env_id"))
    about = {} if env is None else {"env_id": env}
    return about | (dict(settings) if isinstance(settings, dict) else {})


def _of_folder(source: LogFolder, notes: list[str], mapping: Mapping[str, str]) -> Log:
    settings = dict[str, Any]()
    logged = _of_events(source, settings, notes)
    if source.progress:
        logged = _of_csv(source.progress, read_csv(source.progress), notes) | logged
    episodes = _of_monitors(source.monitors, notes) if source.monitors else {}
    if "rollout/ep_rew_mean" not in logged:
        logged |= episodes
    for path in source.monitors[:1]:  # of one training: all have the same environment
        settings = _settings_of(read_csv(path).head) | settings
    log = _log(source.folder, str(source.folder), logged, settings, notes, mapping, source)
    if episodes and log.library == "sb3":
        returns, lengths = (Signal(*episodes[name], name) for name in ("r", "l"))
        log = monitored(log, returns, lengths, len(source.monitors))
    saved = unneeded_mib(source.folder)
    if saved is None:
        return log
    signal = Signal(np.asarray([log.end]), np.asarray([saved]), SAVED)
    return replace(log, signals={**log.signals, SAVED: signal})


def _log(
    path: Path,
    name: str,
    logged: Mapping[str, Logged],
    settings: Mapping[str, Any],
    notes: list[str],
    mapping: Mapping[str, str],
    source: LogFolder | None = None,
) -> Log:
    found = named(logged, mapping)
    about = parse_folder_name(source or LogFolder(path.parent, [path.name]))
    config = {**_constants(logged), **about.config, **settings}
    signals = with_loss_of_q(found.library, with_action_values(found.library, found.signals))
    if _COUNT in logged:
        signals = unrolled(signals, Signal(*logged[_COUNT], _COUNT))
    actions = number_of_actions(signals)
    if actions is not None:
        config.setdefault("actions", actions)
    written = _algorithm(about.algorithm or config.get("exp_name"))
    algorithm = written or algorithm_of(found.library, signals)
    planned = config.get("total_timesteps")
    return with_settings(
        Log(
            name,
            found.library,
            signals,
            found.unknown,
            algorithm,
            about.env or config.get("env_id"),
            config,
            float(planned) if isinstance(planned, int | float) else math.nan,
            (*notes, *found.notes),
        )
    )


def _constants(logged: Mapping[str, Logged]) -> dict[str, Any]:
    """Return settings that a library logs as series, by its names; only of those that stay."""
    found = {name: logged[series].y for name, series in _CONSTANTS.items() if series in logged}
    return {name: float(y[0]) for name, y in found.items() if len(y) and np.all(y == y[0])}


def _algorithm(name: object) -> str | None:
    """Return the algorithm in a name such as `ppo_continuous_action`; None if there is none."""
    known = ("ppo", "a2c", "dqn", "ddpg", "td3", "sac", "vpg")
    words = re.split(r"[^a-z0-9]+", str(name or "").lower())
    return next((word for word in words if word in known), None)


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
    return {tag: _joined(columns) for tag, columns in parts.items()}


def _joined(columns: Sequence[Column]) -> Logged:
    """Return the numbers of a tag in several event files."""
    x = np.concatenate([column.steps for column in columns]).astype(np.float64)
    return Logged(x, np.concatenate([column.values for column in columns]))


def _settings_in(text: str) -> dict[str, Any]:
    rows = _TABLE_ROW.findall(text)
    return {name.strip(): parse_value(value.strip()) for name, value in rows[2:]}


def _of_csv(path: Path, table: Csv, notes: list[str]) -> dict[str, Logged]:
    """Return the columns of a CSV file over its env steps, or over the numbers of its rows."""
    rows = list(table.rows)
    if table.broken:
        notes.append(f"`{path.name}`: {len(table.broken)} broken lines were left out")
    if not rows:
        notes.append(f"`{path.name}` has no rows")
    axis = next((name for name in STEPS if name in table.names), None)
    if axis is None:
        notes.append(f"`{path.name}` has no env steps: rows are counted instead")
    notes += _without_numbers(path, rows, axis)
    return _columns(rows, axis)


def _without_numbers(
    path: Path, rows: Sequence[Mapping[str, float | str]], axis: str | None
) -> list[str]:
    """Return sentences about env steps, and about all values, that are not finite numbers."""
    first: dict[str, float | str] = {}
    finite = set[str]()
    for row in rows:
        first = {**row, **first}
        finite |= {n for n, x in row.items() if not isinstance(x, str) and math.isfinite(x)}
    held = {name: f"`{name}` holds `{str(x)[:MOST_SHOWN]}`" for name, x in first.items()}
    steps, said = held.pop(axis or "", ""), list[str]()
    if steps and axis not in finite:
        said.append(f"`{path.name}`: no row has env steps: {steps}, which is not a finite number")
    if rows and not finite - {axis}:
        shown = ", ".join([*held.values()][:MOST_COLUMNS]) or "all cells are empty"
        more = f", and {len(held) - MOST_COLUMNS} more" if len(held) > MOST_COLUMNS else ""
        said.append(f"`{path.name}`: no column has a finite number to check: {shown}{more}")
    return said


def _columns(rows: Sequence[Mapping[str, float | str]], axis: str | None) -> dict[str, Logged]:
    """Return the numbers of rows over one of them, or over the numbers of the rows."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for number, row in enumerate(rows, 1):
        at = row.get(axis, math.nan) if axis else number
        if isinstance(at, str):
            continue
        for name, value in row.items():
            if not isinstance(value, str):
                x, y = found.setdefault(name, ([], []))
                x.append(at)
                y.append(value)
    return {
        name: Logged(np.asarray(x, np.float64), np.asarray(y, np.float64))
        for name, (x, y) in found.items()
    }


def _of_monitors(paths: Sequence[Path], notes: list[str]) -> dict[str, Logged]:
    """Return the episodes of monitor files, over the env steps of all environments together."""
    episodes = list[tuple[float, float, float]]()
    for path in paths:
        for row in read_csv(path, _OF_MONITOR).rows:
            episodes.append((float(row["t"]), float(row["r"]), float(row["l"])))
    if not episodes:
        notes.append("the monitor files hold no episode")
        return {}
    times, returns, lengths = np.asarray(sorted(episodes), np.float64).T
    x = np.cumsum(lengths)
    return {"r": Logged(x, returns), "l": Logged(x, lengths), "t": Logged(x, times)}
