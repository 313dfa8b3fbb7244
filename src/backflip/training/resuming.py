"""Going on with a run: what determines it, and who carries on with runs of its kind."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from backflip.archive.run import Run
from backflip.core.errors import UsageError
from backflip.training.progress import Report
from backflip.training.result import Result

Performer = Callable[..., Result]
_PERFORMERS: dict[str, Performer] = {}


def register(command: str, perform: Performer) -> None:
    """Say what carries on with the runs of a command."""
    _PERFORMERS[command] = perform


def resume(run: Run, report: Report | None = None, **sitting: Any) -> Result:
    """Carry on with a run to its end; one that has ended is only evaluated again.

    Args:
        run: which.
        report: told of progress.
        sitting: what belongs to this sitting and not to the run, as the run's command takes it.

    Raises:
        UsageError: nothing is known that carries on with runs of its kind.
    """
    command = run.manifest["command"]
    if command not in _PERFORMERS:
        known = ", ".join(sorted(_PERFORMERS))
        raise UsageError(
            f"run `{run.ulid}` is of kind `{command}`, which cannot be resumed ({known} can)"
        )
    return _PERFORMERS[command](run, report, **sitting)


def resolved(run: Run) -> dict[str, Any]:
    """Return everything that determines what a run computes."""
    keys = ("command", "env", "algorithm", "seeds", "config")
    return {key: run.manifest.get(key) for key in keys}


def fingerprint(run: Run) -> str:
    """Return the SHA-256 of what determines a run."""
    text = json.dumps(resolved(run), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(saved: Any, now: Any, path: str = "") -> list[str]:
    """Return which keys differ between two nested configurations."""
    if isinstance(saved, dict) and isinstance(now, dict):
        return [
            line
            for key in sorted({*saved, *now})
            for line in differences(
                saved.get(key, "nothing"), now.get(key, "nothing"), f"{path}.{key}".strip(".")
            )
        ]
    return [] if saved == now else [f"`{path}` was {saved}, is {now}"]
