"""The state of a run, from its events and from whether its process is alive."""

from typing import Literal, NamedTuple, final

from runshelf.store.liveness import SILENCE_SECONDS, is_alive, read_heartbeat
from runshelf.store.run import Run, is_locked

StateName = Literal["running", "finished", "failed", "interrupted", "stopped", "lost", "imported"]
OVER: tuple[StateName, ...] = ("finished", "failed", "interrupted", "stopped", "imported")


@final
class State(NamedTuple):
    """The state of a run.

    Attributes:
        name: `finished` with success, `failed`, `interrupted` by Ctrl-C, `stopped` before its
            end, `running`, `lost`: it was running and its process is gone; or `imported`: its log
            does not tell how it ended.
        since: the time of the last status event; empty for a run without events.
        note: the reason in one line; may be empty.
    """

    name: StateName
    since: str
    note: str


def state_of(run: Run) -> State:
    """Return the current state of a run.

    Raises:
        UserFacingError: its events cannot be read.
    """
    statuses = [event for event in run.events() if "status" in event]
    last = statuses[-1] if statuses else {}
    since = str(last.get("time", ""))
    if last.get("status") in OVER:
        return State(last["status"], since, _why(last))
    alive, note = _is_alive(run)
    return State("running" if alive else "lost", since, note)


def _why(event: dict[str, object]) -> str:
    if "error" in event:
        return str(event["error"])
    if "note" in event:
        return str(event["note"])
    exit_status = event.get("exit_status")
    return f"exit status {exit_status}" if exit_status else ""


def _is_alive(run: Run) -> tuple[bool, str]:
    """Return whether a process of the run is alive, and a note for the user."""
    beat = read_heartbeat(run.folder)
    if beat is None:
        return is_locked(run), ""
    known = is_alive(beat.recorder)
    if known or (known is None and beat.age < SILENCE_SECONDS):
        return True, ""
    if known is None:
        return False, f"no sign of life from {beat.recorder.host} for {beat.age:.0f} s"
    if beat.program and is_alive(beat.program):
        return True, f"its recorder is gone; the program (process {beat.program.pid}) still runs"
    return False, "its process is gone without a recorded reason"
