"""A pytest plugin: prints what the attacks have tried, at the end of the tests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

_TRIED = "tried"

Tried = Callable[[int, str], None]


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Tried:
    """Return a function of a count and what was counted, called once an attack has failed.

    Example: `tried(471, "requests with a foreign Host, Origin or token")`.
    """
    return lambda count, what: record_property(_TRIED, [count, what])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print one line for each kind of attack: how often it was tried without success."""
    totals: dict[str, int] = {}
    for count, what in _figures(terminalreporter.stats.get("passed", [])):
        totals[what] = totals.get(what, 0) + count
    if not totals:
        return
    terminalreporter.section("attacks that failed")
    for what, count in totals.items():
        terminalreporter.write_line(f"{count:>9,} {what}")


def _figures(reports: list[Any]) -> Iterator[tuple[int, str]]:
    for report in reports:
        for name, value in report.user_properties:
            if name == _TRIED:
                yield value
