"""Makes runs of files of W&B and of any CSV files: one run for each file."""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop.csv_files import read_csv
from runshelf.interop.log_folders import LogFolder, Say
from runshelf.interop.log_survey import parse_folder_name, text_of
from runshelf.interop.metric_names import (
    OWN_STEPS,
    counts_other_steps,
    library_of,
    normaliser,
)
from runshelf.interop.wandb_files import find_wandb_files, read_wandb
from runshelf.store.compacting import compact
from runshelf.store.files import disk_errors
from runshelf.store.metrics import SEED
from runshelf.store.paths import is_file
from runshelf.store.records import to_json
from runshelf.store.run import RunInfo, create_run
from runshelf.store.writing import create

# What libraries call env steps, the surest name first.
STEPS = (
    "time/total_timesteps",
    "num_env_steps_sampled_lifetime",
    "timesteps_total",
    "global_step",
    "env_steps",
    "total_timesteps",
    "num_timesteps",
    "total_env_steps",
    "total_steps",
    "timesteps",
    "timestep",
    "env_step",
    "step",
    "steps",
    "totalenvinteracts",
)
_MOST_FILES = 1_000
_OF_WANDB = ("_step", "_runtime", "_timestamp")
_LOGS = ("progress.csv", "monitor.csv")  # `import_path` reads these


@final
class Table(NamedTuple):
    """What a file holds.

    Attributes:
        path: the file.
        kind: `wandb` or `csv`.
        name: what the user calls the run; may be empty.
        config: its configuration.
        rows: what was logged together, by name; texts are left out.
        notes: what was skipped.
    """

    path: Path
    kind: str
    name: str
    config: Mapping[str, Any]
    rows: Sequence[Mapping[str, int | float]]
    notes: list[str]


def import_tables(home: Path, path: Path, *, argv: Sequence[str], say: Say) -> list[str]:
    """Make a run of each file of W&B or CSV at or below a path; return their ids.

    A file that cannot be read does not stop the others. Files that `import_path` reads are skipped.

    Args:
        home: the home of the runs.
        path: a folder, or a file.
        argv: the command line.
        say: called with one line for each file that cannot be read.

    Raises:
        UsageError: there are too many files.
        UserFacingError: a folder cannot be read, or the disk is full.
    """
    made: list[str] = []
    for file in [*find_wandb_files(path), *_csv_files(path)]:
        try:
            table = _of_wandb(file) if file.suffix == ".wandb" else _of_csv(file)
        except UserFacingError as error:
            say(f"skipped: {error}")
            continue
        if table.rows:
            made.append(_make_run(home, table, argv))
        else:
            say(f"skipped: `{file}` has no rows")
    return made


def _csv_files(path: Path) -> list[Path]:
    if is_file(path):
        found = [path] if path.suffix == ".csv" else []
    else:
        with disk_errors(path):
            walked = os.walk(path, followlinks=False)
            files = (Path(at) / name for at, _, names in walked for name in sorted(names))
            named = (one for one in files if one.suffix == ".csv" and not one.is_symlink())
            found = [one for one in named if one.is_file()]  # reading a pipe would never end
    found = [one for one in found if not one.name.endswith(_LOGS)]
    if len(found) > _MOST_FILES:
        raise UsageError(f"`{path}` has more than {_MOST_FILES} CSV files: name a subfolder")
    return found


def _of_wandb(path: Path) -> Table:
    log = read_wandb(path)
    names = {name for row in log.rows for name in row}
    axis = wandb_steps(log.rows)
    place = _place_of(names, axis)
    rows: list[dict[str, int | float]] = []
    steps: int | float | None = None
    for row in log.rows:  # a row without env steps has those of the row before
        steps = row.get(axis, steps)
        numbers = {n: v for n, v in row.items() if n not in (*_OF_WANDB, axis)}
        rows.append(_record(numbers, place, steps))
    notes = [f"{log.damage.count} records skipped"] if log.damage.count else []
    return Table(path, "wandb", log.name, log.config, rows, notes)


def _of_csv(path: Path) -> Table:
    table = read_csv(path)
    axis = steps_column(table.names)
    place = _place_of(table.names, axis)
    rows: list[dict[str, int | float]] = []
    texts: dict[str, str] = {}
    for number, row in enumerate(table.rows, 1):
        numbers = {n: v for n, v in row.items() if not isinstance(v, str)}
        texts |= {n: v for n, v in row.items() if isinstance(v, str)}
        steps = numbers.pop(axis, number)
        rows.append(_record(numbers, place, steps))
    notes = [f"left out: {left_out}"] if (left_out := table.left_out()) else []
    return Table(path, "csv", path.stem, {**texts, **table.head}, rows, notes)


def steps_column(names: Collection[str]) -> str:
    """Return the column of env steps, also with capital letters; empty if there is none."""
    found = {name.lower(): name for name in names} | {name: name for name in names}
    return next((found[name] for name in STEPS if name in found), "")


def wandb_steps(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what rows of W&B are over: a column of env steps, or W&B's own `_step`.

    A library's own name counts if most rows have it: TorchRL 0.10 logs one with videos only.
    """
    names = {name for row in rows for name in row}
    own = OWN_STEPS.get(library_of(names), ())
    in_most = (name for name in own if 2 * sum(name in row for row in rows) > len(rows))
    return steps_column(names) or next(in_most, "_step")


def _place_of(names: Iterable[str], axis: str) -> str:
    """Return our name of an axis: `env_steps`, or `step` if it counts something else."""
    library = library_of(names)
    known = (*STEPS, *OWN_STEPS.get(library, ()))
    is_of_env = axis.lower() in known and not counts_other_steps(library)
    return "env_steps" if is_of_env else "step"


def _record(
    numbers: Mapping[str, int | float], place: str, steps: int | float | None
) -> dict[str, int | float]:
    """Return the fields of one record: its position, and its values under their own names."""
    return {**numbers, **({} if steps is None else {place: steps})}


def _make_run(home: Path, table: Table, argv: Sequence[str]) -> str:
    named = parse_folder_name(LogFolder(table.path.parent / (table.name or table.path.stem), []))
    config = {**named.config, **table.config}
    seed = config.get(SEED, named.seed)
    logged = {int(row[SEED]) for row in table.rows if row.get(SEED, 0.5) % 1 == 0}
    seeds = [seed] if type(seed) is int else sorted(logged)

    def write(folder: Path, _: Path) -> dict[str, Any]:
        _write(folder, table.rows, [] if len(seeds) != 1 else seeds)
        source = os.path.normpath(table.path.absolute())
        about = {"from": source, "label": f"{table.path.parent.name}/{table.path.name}"}
        digest = hashlib.sha256(table.path.read_bytes()).hexdigest()
        about |= {"kind": table.kind, "sha256": digest}
        unknown: dict[str, Any] = {"git": None, "hardware": {}, "versions": {}}
        return unknown | {"imported": {**about, "notes": table.notes}}

    writer = create_run(
        home,
        command="import",
        config=config,
        seeds=seeds,
        env=_env_of(config) or named.env,
        algorithm=text_of(config.get("algorithm")) or named.algorithm,
        argv=argv,
        info=RunInfo(name=table.name or table.path.name),
        capture=write,
    )
    with writer:
        compact(writer.folder)
        writer.record("imported", note="its log does not tell whether it had ended")
    return writer.run.ulid


def _env_of(config: Mapping[str, Any]) -> str | None:
    values = (text_of(config.get(name)) for name in ("env_id", "env", "env_name", "environment"))
    return next((value for value in values if value), None)


def _write(folder: Path, rows: Iterable[Mapping[str, int | float]], seeds: Sequence[int]) -> None:
    """Write rows as records; a file of one seed has this seed in every record."""
    seeded = {SEED: seeds[0]} if seeds else {}
    rows = list(rows)
    normalised = normaliser(library_of({name for row in rows for name in row}))
    descriptor = create(folder, "metrics-import-table.jsonl")
    with disk_errors(folder), os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for row in rows:
            ours = dict(filter(None, (normalised(name, value) for name, value in row.items())))
            file.write(json.dumps(to_json({**row, **ours, **seeded}), allow_nan=False) + "\n")


def nothing_to_read(path: Path, notes: Sequence[str]) -> UserFacingError:
    """Return the error for a path without any log that can be read.

    Args:
        path: the path.
        notes: why files were skipped.
    """
    if notes:
        return DamagedFile(f"no log in `{path}` can be read; {notes[0]}")
    return UsageError(
        f"there is no log in `{path}`: expected event files of TensorBoard (`*tfevents*`), "
        "`progress.csv` or `monitor.csv`, files of W&B (`*.wandb`), or CSV files"
    )
