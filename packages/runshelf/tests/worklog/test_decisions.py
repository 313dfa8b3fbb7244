"""What may be decided now, and the digest of a week."""

import json
import os
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import backdate, begin, done, finish, log

from runshelf.batteries.code_identity import Code
from runshelf.batteries.last_pass import keep_pass
from runshelf.cli.main import main
from runshelf.errors import UsageError
from runshelf.index.run_index import open_index
from runshelf.recorder.budget import write_weekly
from runshelf.registrations.kept import register
from runshelf.registrations.registration import Hypothesis, Registration
from runshelf.store.diagnosis import write_diagnosis
from runshelf.store.home import shared
from runshelf.store.run import open_run
from runshelf.web.templates import render
from runshelf.worklog import decisions, hours
from runshelf.worklog.decisions import Now, facts_of, look_at, open_decisions
from runshelf.worklog.facts import Decision
from runshelf.worklog.notes import write_note
from runshelf.worklog.premortems import write_outcome, write_premortem
from runshelf.worklog.week import as_markdown, begin_of, digest_of


def now(home: Path) -> Now:
    with open_index(home) as index:
        index.refresh()
        return look_at(facts_of(home, index))


def kinds(home: Path) -> list[str]:
    return [decision.kind for decision in now(home).decisions]


def test_an_empty_home_has_nothing_to_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert now(tmp_path) == Now([], [])
    assert main(["now", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "There is nothing to decide.\nNothing is running.\n"


def test_a_question_is_open_until_a_note_answers_it_and_again_after_another_run(
    tmp_path: Path,
) -> None:
    for seed in range(2):
        folder = done(tmp_path, seed, points=3, question="does it learn?")
        backdate(folder, 100.0)
    (decision,) = now(tmp_path).decisions
    assert decision.text == "does it learn? (2 runs, the newest finished)"
    assert decision.command == f"note 'the answer' --answers {open_run(folder).short}"
    write_note(tmp_path, "runs", "yes", answers=open_run(folder).short)
    assert kinds(tmp_path) == []
    writer = begin(tmp_path, seed=3, question="does it learn?")
    assert kinds(tmp_path) == []  # it runs
    finish(writer, "failed")
    backdate(writer.folder, -5.0)
    assert kinds(tmp_path) == ["question"]


def test_a_premortem_without_an_outcome_is_open_when_its_run_has_ended(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write_premortem(writer.run, 0.5)
    assert kinds(tmp_path) == []
    finish(writer)
    assert kinds(tmp_path) == ["premortem"]
    write_outcome(writer.run, failed=False)
    assert kinds(tmp_path) == []


def test_a_finding_is_open_until_there_is_a_note_about_the_run(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    writer.record_alarm("REWARD ALARM")
    write_diagnosis(writer.folder, {"PI-KL-HIGH": 2}, "doctor: PI-KL-HIGH in 2 of 3 seeds")
    folder = finish(writer)
    assert kinds(tmp_path) == ["finding", "finding"]
    write_note(tmp_path, "confusions", "why?", run=open_run(folder))
    assert kinds(tmp_path) == []


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"findings": 3, "in_words": "x"}', '{"findings": {}}']
)
def test_a_damaged_diagnosis_is_none(tmp_path: Path, text: str) -> None:
    folder = done(tmp_path, points=3)
    (folder / "doctor.json").write_text(text)
    assert kinds(tmp_path) == []


def test_budget_hours_and_what_is_next(tmp_path: Path) -> None:
    write_note(tmp_path, "work", "built it", expected="it learns")
    hours.start(tmp_path, "building", time.time() - 20 * 3600)
    write_weekly(tmp_path, 1.0)
    assert kinds(tmp_path) == ["hours", "next"]
    writer = begin(tmp_path, cost_per_hour=3600.0)
    backdate(writer.folder, 0.0)
    events = writer.folder / "events.jsonl"
    two_seconds_ago = datetime.fromtimestamp(time.time() - 2, UTC).isoformat()
    events.write_text(json.dumps({"status": "started", "time": two_seconds_ago}) + "\n")
    found = now(tmp_path).decisions
    assert [one.kind for one in found] == ["budget", "hours", "next"]
    assert "is spent" in found[0].text
    writer.close()


def test_the_next_end_is_that_of_the_run_that_ends_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"settings": {"env_steps": 100_000}}
    late = begin(tmp_path, seed=0, config=config, question="slow?")
    soon = begin(tmp_path, seed=1, config=config, question="fast?")
    log(late, 4, seed=0, every=5_000, pace=10.0)  # 20 % in 40 s
    log(soon, 4, seed=1, every=20_000, pace=10.0)  # 80 % in 40 s
    found = now(tmp_path)
    assert [one.row.question for one in found.upcoming] == ["fast?", "slow?"]
    assert found.seconds_to_next == pytest.approx(10.0)
    assert [one.progress.share for one in found.upcoming] == pytest.approx([0.8, 0.2])
    assert main(["now", "--home", str(tmp_path), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [one["question"] for one in fields["running"]] == ["fast?", "slow?"]
    assert fields["seconds_to_next"] == pytest.approx(10.0)
    assert main(["now", "--home", str(tmp_path)]) == 0
    assert "The next run ends in less than a minute" in capsys.readouterr().out
    late.close()
    soon.close()


def test_another_source_takes_one_line(tmp_path: Path) -> None:
    extra = Decision("sweep", "the sweep is complete", "sweep lr", "", 0.0)
    with open_index(tmp_path) as index:
        facts = facts_of(tmp_path, index)
    assert open_decisions(facts, [*decisions.SOURCES, lambda facts: [extra]]) == [extra]


@pytest.mark.parametrize("kind", ["link", "text", "folder"])
def test_a_damaged_verdict_of_a_battery_is_left_out(tmp_path: Path, kind: str) -> None:
    code = Code(tmp_path, "0" * 64, "")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "toy.json").write_text("{}")
    keep_pass(tmp_path, tmp_path / "rows", code, {"toy": "worse"})
    bad = shared(tmp_path, "batteries") / "0.json"
    if kind == "link":
        bad.symlink_to(tmp_path / "secret")
    elif kind == "text":
        bad.write_text("no JSON")
    else:
        bad.mkdir()
    (decision,) = now(tmp_path).decisions
    assert "toy (worse)" in decision.text


def test_the_digest_and_the_hours_count_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decisions, "MOST_RUNS", 1)
    for seed in range(3):
        done(tmp_path, seed, points=3)
    assert main(["digest", "--home", str(tmp_path), "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)
    assert len(digest["runs"]) == 3
    assert main(["hours", "--home", str(tmp_path), "--json"]) == 0
    spent = json.loads(capsys.readouterr().out)
    assert spent["run_seconds_this_week"] == spent["run_seconds"] > 0


def test_the_digest_has_what_happened_in_its_span(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    old = done(tmp_path, points=3, question="an old one?")
    backdate(old, 40 * 86_400.0)
    new = done(tmp_path, 1, points=3, question="a new one?", name="second")
    write_note(tmp_path, "runs", "it works", answers=open_run(new).short)
    puzzle = write_note(tmp_path, "confusions", "why so slow?")
    write_note(tmp_path, "confusions", "solved", answers=puzzle.id)
    write_note(tmp_path, "confusions", "why NaN?")
    write_note(tmp_path, "ideas", "larger batches")
    hours.add(tmp_path, "debugging", 3600.0, time.time())
    with open_index(tmp_path) as index:
        index.refresh()
        found = digest_of(facts_of(tmp_path, index), time.time() - 7 * 86_400, time.time() + 1)
    assert [one.text for one in found.answered] == ["a new one?"]
    assert [one.text for one in found.open] == ["an old one?"]
    assert [row.name for row in found.runs] == ["second"]
    assert [note.text for note in found.confusions] == ["why NaN?"]
    assert found.hours == {"debugging": pytest.approx(3600.0, abs=2)}
    text = as_markdown(found)
    assert "- a new one? **it works**" in text
    assert "- debugging: 1 h" in text
    assert "solved" not in text
    assert main(["digest", "--home", str(tmp_path), "--since", "7d", "--save", "week.md"]) == 0
    assert (tmp_path / "week.md").read_text() == capsys.readouterr().out
    assert main(["digest", "--home", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answered"][0]["question"] == "a new one?"
    assert main(["digest", "--home", str(tmp_path), "--save", "week.txt"]) == 2


def test_the_begin_of_a_digest() -> None:
    noon = time.mktime((2026, 11, 26, 12, 0, 0, 0, 0, -1))
    monday = time.mktime((2026, 11, 23, 0, 0, 0, 0, 0, -1))
    assert begin_of("week", noon) == begin_of("2026-11-23", noon) == monday
    assert begin_of("2d", noon) == noon - 2 * 86_400
    assert begin_of("today", noon) == noon - 12 * 3600
    for wrong in ("soon", "", "d", "2027-01-01", "9999999d", "2026-13-01"):
        with pytest.raises(UsageError, match="--since"):
            begin_of(wrong, noon)


REGISTERED = Registration(
    "does b learn faster than a?",
    (Hypothesis("faster", "b ends higher"),),
    "episode_return_mean",
    2,
)


def seeds_of(home: Path, rate: float, seeds: int, **info: object) -> list[Path]:
    """Make finished runs of one configuration."""
    config = {"learning_rate": rate}
    return [
        done(home, seed, points=3, config=config | {"seed": seed}, **info) for seed in range(seeds)
    ]


@pytest.mark.medium
def test_a_registration_is_open_when_all_groups_have_their_seeds(tmp_path: Path) -> None:
    kept = register(tmp_path, "rates", REGISTERED)
    carried = {"registered": kept.carried()}
    seeds_of(tmp_path, 0.1, 2, **carried)
    assert kinds(tmp_path) == []  # one group is no comparison
    seeds_of(tmp_path, 0.2, 1, **carried)
    assert kinds(tmp_path) == []  # a seed is missing
    (*_, last) = seeds_of(tmp_path, 0.2, 2, **carried)
    (decision,) = now(tmp_path).decisions
    assert decision.kind == "registration"
    assert decision.text.startswith("does b learn faster than a? (rates: 2 groups of 2 seeds")
    program, *groups = shlex.split(decision.command)
    assert main([program, *groups, "--home", str(tmp_path)]) == 0
    write_note(tmp_path, "runs", "yes", run=open_run(last))
    assert kinds(tmp_path) == []


def test_the_command_to_compare_groups_is_one_for_a_shell(tmp_path: Path) -> None:
    kept = register(tmp_path, "rates", REGISTERED)
    groups = ["it's; touch PWNED #", "$(touch PWNED)", "-x"]
    for rate, group in enumerate(groups):
        seeds_of(tmp_path, rate, 2, registered=kept.carried(), group=group)
    (decision,) = now(tmp_path).decisions
    assert shlex.split(decision.command) == ["compare", "--", *groups]
    echoed = subprocess.run(["sh", "-c", f"printf '%s\\n' {decision.command}"], capture_output=True)
    assert echoed.stdout.decode().splitlines() == ["compare", "--", *groups]


def test_the_page_shows_the_whole_command() -> None:
    decision = Decision("registration", "which is better?", "compare " + "a" * 300, "", 0.0)
    assert decision.command in render("_decisions.html", decisions=[decision], trouble="")


@pytest.mark.medium
def test_runs_of_another_version_or_of_no_registration_do_not_complete_it(tmp_path: Path) -> None:
    first = register(tmp_path, "rates", REGISTERED)
    seeds_of(tmp_path, 0.1, 2, registered=first.carried())
    seeds_of(tmp_path, 0.2, 2)
    assert kinds(tmp_path) == []
    second = register(tmp_path, "rates", REGISTERED, reason="the metric was wrong")
    seeds_of(tmp_path, 0.3, 2, registered=second.carried())
    assert kinds(tmp_path) == []


@pytest.mark.slow
def test_a_sweep_is_open_until_it_has_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    score = "import sys; print('score =', float(sys.argv[1]) + int(sys.argv[2]) % 3)"
    template = [sys.executable, "-c", score, "{lr}", "{seed}"]
    asked = ["--over", "lr=1,2", "--seeds", "2", "--metric", "score"]
    home = ["--home", str(tmp_path)]
    assert main(["sweep", "rates", *asked, *home, "--", *template]) == 0
    (decision,) = [one for one in now(tmp_path).decisions if one.kind == "sweep"]
    assert "The sweep rates has ended: 2 configurations" in decision.text
    assert main([*shlex.split(decision.command), *home]) == 0
    assert "sweep" not in kinds(tmp_path)
