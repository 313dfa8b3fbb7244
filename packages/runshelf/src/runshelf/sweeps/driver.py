"""The driver of a sweep: keeps an engine's workers running until no block is open.

It holds no state: a driver that is killed can be started again, and several may work on one sweep.
"""

import shlex
import time
from collections.abc import Callable
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.sweeps.claims import newest_claims, read_holder
from runshelf.sweeps.definition import Sweep
from runshelf.sweeps.engines.interface import Engine, WorkerEnd
from runshelf.sweeps.results import BlockResult
from runshelf.sweeps.state import State, state_of_sweep

POLL_SECONDS = 0.25
_LAST_SECONDS = 5.0
_MOST_DEATHS = 10  # workers that end by an error without a finished block in between


@final
class Progress(NamedTuple):
    """How far a sweep is.

    Attributes:
        done: blocks with a result.
        failed: those of them that failed.
        blocks: the blocks known so far.
        running: blocks that a worker has claimed.
        more: halving will add blocks.
        spent: the seconds of all finished blocks together.
        left: the seconds until the end, at the present number of running blocks; None if unknown.
        cost: the cost of the finished blocks; None if the cost per hour is unknown.
    """

    done: int
    failed: int
    blocks: int
    running: int
    more: bool
    spent: float
    left: float | None
    cost: float | None


Show = Callable[[Progress], None]


def drive(
    sweep: Sweep, engine: Engine, workers: int, show: Show, say: Callable[[str], None]
) -> State:
    """Run a sweep to its end, or to the end of its budget, and return its state.

    Args:
        sweep: the sweep.
        engine: starts the workers.
        workers: how many workers to keep.
        show: called with the progress, about four times a second.
        say: called with one line of information.

    Raises:
        UserFacingError: workers cannot be started, or end at once.
    """
    known: dict[str, BlockResult] = {}
    deaths: list[WorkerEnd] = []
    finished = -1
    try:
        while True:
            # Before the state is read: workers end by themselves when no block is open.
            ends = [end for end in engine.ended() if end.status != 0]
            state = state_of_sweep(sweep, known)
            show(progress_of(state))
            for end in ends if state.open else ():
                say(f"a worker ended ({_how(end)})")
            if len(known) > finished:
                finished, deaths = len(known), []
            deaths += ends
            if not state.open or state.is_over_budget or state.hopeless:
                _let_end(engine, state)
                return state
            if len(deaths) >= _MOST_DEATHS or any(_is_final(end) for end in deaths):
                raise UserFacingError(
                    f"the sweep stopped ({_how(deaths[-1])}); every finished block is kept: go on "
                    f"with runshelf sweep {shlex.quote(str(sweep.folder))}"
                )
            wanted = min(workers, len(state.open))
            if engine.alive() < wanted:
                engine.start(wanted - engine.alive())
            time.sleep(POLL_SECONDS)
    finally:
        engine.stop()


def _let_end(engine: Engine, state: State) -> None:
    """Wait until workers that have nothing left to do have ended by themselves."""
    until = time.monotonic() + (0.0 if state.open else _LAST_SECONDS)
    while engine.alive() and time.monotonic() < until:
        time.sleep(POLL_SECONDS / 4)


def _is_final(end: WorkerEnd) -> bool:
    """Return whether another worker would end in the same way: an error that it has explained."""
    return end.status in (None, 1, 2) and "error: " in end.said


def _how(end: WorkerEnd) -> str:
    if end.said and (end.status is None or end.status >= 0):
        return end.said.partition("error: ")[2] or end.said
    if end.status is None:
        return "its engine does not know how"
    return f"killed by signal {-end.status}" if end.status < 0 else f"exit status {end.status}"


def progress_of(state: State) -> Progress:
    """Return how far a sweep is."""
    definition, done = state.sweep.definition, state.done
    numbers = newest_claims(state.sweep.folder)
    running = sum(_is_claimed(state, block.name, numbers) for block in state.open)
    spent = state.spent_seconds
    seeds = sum(one.seeds for one in done)
    open_seeds = sum(block.seeds for block in state.open)
    left = None if not seeds else spent / seeds * open_seeds / max(running, 1)
    rate = definition.cost_per_hour
    return Progress(
        done=len(done),
        failed=sum(one.state == "failed" for one in done),
        blocks=len(state.tuning) + len(state.report),
        running=running,
        more=not state.is_tuned,
        spent=spent,
        left=left,
        cost=None if rate is None else spent / 3600 * rate,
    )


def _is_claimed(state: State, block: str, numbers: dict[str, int]) -> bool:
    if block not in numbers:
        return False
    holder = read_holder(state.sweep.folder, block, numbers[block])
    return holder is not None and not holder.released
