"""Tests of the command line: exit statuses, one-line errors, JSON, progress."""

import dataclasses
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from backflip.cli.main import main
from backflip.cli.progress_display import Display, mean_cell, print_result
from backflip.training.progress import Progress, health_line
from backflip.training.result import Result
from runshelf.store.run import create_run

# A command line whose `train` is replaced: ENV chooses what it does.
PRETENDER = """
import os, sys
from pathlib import Path
import dataclasses, json
import backflip.training.train as module
from backflip.core.errors import EnvironmentFailed
from runshelf.errors import Interrupted
from backflip.training.result import Result
from backflip.training.progress import Progress

def train(algorithm, env, *, report, argv, home, info, **rest):
    print("printed by an environment")
    os.write(1, b"printed by C code\\n")
    report(Progress(1, 2, 512, 1e4, 3.0, {"entropy": 0.5, "entropy_max": 0.7}))
    match env:
        case "breaks":
            raise ZeroDivisionError("a\\nb")
        case "fails":
            raise EnvironmentFailed("environment `fails` failed at step 3")
        case "interrupted":
            raise Interrupted("interrupted; resume with: backflip resume X")
        case "ctrl-c":
            raise KeyboardInterrupt
    nan = float("nan")
    seconds = dict(setup=1.0, compile=2.0, train=3.0, evaluate=4.0, total=10.0)
    given = {"argv": argv, "home": str(home), "info": dataclasses.asdict(info), **rest}
    open("arguments.json", "w").write(json.dumps(given))
    return Result(Path("here"), "01X", env, algorithm, [4, 5], 512, None, [1.5, nan], None, seconds)

module.train = train
from backflip.cli.main import main
sys.exit(main())
"""
REAL = "import sys; from backflip.cli.main import main; sys.exit(main())"


def run(
    program: str, *arguments: str, cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )


# --- wrong usage ------------------------------------------------------------------------------


@pytest.mark.medium
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "no command given; backflip --help lists the commands"),
        ("taech dot", "unknown command `taech`, did you mean `teach`?"),
        ("xyzzy", "unknown command `xyzzy`; backflip --help lists the commands"),
        ("--versoin", "did you mean `--version`?"),
        ("--json teach dot", "`--json` comes after the command"),
        ("teach", "missing: ENV; try backflip teach --help"),
        ("train ppo", "missing: ENV; try backflip train --help"),
        ("train pp", "missing: ENV; try backflip train --help"),
        ("train dot", "missing: ALGORITHM before `dot`; try backflip train ppo dot"),
        ("train dot sac", "the algorithm comes first; try backflip train sac dot"),
        ("resume", "missing: RUN"),
        ("teach dot --lables 5", "unknown option `--lables` of backflip teach, did you mean"),
        ("teach --lables 5", "did you mean `--labels`?"),
        ("teach dot --label 5", "unknown option `--label` of backflip teach, did you mean"),
        ("train ppo dot --labels 5", "unknown option `--labels` of backflip train"),
        ("resume latest --set a=1", "unknown option `--set` of backflip resume; try backflip re"),
        ("train dot --algorithm ppo", "unknown option `--algorithm` of backflip train; try"),
        ("teach dot -x", "unknown option `-x` of backflip teach; try backflip teach --help"),
        ("teach dot another", "unexpected argument `another`"),
        ("teach dot --seeds", "`--seeds` needs a value"),
        ("teach dot --seeds 0", "`--seeds` must be a whole number from 1 to 10_000, got `0`"),
        ("teach dot --seeds ten", "`--seeds` must be a whole number from 1 to 10_000, got `ten`"),
        ("teach dot --seeds 1.5", "got `1.5`; try 10"),
        ("teach dot --seeds inf", "got `inf`; try 10"),
        ("teach dot --seeds nan", "got `nan`; try 10"),
        ("teach dot --seed -1", "`--seed` must be a whole number from 0 to"),
        ("teach dot --seed 99999999999", "`--seed` must be a whole number from 0 to"),
        ("teach dot --labels 0", "`--labels` must be a whole number from 1 to"),
        ("teach dot --labels 1", "`labels` must be at least 2, got 1; try --labels 100"),
        ("train ppo dot --env-steps 0", "`--env-steps` must be a whole number from 1 to"),
        ("train ppo dot --json=1", "`--json` takes no value, got `1`"),
        ("train ppo dot --env-arg goal", "--env-arg must be KEY=VALUE, got `goal`"),
        ("train ppo dot --set discount", "--set must be KEY=VALUE, got `discount`"),
        ("train ppo dot --set 3=4", "--set must be KEY=VALUE, got `3=4`"),
        ("probe ppo --set discount", "--set must be KEY=VALUE, got `discount`"),
        ("probe ppo --set =3", "--set must be KEY=VALUE, got `=3`"),
        ("probe ppo --set gae_lambda=1 --set gae_lambda=0", "--set `gae_lambda` is given twice"),
        ("train ppo dot --set a=1 --set a=2", "--set `a` is given twice"),
        ("resume latest --home nowhere", "there are no runs in `nowhere/runs`"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], line: str, says: str) -> None:
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("backflip: error: ")
    assert printed.err.count("\n") == 1
    assert says in printed.err


def test_a_recorded_run_cannot_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with create_run(tmp_path, command="run", config={}, argv=[]) as writer:
        ulid = writer.run.short
    assert main(["resume", ulid, "--home", str(tmp_path)]) == 2
    says = f"run `{ulid}` is a run of `run`; only `teach` and `train` can be resumed"
    assert capsys.readouterr().err == f"backflip: error: {says}\n"


def test_debug_shows_the_traceback_and_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo", "dot", "--set", "x", "--debug"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.splitlines()[-1].startswith("backflip: error: --set must be")


@pytest.mark.parametrize("command", [[], ["teach"], ["train"], ["resume"]])
def test_help_is_on_stdout(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert main([*command, "--help"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"usage: {' '.join(['backflip', *command])} ")
    assert printed.err == ""


@pytest.mark.medium
def test_a_process_ends_with_the_status() -> None:
    wrong = run(REAL, "teach", "dot", "--seeds", "0")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    helped = run(REAL, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert all(f"\n    {command} " in helped.stdout for command in ("teach", "train", "resume"))


@pytest.mark.medium
def test_a_closed_pipe_is_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", REAL, "--help"],
        env=os.environ | {"PYTHONUNBUFFERED": ""},  # or argparse itself swallows the error
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


# --- what commands do with what they are told -------------------------------------------------


@pytest.mark.medium
def test_json_is_one_document_and_all_else_goes_to_stderr(tmp_path: Path) -> None:
    done = run(PRETENDER, "train", "ppo", "tidy", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    fields = json.loads(done.stdout)
    assert fields["returns"] == [1.5, "NaN"]
    assert fields["seeds"] == [4, 5]
    assert {"run", "env", "algorithm", "env_steps", "seconds"} <= set(fields)
    assert "labels" not in fields
    for printed in ("printed by an environment", "printed by C code", "entropy 0.50/0.70"):
        assert printed in done.stderr


@pytest.mark.medium
def test_without_json_a_table_is_printed(tmp_path: Path) -> None:
    done = run(PRETENDER, "train", "ppo", "tidy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "true return" in done.stdout
    assert "10.0 s in all (setup 1.0, compile 2.0, train 3.0, evaluate 4.0)" in done.stdout


@pytest.mark.medium
def test_options_reach_the_function(tmp_path: Path) -> None:
    options = (
        "--seeds 3 --seed 7 --env-steps 1e5 --env-arg goal=40,60 --set hidden=64, "
        "--name a --group b --question c? --tag d --tag e"
    )
    done = run(PRETENDER, *f"train ppo x {options}".split(), cwd=tmp_path, BACKFLIP_HOME="there")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "arguments.json").read_text()) == {
        "seeds": 3,
        "first_seed": 7,
        "env_steps": 100_000,
        "env_args": {"goal": [40, 60]},
        "settings": {"hidden": [64]},
        "home": "there",
        "info": {
            "name": "a",
            "group": "b",
            "question": "c?",
            "tags": ["d", "e"],
            "parent": None,
            "budget_seconds": None,
            "cost_per_hour": None,
            "registered": None,
        },
        "argv": ["backflip", *f"train ppo x {options}".split()],
    }


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "status", "line"),
    [
        ("fails", 1, "backflip: error: environment `fails` failed at step 3"),
        (
            "breaks",
            70,
            "backflip: error: unexpected ZeroDivisionError: a b; --debug shows the traceback",
        ),
        ("interrupted", 130, "backflip: interrupted; resume with: backflip resume X"),
        pytest.param(
            "ctrl-c", 130, "backflip: interrupted; finished work is kept", marks=pytest.mark.slow
        ),
    ],
)
def test_failures_are_one_line_with_their_status(
    tmp_path: Path, env: str, status: int, line: str
) -> None:
    failed = run(PRETENDER, "train", "ppo", env, "--json", cwd=tmp_path)
    assert failed.returncode == status
    assert failed.stdout == ""
    assert failed.stderr.splitlines()[-1] == line
    assert "Traceback" not in failed.stderr


@pytest.mark.medium
def test_train_and_resume_for_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["--seeds", "2", "--seed", "5", "--env-steps", "512", "--set", "epochs=1"]
    options = [*numbers, "--json", "--home", "h"]
    alerts = ["--alert", "end", "--to", "command:true T0KEN"]
    assert main(["budget", "--weekly", "5", "--home", str(tmp_path / "h")]) == 0
    options += ["--cost", "360/h"]
    done = run(REAL, "train", "ppo", "CartPole-v1", *alerts, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0.00 of this week's 5 spent" in done.stderr
    assert "backflip: alert: run" in done.stderr
    fields = json.loads(done.stdout)
    assert fields["seeds"] == [5, 6]
    assert fields["env_steps"] == 512
    assert len(fields["returns"]) == 2
    assert set(fields["seconds"]) == {"setup", "compile", "train", "answers", "evaluate", "total"}
    manifest = json.loads((tmp_path / "h" / "runs" / fields["run"] / "run.json").read_text())
    assert manifest["argv"] == ["backflip", "train", "ppo", "CartPole-v1", *options]
    assert manifest["cost_per_hour"] == 360
    found = json.loads(run(REAL, "runs", "--json", "--home", "h", cwd=tmp_path).stdout)["runs"]
    assert found[0]["cost"] == pytest.approx(found[0]["seconds"] / 10)
    assert main(["budget", "--weekly", "0.001", "--home", str(tmp_path / "h")]) == 0
    for words in (["ppo", "CartPole-v1", *options], ["--more", fields["run"], "--env-steps", "9"]):
        assert main(["train", *words, "--home", str(tmp_path / "h")]) == 1
        assert "the week's budget of 0.001 is used up" in capsys.readouterr().err
    again = run(REAL, "resume", fields["run"][:20], "--home", "h", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["returns"] == fields["returns"]


@pytest.mark.slow
def test_the_command_in_the_message_of_ctrl_c_resumes_the_run(tmp_path: Path) -> None:
    line = "train ppo CartPole-v1 --env-steps 400000 --set epochs=1 --json --home"
    options = line.split()
    whole = run(REAL, *options, "whole", cwd=tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "backflip", *options, "here and there"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 300
    while not list(tmp_path.glob("here and there/runs/*/checkpoint.safetensors")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=300)
    assert (process.returncode, printed) == (130, "")
    says, command = said.splitlines()[-1].split("; resume with: backflip ")
    assert says == "backflip: interrupted (all finished phases are saved)"
    resumed = run(REAL, *shlex.split(command), "--json", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["returns"] == json.loads(whole.stdout)["returns"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("train ppo CartPoel-v1", "did you mean `CartPole-v1`?"),
        ("train pop CartPole-v1", "did you mean `ppo`?"),
        (
            "train ppo CartPole-v1 --updates-per-step 1",
            "is for algorithms with a replay",
        ),
        ("train ppo CartPole-v1 --env-steps 255", "got 255; try --env-steps 256"),
        ("train cem dot", "does not learn such actions from images, and observations of `dot`"),
        ("train ppo CartPole-v1 --env-arg max_episode_steps=0", "must be at least 1, got 0; try"),
        ("train ppo dot --env-arg gaol=3,4", "did you mean `goal`?"),
        ("train ppo CartPole-v1 --set discuont=0.9", "did you mean `discount`?"),
        ("train ppo CartPole-v1 --home /dev/null", "cannot write runs in `/dev/null`"),
    ],
)
def test_errors_of_lower_layers_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert says in printed.err
    assert list(tmp_path.iterdir()) == []


# --- progress ---------------------------------------------------------------------------------


def progress(
    phase: int, note: str | None = None, waiting_for: str = "", doing: str = ""
) -> Progress:
    health = {"episode_return_mean": -12.34, "entropy": 0.5, "entropy_max": 0.693, "labels": 34.0}
    return Progress(phase, 4, 1_000 * phase, 54_321.0, 75.0, health, note, waiting_for, doing=doing)


def shown(terminal: bool, *reports: Progress) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=120, color_system=None)
    with Display(console) as display:
        for report in reports:
            display(report)
    return stream.getvalue()


def test_very_large_numbers_are_short() -> None:
    assert health_line({"episode_return_mean": 2e31, "grad_norm": -3e12}) == (
        "true return 2e+31 · gradient -3e+12"
    )
    assert health_line({"episode_return_mean": 1e9}) == "true return 1000000000.0"
    assert mean_cell([2e31, 2e31], 1) == "2e+31"
    assert mean_cell([2.667e-5, 2.667e-5], 3) == "2.67e-05"
    assert mean_cell([-1e-9, -1e-9], 3) == "-1e-09"
    assert mean_cell([0.0, 0.0], 3) == "0.000"
    assert mean_cell([1e9, 1e9], 1) == "1,000,000,000.0"


def test_without_a_terminal_there_are_few_plain_lines() -> None:
    lines = shown(False, *(progress(phase) for phase in (1, 2, 3, 4))).splitlines()
    assert lines == [
        "1/4 · 1,000 env steps · 1 min 15 s to go · 54,321 env steps/s · true return -12.3 · "
        "entropy 0.50/0.69 · labels 34",
        "4/4 · 4,000 env steps · 54,321 env steps/s · true return -12.3 · "
        "entropy 0.50/0.69 · labels 34",
    ]


def test_on_a_terminal_there_is_a_bar_with_a_health_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")  # a dumb one shows no bars
    text = shown(True, progress(1))
    assert "learning" in text
    assert "1 min 15 s to go" in text
    assert "true return -12.3 · entropy 0.50/0.69 · labels 34" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_notes_are_shown_once_and_whole(terminal: bool) -> None:
    note = "`checkpoint.safetensors` is damaged [sic]: " + "x" * 150
    text = shown(terminal, progress(1, note=note), progress(2))
    assert text.count(f"backflip: note: {note}") == 1


def test_waiting_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows it at once; other outputs do not get a line for every label."""
    monkeypatch.setenv("TERM", "xterm-256color")
    waits = [progress(1, waiting_for=f"waiting for answers: {n} of 9 labels") for n in range(3)]
    assert "waiting for answers: 2 of 9 labels" in shown(True, *waits)
    assert shown(False, *waits).splitlines() == ["waiting for answers: 0 of 9 labels"]


def test_activities_outside_phases_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows it at once; other outputs get a line every few seconds."""
    monkeypatch.setenv("TERM", "xterm-256color")
    doing = [progress(0, doing=f"warming up: {n} of 9 env steps") for n in range(3)]
    assert "warming up: 2 of 9 env steps" in shown(True, *doing)
    assert shown(False, *doing).splitlines() == ["warming up: 0 of 9 env steps"]
    evaluating = progress(4, doing="evaluating: 0 of 9 episodes, 0 env steps")
    lines = shown(False, *doing, evaluating, evaluating).splitlines()
    assert lines == [doing[0].doing, evaluating.doing], "a new activity is shown at once"
    monkeypatch.setattr("backflip.cli.progress_display.SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("backflip.cli.progress_display.SHARE_BETWEEN_LINES", 0.0)
    assert len(shown(False, *doing).splitlines()) == 3


def test_the_table_has_a_row_a_seed_and_the_interval(tmp_path: Path) -> None:
    seconds = {"setup": 1.0, "train": 9.0, "total": 10.0}
    returns, optimum = [20.0, 21.0, 22.0], [22.0, 22.0, 22.0]
    (tmp_path / "labels.sqlite").touch()
    stream = io.StringIO()
    result = Result(tmp_path, "01X", "dot", "ppo", [3, 4, 5], 99, 50, returns, optimum, seconds)
    print_result(result, console=Console(file=stream, width=120))
    text = stream.getvalue()
    rows = [[c.strip() for c in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
    assert rows[0] == ["3", "20.0", "22.0", "0.909", "50", "99"]
    # t with 2 degrees of freedom, 4.303, times 1 / √3
    assert rows[3] == ["mean", "21.0 ± 2.5", "22.0", "0.955 ± 0.113", "50", "99"]
    assert text.count("±: 95 % interval") == 1
    assert "run 01X in" in text
    assert "labels.sqlite" in text
    assert "curve.svg" not in text
    assert "time limit" not in text


def test_the_table_has_more_decimals_of_small_returns(tmp_path: Path) -> None:
    stream = io.StringIO()
    result = Result(
        tmp_path, "01X", "lake", "ppo", [0, 1], 99, None, [0.081, 0.065], [0.74, 0.74], {"total": 1}
    )
    print_result(result, console=Console(file=stream, width=120))
    assert "│    0 │         0.081 │   0.740 │" in stream.getvalue()


@pytest.mark.parametrize(
    ("optimum", "score"), [([0.0, 0.0], None), ([0.5, 0.0], [0.5, None]), (None, None)]
)
def test_without_an_optimum_above_zero_there_is_no_score(
    tmp_path: Path, optimum: list[float] | None, score: list[float | None] | None
) -> None:
    """On a frozen lake whose goal cannot be reached the optimum is 0."""
    what = "01X", "lake", "ppo", [0, 1], 99, None, [0.25, 0.0]
    result = Result(tmp_path, *what, optimum, {"total": 1})
    assert result.score == score
    assert result.to_json().get("score") == score
    stream = io.StringIO()
    print_result(result, console=Console(file=stream, width=120))
    assert ("optimum ┃" in stream.getvalue()) == (optimum is not None)
    assert "return / optimum" not in stream.getvalue()
    assert "true return 0.125" in result.summary()


def test_the_result_says_that_episodes_were_cut(tmp_path: Path) -> None:
    stream = io.StringIO()
    result = Result(tmp_path, "01X", "far", "ppo", [3], 99, None, [-1e4], None, {"total": 1.0})
    cut = dataclasses.replace(result, cut_episodes=20)
    print_result(cut, console=Console(file=stream, width=120))
    assert "20 evaluation episodes did not end" in stream.getvalue()
    assert "10,000 env steps" in stream.getvalue()
    assert cut.to_json()["cut_episodes"] == 20
    assert "cut_episodes" not in result.to_json()


@pytest.mark.medium
@pytest.mark.parametrize(
    "closed",
    [
        "<&- >&- 2>&-",
        *(pytest.param(one, marks=pytest.mark.slow) for one in (">&-", "2>&-", "<&-")),
    ],
)
def test_a_closed_stream_is_ignored(tmp_path: Path, closed: str) -> None:
    script = f'exec "$0" -c "$1" runs --home . {closed}'
    done = subprocess.run(["sh", "-c", script, sys.executable, REAL], cwd=tmp_path, check=False)
    assert done.returncode == 0
    script = f'exec "$0" -c "$1" run --home . -- echo hi {closed}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, REAL], cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0
    (output,) = tmp_path.glob("runs/*/output.log")
    assert output.read_text().endswith("\thi\n")
