"""Whether what a replay remembers will fit into memory, known before any of it is taken."""

from collections.abc import Callable

import psutil

from backflip.algorithms.drivers.driver import Driver
from backflip.algorithms.drivers.learning import layout_of
from backflip.algorithms.drivers.native import NativeDriver
from backflip.core.errors import UsageError

MIB = 2**20
SHARE = 0.8  # of the memory that is free now


def replay_bytes(driver: Driver, seeds: int) -> int:
    """Return the memory that the replays of all seeds take.

    In JAX, a compiled program has its results beside what it was given: twice as much.
    """
    if driver.algorithm.replay is None:
        return 0
    copies = 2 if isinstance(driver, NativeDriver) else 1
    return copies * seeds * layout_of(driver.spec, driver.algorithm).bytes


def check_memory(driver: Driver, seeds: int) -> None:
    """Refuse replays that would not fit.

    Raises:
        UsageError: they take more than most of the memory that is free.
    """
    needed, free = replay_bytes(driver, seeds), psutil.virtual_memory().available
    if needed <= SHARE * free:
        return
    capacity = driver.algorithm.replay.capacity if driver.algorithm.replay else 0
    fits = int(capacity * SHARE * free / needed)
    raise UsageError(
        f"{replay_in_words(driver, seeds)}, and {free / MIB:,.0f} MiB are free; "
        f"try --set buffer_size={_rounded(fits)} or fewer --seeds"
    )


def remember(driver: Driver, seeds: int, say: Callable[[str], None]) -> None:
    """Say how much memory the replays will take, before they take it."""
    if driver.algorithm.replay is not None:
        say(replay_in_words(driver, seeds))


def replay_in_words(driver: Driver, seeds: int) -> str:
    """Return how many env steps of how many seeds take how much memory."""
    layout = layout_of(driver.spec, driver.algorithm)
    held, needed = layout.length * layout.columns, replay_bytes(driver, seeds)
    each = f"{seeds} seeds x {held:,}" if seeds > 1 else f"{held:,}"
    return f"replay memory for {each} env steps: {needed / MIB:,.0f} MiB"


def _rounded(number: int) -> int:
    """Return a number of two digits and zeros, not above the given one, at least 1."""
    zeros = 10 ** max(len(str(number)) - 2, 0)
    return max(number // zeros * zeros, 1)
