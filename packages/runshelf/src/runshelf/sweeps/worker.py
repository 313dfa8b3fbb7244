"""A worker: claims open blocks one after the other and runs them, until none is left."""

import shlex
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import final

from runshelf.durations import duration
from runshelf.environment import variable
from runshelf.errors import Ended, Interrupted, UserFacingError
from runshelf.store.liveness import Process, is_alive, process
from runshelf.store.writing import make_folder, write_once
from runshelf.sweeps.block_run import BlockRun, Stop
from runshelf.sweeps.blocks import Block
from runshelf.sweeps.claims import Claim, Claims
from runshelf.sweeps.definition import Sweep
from runshelf.sweeps.results import BLOCKS, BlockResult, done_name, to_data
from runshelf.sweeps.state import State, state_of_sweep, values_of

DRIVER = "SWEEP_DRIVER"  # the process id of the driver; a worker ends after it
IDLE_SECONDS = 0.5  # between two looks for an open block, while others run the last ones
# Slurm, as submitit asks it to, sends SIGUSR2 before the time of a job is over.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)


@final
class Worker:
    """Runs blocks of a sweep in this process.

    Args:
        sweep: the sweep.
        say: called with one line of information.
        most: the largest number of blocks to run; None for no limit.
    """

    def __init__(self, sweep: Sweep, say: Callable[[str], None], most: int | None = None) -> None:
        self._sweep, self._say, self._left = sweep, say, most
        self._claims = Claims(sweep.folder)
        self._known: dict[str, BlockResult] = {}
        self._stop = Stop()
        self._driver = _driver()

    def run(self) -> State:
        """Run blocks until none is open, the budget is spent, or the driver is gone.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; the present block was given up and can be resumed.
            UserFacingError: the disk is full, or a program cannot be started.
        """
        make_folder(self._sweep.folder, BLOCKS)
        with self._signals():
            while not self._stop.asked:
                state = state_of_sweep(self._sweep, self._known)
                if self._is_over(state):
                    return state
                if not self._run_one(state):
                    time.sleep(IDLE_SECONDS)
        raise self._interrupted()

    def _is_over(self, state: State) -> bool:
        if not state.open or state.is_over_budget or state.hopeless:
            return True
        return self._left == 0 or (self._driver is not None and not is_alive(self._driver))

    def _run_one(self, state: State) -> bool:
        """Run the first open block that no worker has; return whether there was one."""
        for block in state.open:
            claim = self._claims.take(block.name)
            if claim is not None:
                self._perform(block, claim, state)
                return True
        return False

    def _perform(self, block: Block, claim: Claim, state: State) -> None:
        done = False
        try:
            values = values_of(self._sweep, block.configuration, state.results)
            result = BlockRun(self._sweep, block, values, claim, self._stop).run()
            if result is not None and claim.is_newest():
                done = write_once(self._sweep.folder, done_name(block.name), to_data(result))
                self._report(result)
                if self._left is not None:
                    self._left -= 1
        finally:
            claim.release(done=done)

    def _report(self, result: BlockResult) -> None:
        took = duration(result.seconds)
        how = f"failed: {result.error}" if result.error else f"finished after {took}"
        self._say(f"block {result.block} {how}")

    @contextmanager
    def _signals(self) -> Generator[None, None, None]:
        """Remember signals; the program of the block is stopped in order."""
        before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._stop.asked, self._signal = True, number

    _signal: int = signal.SIGINT

    def _interrupted(self) -> UserFacingError:
        kind = Interrupted if self._signal == signal.SIGINT else Ended
        return kind(
            "interrupted (every finished block is kept); go on with: "
            f"runshelf sweep {shlex.quote(str(self._sweep.folder))}"
        )


def _driver() -> Process | None:
    pid = variable(DRIVER)
    return process(int(pid)) if pid and pid.isdecimal() else None
