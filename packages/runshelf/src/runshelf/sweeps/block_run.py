"""Runs one block: finds what an earlier worker left of it, and starts, resumes or waits.

A program of ours (`backflip train`, `backflip teach`) records its own run and is resumed from its
last checkpoint. Any other program is recorded by `runshelf run` and started again.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from runshelf.environment import exported
from runshelf.errors import UserFacingError
from runshelf.recorder.self_recording import has_option, self_recording
from runshelf.store.finding import list_runs
from runshelf.store.liveness import process
from runshelf.store.membership import SWEEP, member_variables
from runshelf.store.opening import NoFile, read, read_whole
from runshelf.store.periods import periods
from runshelf.store.run import Run, open_run
from runshelf.store.state import state_of
from runshelf.store.writing import open_in_place, remove_file
from runshelf.sweeps.blocks import Block
from runshelf.sweeps.claims import Claim
from runshelf.sweeps.definition import Sweep
from runshelf.sweeps.results import BLOCKS, BlockResult, Measured, measured
from runshelf.sweeps.space import Values
from runshelf.sweeps.template import with_values

POLL_SECONDS = 0.1
_MOST_KILLS = 3  # times that the program of a block may be killed, as when memory runs out
_LEAST_FREE = 16 << 20  # bytes of disk; a program that failed with less free is not to blame
_MOST_SAID = 1 << 16
_STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


class DiskFull(UserFacingError):
    """The disk is full; the block was given up, and nothing is lost."""


@final
@dataclass
class Stop:
    """Whether the worker was asked to stop.

    Attributes:
        asked: it was.
    """

    asked: bool = field(default=False)


@final
class BlockRun:
    """One block that this process has claimed.

    Args:
        sweep: the sweep.
        block: the block.
        values: the values of its configuration.
        claim: the claim.
        stop: whether the worker was asked to stop.
    """

    def __init__(
        self, sweep: Sweep, block: Block, values: Values, claim: Claim, stop: Stop
    ) -> None:
        self._sweep, self._block, self._values = sweep, block, values
        self._claim, self._stop = claim, stop
        self._home = Path(sweep.definition.home)
        command = sweep.definition.command
        self._resumes = self_recording(command) is not None
        self._command = with_values(command, values, block.first_seed, block.seeds)

    def run(self) -> BlockResult | None:
        """Run the block to its end and return its result; None if the worker was asked to stop.

        Raises:
            DiskFull: the program failed because the disk is full.
            UserFacingError: the program cannot be started.
        """
        # The first claim of the block: it cannot have a run yet.
        run = None if self._claim.number == 1 else self._left_behind()
        for _ in range(_MOST_KILLS):
            if run is not None and state_of(run).name == "finished":
                return self._finished(run)
            status, said = self._start(run)
            if self._stop.asked:
                return None
            run = self._newest_run()
            if status == 0 and run is not None:
                return self._finished(run)
            self._refuse_full_disk()
            if status not in (-signal.SIGKILL, 128 + signal.SIGKILL, *_STOPPED):
                return self._failed(run, _why(run, said, status))
        return self._failed(run, f"its program was killed {_MOST_KILLS} times")

    def _left_behind(self) -> Run | None:
        """Return the newest run of the block, after it has ended."""
        run = self._newest_run()
        while run is not None and state_of(run).name == "running" and not self._stop.asked:
            time.sleep(POLL_SECONDS)
            run = self._newest_run()
        return run

    def _newest_run(self) -> Run | None:
        """Return the newest run of the block; one that has finished comes before all others."""
        runs = runs_of_block(self._home, self._sweep.ulid, self._block.name)
        if not self._resumes:  # `run` records the program; a run that it began itself is its own
            runs = [run for run in runs if run.manifest["command"] == "run"] or runs
        finished = [run for run in runs if state_of(run).name == "finished"]
        return next(iter([*finished, *runs]), None)

    def _start(self, run: Run | None) -> tuple[int, str]:
        """Start or resume the program; return its exit status and the end of what it said."""
        path = f"{BLOCKS}/{self._block.name}.err"
        error = open_in_place(self._sweep.folder, path)
        try:
            os.ftruncate(error, 0)
            program = subprocess.Popen(
                self._argv(run),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=error,
                cwd=self._sweep.definition.cwd,
                env={**os.environ, **self._variables()},
                pass_fds=(self._claim.lock,),  # it holds the block when this worker is killed
                start_new_session=True,  # Ctrl-C reaches the worker, which stops it in order
            )
        except OSError as failed:
            reason = failed.strerror or str(failed)
            raise UserFacingError(f"cannot start `{self._command[0]}`: {reason}") from failed
        finally:
            os.close(error)
        status = self._wait(program)
        with suppress(NoFile):
            said = read(self._sweep.folder, path, _MOST_SAID).decode(errors="replace")
            remove_file(self._sweep.folder, path)
            return status, said
        return status, ""

    def _wait(self, program: "subprocess.Popen[bytes]") -> int:
        asked = False
        while True:
            with suppress(subprocess.TimeoutExpired):
                return program.wait(POLL_SECONDS)
            if self._stop.asked and not asked:
                asked = True
                program.send_signal(signal.SIGTERM)

    def _argv(self, run: Run | None) -> list[str]:
        rate = self._sweep.definition.cost_per_hour
        cost = [] if rate is None else ["--cost", f"{rate:f}/h"]
        ours = self_recording(self._command)
        if ours is None:
            begin = [sys.executable, "-m", "runshelf", "run", *cost, "--name", self._name()]
            return [*begin, "--", *self._command]
        program, arguments = ours
        if program == (Path(program[0]).name,):  # this environment's own
            program = (sys.executable, "-m", *program)
        if run is not None and state_of(run).name in ("lost", "interrupted", "stopped", "failed"):
            return [*program, "resume", run.ulid]
        return [*program, *arguments, *(() if has_option(arguments, "--cost") else cost)]

    def _name(self) -> str:
        return f"{self._sweep.name} {self._block.name}"

    def _variables(self) -> dict[str, str]:
        fields = {
            "name": self._sweep.name,
            "id": self._sweep.ulid,
            "purpose": self._block.purpose,
            "block": self._block.name,
            "configuration": self._block.configuration,
            "tried": self._sweep.definition.configurations,
        }
        return member_variables(fields) | exported({"HOME": str(self._home)})

    def _refuse_full_disk(self) -> None:
        for place in (self._home, self._sweep.folder):
            if free_bytes(place) < _LEAST_FREE:
                raise DiskFull(
                    f"no space left on the disk of `{place}`: block {self._block.name} was given "
                    "up, and every finished block is kept; free some space and start the sweep "
                    "again"
                )

    def _finished(self, run: Run) -> BlockResult:
        problem = ""
        for one in (run, *self._begun_by(run)):
            try:
                found = measured(one, self._block, self._sweep.definition.metric)
            except UserFacingError as error:
                problem = problem or str(error)
            else:
                return self._result(one, found=found)
        return self._failed(run, problem)

    def _begun_by(self, run: Run) -> list[Run]:
        """Return the runs that a recorded program began itself, as by `backflip.train`."""
        if self._resumes:
            return []
        runs = runs_of_block(self._home, self._sweep.ulid, self._block.name)
        newer = [one for one in runs if one.ulid > run.ulid]
        return [one for one in newer if state_of(one).name == "finished"]

    def _failed(self, run: Run | None, error: str) -> BlockResult:
        return self._result(run, error=error)

    def _result(
        self, run: Run | None, *, found: Measured | None = None, error: str = ""
    ) -> BlockResult:
        by = process()
        return BlockResult(
            block=self._block.name,
            purpose=self._block.purpose,
            configuration=self._block.configuration,
            values=self._values,
            first_seed=self._block.first_seed,
            seeds=self._block.seeds,
            state="failed" if found is None else "finished",
            run="" if run is None else run.ulid,
            error=error,
            metric="" if found is None else found.metric,
            scores={} if found is None else found.scores,
            digests={} if found is None else found.digests,
            seconds=0.0 if run is None else round(_seconds_of(run), 3),
            env_steps=None if found is None else found.env_steps,
            worker=f"{by.host}:{by.pid}",
        )


def runs_of_block(home: Path, sweep: str, block: str) -> list[Run]:
    """Return the runs of a block in a home, the newest first; unreadable runs are left out."""
    found: list[Run] = []
    written = json.dumps(sweep).encode()
    for ulid in reversed(list_runs(home)):
        folder = home / "runs" / ulid
        with suppress(UserFacingError, OSError):
            # Only manifests that contain the id are parsed; there may be ten thousand.
            if written in (read_whole(folder, "run.json") or b""):
                run = open_run(folder)
                if _is_of(run.manifest, sweep, block):
                    found.append(run)
    return found


def _is_of(manifest: Mapping[str, Any], sweep: str, block: str) -> bool:
    fields = manifest.get(SWEEP)
    return isinstance(fields, dict) and (fields.get("id"), fields.get("block")) == (sweep, block)


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free on the disk of a folder, or of the folder above it."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _seconds_of(run: Run) -> float:
    events = run.events()
    return sum(one.seconds for one in periods(events, time.time()))


def _why(run: Run | None, said: str, status: int) -> str:
    """Return why a program failed, in one line: what its run says, else what it printed last."""
    lines: Sequence[str] = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("runshelf: run ")]
    last = f": {lines[-1][:300]}" if lines else ""
    if run is not None and not last:
        note = state_of(run).note
        last = f": {note[:300]}" if note else ""
    return f"its program failed with exit status {status}{last}"
