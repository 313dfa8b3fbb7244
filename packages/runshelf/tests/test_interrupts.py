"""Ctrl-C and SIGTERM raise exceptions at any moment; handlers of the program are kept."""

import contextlib
import gc
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runshelf.interrupts import Terminated, check_interrupt, interruptible

LONG = 20.0  # seconds; an upper bound of all waits


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Set Python's default handlers, and check that they are unchanged at the end."""
    before = {n: signal.signal(n, h) for n, h in PYTHONS.items()}
    yield
    assert {n: signal.getsignal(n) for n in PYTHONS} == PYTHONS
    for number, handler in before.items():
        signal.signal(number, handler)


PYTHONS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def get(number: signal.Signals) -> None:
    """Send a signal to this process and wait for the interrupt."""
    os.kill(os.getpid(), number)
    wait()


def wait() -> None:
    """Wait for an interrupt."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_each_signal_raises_its_exception(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    with pytest.raises(raised) as caught, interruptible(signal.SIGINT, signal.SIGTERM):
        get(number)
    assert caught.type is raised


class SignalsInFinalizer:
    """Gets a signal in its finalizer, from which no exception propagates."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        """Send the signal and run until it arrives."""
        os.kill(os.getpid(), self.number)
        for _ in range(1_000):
            pass


def finalize_and_wait(number: signal.Signals) -> None:
    """Get a signal in a finalizer and wait for the interrupt."""
    SignalsInFinalizer(number)
    gc.collect()
    wait()


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_dropped_interrupt_is_raised_again(
    number: signal.Signals, raised: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(raised) as caught, interruptible(signal.SIGINT, signal.SIGTERM):
        finalize_and_wait(number)
    assert caught.type is raised
    assert capfd.readouterr().err == ""


def test_other_unraisable_errors_go_to_the_previous_hook() -> None:
    seen: list[str] = []
    sys.unraisablehook, before = lambda what: seen.append(str(what.exc_value)), sys.unraisablehook
    try:
        with interruptible(signal.SIGINT):
            RaisesInFinalizer()
            gc.collect()
    finally:
        sys.unraisablehook = before
    assert seen == ["oh"]


class RaisesInFinalizer:
    """Raises an error in its finalizer."""

    def __del__(self) -> None:
        """Raise."""
        raise ValueError("oh")


def import_and_wait(name: str) -> None:
    """Import a module and wait for the interrupt."""
    importlib.import_module(name)
    wait()


def test_an_import_ends_before_the_interrupt_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt during the import of an extension module would end the process."""
    (tmp_path / "slow_module.py").write_text(
        "import os, signal, time\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.3)\n"
        "whole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), interruptible(signal.SIGINT):
        import_and_wait("slow_module")
    assert sys.modules.pop("slow_module").whole


def test_a_very_long_import_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless_module.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("runshelf.interrupts.MAX_DELAYS", 3)
    with pytest.raises(KeyboardInterrupt), interruptible(signal.SIGINT):
        importlib.import_module("endless_module")
    assert "endless_module" not in sys.modules


def test_other_handlers_are_kept() -> None:
    handled: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: handled.append(number))
    with interruptible(signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
    assert handled == [signal.SIGTERM]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_signals_during_cleanup_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    with interruptible(signal.SIGINT, signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt):
            get(signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        monkeypatch.setattr("runshelf.interrupts.CLEANUP_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            get(signal.SIGINT)


def test_check_interrupt_raises_a_caught_interrupt_again() -> None:
    with interruptible(signal.SIGINT):
        check_interrupt()
        with contextlib.suppress(KeyboardInterrupt):
            get(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check_interrupt()
    check_interrupt()
