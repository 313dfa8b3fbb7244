"""Premortems: predictions before the end of a run, outcomes, Brier scores, and the questions."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import begin, done, finish

from runshelf.cli.foreseeing import risk_of, share_of
from runshelf.cli.main import main
from runshelf.errors import UsageError
from runshelf.store.run import open_run
from runshelf.worklog.premortems import (
    FILE,
    Premortem,
    Risk,
    all_premortems,
    brier_score,
    failure_forecasts,
    read_premortem,
    risk_forecasts,
    write_outcome,
    write_premortem,
)


def test_the_brier_score_by_hand() -> None:
    # (.2 - 1)² = .64, (.9 - 1)² = .01, (.5 - 0)² = .25: the mean is .3
    assert brier_score([(0.2, True), (0.9, True), (0.5, False)]) == pytest.approx(0.3)
    assert brier_score([]) is None
    assert brier_score([(1.0, True), (0.0, False)]) == 0.0


def test_a_prediction_its_outcome_and_the_scores(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write_premortem(writer.run, 0.8, [Risk("lr too high", 0.3), Risk("no reward", 0.1)])
    finish(writer, "failed")
    found = write_outcome(writer.run, failed=True, came_true=["LR too high", "a bug"])
    assert not found.is_late
    assert failure_forecasts([found]) == [(pytest.approx(0.2), True)]
    assert risk_forecasts([found]) == [(0.3, True), (0.1, False)]
    assert found.came_true == ("LR too high", "a bug")
    assert all_premortems(tmp_path) == [found]


def test_the_newest_prediction_counts_and_one_after_the_end_is_no_forecast(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write_premortem(writer.run, 0.9)
    assert write_premortem(writer.run, 0.4).failure == pytest.approx(0.6)
    finish(writer)
    assert write_premortem(writer.run, 1.0).is_late
    found = write_outcome(writer.run, failed=False)
    assert found.is_late
    assert failure_forecasts([found]) == []


@pytest.mark.parametrize(
    ("surprise", "risks", "says"),
    [
        (1.5, [], "from 0 % to 100 %"),
        (float("nan"), [], "from 0 % to 100 %"),
        (0.5, [Risk("a", -0.1)], "from 0 % to 100 %"),
        (0.5, [Risk(" ", 0.1)], "1 to 500"),
        (0.5, [Risk("x" * 501, 0.1)], "1 to 500"),
        (0.5, [Risk("a", 0.1), Risk("A", 0.2)], "twice"),
        (0.5, [Risk(str(n), 0.1) for n in range(101)], "at most 100"),
    ],
)
def test_what_is_no_prediction_is_refused(
    tmp_path: Path, surprise: float, risks: list[Risk], says: str
) -> None:
    with begin(tmp_path) as writer, pytest.raises(UsageError, match=says):
        write_premortem(writer.run, surprise, risks)
    assert not (writer.folder / FILE).exists()


def test_an_outcome_needs_a_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no premortem"):
        write_outcome(open_run(done(tmp_path, points=3)), failed=True)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"premortem": 3}',
        '{"premortem": {"surprise": "x", "time": 1}}',
        '{"premortem": {"surprise": 2, "time": 1}}',
        '{"outcome": {"failed": true}}',
    ],
)
def test_damaged_records_are_left_out(tmp_path: Path, line: str) -> None:
    run = open_run(done(tmp_path, points=3))
    (run.folder / FILE).write_text(line + "\n")
    assert read_premortem(run) is None
    more = {"surprise": 1, "time": 1, "risks": [3, {"text": 1}, {"text": "a", "probability": 0.5}]}
    with (run.folder / FILE).open("a") as file:
        file.write(json.dumps({"premortem": more}) + "\n")
    assert read_premortem(run) == Premortem(run.short, 1.0, 0.0, (Risk("a", 0.5),))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("30%", 0.3),
        ("30 %", 0.3),
        ("0.3", 0.3),
        (".3", 0.3),
        ("30", 0.3),
        ("1", 1.0),
        ("0", 0),
    ],
)
def test_a_probability_as_people_type_it(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)
    for between in ("=", " ", ": ", ", "):
        assert risk_of(f"lr 3e-4 too high{between}{text}") == ("lr 3e-4 too high", share_of(text))


@pytest.mark.parametrize("text", ["x=-5%", "lr 1e-1", "x3", "x=", "=30%", "30%", "x -.5", "x=1."])
def test_a_risk_without_a_clear_probability_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has no probability at its end"):
        risk_of(text)


@pytest.mark.parametrize("text", ["", "high", "101%", "-5%", "1e3", "%"])
def test_what_is_no_probability_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        share_of(text)


def test_outcomes_of_late_forecasts_do_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = begin(tmp_path)
    finish(writer)
    for words in (["--surprise", "70%"], ["--outcome", "worked"], []):
        run = [writer.run.short] if words else []
        assert main(["premortem", "--home", str(tmp_path), *run, *words]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("no forecast counts yet")


@pytest.mark.medium
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*words: str, status: int = 0) -> str:
        assert main(["premortem", "--home", str(tmp_path), *words]) == status
        out, err = capsys.readouterr()
        return out or err

    writer = begin(tmp_path)
    run = writer.run.short
    assert "no premortems yet" in call()
    assert "has no premortem" in call(run)
    assert "try --surprise" in call(run, "--risk", "a=10%", status=2)
    made = json.loads(call(run, "--surprise", "80%", "--risk", "steps-too-large=30%", "--json"))
    assert made["failure"] == pytest.approx(0.2)
    assert made["risks"] == [{"text": "steps-too-large", "probability": 0.3}]
    finish(writer, "failed")
    assert "try --outcome failed" in call(run, "--outcome", status=2)
    assert "did you mean `failed`" in call(run, "--outcome", "faild", status=2)
    assert "add --outcome failed" in call(run, "--came-true", "x", status=2)
    said = call(run, "--outcome", "failed", "--came-true", "steps-too-large")
    assert "30%  steps-too-large  came true" in said
    assert "Brier score of 1 forecast of failure 0.64, of single risks 0.49" in call()
    fields = json.loads(call("--json"))
    assert fields["brier"] == {"failures": pytest.approx(0.64), "risks": pytest.approx(0.49)}
    assert [one["brier"] for one in fields["over_time"]] == [pytest.approx(0.64)]


def talk(home: Path, words: list[str], answers: list[str]) -> str:
    """Run a command on a terminal of its own, type the answers one by one; return what it shows."""
    terminal, inner = pty.openpty()
    command = [sys.executable, "-m", "runshelf", *words, "--home", str(home)]
    child = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096)
        except OSError:
            break
        if answers and shown.endswith(b"> "):
            os.write(terminal, answers.pop(0).encode() + b"\n")
            shown += b"\n"
    os.close(terminal)
    assert child.wait(timeout=60) == 0
    return shown.decode()


@pytest.mark.medium
def test_the_questions_on_a_terminal(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    run = writer.run
    assert "skipped" in talk(tmp_path, ["premortem", run.short], [""])
    assert read_premortem(run) is None
    shown = talk(tmp_path, ["premortem", run.short], ["lots", "75%", "no reward 20%", "odd", ""])
    assert "`lots` is not a probability" in shown
    assert "`odd` has no probability" in shown
    found = read_premortem(run)
    assert found
    assert (found.failure, found.risks) == (0.25, (Risk("no reward", 0.2),))
    finish(writer)
    talk(tmp_path, ["premortem", run.short, "--outcome"], ["n", "y", "the disk was slow"])
    found = read_premortem(run)
    assert found
    assert found.has_outcome
    assert not found.failed
    assert found.came_true == ("no reward", "the disk was slow")
