"""Imports logs of other libraries as runs: event files of TensorBoard, and tables.

Each folder with such files becomes one run, and neighbouring folders of one training run become
one. The hash of its files identifies it, so it is imported once only. Links are not followed, and
paths inside a file are never opened.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, final

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.formatting import plural
from runshelf.index.identity import label_of
from runshelf.interop.csv_files import Csv
from runshelf.interop.event_files import Entry, Pictures, Unread
from runshelf.interop.log_folders import (
    LogFolder,
    Say,
    Skipped,
    find_log_folders,
    read_table,
    without_unreadable,
)
from runshelf.interop.log_survey import Survey, entries_of, parse_folder_name, survey_of, text_of
from runshelf.interop.metric_names import Normaliser, counts_env_steps, normaliser, steps_in
from runshelf.interop.neighbours import joined
from runshelf.store.compacting import compact
from runshelf.store.files import disk_errors
from runshelf.store.finding import list_runs
from runshelf.store.media import save_clip, save_image
from runshelf.store.metrics import SEED
from runshelf.store.records import to_json
from runshelf.store.run import RunInfo, Status, create_run, open_run
from runshelf.store.run_ids import short_id
from runshelf.store.series import AXES
from runshelf.store.times import moment_of
from runshelf.store.writing import create

LARGEST_PICTURE = 2**26  # pixels of all frames

_PLAUSIBLE = (946684800.0, 4102444800.0)  # the years 2000 to 2100 in Unix seconds
# Settings with the env steps of the whole training run.
_TOTALS = ("total_timesteps", "n_timesteps", "total_env_steps")
_TAKEN = frozenset((*AXES, SEED))


class Imported(NamedTuple):
    """The import of one folder of logs.

    Attributes:
        source: the folder.
        run: the run's id.
        folder: the run's folder.
        kind: the library if it is known, such as `sb3`, else `tensorboard`, `csv` or `monitor`.
        values: the number of values; 0 if the folder was imported before.
        is_new: whether the folder was imported now.
        notes: what was left out, and cautions about names.
    """

    source: Path
    run: str
    folder: Path
    kind: str
    values: int
    is_new: bool
    notes: list[str]


class Imports(NamedTuple):
    """The imported folders, and the files that could not be imported."""

    runs: list[Imported]
    skipped: list[Skipped]


def import_path(home: Path, path: Path, *, info: RunInfo, argv: Sequence[str], say: Say) -> Imports:
    """Make a run of each folder of logs at or below `path`, or of the folder of a file.

    A file that cannot be read does not stop the import of the others.

    Args:
        home: the home of the runs.
        path: a folder, or one event file, `progress.csv`, `progress.txt` or `monitor.csv`.
        info: the run information of all runs.
        argv: the command line.
        say: called with one line per folder and per skipped file.

    Raises:
        UsageError: there is nothing to import.
        DamagedFile: no file can be read.
        UserFacingError: a folder cannot be read, or the disk is full.
    """
    sources = joined(find_log_folders(path, say))
    known, labels = _imported_before(home)
    done: list[Imported] = []
    skipped: list[Skipped] = []
    for whole in sources:
        source, bad = without_unreadable(whole)
        skipped += bad
        for file in bad:
            say(f"skipped: {file.why}")
        if not source.files:
            continue
        digest = source.digest()
        if digest in known:
            folder = home / "runs" / known[digest]
            imported = Imported(
                source=source.folder,
                run=known[digest],
                folder=folder,
                kind="",
                values=0,
                is_new=False,
                notes=[],
            )
        else:
            label = _label(source.folder, path, labels)
            named = _named_by_user(info, label, alone=len(sources) == 1)
            imported = _import(home, source, digest, label, info=named, argv=argv)
            known[digest] = imported.run
        say(_line_on(imported))
        done.append(imported)
    if not done:
        raise DamagedFile(f"nothing in `{path}` can be imported: {skipped[0].why}")
    return Imports(done, skipped)


def _imported_before(home: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the ids of imported runs by the hash of their source, and their folders by label."""
    known: dict[str, str] = {}
    labels: dict[str, str] = {}
    for ulid in list_runs(home):
        with suppress(UserFacingError):
            manifest = open_run(home / "runs" / ulid).manifest
            imported: Any = manifest.get("imported")
            if isinstance(imported, dict):
                known[str(imported.get("sha256"))] = ulid
                labels[label_of(manifest)] = str(imported.get("from"))
    return known, labels


def _label(folder: Path, path: Path, labels: dict[str, str]) -> str:
    """Return the end of a folder's path, from the imported folder on, and add it to `labels`.

    It is longer if another folder of the home has this label. A folder keeps its label.
    """
    here = Path(os.path.normpath(folder.absolute()))
    known = next((label for label, source in labels.items() if source == str(here)), None)
    if known:
        return known
    top = Path(os.path.normpath(path.absolute()))
    above = top.parent if top.is_dir() else top.parent.parent
    length = len(here.relative_to(above).parts)
    while length < len(here.parts) and labels.get(_end(here, length), str(here)) != str(here):
        length += 1
    label = _end(here, length)
    labels[label] = str(here)
    return label


def _end(path: Path, length: int) -> str:
    return "/".join(path.parts[-length:]) if length else path.name or str(path)


def _named_by_user(info: RunInfo, label: str, *, alone: bool) -> RunInfo:
    """Return run information with the label as the name; a given name replaces its first part."""
    rest = label.partition("/")[2]
    name = info.name and (info.name if alone or not rest else f"{info.name}/{rest}")
    return replace(info, name=name or label)


def _import(
    home: Path, source: LogFolder, digest: str, label: str, *, info: RunInfo, argv: Sequence[str]
) -> Imported:
    """Make the run of a folder; a kill before the end leaves no run."""
    survey = survey_of(source)
    notes: list[str] = []
    values = 0

    def write(folder: Path, _: Path) -> dict[str, Any]:
        nonlocal values
        writer = _Writer(folder, survey, notes)
        writer.write_all(source)
        values = writer.values
        cautions = survey.cautions()
        notes.extend([cautions[""]] if "" in cautions else [])
        if not values:
            notes.append("no values found")
        created = survey.first if _PLAUSIBLE[0] <= survey.first <= _PLAUSIBLE[1] else None
        imported = {
            "from": os.path.normpath(source.folder.absolute()),
            "label": label,
            "kind": survey.kind,
            "sha256": digest,
            "files": source.files,
            "cautions": cautions,
            "notes": notes,
        }
        # The machine and the packages that wrote the logs are unknown.
        unknown: dict[str, Any] = {"git": None, "hardware": {}, "versions": {}}
        fields = unknown | {"imported": imported}
        return fields | ({"created": moment_of(created)} if created else {})

    named = parse_folder_name(source)
    config = named.config | survey.config
    seed = config.get("seed", named.seed)
    writer = create_run(
        home,
        command="import",
        config=config,
        seeds=[seed] if type(seed) is int else [],
        env=text_of(config.get("env_id")) or survey.env or named.env,
        algorithm=named.algorithm,
        argv=argv,
        info=info,
        capture=write,
    )
    with writer:
        compact(writer.folder)
        status, note = _ending(survey, config)
        writer.record(status, seconds=survey.seconds, note=note)
    return Imported(
        source=source.folder,
        run=writer.run.ulid,
        folder=writer.folder,
        kind=survey.kind,
        values=values,
        is_new=True,
        notes=notes,
    )


def _ending(survey: Survey, config: Mapping[str, Any]) -> tuple[Status, str]:
    """Return how a training run ended, as far as its log tells, and the reason in words.

    A log that stops less than one logging interval before the total is complete.
    """
    totals = [config[key] for key in _TOTALS if type(config.get(key)) is int]
    total = totals[0] if totals else None
    previous, last = survey.steps
    reached = max(last, survey.monitored)
    if total is None or not reached:
        return "imported", "its log does not tell whether it had ended"
    if total - reached <= last - previous:
        return "finished", f"its log reaches {reached:,} of {total:,} env steps"
    return "stopped", f"its log ends at {reached:,} of {total:,} env steps"


@final
class _Writer:
    """Writes the records of a run, and counts what it leaves out."""

    def __init__(self, folder: Path, survey: Survey, notes: list[str]) -> None:
        self.values = 0
        self._folder = folder
        self._survey = survey
        self._notes = notes
        self._normalised = normaliser(survey.library)
        self._left_out: dict[str, int] = {}

    def write_all(self, source: LogFolder) -> None:
        """Write all values of the files."""
        self._write_events(source.events)
        progress = source.progress
        if progress:
            # Values that the event files also have are not written twice.
            tags = {entry.tag for path in source.events for entry in entries_of(path, [])}
            self._write_progress(progress, tags)
        for number, path in enumerate(source.monitors):
            self._write_monitor(path, number, alone=len(source.monitors) == 1)
        for what, count in sorted(self._left_out.items()):
            self._notes.append(f"left out: {what}" + (f", {count} times" if count > 1 else ""))

    def _write_events(self, paths: Sequence[Path]) -> None:
        if not paths:
            return
        with self._open("events") as file:
            for path in paths:
                for entry in entries_of(path, self._notes):
                    self._write_entry(file, entry)

    def _write_entry(self, file: IO[str], entry: Entry) -> None:
        if entry.tag not in self._survey.tags:  # it is part of the configuration
            return
        found = self._values_of(entry)
        if not found:
            return
        record: dict[str, Any] = {"step": entry.step, "time": entry.time}
        if counts_env_steps(self._survey.library):
            record["env_steps"] = entry.step
        self._write(file, record | found)

    def _values_of(self, entry: Entry) -> dict[str, Any]:
        """Return the record fields of an entry."""
        match entry.content:
            case float() | str():
                return _named(self._normalised, entry.tag, entry.content)
            case dict():
                return {f"{entry.tag}/{name}": value for name, value in entry.content.items()}
            case Pictures():
                return self._saved(entry.tag, entry.content.encoded)
            case Unread():
                self._leave_out(entry.content.kind)
            case _:
                pass
        return {}

    def _saved(self, tag: str, encoded: Sequence[bytes]) -> dict[str, Any]:
        """Decode pictures, save them again, and return their record fields."""
        found: dict[str, Any] = {}
        for number, data in enumerate(encoded):
            name = _own_name(tag) if len(encoded) == 1 else f"{tag}/{number}"
            try:
                found[name] = _save_picture(str(self._folder), data)
            except Exception as error:  # noqa: BLE001  (Pillow raises any exception for bad files)
                self._leave_out(f"an image that cannot be read ({type(error).__name__})")
        return found

    def _write_progress(self, path: Path, elsewhere: set[str]) -> None:
        table = read_table(path)
        steps_name = steps_in(table.names)
        with self._open("progress") as file:
            for row in table.rows:
                record: dict[str, Any] = {}
                steps = row.get(steps_name)
                if isinstance(steps, int):
                    record["step"] = steps
                for name, value in row.items():
                    if name not in elsewhere:
                        record |= _named(self._normalised, name, value)
                self._write(file, record)
        self._note_broken(path, table)

    def _write_monitor(self, path: Path, number: int, *, alone: bool) -> None:
        table = read_table(path)
        normalised = normaliser("monitor")
        start = table.head.get("t_start")
        steps = 0
        with self._open(f"monitor-{number}") as file:
            for episode, row in enumerate(table.rows, 1):
                record: dict[str, Any] = {"step": episode, "episodes": episode}
                length, at = row.get("l"), row.get("t")
                if isinstance(length, int) and alone:  # else these are steps of one of several envs
                    steps += length
                    record["env_steps"] = steps
                if isinstance(start, int | float) and isinstance(at, int | float):
                    record["time"] = start + at
                for name, value in row.items():
                    record |= _named(normalised, name, value)
                self._write(file, record)
        self._note_broken(path, table)

    def _open(self, writer: str) -> IO[str]:
        descriptor = create(self._folder, f"metrics-import-{writer}.jsonl")
        return os.fdopen(descriptor, "w", encoding="utf-8")

    def _write(self, file: IO[str], record: dict[str, Any]) -> None:
        self.values += len(record.keys() - _TAKEN)
        with disk_errors(self._folder):
            file.write(json.dumps(to_json(record), allow_nan=False) + "\n")

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def _note_broken(self, path: Path, table: Csv) -> None:
        if left_out := table.left_out():
            self._notes.append(f"`{path.name}`, left out: {left_out}")


def _save_picture(folder: str, data: bytes) -> dict[str, Any]:
    from io import BytesIO  # noqa: PLC0415  (needed for images only)

    from PIL import Image, ImageSequence  # noqa: PLC0415

    with Image.open(BytesIO(data), formats=["PNG", "JPEG", "GIF"]) as picture:
        frames = getattr(picture, "n_frames", 1)
        if picture.width * picture.height * frames > LARGEST_PICTURE:
            raise UsageError("too large")
        if frames == 1:
            return save_image(folder, picture.convert("RGBA" if "A" in picture.mode else "RGB"))
        duration = picture.info.get("duration") or 100
        shown = [frame.convert("RGB") for frame in ImageSequence.Iterator(picture)]
        return save_clip(folder, shown, min(max(1000 / duration, 0.1), 1000.0))


def _named(normalised: Normaliser, name: str, value: int | float | str) -> dict[str, Any]:
    """Return a value under its own name, and under our equivalent name if there is one."""
    ours = None if isinstance(value, str) else normalised(name, value)
    return {_own_name(name): value} | (dict([ours]) if ours else {})


def _own_name(name: str) -> str:
    """Return a value's name; a name that is reserved for an axis is moved to `logged/`."""
    return f"logged/{name}" if name in _TAKEN else name


def _line_on(imported: Imported) -> str:
    source, run, _, kind, values, is_new, notes = imported
    if not is_new:
        return f"`{source}` was imported before: {short_id(run)}"
    said = "; ".join([f"{plural(values, 'value')} ({kind})", *notes])
    return f"`{source}` imported as {short_id(run)}: {said}"
