"""The weekly budget of a home, and what its runs cost since Monday."""

import os
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import DamagedFile, UserFacingError
from runshelf.received_json import parse_record
from runshelf.store.files import disk_errors
from runshelf.store.finding import list_runs
from runshelf.store.home import BUDGET, old_shared, shared, write_setting
from runshelf.store.liveness import HEARTBEAT
from runshelf.store.opening import read_whole
from runshelf.store.periods import periods_of
from runshelf.store.run import Run, open_run
from runshelf.store.state import state_of


@final
class Spending(NamedTuple):
    """What one run cost this week, in the unit of the budget."""

    run: str
    name: str
    seconds: float
    cost: float
    state: str


def read_weekly(home: Path) -> float | None:
    """Return the weekly budget of a home; None without a limit.

    Raises:
        DamagedFile: the budget file is invalid.
    """
    places = shared(home, BUDGET), old_shared(home, BUDGET)
    with disk_errors(places[0]):
        path = next((path for path in places if os.path.lexists(path)), None)
    if path is None:
        return None
    text = read_whole(path.parent, path.name) or b""
    try:
        weekly = parse_record(text)["weekly"]
        if weekly is None:
            return None
        if isinstance(weekly, int | float) and not isinstance(weekly, bool) and weekly >= 0:
            return float(weekly)
    except (ValueError, KeyError):
        pass
    raise DamagedFile(f"`{path}` is damaged: replace it with `runshelf budget --weekly N`")


def write_weekly(home: Path, weekly: float | None) -> None:
    """Set the weekly budget of a home.

    Raises:
        UsageError: the home cannot be written.
    """
    write_setting(home, BUDGET, {"weekly": weekly})


def week_start(now: float | None = None) -> float:
    """Return the start of the week in Unix time: Monday, midnight, local time."""
    # Without an offset: that of Monday may differ from today's, after a change to summer time.
    today = datetime.fromtimestamp(time.time() if now is None else now)
    monday = today - timedelta(days=today.weekday())
    return monday.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def spent_this_week(home: Path, except_run: str | None = None) -> list[Spending]:
    """Return what the runs of a home cost since Monday, the most expensive first.

    A lost run counts until its last sign of life. Runs that cannot be read are left out.

    Args:
        home: the home.
        except_run: the id of a run to leave out.
    """
    start = week_start()
    found: list[Spending] = []
    for ulid in list_runs(home):
        folder = home / "runs" / ulid
        if ulid == except_run or _last_touched(folder) < start:
            continue
        with suppress(UserFacingError):
            spending = _spending(open_run(folder), start)
            found += [spending] if spending else []
    return sorted(found, key=lambda spending: -spending.cost)


def _spending(run: Run, start: float) -> Spending | None:
    rate = run.manifest.get("cost_per_hour")
    if not isinstance(rate, int | float) or rate <= 0:
        return None
    state = state_of(run).name
    found = periods_of(run, state)
    seconds = sum(max(one.begin + one.seconds - max(one.begin, start), 0.0) for one in found)
    name = str(run.manifest.get("name") or "")
    return Spending(run.ulid, name, seconds, seconds / 3600 * rate, state)


def _last_touched(folder: Path) -> float:
    """Return the time of the last change of a run: a cheap way to leave out old ones."""
    times = [0.0]
    for path in (folder, folder / HEARTBEAT):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return max(times)
