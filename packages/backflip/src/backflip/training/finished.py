"""Runs that have finished: the recorded result, and the command that carries them on."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from backflip.core.paths import name_on_command_line
from backflip.training.parents import before_of
from backflip.training.result import Result
from backflip.training.teaching.more import can_ask
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
        return with_more(Result.from_json(run.folder, event["result"]), run)
    except (KeyError, TypeError) as error:
        raise UsageError(f"run `{run.short}` has finished, but recorded no result") from error


def with_more(result: Result, run: Run) -> Result:
    """Return the result with the command that carries the run on."""
    return dataclasses.replace(result, more=more_command(run))


def more_command(run: Run) -> str:
    """Return a command line that carries a run on, with an example of a budget."""
    command, config = run.manifest["command"], run.config
    own = config["settings"]["env_steps"] - before_of(run).env_steps
    budget = "--labels 50" if command == "teach" and can_ask(run) else f"--env-steps {own}"
    return f"backflip {command} --more {name_on_command_line(run)} {budget}"
