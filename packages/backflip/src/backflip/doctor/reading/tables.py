"""Columns of tables over env steps, and the training runs that one table holds."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from backflip.doctor.log import Values
from backflip.doctor.reading.naming import ENV_STEPS, OF_TRAININGS, Logged
from runshelf.formatting import plural
from runshelf.interop.csv_files import Csv, Row, read_csv
from runshelf.interop.import_tables import steps_column

OF_MONITOR = ("r", "l", "t")
# These may count env steps, or frames of which four are one env step: the user decides.
LIKE_STEPS = ("frame", "frames", "num_frames", "total_frames", "interactions", "samples", "t")
MOST_TRAININGS = 1_000  # with more values than that, a column names something else
MOST_COLUMNS, MOST_SHOWN = 4, 40  # columns, and characters of a value, in a note


def steps_of(names: Iterable[str], mapping: Mapping[str, str]) -> str | None:
    """Return the column of env steps: the one that the user names, or one with a usual name."""
    names = list(names)
    chosen = (name for name, ours in mapping.items() if ours == ENV_STEPS and name in names)
    return next(chosen, steps_column(names)) or None


def trainings(rows: Sequence[Row], axis: str | None) -> dict[str, list[Row]]:
    """Return the rows of each training run, by text such as `seed=3`; empty text if there is one.

    A table of several training runs has a column such as `seed`, and env steps that repeat or go
    back, but not within the rows of one value. Without env steps, rows of one value must be many.
    Rows without a value, such as those about the machine, belong to all training runs.
    """
    found: dict[str, list[Row]] = {}
    columns = [name for name in dict.fromkeys(chain(*rows)) if name.lower() in OF_TRAININGS]
    names = [name for name in columns if len({row[name] for row in rows if name in row}) > 1]
    if not names:
        return {"": list(rows)}
    for row in rows:
        found.setdefault(" ".join(f"{n}={row[n]}" for n in names if n in row), []).append(row)
    shared, named = found.pop("", []), [row for row in rows if any(n in row for n in names)]
    if not 1 < len(found) <= MOST_TRAININGS or not _are_apart(named, list(found.values()), axis):
        return {"": list(rows)}
    return {name: [*some, *shared] for name, some in found.items()}


def _are_apart(rows: Sequence[Row], groups: Sequence[Sequence[Row]], axis: str | None) -> bool:
    """Return whether groups of rows have env steps of their own."""
    if axis is None:
        return 2 * len(groups) <= len(rows)
    return 2 * sum(_repeats(one, axis) for one in groups) < _repeats(rows, axis)


def _repeats(rows: Sequence[Row], axis: str) -> int:
    """Return how often env steps do not rise from one row to the next."""
    steps = [x for row in rows if not isinstance(x := row.get(axis, math.nan), str)]
    return int((np.diff(steps) <= 0).sum())


def notes_of(path: Path, table: Csv, rows: Sequence[Row], axis: str | None) -> list[str]:
    """Return sentences about what is missing in a table, whose rows were read."""
    said = list[str]()
    if left_out := table.left_out():
        said.append(f"`{path.name}`, left out: {left_out}")
    twice = [name for name, count in Counter(filter(None, table.names)).items() if count > 1]
    if twice:
        shown = ", ".join(f"`{name}`" for name in twice[:MOST_COLUMNS])
        said.append(f"`{path.name}` has several columns of one name, the last counts: {shown}")
    if not rows:
        said.append(f"`{path.name}` has no rows")
    if axis is None:
        near = next((name for name in table.names if name.lower() in LIKE_STEPS), None)
        said.append(
            f"`{path.name}` has no env steps: rows are counted instead; name the column with "
            f"--map {near or 'COLUMN'}={ENV_STEPS} if {'that is it' if near else 'there is one'}"
        )
    return said + _without_numbers(path, rows, axis)


def _without_numbers(
    path: Path, rows: Sequence[Mapping[str, float | str]], axis: str | None
) -> list[str]:
    """Return sentences about env steps, and about all values, that are not finite numbers."""
    first: dict[str, float | str] = {}
    finite = set[str]()
    for row in rows:
        if unknown := row.keys() - finite:  # empty for nearly all rows of a long table
            first = {**row, **first}
            numbers = {n: x for n in unknown if not isinstance(x := row[n], str)}
            finite |= {n for n, x in numbers.items() if math.isfinite(x)}
    held = {name: f"`{name}` holds `{str(x)[:MOST_SHOWN]}`" for name, x in first.items()}
    steps, said = held.pop(axis or "", ""), list[str]()
    if steps and axis not in finite:
        said.append(f"`{path.name}`: no row has env steps: {steps}, which is not a finite number")
    if rows and not finite - {axis}:
        shown = ", ".join([*held.values()][:MOST_COLUMNS]) or "all cells are empty"
        more = f", and {len(held) - MOST_COLUMNS} more" if len(held) > MOST_COLUMNS else ""
        said.append(f"`{path.name}`: no column has a finite number to check: {shown}{more}")
    return said


def columns(rows: Sequence[Mapping[str, float | str]], axis: str | None) -> dict[str, Logged]:
    """Return the numbers of rows over one of them, or over the numbers of the rows."""
    at = [row.get(axis, math.nan) if axis else number for number, row in enumerate(rows, 1)]
    placed = [(x, row) for x, row in zip(at, rows, strict=True) if not isinstance(x, str)]
    found = defaultdict[str, tuple[list[int], list[float]]](lambda: ([], []))
    for number, (_, row) in enumerate(placed):
        for name, value in row.items():
            if not isinstance(value, str):
                numbers, y = found[name]
                numbers.append(number)
                y.append(value)
    x = np.asarray([x for x, _ in placed], np.float64)
    return {
        name: Logged(x[numbers], np.asarray(y, np.float64)) for name, (numbers, y) in found.items()
    }


def of_monitors(paths: Sequence[Path], notes: list[str]) -> dict[str, Logged]:
    """Return the episodes of monitor files, over the env steps of all environments together.

    Files are of environments that ran side by side: their episodes are in the order of their ends.
    """
    found = [_episodes(path, notes) for path in paths]
    episodes = np.concatenate(found, axis=1)
    if not episodes.size:
        notes.append("the monitor files hold no episode")
        return {}
    return over_env_steps(episodes)


def over_env_steps(episodes: Float64[np.ndarray, "3 episodes"]) -> dict[str, Logged]:
    """Return times, returns and lengths of episodes over env steps, in the order of their ends."""
    times, returns, lengths = episodes[:, np.argsort(episodes[0], kind="stable")]
    x = np.cumsum(lengths)
    return {"r": Logged(x, returns), "l": Logged(x, lengths), "t": Logged(x, times)}


def _episodes(path: Path, notes: list[str]) -> Values:
    """Return times, returns and lengths of the episodes of one monitor file, (3, episodes).

    Where the time falls, the program was started again and appended to the file: times go on from
    the last one.
    """
    rows = [(row["t"], row["r"], row["l"]) for row in read_csv(path, OF_MONITOR).rows]
    found = np.asarray(rows, np.float64).reshape(-1, 3).T
    again = np.flatnonzero(np.diff(found[0]) < 0) + 1
    for at in again:
        found[0, at:] += found[0, at - 1]
    if len(again):
        notes.append(
            f"`{path.name}`: times begin again {plural(len(again), 'time')}: the program was "
            "started again, and appended to the file"
        )
    return found
