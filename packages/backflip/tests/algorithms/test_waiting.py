"""Waiting for a compiled program: its errors are raised where its results are used."""

import threading

import pytest

from backflip.drivers.waiting import wait_for


class Failing:
    """Stands for an array whose computation failed."""

    def block_until_ready(self) -> None:
        """Raise, as an array does."""
        raise RuntimeError("out of memory")


def test_an_error_of_a_program_is_not_printed_by_the_thread_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed = list[threading.ExceptHookArgs]()
    monkeypatch.setattr(threading, "excepthook", printed.append)
    result = Failing()
    assert wait_for(result) is result
    assert printed == []
