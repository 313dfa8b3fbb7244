"""Logs of other libraries become runs: TensorBoard's event files, SB3's CSV files.

Each folder that has such files is one run. What was imported is known by the hash of its files, and
is not imported again. Links are not followed, and no name inside a file is ever opened.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, final

from backflip.archive.capture.settings import parse_value
from backflip.archive.compacting import compact
from backflip.archive.files import disk_errors
from backflip.archive.foreign.events import Entry, Pictures, Settings, Unread, read_entries
from backflip.archive.foreign.names import Library, cautions, library_of, normaliser
from backflip.archive.foreign.tables import Csv, read_csv
from backflip.archive.foreign.tfrecord import TornFile, read_frames
from backflip.archive.foreign.wire import WireError
from backflip.archive.media import save_clip, save_image
from backflip.archive.metrics import SEED
from backflip.archive.records import to_json
from backflip.archive.run import Asked, create_run, list_runs, open_run
from backflip.archive.series import AXES
from backflip.core.errors import BackflipError, DamagedFile, UsageError

MOST_FILES = 10_000
MOST_ENTRIES = 200_000
DEEPEST = 20
MOST_TAGS = 100_000
LONGEST_TAG = 500
LONGEST_TEXT = 10_000
MOST_PICTURES = 2_000
LARGEST_PICTURE = 2**26  # pixels, all frames together
MOST_FRAMES = 2_000
LARGEST_CSV = 2**30

_PROGRESS = "progress.csv"
_MONITOR = ("r", "l", "t")
_SB3_FOLDER = re.compile(r"(.+)_(\d+)")
_SENSIBLE = (946684800.0, 4102444800.0)  # unix seconds of 2000 and 2100
_TAKEN = frozenset((*AXES, SEED))

Say = Callable[[str], None]


class Imported(NamedTuple):
    """What became of one folder of logs.

    Attributes:
        source: the folder.
        run: the id of its run.
        folder: where that is.
        kind: what wrote the files: `sb3`, `cleanrl`, or what they are: `tensorboard`, `csv`,
            `monitor`.
        values: how many values it has; 0 if it had been imported before.
        is_new: whether it had not.
        notes: what was left out, and what to know of the names.
    """

    source: Path
    run: str
    folder: Path
    kind: str
    values: int
    is_new: bool
    notes: list[str]


class Skipped(NamedTuple):
    """A file that could not be imported, while others could.

    Attributes:
        path: the file.
        why: what is wrong with it, in one line.
    """

    path: Path
    why: str


class Outcome(NamedTuple):
    """What became of all logs at or below a folder.

    Attributes:
        runs: what became of each folder.
        skipped: the files that no run has.
    """

    runs: list[Imported]
    skipped: list[Skipped]


def import_path(home: Path, path: Path, *, asked: Asked, argv: Sequence[str], say: Say) -> Outcome:
    """Make a run of each folder of logs at or below `path`, or of the folder of a file.

    A file that holds nothing that can be read stops none of the others.

    Args:
        home: the home of the runs.
        path: a folder, or one event file, `progress.csv` or `monitor.csv`.
        asked: what is said of the runs.
        argv: the command line.
        say: is told of each folder, and of each file that is skipped.

    Raises:
        UsageError: there is nothing to import.
        DamagedFile: there is not one file that can be read.
        BackflipError: a folder cannot be read, or the disk is full.
    """
    if not path.exists():
        raise UsageError(f"there is no `{path}`: name a folder of logs")
    sources = _sources(path, say)
    if not sources:
        raise UsageError(
            f"there is nothing to import in `{path}`: expected event files of TensorBoard "
            "(`*tfevents*`), `progress.csv` or `monitor.csv`"
        )
    known = _imported_before(home)
    done: list[Imported] = []
    skipped: list[Skipped] = []
    for whole in sources:
        source, bad = _readable(whole)
        skipped += bad
        for file in bad:
            say(f"skipped: {file.why}")
        if not source.files:
            continue
        digest = source.digest()
        if digest in known:
            folder = home / "runs" / known[digest]
            one = Imported(source.folder, known[digest], folder, "", 0, False, [])
        else:
            one = _import(home, source, digest, asked=asked, argv=argv)
            known[digest] = one.run
        say(_told(one))
        done.append(one)
    if not done:
        raise DamagedFile(f"nothing in `{path}` can be imported: {skipped[0].why}")
    return Outcome(done, skipped)


@final
@dataclass(frozen=True)
class _Source:
    """A folder with logs.

    Attributes:
        folder: where.
        root: what was asked for.
        files: their names, sorted.
    """

    folder: Path
    root: Path
    files: list[str]

    def events(self) -> list[Path]:
        return [self.folder / name for name in self.files if "tfevents" in name]

    def progress(self) -> Path | None:
        return self.folder / _PROGRESS if _PROGRESS in self.files else None

    def monitors(self) -> list[Path]:
        return [self.folder / name for name in self.files if _is_monitor(name)]

    def digest(self) -> str:
        """Return the SHA-256 of the names and contents of all files."""
        whole = hashlib.sha256()
        for name in self.files:
            path = self.folder / name
            with disk_errors(path), path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{os.fsencode(name)!r} {content}\n".encode())
        return whole.hexdigest()


def _sources(path: Path, say: Say) -> list[_Source]:
    """Return the folders with logs at or below a path, the nearest first."""
    if not path.is_dir():
        return [_Source(path.parent, path.parent, [path.name])] if _is_log(path.name) else []
    found: list[_Source] = []
    seen = files = 0
    for folder, folders, names in os.walk(path, onerror=_raise, followlinks=False):
        here = Path(folder)
        folders.sort()
        seen += len(names) + len(folders)
        files += len(names := [name for name in sorted(names) if _is_log(name)])
        if seen > MOST_ENTRIES or files > MOST_FILES:
            raise UsageError(
                f"`{path}` has more than {MOST_FILES} logs or {MOST_ENTRIES} files: "
                "import folders below it"
            )
        if len(here.relative_to(path).parts) >= DEEPEST:
            say(f"left out, deeper than {DEEPEST} folders: what is below `{here}`")
            folders.clear()
        whole = [name for name in names if _is_plain(here / name)]
        for name in sorted({*names} - {*whole}):
            say(f"left out, no plain file: `{here / name}`")
        if whole:
            found.append(_Source(here, path, whole))
    return found


def _readable(source: _Source) -> tuple[_Source, list[Skipped]]:
    """Return a source without the files that hold nothing that can be read, and these."""
    bad: list[Skipped] = []
    for name in source.files:
        try:
            _check(source.folder / name)
        except BackflipError as error:
            bad.append(Skipped(source.folder / name, str(error)))
    left_out = {file.path.name for file in bad}
    return replace(source, files=[name for name in source.files if name not in left_out]), bad


def _check(path: Path) -> None:
    """Read the beginning of a file of logs.

    Raises:
        DamagedFile: it is none.
        BackflipError: it cannot be read.
    """
    if "tfevents" in path.name:
        with suppress(TornFile):
            if next(read_frames(path), None) is not None:
                return
        raise DamagedFile(f"`{path}` has no whole record: it is no event file")
    table = _read_csv(path)
    missing = [name for name in _MONITOR if name not in table.names]
    if _is_monitor(path.name) and missing:
        raise DamagedFile(f"`{path}` has no column `{missing[0]}`: it is no file of a monitor")


def _raise(error: OSError) -> None:
    raise BackflipError(f"cannot read `{error.filename}`: {error.strerror}") from error


def _is_log(name: str) -> bool:
    return "tfevents" in name or name == _PROGRESS or _is_monitor(name)


def _is_monitor(name: str) -> bool:
    return name == "monitor.csv" or name.endswith(".monitor.csv")


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _imported_before(home: Path) -> dict[str, str]:
    """Return the ids of imported runs, by the hash of what they were imported from."""
    known: dict[str, str] = {}
    for ulid in list_runs(home):
        with suppress(BackflipError):
            imported: Any = open_run(home / "runs" / ulid).manifest.get("imported")
            if isinstance(imported, dict):
                known[str(imported.get("sha256"))] = ulid
    return known


def _import(
    home: Path, source: _Source, digest: str, *, asked: Asked, argv: Sequence[str]
) -> Imported:
    """Make the run of a folder; a kill before it is whole leaves none."""
    survey = _survey(source)
    notes: list[str] = []
    values = 0

    def write(folder: Path, _: Path) -> dict[str, Any]:
        nonlocal values
        writer = _Writer(folder, survey, notes)
        writer.write_all(source)
        values = writer.values
        notes.extend(_warnings(survey))
        if not values:
            notes.append("there are no values in it")
        created = survey.first if _SENSIBLE[0] <= survey.first <= _SENSIBLE[1] else None
        imported = {
            **{"from": str(source.folder.absolute()), "kind": survey.kind, "sha256": digest},
            **{"files": source.files, "cautions": survey.cautions(), "notes": notes},
        }
        # Of the machine it ran on nothing is known.
        fields: dict[str, Any] = {"git": None, "hardware": {}, "imported": imported}
        return fields | ({"created": _iso(created)} if created else {})

    named = _named(source)
    config = named.config | survey.config
    seed = config.get("seed", named.seed)
    writer = create_run(
        home,
        command="import",
        config=config,
        seeds=[seed] if type(seed) is int else [],
        env=_text(config.get("env_id")) or survey.env or named.env,
        algorithm=named.algorithm,
        argv=argv,
        asked=asked,
        capture=write,
    )
    with writer:
        compact(writer.folder)
        writer.record("finished", seconds=max(survey.last - survey.first, 0.0))
    return Imported(
        *(source.folder, writer.run.ulid, writer.folder, survey.kind, values, True, notes)
    )


class _Named(NamedTuple):
    """What the name of a folder says."""

    env: str | None
    algorithm: str | None
    seed: int | None
    config: dict[str, Any]


def _named(source: _Source) -> _Named:
    """Return what a folder's name says: CleanRL's `env__exp__seed__time`, SB3's `PPO_1`."""
    parts = source.folder.absolute().name.split("__")
    if len(parts) == 4 and parts[2].isdigit() and parts[3].isdigit():
        env, algorithm, seed = parts[0], parts[1], int(parts[2])
        if source.folder.absolute().parent.name == "ALE":
            env = f"ALE/{env}"
        return _Named(env, algorithm, seed, {"exp_name": algorithm, "seed": seed})
    match = _SB3_FOLDER.fullmatch(parts[-1])
    if match and match[1].isupper():
        return _Named(None, match[1].lower(), None, {})
    return _Named(None, None, None, {})


@final
@dataclass
class _Survey:
    """What files hold, before anything is written.

    Attributes:
        tags: the names in event files and in `progress.csv`.
        first: the earliest time, in unix seconds; NaN where there is none.
        last: the latest.
        config: the hyper-parameters.
        env: the environment's id, if a file says it.
        has_monitor: whether there is a `monitor.csv`.
        has_events: whether there is an event file.
        has_progress: whether there is a `progress.csv`.
    """

    tags: set[str] = field(default_factory=set[str])
    first: float = math.inf
    last: float = -math.inf
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    env: str | None = None
    has_monitor: bool = False
    has_events: bool = False
    has_progress: bool = False

    @property
    def library(self) -> Library:
        return library_of(self.tags)

    @property
    def kind(self) -> str:
        if self.library or self.has_events:
            return self.library or "tensorboard"
        return "csv" if self.has_progress else "monitor"

    def see(self, time: float) -> None:
        if math.isfinite(time):
            self.first, self.last = min(self.first, time), max(self.last, time)

    def cautions(self) -> dict[str, str]:
        of_monitor = cautions("monitor", "rlt") if self.has_monitor else {}
        return cautions(self.library, self.tags) | of_monitor


def _survey(source: _Source) -> _Survey:
    survey = _Survey(
        has_monitor=bool(source.monitors()),
        has_events=bool(source.events()),
        has_progress=source.progress() is not None,
    )
    for path in source.events():
        for entry in _entries(path, []):
            _survey_entry(survey, entry)
    progress = source.progress()
    if progress:
        for row in _read_csv(progress).rows:
            survey.tags.update(row)
    for path in source.monitors():
        table = _read_csv(path)
        survey.env = survey.env or _text(table.head.get("env_id"))
        start = table.head.get("t_start")
        for row in table.rows:
            if isinstance(start, int | float) and isinstance(row.get("t"), int | float):
                survey.see(start + float(row["t"]))
    return survey


def _survey_entry(survey: _Survey, entry: Entry) -> None:
    survey.see(entry.time)
    if isinstance(entry.content, Settings):
        survey.config |= entry.content.values
    elif isinstance(entry.content, str) and entry.tag.startswith("hyperparameters"):
        survey.config |= _settings_of_table(entry.content)
    elif len(survey.tags) < MOST_TAGS and len(entry.tag) <= LONGEST_TAG:
        survey.tags.add(entry.tag)


def _settings_of_table(text: str) -> dict[str, Any]:
    """Return the settings in CleanRL's table: `|param|value|`, a line each."""
    rows = (line.strip().removeprefix("|").removesuffix("|") for line in text.splitlines()[2:])
    pairs = (row.partition("|") for row in rows)
    return {name: parse_value(value) for name, bar, value in pairs if bar and name}


def _entries(path: Path, notes: list[str]) -> Iterator[Entry]:
    """Yield what a file holds up to where it is torn or damaged; that is noted."""
    try:
        yield from read_entries(path)
    except (TornFile, WireError) as error:
        notes.append(f"`{path.name}` is {error}; read up to there")


def _read_csv(path: Path) -> Csv:
    with disk_errors(path):
        size = path.stat().st_size
    if size > LARGEST_CSV:
        raise UsageError(f"`{path}` has {size} bytes, at most {LARGEST_CSV} are read: cut it")
    return read_csv(path, _MONITOR if _is_monitor(path.name) else ())


@final
class _Writer:
    """Writes the records of a run, and remembers what it left out."""

    def __init__(self, folder: Path, survey: _Survey, notes: list[str]) -> None:
        self.values = 0
        self._folder = folder
        self._survey = survey
        self._notes = notes
        self._normalised = normaliser(survey.library)
        self._pictures = 0
        self._left_out: dict[str, int] = {}

    def write_all(self, source: _Source) -> None:
        """Write everything that the files hold."""
        self._write_events(source.events())
        progress = source.progress()
        if progress:
            # What the event files beside it have as well would be there twice.
            self._write_progress(progress, self._tags_of(source.events()))
        for number, path in enumerate(source.monitors()):
            self._write_monitor(path, number, alone=len(source.monitors()) == 1)
        for what, count in sorted(self._left_out.items()):
            self._notes.append(f"left out: {what}" + (f", {count} times" if count > 1 else ""))

    def _write_events(self, paths: Sequence[Path]) -> None:
        if not paths:
            return
        with self._open("events") as file:
            for path in paths:
                for entry in _entries(path, self._notes):
                    self._write_entry(file, entry)

    def _write_entry(self, file: IO[str], entry: Entry) -> None:
        if isinstance(entry.content, Settings):
            return  # in the configuration
        if entry.tag not in self._survey.tags:
            if isinstance(entry.content, str) and entry.tag.startswith("hyperparameters"):
                return
            self._leave_out(f"more than {MOST_TAGS} tags, or one of over {LONGEST_TAG} characters")
            return
        found = self._values_of(entry)
        if not found:
            return
        record: dict[str, Any] = {"step": entry.step, "time": entry.time}
        if self._survey.library:  # both count environment steps
            record["env_steps"] = entry.step
        self._write(file, record | found)

    def _values_of(self, entry: Entry) -> dict[str, Any]:
        """Return the fields of a record that an entry becomes."""
        match entry.content:
            case float():
                return self._named(entry.tag, entry.content)
            case str():
                if len(entry.content) > LONGEST_TEXT:
                    self._leave_out(f"a text of over {LONGEST_TEXT} characters")
                    return {}
                return {_own_name(entry.tag): entry.content}
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
        """Return the fields of pictures, drawn anew: what a file says it is need not be so."""
        found: dict[str, Any] = {}
        for number, data in enumerate(encoded):
            if self._pictures >= MOST_PICTURES:
                self._leave_out(f"more than {MOST_PICTURES} images")
                break
            self._pictures += 1
            name = _own_name(tag) if len(encoded) == 1 else f"{tag}/{number}"
            try:
                found[name] = _save_picture(str(self._folder), data)
            except Exception as error:  # noqa: BLE001  (Pillow raises anything for such files)
                self._leave_out(f"an image that cannot be read ({type(error).__name__})")
        return found

    def _write_progress(self, path: Path, elsewhere: set[str]) -> None:
        table = _read_csv(path)
        texts, numbers = Counter[str](), set[str]()
        with self._open("progress") as file:
            for row in table.rows:
                texts.update(name for name, value in row.items() if isinstance(value, str))
                numbers.update(name for name, value in row.items() if not isinstance(value, str))
                record: dict[str, Any] = {}
                steps = row.get("time/total_timesteps")
                if isinstance(steps, int):
                    record["step"] = steps
                for name, value in row.items():
                    if name not in elsewhere:
                        record |= self._named(name, value)
                self._write(file, record)
        self._note_broken(path, table)
        for name in sorted(numbers & texts.keys()):
            self._notes.append(f"`{path.name}`: {texts[name]} cells of `{name}` are no numbers")

    def _write_monitor(self, path: Path, number: int, *, alone: bool) -> None:
        table = _read_csv(path)
        normalised = normaliser("monitor")
        start = table.head.get("t_start")
        steps = 0
        with self._open(f"monitor-{number}") as file:
            for episode, row in enumerate(table.rows, 1):
                record: dict[str, Any] = {"step": episode, "episodes": episode}
                length, at = row.get("l"), row.get("t")
                if isinstance(length, int) and alone:  # else the steps of one of several
                    steps += length
                    record["env_steps"] = steps
                if isinstance(start, int | float) and isinstance(at, int | float):
                    record["time"] = start + at
                for name, value in row.items():
                    ours = None if isinstance(value, str) else normalised(name, value)
                    record |= {_own_name(name): value} | (dict([ours]) if ours else {})
                self._write(file, record)
        self._note_broken(path, table)

    def _named(self, name: str, value: int | float | str) -> dict[str, Any]:
        """Return a value under its own name, and under ours if that means the same."""
        ours = None if isinstance(value, str) else self._normalised(name, value)
        return {_own_name(name): value} | (dict([ours]) if ours else {})

    def _tags_of(self, paths: Sequence[Path]) -> set[str]:
        return {entry.tag for path in paths for entry in _entries(path, [])}

    def _open(self, writer: str) -> IO[str]:
        path = self._folder / f"metrics-import-{writer}.jsonl"
        with disk_errors(path):
            return path.open("w", encoding="utf-8")

    def _write(self, file: IO[str], record: dict[str, Any]) -> None:
        self.values += len(record.keys() - _TAKEN)
        with disk_errors(Path(file.name)):
            file.write(json.dumps(to_json(record), allow_nan=False) + "\n")

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def _note_broken(self, path: Path, table: Csv) -> None:
        if table.broken:
            lines = ", ".join(map(str, sorted(table.broken)[:5]))
            self._notes.append(f"`{path.name}`: {len(table.broken)} broken lines ({lines})")
        if table.short:
            lines = ", ".join(map(str, table.short[:5]))
            self._notes.append(f"`{path.name}`: {len(table.short)} short lines ({lines})")
        for name in table.repeated[:5]:
            self._notes.append(f"`{path.name}`: several columns are `{name}`: the last counts")


def _save_picture(folder: str, data: bytes) -> dict[str, Any]:
    from io import BytesIO  # noqa: PLC0415  (of images only)

    from PIL import Image, ImageSequence  # noqa: PLC0415

    with Image.open(BytesIO(data), formats=["PNG", "JPEG", "GIF"]) as picture:
        frames = min(getattr(picture, "n_frames", 1), MOST_FRAMES + 1)
        if picture.width * picture.height * frames > LARGEST_PICTURE or frames > MOST_FRAMES:
            raise UsageError("too large")
        if frames == 1:
            return save_image(folder, picture.convert("RGBA" if "A" in picture.mode else "RGB"))
        duration = picture.info.get("duration") or 100
        shown = [frame.convert("RGB") for frame in ImageSequence.Iterator(picture)]
        return save_clip(folder, shown, min(max(1000 / duration, 0.1), 1000.0))


def _own_name(name: str) -> str:
    """Return the name of a value; one that would be taken for an axis is put into a folder."""
    return f"logged/{name}" if name in _TAKEN else name


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value and value != "None" else None


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _warnings(survey: _Survey) -> list[str]:
    """Return what is to be said at once of a whole log."""
    whole = survey.cautions().get("")
    return [whole] if whole else []


def _told(one: Imported) -> str:
    if not one.is_new:
        return f"`{one.source}` was imported before: {one.run}"
    notes = "".join(f"; {note}" for note in one.notes)
    return f"`{one.source}` is now {one.run}: {one.values} values ({one.kind}){notes}"
