"""The recorded result of a run that has finished."""

from collections.abc import Mapping
from typing import Any

from backflip.training.result import Result
from runshelf.errors import UsageError
from runshelf.store.run import Run


def end_of(run: Run) -> Mapping[str, Any] | None:
    """Return the event with which a run finished; None if it has not."""
    ends = [event for event in run.events() if event.get("status") == "finished"]
    return ends[0] if ends else None


def result_of(run: Run) -> Result | None:
    """Return the recorded result of a run; None if it has not finished.

    Raises:
        UsageError: it finished, and the version that wrote it recorded no result.
    """
    event = end_of(run)
    if event is None:
        return None
    try:
        return Result.from_json(run.folder, event["result"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"run `{run.ulid}` has finished, and recorded no result") from error
