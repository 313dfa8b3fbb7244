"""Surveys a folder of logs before import: its names, times and configuration."""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.formatting import plural
from runshelf.interop.event_columns import Columns, read_columns
from runshelf.interop.event_files import Entry, Settings, read_entries
from runshelf.interop.log_folders import LogFolder, read_table
from runshelf.interop.metric_names import MEANINGS, Library, cautions, library_of, steps_in
from runshelf.interop.spinup_files import spinup_settings
from runshelf.interop.tfrecord import Damage
from runshelf.snapshot.command_settings import parse_value

# Tags with env steps as their steps, logged once an iteration.
_REGULAR = frozenset({"charts/SPS", "time/fps"})
_SB3_FOLDER = re.compile(r"(.+)_(\d+)")


class FolderName(NamedTuple):
    """Environment, algorithm, seed and configuration in a folder's name."""

    env: str | None
    algorithm: str | None
    seed: int | None
    config: dict[str, Any]


_NOTHING = FolderName(None, None, None, {})


def parse_folder_name(source: LogFolder) -> FolderName:
    """Parse a folder's name: CleanRL's `env__exp__seed__time`, SB3's `PPO_1`."""
    folders = [source.folder, *((source.folder / name).parent for name in source.files)]
    parsed = [_parse(Path(os.path.normpath(folder.absolute()))) for folder in folders]
    return next((one for one in parsed if one != _NOTHING), _NOTHING)


def _parse(folder: Path) -> FolderName:
    parts = folder.name.split("__")
    if len(parts) == 4 and parts[2].isdecimal() and parts[3].isdecimal():
        env, algorithm, seed = parts[0], parts[1], int(parts[2])
        if folder.parent.name == "ALE":
            env = f"ALE/{env}"
        return FolderName(env, algorithm, seed, {"exp_name": algorithm, "seed": seed})
    match = _SB3_FOLDER.fullmatch(parts[-1])
    if match and match[1].isupper():
        return FolderName(None, match[1].lower(), None, {})
    return _NOTHING


@final
@dataclass
class Survey:
    """The names, times and configuration in a folder of logs.

    Attributes:
        source: the folder.
        tags: the names in event files and in `progress.csv` or `progress.txt`.
        first, last: the earliest and latest time in Unix seconds; infinite if there is none.
        elapsed: the largest number of seconds since the beginning that a table has.
        config: the hyperparameters.
        env: the environment's id, if a file has it.
        steps: the two last env steps of a tag that is logged regularly; 0 if there are none.
        monitored: the env steps of all episodes in monitor files.
    """

    source: LogFolder
    tags: set[str] = field(default_factory=set[str])
    first: float = math.inf
    last: float = -math.inf
    elapsed: float = 0.0
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    env: str | None = None
    steps: tuple[int, int] = (0, 0)
    monitored: int = 0

    def reach(self, step: int) -> None:
        """Include an env step of a tag that is logged regularly."""
        previous, last = self.steps
        if step > last:
            self.steps = (last, step)
        elif previous < step < last:
            self.steps = (step, last)

    @property
    def library(self) -> Library:
        """The library that wrote the files; empty if unknown."""
        return library_of(self.tags)

    @property
    def kind(self) -> str:
        """The library, or the kind of files: `tensorboard`, `csv` or `monitor`."""
        if self.library or self.source.events:
            return self.library or "tensorboard"
        return "csv" if self.source.progress else "monitor"

    @property
    def seconds(self) -> float:
        """How long the training run took, as far as the files say it; 0 if they do not."""
        return max(self.last - self.first, self.elapsed, 0.0)

    def see(self, time: float) -> None:
        """Include a time in `first` and `last`."""
        if math.isfinite(time):
            self.first, self.last = min(self.first, time), max(self.last, time)

    def cautions(self) -> dict[str, str]:
        """Return cautions by name; the one about the whole log has an empty name."""
        of_monitor = cautions("monitor", "rlt") if self.source.monitors else {}
        return cautions(self.library, self.tags) | of_monitor


def survey_of(source: LogFolder) -> Survey:
    """Return the survey of a folder of logs."""
    survey = Survey(source)
    for path in source.events:
        for entry in entries_of(path, []):
            _survey_entry(survey, entry)
    if source.progress:
        _survey_progress(survey, source.progress)
    for path in source.monitors:
        table = read_table(path)
        survey.env = survey.env or text_of(table.head.get("env_id"))
        start = table.head.get("t_start")
        for row in table.rows:
            survey.monitored += length if isinstance(length := row["l"], int) else 0
            if isinstance(start, int | float) and isinstance(row.get("t"), int | float):
                survey.see(start + float(row["t"]))
    return survey


def _survey_progress(survey: Survey, path: Path) -> None:
    table = read_table(path)
    steps_name = steps_in(table.names)
    meanings = MEANINGS.get(library_of(table.names), {})
    clocks = [name for name in table.names if name in meanings and meanings[name].ours == "seconds"]
    for row in table.rows:
        for value in (row.get(name) for name in clocks):
            if isinstance(value, int | float) and math.isfinite(value):
                survey.elapsed = max(survey.elapsed, float(value))
        survey.tags.update(row)
        if isinstance(steps := row.get(steps_name), int):
            survey.reach(steps)
    if library_of(table.names) == "spinup":
        survey.config |= spinup_settings(path.parent)


def _survey_entry(survey: Survey, entry: Entry) -> None:
    survey.see(entry.time)
    if isinstance(entry.content, Settings):
        survey.config |= entry.content.values
    elif isinstance(entry.content, str) and entry.tag.startswith("hyperparameters"):
        survey.config |= _settings_of_table(entry.content)
    else:
        survey.tags.add(entry.tag)
        if entry.tag in _REGULAR:
            survey.reach(entry.step)


def _settings_of_table(text: str) -> dict[str, Any]:
    """Return the settings in CleanRL's table of `|param|value|` lines."""
    rows = (line.strip().removeprefix("|").removesuffix("|") for line in text.splitlines()[2:])
    pairs = (row.partition("|") for row in rows)
    return {name: parse_value(value) for name, bar, value in pairs if bar and name}


def entries_of(path: Path, notes: list[str]) -> Iterator[Entry]:
    """Yield a file's entries; add to `notes` which damaged records were skipped."""
    damage = Damage()
    yield from read_entries(path, damage)
    notes += _skipped(path, damage)


def columns_of(path: Path, notes: list[str]) -> Columns:
    """Return a file's entries as columns; add to `notes` which damaged records were skipped."""
    damage = Damage()
    found = read_columns(path, damage)
    notes += _skipped(path, damage)
    return found


def _skipped(path: Path, damage: Damage) -> list[str]:
    if not damage.count:
        return []
    records = plural(damage.count, "damaged record")
    return [f"`{path.name}`: {records} skipped; the first is {damage.first}"]


def text_of(value: object) -> str | None:
    """Return `value` if it is a text other than empty or `None`; else None."""
    return value if isinstance(value, str) and value and value != "None" else None
