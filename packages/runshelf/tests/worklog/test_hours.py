"""Hours: stages, forecast, clocks, and sittings inferred from events."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runshelf.cli.main import main
from runshelf.errors import UsageError
from runshelf.recorder.budget import week_start
from runshelf.store.home import HOURS, shared
from runshelf.worklog import hours
from runshelf.worklog.hours import HOUR, LONGEST, Work
from runshelf.worklog.inferred_hours import BEFORE, commit_moments, inferred_works

NOON = 1_795_000_000.0


def worked(home: Path, stage: str, begin: float, seconds: float) -> None:
    hours.start(home, stage, begin)
    hours.stop(home, begin + seconds)


def spent(home: Path, now: float = NOON + 1000 * HOUR) -> dict[str, float]:
    return {row.stage: row.spent for row in hours.forecast(hours.read_ledger(home), now).rows}


def test_starting_a_stage_stops_the_one_before(tmp_path: Path) -> None:
    hours.start(tmp_path, "reading", NOON)
    assert hours.start(tmp_path, "building", NOON + HOUR) == ["reading: 1 h", "building started"]
    hours.stop(tmp_path, NOON + 3 * HOUR)
    assert spent(tmp_path) == {"reading": HOUR, "building": 2 * HOUR}
    with pytest.raises(UsageError, match="no stage is running"):
        hours.stop(tmp_path, NOON + 4 * HOUR)
    hours.start(tmp_path, "building", NOON)
    with pytest.raises(UsageError, match="running already"):
        hours.start(tmp_path, "building", NOON)


def test_a_stage_left_running_overnight_is_noticed_and_capped(tmp_path: Path) -> None:
    hours.start(tmp_path, "debugging", NOON)
    assert hours.overlong_stage(tmp_path, NOON + LONGEST) is None
    found = hours.overlong_stage(tmp_path, NOON + 14 * HOUR)
    assert found
    assert "running for 14 h" in found.in_words
    assert spent(tmp_path, NOON + 14 * HOUR) == {"debugging": LONGEST}
    said = " ".join(hours.stop(tmp_path, NOON + 14 * HOUR))
    assert "8 h count" in said
    assert spent(tmp_path) == {"debugging": LONGEST}
    hours.stop(tmp_path, NOON + 15 * HOUR, worked=3 * HOUR)
    assert spent(tmp_path) == {"debugging": 3 * HOUR}
    with pytest.raises(UsageError, match="only 14 h"):
        hours.stop(tmp_path, NOON + 15 * HOUR, worked=20 * HOUR)


def test_a_clock_that_was_set_back_gives_no_negative_hours(tmp_path: Path) -> None:
    hours.start(tmp_path, "reading", NOON)
    assert "set back" in " ".join(hours.stop(tmp_path, NOON - HOUR))
    assert spent(tmp_path) == {"reading": 0.0}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_summer_time_and_zones_do_not_change_hours(
    tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        # Clocks went forward in Berlin at 1774746000 (2026-03-29 01:00 UTC).
        worked(tmp_path, "building", 1774746000.0 - HOUR, 2 * HOUR)
        assert spent(tmp_path) == {"building": 2 * HOUR}
        # The week of Sunday 2026-03-29 12:00 UTC began on Monday at midnight before the change.
        monday = time.localtime(week_start(1774785600.0))
        assert (monday.tm_wday, monday.tm_hour, monday.tm_min) == (0, 0, 0)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_the_forecast_by_hand(tmp_path: Path) -> None:
    hours.plan(tmp_path, "reading", 5 * HOUR)
    hours.plan(tmp_path, "building", 10 * HOUR)
    hours.plan(tmp_path, "debugging", 4 * HOUR)
    worked(tmp_path, "reading", NOON, 7 * HOUR)
    worked(tmp_path, "reading", NOON + 24 * HOUR, 3 * HOUR)
    worked(tmp_path, "debugging", NOON + 30 * HOUR, 6 * HOUR)
    worked(tmp_path, "debugging", NOON + 40 * HOUR, 6 * HOUR)
    hours.finish(tmp_path, "reading", NOON + 50 * HOUR)
    found = hours.forecast(hours.read_ledger(tmp_path), NOON + 7 * 24 * HOUR)
    # reading took 10 h instead of 5: 2 x planned. So building takes 20 h; debugging took 12 h of 8.
    assert found.ratio == pytest.approx(2.0)
    assert [row.expected for row in found.rows] == pytest.approx([10 * HOUR, 20 * HOUR, 12 * HOUR])
    assert found.remaining == pytest.approx(20 * HOUR)
    assert found.weekly == pytest.approx(22 * HOUR)
    assert found.weeks == pytest.approx(20 / 22)


def test_work_is_cut_at_the_ends_of_a_span() -> None:
    works = [Work("a", 0.0, 10.0, 10.0), Work("a", 20.0, 10.0, 10.0), Work("b", 5.0, 2.0, 2.0)]
    assert hours.seconds_between(works, 5.0, 25.0) == {"a": 10.0, "b": 2.0}


def test_inferred_sittings_leave_out_what_was_recorded() -> None:
    def minutes_of(moments: list[float], recorded: list[Work]) -> list[tuple[float, float]]:
        found = inferred_works([60 * m for m in moments], recorded)
        return [(one.begin / 60, one.seconds / 60) for one in found]

    assert BEFORE == 1800
    assert minutes_of([100, 160, 500], []) == [(70, 90), (470, 30)]
    middle = Work("x", 100 * 60.0, 20 * 60.0, 0.0)
    assert minutes_of([100, 160], [middle]) == [(70, 30), (120, 40)]
    assert minutes_of([100, 160], [Work("x", 0.0, 1e6, 1e6)]) == []


def test_inferred_sittings_are_what_minutes_counted_one_by_one_say() -> None:
    moments = [30.0, 45.0, 150.0, 400.0, 420.0]
    recorded = [Work("x", 60 * 40.0, 60 * 30.0, 0.0), Work("x", 60 * 390.0, 60 * 5.0, 0.0)]
    found = inferred_works([60 * m for m in moments], recorded)
    covered = {m for w in found for m in range(int(w.begin / 60), int((w.begin + w.seconds) / 60))}
    slow: set[int] = set()
    for minute in range(-60, 600):
        after = [m for m in moments if m > minute]
        is_before = any(0 < m - minute <= 30 for m in after)
        between = any(m <= minute for m in moments) and bool(after)
        gap = min(after, default=0) - max((m for m in moments if m <= minute), default=-1e9)
        taken = any(w.begin <= 60 * minute < w.begin + w.seconds for w in recorded)
        if (is_before or (between and gap <= 120)) and not taken:
            slow.add(minute)
    assert covered == slow


def test_commits_of_the_user_are_found(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init", "-q")
    assert commit_moments(tmp_path, 0.0) == []
    for name in ("me", "other", "me"):
        git("config", "user.email", f"{name}@here")
        git("config", "user.name", name)
        git("commit", "-q", "--allow-empty", "-m", name)
    found = commit_moments(tmp_path, time.time() - 3600)
    assert len(found) == 2
    assert all(abs(moment - time.time()) < 600 for moment in found)


@pytest.mark.medium
def test_writers_at_once_and_damaged_lines_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom runshelf.worklog.hours import add\n"
        "for n in range(20): add(Path(sys.argv[1]), sys.argv[2], 60.0, 1e9)"
    )

    def add(stage: str) -> int:
        words = [sys.executable, "-c", program, str(tmp_path), stage]
        return subprocess.run(words, check=False).returncode

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(add, ["reading", "waiting"])) == [0, 0]
    path = shared(tmp_path, HOURS)
    path.write_text(
        path.read_text() + '{"do": "start", "sta\n[]\n{"do": "stop", "time": "x"}\n{"a"'
    )
    hours.add(tmp_path, "reading", 60.0, 1e9)
    assert spent(tmp_path) == {"reading": 21 * 60.0, "waiting": 20 * 60.0}


@pytest.mark.medium
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*words: str, status: int = 0) -> str:
        assert main(["hours", "--home", str(tmp_path), *words]) == status
        out, err = capsys.readouterr()
        return out or err

    assert "no stages yet" in call()
    assert call("plan", "debugging", "10h") == "debugging: 10 h planned\n"
    assert call("start", "debugging") == "debugging started\n"
    assert "running: debugging" in call()
    call("stop")
    call("add", "debugging", "90m")
    fields = json.loads(call("--json"))
    (stage,) = fields["stages"]
    assert stage["planned"] == 36_000
    assert 5_400 <= stage["spent"] < 5_460
    assert fields["running"] is None
    assert "did you mean `start`" in call("strat", status=2)
    assert "try hours plan" in call("plan", "debugging", status=2)
    assert "try 90s" in call("plan", "debugging", "soon", status=2)
    assert "`10` has no unit; try 10h" in call("add", "debugging", "10", status=2)
    assert "not a name of a stage" in call("start", "\x1b[31m", status=2)
    assert "did you mean `debugging`" in call("done", "debuging", status=2)
    assert call("done", "debugging") == "debugging is done\n"
