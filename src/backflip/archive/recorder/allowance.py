"""How long a run may take."""

import time
from typing import final

from backflip.archive.durations import duration
from backflip.archive.recorder.budget import read_weekly, spent_this_week
from backflip.archive.recorder.recording import Recording, Say
from backflip.core.errors import BackflipError

CHECK_SECONDS = 1.0
_RECOUNT_SECONDS = 2.0


@final
class Allowance:
    """How long a run may take: by its own budget, and by what is left of the week's."""

    def __init__(self, recording: Recording, say: Say) -> None:
        """Begin before the run does.

        Args:
            recording: says what budget it has, and what an hour costs.
            say: is told what of the week's budget is left.

        Raises:
            BackflipError: nothing is left.
        """
        self._home = recording.home
        self._own = recording.asked.budget_seconds
        self._rate = recording.asked.cost_per_hour or 0.0
        self._weekly = read_weekly(recording.home) if self._rate else None
        self._besides: str | None = None
        self._count()
        if self._weekly is not None:
            self._say_what_is_left(self._weekly, self._weekly - self._others, say)

    def begin(self, ulid: str) -> None:
        """Say which run it is: its own cost is reckoned from its time."""
        self._besides = ulid

    def exceeded(self, seconds: float) -> str:
        """Return why a run that has taken `seconds` is to be stopped; empty if it is not."""
        if self._own is not None and seconds >= self._own:
            return f"its budget of {duration(self._own)} is used up"
        if time.monotonic() >= self._recount_at:
            self._count()
        if self._weekly is not None and self._left(self._weekly, seconds) <= 0:
            return f"the week's budget of {self._weekly:g} is used up"
        return ""

    def next_check(self, seconds: float) -> float:
        """Return in how many seconds to look again."""
        until = [] if self._own is None else [self._own - seconds]
        if self._weekly is not None:
            hourly = self._rate + self._others_rate
            until.append(self._left(self._weekly, seconds) / hourly * 3600)
        return max(min([CHECK_SECONDS, *until]), 0.0)

    def _left(self, weekly: float, seconds: float) -> float:
        """Return what is left of the week now, if the others go on as when they were counted."""
        since = time.monotonic() - self._counted_at
        others = self._others + self._others_rate * since / 3600
        return weekly - others - self._rate * seconds / 3600

    def _count(self) -> None:
        """Count what the other runs have cost this week, and what they cost by the hour now."""
        began = time.monotonic()
        spent = [] if self._weekly is None else spent_this_week(self._home, self._besides)
        self._others = sum(one.cost for one in spent)
        going = [one for one in spent if one.state == "running" and one.seconds > 0]
        self._others_rate = sum(one.cost / one.seconds * 3600 for one in going)
        self._counted_at = time.monotonic()
        # Of a home with many runs, counting takes a small part of the time all the same.
        pause = max(_RECOUNT_SECONDS, 50 * (self._counted_at - began))
        self._recount_at = self._counted_at + pause

    def _say_what_is_left(self, weekly: float, left: float, say: Say) -> None:
        spent = weekly - left
        if left <= 0:
            raise BackflipError(
                f"the week's budget of {weekly:g} is used up ({spent:.2f} spent): wait "
                f"for Monday, or raise it with backflip budget --weekly {weekly * 2 or 20:g}"
            )
        say(
            f"{spent:.2f} of this week's {weekly:g} spent, {left:.2f} left: "
            f"{duration(left / self._rate * 3600)} at {self._rate:g} an hour"
        )
