"""What the trainer is doing, for those who wait for it: one small file beside the labels.

The trainer replaces it whole, a page or a terminal reads it. It tells the present, so it is not
kept safe from a power cut. No JAX here.
"""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from backflip.preferences.answer_source import Doing
from backflip.preferences.films import Film
from runshelf.store.files import disk_errors

_FILE = "status.json"


class Status(NamedTuple):
    """What the trainer is doing.

    Attributes:
        doing: `waiting` is for answers; `stopped` is what a reader makes of a dead process.
        since: when it began that, in seconds since 1970.
        expected_seconds: how long it will take, where that can be said.
        env: what is taught.
        phase: phases done.
        phases: of how many.
        env_steps: taken so far, of each seed.
        budget: labels to be given in all, by people and imports, for all seeds.
        pid: the trainer's process.
        episode: the agent's latest behaviour, if any was drawn.
        episode_env_steps: how much it had learnt by then.
        result: what came of it, once it has finished; why it stopped, if it failed.
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


def write_status(folder: Path, status: Status) -> None:
    """Replace what is said of the trainer of the run in `folder`."""
    fields = status._asdict() | {"episode": status.episode and status.episode._asdict()}
    path, partial = folder / _FILE, folder / f".{_FILE}.part"
    with disk_errors(path):
        partial.write_text(json.dumps(fields))
        partial.replace(path)


def read_status(folder: Path) -> Status:
    """Return what the trainer of the run in `folder` is doing; `stopped` where there is none."""
    try:
        fields: dict[str, Any] = json.loads((folder / _FILE).read_text())
        film = fields.pop("episode")
        status = Status(**fields, episode=Film(**film) if film else None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Status("stopped", time.time())
    over = status.doing in ("finished", "stopped")
    return status if over or _alive(status.pid) else status._replace(doing="stopped")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's process
        return True
    return pid > 0
