"""Limits of a run's duration: its own budget and the weekly budget."""

import time
from pathlib import Path
from typing import final

from runshelf.durations import duration
from runshelf.errors import UserFacingError
from runshelf.recorder.budget import read_weekly, spent_this_week
from runshelf.recorder.launch import Recording, Say

CHECK_SECONDS = 1.0
_RECOUNT_SECONDS = 2.0


@final
class TimeLimit:
    """Checks a run against its own budget and what is left of the weekly budget."""

    def __init__(self, recording: Recording, say: Say) -> None:
        """Read both budgets, and print what is left of the weekly one.

        Raises:
            UserFacingError: nothing is left.
        """
        self._home = recording.home
        self._own = recording.info.budget_seconds
        self._rate = recording.info.cost_per_hour or 0.0
        self._weekly = read_weekly(recording.home) if self._rate else None
        self._run: str | None = None
        self._others = self._recount_at = 0.0
        if self._weekly is not None:
            self._count()
            _say_what_is_left(self._weekly, self._others, self._rate, say)

    def begin(self, run: str) -> None:
        """Set the run's id, so that its own cost is not counted twice."""
        self._run = run

    def exceeded(self, seconds: float) -> str:
        """Return why a run that took `seconds` must be stopped; empty if it need not be."""
        if self._own is not None and seconds >= self._own:
            return f"its budget of {duration(self._own)} is used up"
        if self._weekly is not None:
            if time.monotonic() >= self._recount_at:
                self._count()
            if self._others + self._rate * seconds / 3600 >= self._weekly:
                return f"the week's budget of {self._weekly:g} is used up"
        return ""

    def next_check(self, seconds: float) -> float:
        """Return the seconds until the next check."""
        left = CHECK_SECONDS if self._own is None else self._own - seconds
        return max(min(CHECK_SECONDS, left), 0.0)

    def _count(self) -> None:
        """Update the cost of all other runs of this week."""
        began = time.monotonic()
        self._others = sum(one.cost for one in spent_this_week(self._home, self._run))
        now = time.monotonic()
        # Counting takes at most about 2 % of the time, even in a home with many runs.
        self._recount_at = now + max(_RECOUNT_SECONDS, 50 * (now - began))


def check_weekly_budget(home: Path, cost_per_hour: float | None, say: Say) -> None:
    """Print what is left of the weekly budget for a run that costs something.

    Raises:
        UserFacingError: nothing is left.
    """
    weekly = read_weekly(home) if cost_per_hour else None
    if weekly is not None and cost_per_hour:
        spent = sum(one.cost for one in spent_this_week(home))
        _say_what_is_left(weekly, spent, cost_per_hour, say)


def _say_what_is_left(weekly: float, spent: float, rate: float, say: Say) -> None:
    left = weekly - spent
    if left <= 0:
        raise UserFacingError(
            f"the week's budget of {weekly:g} is used up ({spent:.2f} spent): wait "
            f"for Monday, or raise it with runshelf budget --weekly {weekly * 2 or 20:g}"
        )
    say(
        f"{spent:.2f} of this week's {weekly:g} spent, {left:.2f} left: "
        f"{duration(left / rate * 3600)} at {rate:g} an hour"
    )
