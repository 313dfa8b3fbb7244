"""Recording: one program, run as it would run by itself, with everything kept.

What the program prints is recorded before it is shown. Nothing that befalls the recorder, a full
disk or a kill, befalls the program.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, final

from backflip.archive.capture.interpreter import find_executable
from backflip.archive.capture.run import capture
from backflip.archive.capture.secrets import find_secrets
from backflip.archive.capture.settings import config_of
from backflip.archive.checkpoint import disk_errors
from backflip.archive.columns import wind_up
from backflip.archive.metrics import LinesWriter
from backflip.archive.recorder.budget import read_weekly, spent_this_week
from backflip.archive.recorder.echo import Echo
from backflip.archive.recorder.ending import Ending, state_of_ending
from backflip.archive.recorder.lines import Line, StreamName
from backflip.archive.recorder.output import OutputWriter
from backflip.archive.recorder.outputs import FOLDER, list_outputs
from backflip.archive.recorder.program import Command, Program
from backflip.archive.recorder.salvage import salvage_all
from backflip.archive.recorder.system import SystemMetrics
from backflip.archive.recorder.tree import Tree
from backflip.archive.run import Asked, Capture, RunWriter, create_run
from backflip.core.errors import BackflipError, UsageError, did_you_mean

GRACE_SECONDS = 30.0
_TICK_SECONDS = 1.0
# A program that prints without end is looked at this often; before that, so many times at once.
_BATCH_SECONDS = 0.025
_AT_ONCE = 100
_RECOUNT_SECONDS = 30.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]


@final
@dataclass(frozen=True)
class Launch:
    """What to start.

    Attributes:
        argv: the command line, nothing masked.
        executable: the absolute path of its program.
        cwd: where.
        environ: the environment, without what the recorder adds.
    """

    argv: tuple[str, ...]
    executable: str
    cwd: Path
    environ: Mapping[str, str]


@final
@dataclass(frozen=True)
class Recording:
    """What is to be recorded, and how.

    Attributes:
        home: the folder whose `runs/` holds runs.
        argv: the command line as it is written down.
        cwd: the working folder as it is written down.
        asked: what a person says of it.
        capture: keeps what is to be kept before the start.
        launch: what to start, given the run's folder, once that is kept.
        grace_seconds: from the end of its budget until it is killed.
        out: the descriptor on which its stdout is shown.
        err: the one of its stderr.
    """

    home: Path
    argv: tuple[str, ...]
    cwd: Path
    asked: Asked
    capture: Capture
    launch: Callable[[Path], Launch]
    grace_seconds: float = GRACE_SECONDS
    out: int = 1
    err: int = 2


def recording_of(
    home: Path,
    argv: Sequence[str],
    asked: Asked,
    say: Say,
    *,
    cwd: Path | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> Recording:
    """Return the recording of a command line, in the environment of this process.

    Raises:
        UsageError: there is no such program.
    """
    home, cwd, environ = home.absolute(), (cwd or Path.cwd()).absolute(), dict(os.environ)
    launch = Launch(tuple(argv), check_executable(argv, cwd, environ), cwd, environ)
    secrets = find_secrets(argv, environ)
    asked = replace(
        asked,
        name=asked.name and secrets.mask(asked.name),
        question=asked.question and secrets.mask(asked.question),
    )
    keep = capture(home, argv, say=say, secrets=secrets, environ=environ)
    return Recording(home, secrets.argv, cwd, asked, keep, lambda _: launch, grace_seconds)


def record(recording: Recording, say: Say) -> Ending:
    """Run a program to its end, keeping everything, and return how it ended.

    Args:
        recording: what to run.
        say: is told, one line a call, what a person should know.

    Raises:
        BackflipError: the week's budget is used up, there is no room for the run, or the program
            cannot be started.
    """
    salvage_all()
    allowance = _Allowance(recording, say)
    config = config_of(recording.argv)
    writer = create_run(
        recording.home,
        command="run",
        config=config,
        seeds=_seeds(config),
        argv=recording.argv,
        cwd=recording.cwd,
        asked=recording.asked,
        capture=recording.capture,
    )
    with writer:
        session = _Session(recording, writer, allowance, say)
        return session.run(recording.launch(writer.folder))


def check_executable(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> str:
    """Return the absolute path of the program of a command line.

    Raises:
        UsageError: there is none, or it is no program.
    """
    if not argv or not argv[0]:
        raise UsageError("no command given: backflip run -- python train.py")
    executable = find_executable(argv[0], cwd, environ)
    if executable is not None:
        return executable
    path = cwd / argv[0]
    if path.is_dir():
        raise UsageError(
            f"`{argv[0]}` is a folder: name a program, as in backflip run -- ls {argv[0]}"
        )
    if path.is_file():
        runs_it = "python" if path.suffix == ".py" else "sh" if path.suffix == ".sh" else "PROGRAM"
        raise UsageError(
            f"`{argv[0]}` is not executable: type backflip run -- {runs_it} {argv[0]}, or make it "
            f"so with chmod +x {argv[0]}"
        )
    known = [] if "/" in argv[0] else _programs(environ)
    hint = did_you_mean(argv[0], known)
    raise UsageError(f"there is no program `{argv[0]}`{hint}; type its path, or check PATH")


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Return the names of all programs of the search path."""
    names: set[str] = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        with suppress(OSError):
            names.update(os.listdir(folder or "."))  # noqa: PTH208  (names only)
    return sorted(names)


def _seeds(config: Mapping[str, Any]) -> list[int]:
    seed = config.get("seed")
    return [seed] if type(seed) is int else []


@final
class _Allowance:
    """How long a run may take: by its own budget, and by what is left of the week's."""

    def __init__(self, recording: Recording, say: Say) -> None:
        self._home = recording.home
        self._own = recording.asked.budget_seconds
        self._rate = recording.asked.cost_per_hour or 0.0
        self._weekly = read_weekly(recording.home) if self._rate else None
        self._besides: str | None = None
        self._left = self._left_of_week()
        self._counted = time.monotonic()
        if self._weekly is not None and self._left is not None:
            spent = self._weekly - self._left
            if self._left <= 0:
                raise BackflipError(
                    f"the week's budget of {self._weekly:g} is used up ({spent:.2f} spent): wait "
                    f"for Monday, or raise it with backflip budget --weekly {self._weekly * 2:g}"
                )
            say(
                f"{spent:.2f} of this week's {self._weekly:g} spent, {self._left:.2f} left: "
                f"{_duration(self._left / self._rate * 3600)} at {self._rate:g} an hour"
            )

    def begin(self, ulid: str) -> None:
        """Say which run it is: its own cost is reckoned from its time."""
        self._besides = ulid

    def exceeded(self, seconds: float) -> str:
        """Return why a run that has taken `seconds` is to be stopped; empty if it is not."""
        if self._own is not None and seconds >= self._own:
            return f"its budget of {_duration(self._own)} is used up"
        if self._weekly is not None and time.monotonic() - self._counted > _RECOUNT_SECONDS:
            self._left, self._counted = self._left_of_week(), time.monotonic()
        if self._left is not None and seconds / 3600 * self._rate >= self._left:
            return f"the week's budget of {self._weekly:g} is used up"
        return ""

    def next_check(self, seconds: float) -> float:
        """Return in how many seconds to look again."""
        until = [] if self._own is None else [self._own - seconds]
        until += [] if self._left is None else [self._left / self._rate * 3600 - seconds]
        return max(min([_TICK_SECONDS, *until]), 0.0)

    def _left_of_week(self) -> float | None:
        if self._weekly is None:
            return None
        return self._weekly - sum(s.cost for s in spent_this_week(self._home, self._besides))


@final
class _Session:
    """One program being recorded."""

    def __init__(
        self, recording: Recording, writer: RunWriter, allowance: _Allowance, say: Say
    ) -> None:
        self._recording = recording
        self._writer = writer
        self._folder = writer.folder
        self._allowance = allowance
        self._say = say
        self._echo = Echo({"out": recording.out, "err": recording.err})
        self._log = OutputWriter(self._folder)
        self._looks, self._looked = float(_AT_ONCE), time.monotonic()
        self._interrupted = False
        self._stop_reason = ""
        self._stop_at = 0.0
        self._program: Program | None = None
        self._started = time.time()
        self._began = time.monotonic()

    def run(self, launch: Launch) -> Ending:
        """Run the program to its end."""
        with disk_errors(self._folder / FOLDER):
            (self._folder / FOLDER).mkdir()
        environ = {
            **launch.environ,
            "BACKFLIP_RUN": str(self._folder),
            "BACKFLIP_OUTPUT": str(self._folder / FOLDER),
        }
        self._allowance.begin(self._writer.run.ulid)
        with ExitStack() as stack:
            tree = Tree()
            stack.callback(tree.close)
            self._started, self._began = time.time(), time.monotonic()
            shown_on: dict[StreamName, int] = {
                "out": self._recording.out,
                "err": self._recording.err,
            }
            command = Command(launch.argv, launch.executable, launch.cwd, environ, shown_on)
            program = Program(command, self._folder, self._started)
            self._program = program
            stack.callback(program.close)
            stack.enter_context(_forwarding(self._forward))
            tree.begin(program.pid)
            self._writer.pulse.name_program(program.pid)
            system = SystemMetrics(self._folder, tree, self._started)
            stack.callback(system.stop)
            survivors = self._follow(program, tree)
            seconds = time.monotonic() - self._began
            return self._end(program, tree, seconds, survivors)

    def _follow(self, program: Program, tree: Tree) -> list[int]:
        """Record until the program has ended, or is stopped; return who survived that."""
        while not program.has_ended():
            wait = self._allowance.next_check(self._seconds())
            program.wait(_TICK_SECONDS if self._stop_reason else wait)
            self._read(program)
            if not self._stop_reason:
                self._stop_if_exceeded(program)
            elif time.monotonic() >= self._stop_at:
                break
        return self._finish_stop(program, tree) if self._stop_reason else []

    def _read(self, program: Program) -> None:
        """Record what was printed; then, if it has been much, wait for more to come together.

        The sooner one looks the surer is the order of the two streams; but each look takes time
        that the program may want.
        """
        began = time.monotonic()
        self._looks = min(self._looks + (began - self._looked) / _BATCH_SECONDS, _AT_ONCE)
        self._looked = began
        while program.read(self._take):
            pass
        if self._looks >= 1 or program.is_terminal:
            self._looks -= 1
        else:
            program.wait_for_end(_BATCH_SECONDS)

    def _stop_if_exceeded(self, program: Program) -> None:
        self._stop_reason = self._allowance.exceeded(self._seconds())
        if self._stop_reason:
            self._stop_at = time.monotonic() + self._recording.grace_seconds
            grace = _duration(self._recording.grace_seconds)
            self._say(f"{self._stop_reason}: asked it to end, and will kill it in {grace}")
            program.signal(signal.SIGTERM)
            program.signal(signal.SIGCONT)

    def _finish_stop(self, program: Program, tree: Tree) -> list[int]:
        """Wait for all of a stopped program's processes until the grace is over; kill the rest."""
        while (left := tree.processes()) and time.monotonic() < self._stop_at:
            program.wait(0.05)
            program.read(self._take)
            if program.has_ended():
                time.sleep(0.02)
        killed = [process.pid for process in left]
        survivors = tree.kill()
        program.has_ended()
        self._note(
            "budget", reason=self._stop_reason, killed=killed, survivors=survivors,
            grace_seconds=self._recording.grace_seconds,
        )  # fmt: skip
        return survivors

    def _end(self, program: Program, tree: Tree, seconds: float, survivors: list[int]) -> Ending:
        returncode = program.returncode()
        program.finish(self._take)
        self._close_log(program)
        if survivors:
            self._say(f"could not be killed: processes {', '.join(map(str, survivors))}")
        elif left := tree.processes():
            pids = ", ".join(str(process.pid) for process in left)
            self._say(f"left running by the program, and recorded no more: processes {pids}")
        interrupted = self._interrupted or program.was_interrupted
        rate = self._recording.asked.cost_per_hour
        cost = None if rate is None else seconds / 3600 * rate
        state = state_of_ending(returncode, interrupted, bool(self._stop_reason))
        number = -returncode if returncode < 0 else None
        details: dict[str, Any] = {"exit_status": returncode if number is None else 128 + number}
        details |= {"signal": number} if number else {}
        details |= {"seconds": round(seconds, 3)}
        details |= {"cost": round(cost, 6)} if cost is not None else {}
        details |= {"error": _what_killed(number)} if number and state == "failed" else {}
        details |= {"reason": self._stop_reason} if self._stop_reason else {}
        outputs = self._attempt(lambda: list_outputs(self._folder), "the list of its outputs") or []
        self._attempt(lambda: self._writer.record(state, **details), "how it ended")
        self._attempt(lambda: wind_up(self._folder), "the summary of its metrics")
        with suppress(OSError):
            os.utime(self._folder)
        run = self._writer.run
        return Ending(
            run.ulid, str(run.folder), details["exit_status"], number, state, seconds, cost,
            len(outputs),
        )  # fmt: skip

    def _take(self, lines: list[Line], rests: Mapping[StreamName, bytes]) -> None:
        """Record lines, then show them, and the beginnings of lines that have not ended."""
        self._log.write(self._seconds(), lines)
        for line in lines:
            if line.raw:
                self._echo.write(line.stream, line.raw)
        for stream, rest in rests.items():
            if rest:
                self._echo.write(stream, rest)

    def _close_log(self, program: Program) -> None:
        self._log.close()
        if self._log.lost_lines:
            problem = self._log.problem
            self._say(f"{self._log.lost_lines} lines of output were not recorded: {problem}")
            self._note("lost-output", lines=self._log.lost_lines, error=problem)
        if program.times_emptied:
            self._say(
                "the program opened its own output anew, which empties it: lines printed just "
                "before may not be recorded"
            )
            self._note("emptied-output", times=program.times_emptied)
        for stream, problem in self._echo.problems.items():
            self._say(f"std{stream} could not be shown ({problem}); it is in the archive")

    def _note(self, event: str, **details: Any) -> None:
        """Append an event that is no status."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "+00:00"
        with suppress(BackflipError), LinesWriter(self._folder / "events.jsonl") as events:
            events.write({"event": event, "time": now, **details})

    def _attempt(self, act: Callable[[], Any], what: str) -> Any:
        try:
            return act()
        except BackflipError as error:
            self._say(f"not recorded: {what}: {error}")
            return None

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = self._interrupted or number == signal.SIGINT
        if self._program is not None:
            self._program.signal(number)

    def _seconds(self) -> float:
        return time.monotonic() - self._began


def _what_killed(number: int) -> str:
    with suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"killed by signal {number}"


def _duration(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:g} s"


class _forwarding:  # noqa: N801  (a context manager, used as a function)
    """Signals to this process are the program's, meanwhile."""

    def __init__(self, forward: Callable[[int, FrameType | None], None]) -> None:
        self._forward = forward
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number in _FORWARDED:
            with suppress(ValueError):  # not the main thread: signals are somebody else's
                self._before[number] = signal.signal(number, self._forward)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
