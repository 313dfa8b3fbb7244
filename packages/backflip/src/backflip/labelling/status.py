"""The trainer's status: a small file in the run's folder, for the page and the terminal.

The trainer replaces the whole file. It describes the present only, so it is not synced to disk.
"""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

from backflip.preferences.answer_source import Doing
from backflip.preferences.films import Film, film_of_fields
from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.writing import replace_file

_FILE = "status.json"
_FILMS = ("episode", "film")  # fields that are films
_TEXTS = ("doing", "env", "result", "more")
_SECONDS = ("since", "expected_seconds", "phase_seconds")  # the other fields are whole numbers
_MOST = 2**53
_LONGEST_TEXT = 10_000


class Status(NamedTuple):
    """The trainer's status.

    Attributes:
        doing: the current activity. `waiting` means for answers; a reader reports a dead trainer
            as `stopped`.
        since: start of the activity, in seconds since 1970.
        expected_seconds: expected duration of the activity; None if unknown.
        env: the environment's id.
        phase: number of finished phases.
        phases: number of phases in all.
        env_steps: env steps so far, per seed.
        budget: number of labels in all, from people and imports, for all seeds.
        pid: the trainer's process id.
        episode: film of the agent's latest episode, if rendered.
        episode_env_steps: env steps before that episode.
        result: the result of a finished run, or why it stopped.
        film: film of the final policy, once it is drawn.
        learned_labels: number of labels at the newest fit of the reward model.
        needed_labels: number of labels at which the next phase may start; None if no phase follows.
        phase_seconds: duration of the last phase; None before the first.
        more: the command that teaches more; empty if there is none.
    """

    doing: Doing
    since: float
    expected_seconds: float | None = None
    env: str = ""
    phase: int = 0
    phases: int = 0
    env_steps: int = 0
    budget: int = 0
    pid: int = 0
    episode: Film | None = None
    episode_env_steps: int = 0
    result: str = ""
    film: Film | None = None
    learned_labels: int = 0
    needed_labels: int | None = None
    phase_seconds: float | None = None
    more: str = ""


def write_status(folder: Path, status: Status) -> None:
    """Replace the status of the run in `folder`."""
    films = {name: film and film._asdict() for name, film in films_of(status).items()}
    fields = status._asdict() | films
    replace_file(folder, _FILE, json.dumps(fields).encode(), synced=False)


def read_status(folder: Path) -> Status:
    """Return the status of the run in `folder`; `stopped` if there is no status or no trainer."""
    try:
        status = _status_of(parse_record(read_whole(folder, _FILE) or b""))
    except (UserFacingError, ValueError):
        return Status("stopped", time.time())
    over = status.doing in ("finished", "stopped")
    return status if over or _alive(status.pid) else status._replace(doing="stopped")


def _status_of(fields: dict[str, Any]) -> Status:
    """Return the status in a file, without the fields that are not what they should be.

    Raises:
        ValueError: it does not say what the trainer is doing.
    """
    if fields.get("doing") not in get_args(Doing):
        raise ValueError("no activity")
    known = {name: fields.get(name) for name in Status._fields if name not in _FILMS}
    valid = {name: value for name, value in known.items() if _is_valid(name, value)}
    films = {name: _film(fields.get(name)) for name in _FILMS}
    found: dict[str, Any] = {"since": time.time(), **valid, **films}
    return Status(**found)


def _is_valid(name: str, value: Any) -> bool:
    if name in _TEXTS:
        return isinstance(value, str) and len(value) <= _LONGEST_TEXT
    if value is None or type(value) not in (int, float):
        return False
    return 0 <= value <= _MOST and (name in _SECONDS or type(value) is int)


def _film(fields: Any) -> Film | None:
    with suppress(ValueError):
        return film_of_fields(fields)
    return None


def films_of(status: Status) -> dict[str, Film | None]:
    """Return the films of a status by the names of their fields."""
    return {name: getattr(status, name) for name in _FILMS}


def _alive(pid: Any) -> bool:
    if type(pid) is not int or not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        pass
    return True
