"""A battery on disk: a folder with one JSON file for each row.

A row is a command, its seeds, and the scores that it had when they were accepted as the reference:

    {"command": "python train.py --seed {seed}", "seeds": [0, 1, 2], "scores": [4.1, 3.9, 4.4]}

Files may have other fields; they are kept.
"""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

from runshelf.errors import UsageError
from runshelf.received_json import parse_json
from runshelf.recorder.command_templates import words_of
from runshelf.store.opening import NoFile, read
from runshelf.store.paths import exists, is_folder
from runshelf.store.writing import replace_file
from runshelf.sweeps.definition import MOST_SEEDS
from runshelf.sweeps.template import check_template

ENDING = ".json"
_LARGEST = 1 << 20  # bytes of a row
_NAME = re.compile(r"[A-Za-z0-9][\w.+=-]{0,59}")


@final
@dataclass(frozen=True)
class BatteryRow:
    """One row of a battery.

    Attributes:
        name: the name of its file, without the ending.
        command: in words. With `{seed}` it runs one seed in each process; with `{first_seed}` and
            `{seeds}` several; without placeholders all seeds of the row.
        seeds: they follow each other.
        scores: the reference, one score for each seed, NaN for a seed that failed; empty if no
            scores were accepted yet.
        metric: the metric that is the score; None for the result of a run.
        minimise: whether smaller is better; None for losses and errors only.
        folder: where the command is typed, relative to the root of the code.
        tolerance: differences of means up to this size are taken as none.
        seconds: how long the row took; None if unknown.
        by_hand: the row takes more than a command, so it is left out.
    """

    name: str
    command: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: tuple[float, ...] = ()
    metric: str | None = None
    minimise: bool | None = None
    folder: str = ""
    tolerance: float = 0.0
    seconds: float | None = None
    by_hand: bool = False

    @property
    def decimals(self) -> int:
        """To how many decimals the reference was written, at least 3."""
        written = [repr(x).partition(".")[2] for x in self.scores if math.isfinite(x)]
        return max([3, *(17 if "e" in text else len(text) for text in written)])

    def has_scores(self, scores: Sequence[float]) -> bool:
        """Return whether these are the scores of the reference, as far as it was written."""
        if len(scores) != len(self.scores):
            return False
        places = self.decimals
        return all(
            round(a, places) == b if math.isfinite(a) else not math.isfinite(b)
            for a, b in zip(scores, self.scores, strict=True)
        )


def read_rows(folder: Path) -> list[BatteryRow]:
    """Return the rows of a battery, in the order of their names.

    Raises:
        UsageError: the folder has no rows, or one of them is invalid.
    """
    if not is_folder(folder):
        raise UsageError(
            f"there is no battery in `{folder}`: it must be a folder with one JSON file for each "
            "row; make one with --add NAME -- python train.py --seed {seed}"
        )
    names = row_names(folder)
    if not names:
        raise UsageError(
            f"`{folder}` has no rows; add one: --add NAME -- python train.py --seed {{seed}}"
        )
    return [_row_of(folder, name, _fields_of(folder, name)) for name in names]


def row_names(folder: Path) -> list[str]:
    """Return the names of the rows of a battery, in order; none if the folder is gone."""
    return sorted(path.stem for path in folder.glob(f"*{ENDING}"))


def add_row(folder: Path, row: BatteryRow) -> None:
    """Write a new row.

    Raises:
        UsageError: its name is invalid or taken, or the folder cannot be made.
        UserFacingError: the disk is full.
    """
    if not _NAME.fullmatch(row.name):
        raise UsageError(
            f"`{row.name[:80]}` is not a name of a row: use letters, digits, and `_.+=-`, as in "
            "ppo-CartPole"
        )
    if exists(folder / f"{row.name}{ENDING}"):
        raise UsageError(
            f"`{folder}` already has a row `{row.name}`; give the new one another name"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder `{folder}`: {error.strerror}") from error
    fields: dict[str, Any] = {"command": shlex.join(row.command), "seeds": list(row.seeds)}
    fields |= {"metric": row.metric} if row.metric else {}
    fields |= {} if row.minimise is None else {"minimise": row.minimise}
    _write(folder, row.name, fields)


def accept(
    folder: Path, row: BatteryRow, scores: Sequence[float], about: Mapping[str, Any]
) -> None:
    """Make scores the reference of a row; other fields of its file are kept.

    Args:
        folder: the folder of the battery.
        row: the row.
        scores: one score for each seed.
        about: further fields, such as the commit.

    Raises:
        UserFacingError: the disk is full.
    """
    written = [x if math.isfinite(x) else None for x in scores]  # as failures count
    _write(folder, row.name, {**_fields_of(folder, row.name), "scores": written, **about})


def _write(folder: Path, name: str, fields: Mapping[str, Any]) -> None:
    data = json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    replace_file(folder, f"{name}{ENDING}", data)


def _fields_of(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}{ENDING}"
    try:
        fields = parse_json(read(folder, path.name, _LARGEST))
    except (NoFile, ValueError) as error:
        raise UsageError(f"`{path}` is not valid JSON ({error!s:.100}): correct it") from error
    if not isinstance(fields, dict):
        raise UsageError(f"`{path}` must be a JSON object with `command` and `seeds`")
    return cast("dict[str, Any]", fields)


def _row_of(folder: Path, name: str, fields: Mapping[str, Any]) -> BatteryRow:
    def refuse(what: str) -> UsageError:
        return UsageError(f"`{folder / (name + ENDING)}`: {what}")

    if not _NAME.fullmatch(name):
        raise refuse("the name of a row has letters, digits, and `_.+=-`; rename the file")
    given = {key: _checked(refuse, fields, key, *_FIELDS[key]) for key in _FIELDS}
    try:
        example = "python train.py --seed {seed}"
        command = tuple(words_of(given["command"], "`command`", example))
        check_template(command, {}, names_seeds=True)
    except UsageError as error:
        raise refuse(str(error)) from error
    seeds = _seeds(refuse, given["seeds"])
    scores = _scores(refuse, given["scores"], len(seeds))
    known = {key: given[key] for key in ("metric", "minimise", "folder", "by_hand")}
    numbers = {key: given[key] for key in ("tolerance", "seconds")}
    bad = next((k for k, x in numbers.items() if x is not None and not 0 <= x < math.inf), None)
    if bad is not None:
        raise refuse(f"`{bad}` must be a finite number of at least 0, got {given[bad]}")
    return BatteryRow(name, command, seeds, scores, **known, **numbers)


# Name of a field -> its types, its default (... without one), what is expected in words.
_FIELDS: dict[str, tuple[tuple[type, ...], Any, str]] = {
    "command": ((str,), ..., "a command line"),
    "seeds": ((list,), ..., "a list of whole numbers"),
    "scores": ((list,), [], "a list of numbers"),
    "metric": ((str, type(None)), None, "the name of a metric"),
    "minimise": ((bool, type(None)), None, "true or false"),
    "folder": ((str,), "", "a folder"),
    "tolerance": ((int, float), 0.0, "a number"),
    "seconds": ((int, float, type(None)), None, "a number"),
    "by_hand": ((bool,), False, "true or false"),
}


def _checked(
    refuse: Any, fields: Mapping[str, Any], key: str, types: tuple[type, ...], usual: Any, want: str
) -> Any:
    value = fields.get(key, usual)
    if value is ...:
        raise refuse(f"`{key}` is missing; expected {want}")
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise refuse(f"`{key}` must be {want}, got {value!r:.60}")
    return value


def _seeds(refuse: Any, given: Sequence[Any]) -> tuple[int, ...]:
    whole = bool(given) and all(isinstance(x, int) and not isinstance(x, bool) for x in given)
    if not whole or [*given] != [*range(given[0], given[0] + len(given))] or given[0] < 0:
        raise refuse(f"`seeds` must be whole numbers that follow each other, got {given!r:.60}")
    if len(given) > MOST_SEEDS:
        raise refuse(f"`seeds` has {len(given):,} seeds; expected at most {MOST_SEEDS:,}")
    return tuple(given)


def _scores(refuse: Any, given: Sequence[Any], many: int) -> tuple[float, ...]:
    if any(isinstance(x, bool) or not isinstance(x, int | float | None) for x in given):
        raise refuse("`scores` must be numbers, or null for a seed that failed")
    if given and len(given) != many:
        raise refuse(f"`scores` has {len(given)} numbers for {many} seeds")
    return tuple(math.nan if x is None else float(x) for x in given)
