"""The command `battery`: real programs, changes of their code, kill -9, and bad input."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

from runshelf.batteries.code_identity import Code
from runshelf.batteries.last_pass import keep_pass, last_passes
from runshelf.batteries.rows import accept, read_rows
from runshelf.cli.main import main

PROGRAM = """
import os, sys, time
time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
SHIFT = 0
print(f"score = {SHIFT + int(sys.argv[1]) % 7}")
"""
SEEDS = 4  # the fewest that can differ: p is 2/70


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "toy.py").write_text(PROGRAM)
    for words in (["init", "-q"], ["add", "toy.py"], ["commit", "-qm", "toy"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)
    return tmp_path


def battery(capsys, *words, status=0):
    assert main(["battery", "rows", *map(str, words)]) == status
    return capsys.readouterr()


def verdicts(capsys, *words, status=0):
    fields = json.loads(battery(capsys, "--json", *words, status=status).out)
    return {row["row"]: row["verdict"] for row in fields["rows"]}


def add(capsys, name="toy", program="toy.py", *, seeds=SEEDS, metric="score", more=()):
    command = ("--", sys.executable, program, "{seed}")
    battery(capsys, "--add", name, "--seeds", seeds, "--metric", metric, *more, *command)


def shift(project, by):
    (project / "toy.py").write_text(PROGRAM.replace("SHIFT = 0", f"SHIFT = {by}"))


@pytest.mark.slow
def test_a_change_makes_a_row_worse_and_now_says_so(project, capsys):
    add(capsys)
    assert verdicts(capsys) == {"toy": "new"}
    assert "the scores of 1 row\n" in battery(capsys, "--accept").out
    runs = len(list(project.glob("runs/*/run.json")))
    assert runs == SEEDS  # accepted what was measured
    assert verdicts(capsys) == {"toy": "same"}
    (project / "notes.md").write_text("prose is no change of the code")
    assert verdicts(capsys) == {"toy": "same"}
    assert len(list(project.glob("runs/*/run.json"))) == runs
    shift(project, -50)
    said = battery(capsys, status=1).out
    assert "1 worse" in said
    assert "-50 (" in said
    assert main(["now"]) == 0
    assert "toy (worse)" in capsys.readouterr().out


def test_an_infinite_score_is_accepted_as_a_failure(project, capsys):
    add(capsys, seeds=3)
    (row,) = read_rows(project / "rows")
    accept(project / "rows", row, (1.0, math.inf, math.nan), {})
    (row,) = read_rows(project / "rows")
    assert [math.isnan(score) for score in row.scores] == [False, True, True]
    assert row.has_scores((1.0, math.inf, -math.inf))
    assert not row.has_scores((1.0, 2.0, math.nan))


def test_now_forgets_rows_that_were_renamed_or_removed(project, capsys):
    for name in ("one", "two"):
        add(capsys, name)
    code = Code(project, "digest", "")
    keep_pass(project, project / "rows", code, {"one": "worse", "two": "failed"})
    (project / "rows" / "one.json").rename(project / "rows" / "uno.json")
    assert main(["now"]) == 0
    said = capsys.readouterr().out
    assert "two (failed)" in said
    assert "one (worse)" not in said
    keep_pass(project, project / "rows", code, {"uno": "same", "two": "same"})
    (kept,) = last_passes(project)
    assert kept.words == {"uno": "same", "two": "same"}


@pytest.mark.slow
def test_a_change_makes_a_row_better_and_can_be_accepted(project, capsys):
    add(capsys)
    battery(capsys, "--accept")
    shift(project, 50)
    assert verdicts(capsys) == {"toy": "better"}
    battery(capsys, "--accept")
    assert main(["now"]) == 0
    assert "toy" not in capsys.readouterr().out
    kept = json.loads((project / "rows" / "toy.json").read_text())
    assert kept["scores"] == [50.0 + seed for seed in range(SEEDS)]


@pytest.mark.slow
def test_a_loss_that_falls_is_better_unless_the_row_says_otherwise(project, capsys):
    (project / "toy.py").write_text(PROGRAM.replace("score", "loss"))
    add(capsys, metric="loss", seeds=5)  # Holm counts two rows
    add(capsys, "up", metric="loss", seeds=5, more=["--maximise"])
    battery(capsys, "--accept")
    (project / "toy.py").write_text(PROGRAM.replace("score", "loss").replace("= 0", "= -50"))
    assert verdicts(capsys, status=1) == {"toy": "better", "up": "worse"}


@pytest.mark.slow
def test_what_was_measured_is_measured_again_only_if_asked(project, capsys):
    add(capsys, seeds=2)
    for words, runs in (((), 2), ((), 2), (("--again",), 4), (("--show",), 4)):
        assert verdicts(capsys, *words) == {"toy": "new"}
        assert len(list(project.glob("runs/*/run.json"))) == runs


def test_show_leaves_no_trace_of_rows_that_were_not_measured(project, capsys):
    add(capsys)
    assert verdicts(capsys, "--show") == {}
    assert not list(project.glob("runs/**/battery-*"))
    assert not list(project.glob("**/sweeps"))


@pytest.mark.slow
def test_a_program_that_fails_is_a_failed_row(project, capsys):
    (project / "broken.py").write_text("raise SystemExit('no such thing')")
    add(capsys, seeds=2)
    add(capsys, "broken", "broken.py", seeds=2)
    found = json.loads(battery(capsys, "--json", status=1).out)["rows"]
    assert {row["row"]: row["verdict"] for row in found} == {"broken": "failed", "toy": "new"}
    assert any("no such thing" in row["note"] for row in found)
    assert read_rows(project / "rows")[0].scores == ()


@pytest.mark.medium
def test_code_that_changes_while_it_is_measured_has_no_scores(project, capsys):
    (project / "toy.py").write_text("open('more.py', 'a').write('# more\\n')\nprint('score = 1')\n")
    add(capsys, seeds=1)
    said = battery(capsys, "--accept", status=1).err
    assert "changed while it was measured" in said
    assert read_rows(project / "rows")[0].scores == ()


@pytest.mark.slow
def test_a_killed_battery_goes_on_where_it_was(project, capsys, monkeypatch):
    add(capsys)
    monkeypatch.setenv("TOY_SECONDS", "0.5")
    words = [sys.executable, "-m", "runshelf", "battery", "rows", "--workers", "1"]
    process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(list(project.glob("runs/*/run.json"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert verdicts(capsys) == {"toy": "new"}
    blocks = [json.loads(p.read_text())["sweep"]["block"] for p in project.glob("runs/*/run.json")]
    assert len(set(blocks)) == SEEDS


@pytest.mark.slow
def test_a_command_may_name_its_seeds_itself(project, capsys):
    (project / "all.py").write_text(
        "import runshelf\nfor seed in (3, 4):\n    runshelf.log('score', 10.0 + seed, seed=seed)\n"
    )
    words = ("--seeds", 2, "--seed", 3, "--metric", "score", "--", sys.executable, "all.py")
    battery(capsys, "--add", "all", *words)
    found = json.loads(battery(capsys, "--json").out)["rows"]
    assert found[0]["scores"] == [13.0, 14.0], found


@pytest.mark.medium
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "JSON object"),
        ('{"seeds": [0]}', "`command` is missing"),
        ('{"command": "x {seed}"}', "`seeds` is missing"),
        ('{"command": "", "seeds": [0]}', "`command` is empty"),
        ('{"command": "x \'", "seeds": [0]}', "split into words"),
        ('{"command": "x {lr}", "seeds": [0]}', "`{lr}`"),
        ('{"command": "x", "seeds": [0, 2]}', "follow each other"),
        ('{"command": "x", "seeds": []}', "follow each other"),
        ('{"command": "x", "seeds": [true]}', "follow each other"),
        ('{"command": "x", "seeds": [0], "scores": [1, 2]}', "2 numbers for 1 seeds"),
        ('{"command": "x", "seeds": [0], "scores": ["a"]}', "must be numbers"),
        ('{"command": "x", "seeds": [0], "tolerance": -1}', "`tolerance`"),
        ('{"command": "x", "seeds": [0], "minimise": 1}', "`minimise`"),
        ('{"command": "backflip train ppo CartPole-v1 --home x", "seeds": [0]}', "--home"),
    ],
)
def test_bad_rows_are_one_sentence_and_nothing_runs(project, capsys, fields, said):
    (project / "rows").mkdir()
    (project / "rows" / "bad.json").write_text(fields)
    error = battery(capsys, status=2).err
    assert said in error
    assert "bad.json" in error
    assert not list(project.glob("runs/*/run.json"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is no battery"),
        (("--add", "x"), "needs a command"),
        (("--add", "../x", "--", "x", "{seed}"), "not a name"),
        (("--add", "x", "--", "x", "{lr}"), "only `{seed}`"),
        (("--seeds", "3"), "--add NAME"),
        (("--", "x", "{seed}"), "--add NAME"),
        (("--follow", "--json"), "leave --json out"),
    ],
)
def test_wrong_usage(project, capsys, words, said):
    assert said in battery(capsys, *words, status=2).err


def test_a_name_is_taken_once_and_unknown_rows_are_named(project, capsys):
    add(capsys)
    again = ("--add", "toy", "--", "x", "{seed}")
    assert "already has a row" in battery(capsys, *again, status=2).err
    assert "(there are toy)" in battery(capsys, "--rows", "tay", status=2).err
    (project / "empty").mkdir()
    assert main(["battery", "empty"]) == 2
    assert "has no rows" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_that_are_measured_by_hand_or_cost_too_much_are_left_out(project, capsys):
    add(capsys, seeds=1)
    for name, more in (("by-hand", {"by_hand": True}), ("dear", {"seconds": 1e6})):
        row = {"command": "x {seed}", "seeds": [0], **more}
        (project / "rows" / f"{name}.json").write_text(json.dumps(row))
    found = json.loads(battery(capsys, "--json", "--budget", "1h").out)
    assert sorted(found["left_out"]) == ["by-hand", "dear"]
    assert [row["row"] for row in found["rows"]] == ["toy"]


@pytest.mark.slow
def test_follow_measures_again_after_a_change_of_the_code(project, capsys):
    add(capsys, seeds=1)
    words = [sys.executable, "-m", "runshelf", "battery", "rows", "--follow"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(process.stderr, "waits for a change")
        shift(project, 1)
        wait_for(process.stderr, "waits for a change")
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert out.count("1 new") == 2
    assert process.returncode == 130


def wait_for(lines, text):
    for line in lines:
        if text in line:
            return
    raise AssertionError(f"no line with {text!r}")
