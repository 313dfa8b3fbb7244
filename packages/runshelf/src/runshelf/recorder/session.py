"""Records one program from its start to its end."""

import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Any, final

from runshelf.durations import duration
from runshelf.environment import exported
from runshelf.errors import UserFacingError
from runshelf.formatting import plural
from runshelf.recorder.echo import Echo
from runshelf.recorder.ending import Ending, error_of_ending, state_of_ending
from runshelf.recorder.launch import Launch, Recording, Say
from runshelf.recorder.lines import Line, StreamName
from runshelf.recorder.output_files import FOLDER, list_outputs
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.process_tree import ProcessTree
from runshelf.recorder.program import Program
from runshelf.recorder.system_metrics import SystemMetrics
from runshelf.recorder.time_limit import CHECK_SECONDS, TimeLimit
from runshelf.store.compacting import finish_metrics
from runshelf.store.records import LinesWriter
from runshelf.store.run import RunWriter
from runshelf.store.writing import make_folder, touch

# Output is read at most this often, after a reserve of `_MAX_READS` immediate reads is used up.
_BATCH_SECONDS = 0.025
_MAX_READS = 100
# One read takes at most this long, so that budgets are checked in between.
_MAX_READ_SECONDS = 0.25
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@final
class Session:
    """The recording of one program."""

    def __init__(
        self, recording: Recording, writer: RunWriter, time_limit: TimeLimit, say: Say
    ) -> None:
        self._recording = recording
        self._writer = writer
        self._folder = writer.folder
        self._time_limit = time_limit
        self._say = say
        self._shown_on: dict[StreamName, int] = {"out": recording.out, "err": recording.err}
        self._echo = Echo(self._shown_on)
        self._log = OutputWriter(self._folder, recording.hidden)
        self._reads, self._last_read = float(_MAX_READS), time.monotonic()
        self._interrupted = False
        self._stop_reason = ""
        self._stop_at = 0.0
        self._program: Program | None = None
        self._early: list[int] = []  # signals that arrived before the program was started
        self._began = time.monotonic()

    def run(self, launch: Launch) -> Ending:
        """Run the program to its end, and return how it ended.

        Raises:
            UserFacingError: the program cannot be started.
        """
        make_folder(self._folder, FOLDER, exist_ok=False)
        self._time_limit.begin(self._writer.run.ulid)
        with ExitStack() as stack:
            tree = ProcessTree()
            stack.callback(tree.close)
            program = self._start(launch, tree, stack)
            survivors = self._follow(program, tree)
            return self._end(program, tree, survivors)

    def _start(self, launch: Launch, tree: ProcessTree, stack: ExitStack) -> Program:
        """Start the program, signal forwarding and system metrics; `stack` stops them."""
        self._began = time.monotonic()
        stack.enter_context(_handled(self._forward))  # the program may signal us at once
        named = exported({"RUN": str(self._folder), "OUTPUT": str(self._folder / FOLDER)})
        launch = replace(launch, environ={**launch.environ, **named})
        program = Program(launch, self._shown_on, self._folder)
        stack.callback(program.close)
        self._writer.heartbeat.name_program(program.pid)
        self._program = program
        for number in self._early:
            program.signal(number)
        tree.begin(program.pid)
        system = SystemMetrics(self._folder, tree)
        stack.callback(system.stop)
        return program

    def _follow(self, program: Program, tree: ProcessTree) -> list[int]:
        """Record until the program ends or is stopped; return the processes that survive."""
        more = False
        while not program.has_ended():
            if not more:
                self._wait(program)
            more = self._read(program)
            if not self._stop_reason:
                self._stop_if_exceeded(program)
            elif time.monotonic() >= self._stop_at:
                break
        return self._finish_stop(program, tree) if self._stop_reason else []

    def _wait(self, program: Program) -> None:
        """Wait for output, the end of the program, or the next budget check."""
        seconds = self._time_limit.next_check(self._seconds())
        seconds = CHECK_SECONDS if self._stop_reason else seconds
        program.wait(seconds, self._echo.waits_for(), reads=self._echo.has_room)

    def _read(self, program: Program) -> bool:
        """Record new output; if there is much, wait so that the next read gets a larger batch.

        Immediate reads order the two streams best, but take CPU time from the program.

        Returns:
            Whether more output is available.
        """
        began = time.monotonic()
        self._reads = min(self._reads + (began - self._last_read) / _BATCH_SECONDS, _MAX_READS)
        self._last_read = began
        self._echo.write()
        until = began + _MAX_READ_SECONDS
        while (more := self._read_some(program)) and time.monotonic() < until:
            pass
        if self._reads >= 1 or program.is_terminal or program.times_emptied:
            self._reads -= 1  # output that the program may truncate must be read at once
        elif not more:
            program.wait(_BATCH_SECONDS, self._echo.waits_for(), reads=False)
            self._last_read = time.monotonic()  # this wait does not refill the reserve
        return more

    def _read_some(self, program: Program) -> bool:
        """Record one chunk of output if it can be shown; return whether there may be more."""
        if self._echo.has_room:
            return program.read(self._take)
        program.pass_keys()
        return False

    def _stop_if_exceeded(self, program: Program) -> None:
        self._stop_reason = self._time_limit.exceeded(self._seconds())
        if self._stop_reason:
            self._stop_at = time.monotonic() + self._recording.grace_seconds
            grace = duration(self._recording.grace_seconds)
            self._say(f"{self._stop_reason}: sent SIGTERM, will kill it in {grace}")
            program.signal(signal.SIGTERM)
            program.signal(signal.SIGCONT)

    def _finish_stop(self, program: Program, tree: ProcessTree) -> list[int]:
        """Wait until all processes of a stopped program end; kill the rest after the grace time."""
        while (left := tree.processes()) and time.monotonic() < self._stop_at:
            program.wait(0.05, self._echo.waits_for(), reads=self._echo.has_room)
            self._echo.write()
            self._read_some(program)
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

    def _end(self, program: Program, tree: ProcessTree, survivors: list[int]) -> Ending:
        """Record the remaining output and the ending."""
        seconds = self._seconds()
        program.finish(self._take_last)
        self._echo.drain()
        self._close_log(program)
        self._report_survivors(tree, survivors)
        outputs = self._attempt(lambda: list_outputs(self._folder), "the list of its outputs") or []
        ending = self._ending(program, seconds, len(outputs))
        self._attempt(lambda: self._record_ending(ending), "how it ended")
        self._attempt(lambda: finish_metrics(self._folder), "the summary of its metrics")
        touch(self._folder)
        return ending

    def _ending(self, program: Program, seconds: float, outputs: int) -> Ending:
        returncode = program.returncode()
        interrupted = self._interrupted or program.was_interrupted
        rate = self._recording.info.cost_per_hour
        return Ending(
            run=self._writer.run.ulid,
            folder=str(self._folder),
            exit_status=returncode if returncode >= 0 else 128 - returncode,
            signal=-returncode if returncode < 0 else None,
            state=state_of_ending(returncode, interrupted, bool(self._stop_reason)),
            seconds=seconds,
            cost=None if rate is None else seconds / 3600 * rate,
            outputs=outputs,
        )

    def _record_ending(self, ending: Ending) -> None:
        details: dict[str, Any] = {"exit_status": ending.exit_status}
        details |= {"signal": ending.signal} if ending.signal else {}
        details |= {"seconds": round(ending.seconds, 3)}
        details |= {"cost": round(ending.cost, 6)} if ending.cost is not None else {}
        error = error_of_ending(ending)
        details |= {"error": error} if error else {}
        details |= {"reason": self._stop_reason} if self._stop_reason else {}
        self._writer.record(ending.state, **details)

    def _report_survivors(self, tree: ProcessTree, survivors: list[int]) -> None:
        if survivors:
            self._say(f"could not be killed: processes {', '.join(map(str, survivors))}")
        elif left := tree.processes():
            pids = ", ".join(str(process.pid) for process in left)
            self._say(f"still running after the program ended, not recorded: processes {pids}")

    def _take(self, lines: list[Line], rests: Mapping[StreamName, bytes]) -> None:
        """Record lines, then show them and the unfinished lines."""
        self._log.write(self._seconds(), lines)
        self._echo.show(lines, rests)

    def _take_last(self, lines: list[Line], rests: Mapping[StreamName, bytes]) -> None:
        """Do the same at the end of the program, and wait until everything is shown."""
        self._take(lines, rests)
        self._echo.drain()

    def _close_log(self, program: Program) -> None:
        self._log.close()
        if self._log.lost_lines:
            problem, lost = self._log.problem, plural(self._log.lost_lines, "line")
            were = "was" if self._log.lost_lines == 1 else "were"
            self._say(f"{lost} of output {were} not recorded: {problem}")
            self._note("lost-output", lines=self._log.lost_lines, error=problem)
        if program.times_emptied:
            self._say(
                "the program reopened its own output, which truncates it: lines printed just "
                "before may be missing"
            )
            self._note("emptied-output", times=program.times_emptied)
        for stream, problem in self._echo.problems.items():
            self._say(f"std{stream} could not be shown ({problem}); it is recorded")

    def _note(self, event: str, **details: Any) -> None:
        """Append an event that is not a status."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "+00:00"
        with suppress(UserFacingError), LinesWriter(self._folder / "events.jsonl") as events:
            events.write({"event": event, "time": now, **details})

    def _attempt(self, act: Callable[[], Any], what: str) -> Any:
        try:
            return act()
        except UserFacingError as error:
            self._say(f"not recorded: {what}: {error}")
            return None

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = self._interrupted or number == signal.SIGINT
        if self._program is None:
            self._early.append(number)
        else:
            self._program.signal(number)

    def _seconds(self) -> float:
        return time.monotonic() - self._began


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Generator[None, None, None]:
    """Handle signals that are meant for the program; only the main thread receives signals."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in _FORWARDED if is_main}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
