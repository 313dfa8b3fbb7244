"""Tests of the options and commands for labels: --teacher, export, import, serve."""

import http.client
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backflip.cli.main import PROGRAM, main
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from runshelf.cli.arguments import attended
from runshelf.cli.command_line import build_parser
from runshelf.cli.page_options import has_screen, open_page
from runshelf.store.run import create_run
from runshelf.web.serving.address import saved_port

REAL = "import sys; from backflip.cli.main import main; sys.exit(main())"


def a_run(home: Path, value: float = 0.0, answers: int = 3) -> Path:
    """Return the folder of a run of `teach` with some answers."""
    about: dict[str, Any] = {"command": "teach", "env": "x", "algorithm": "ppo", "argv": []}
    with create_run(home, config={}, seeds=[4], **about) as writer:
        folder = writer.folder
    clips = [{"obs": np.full((5, 2), value + n, np.float32)} for n in range(answers)]
    with LabelStore.open(folder / "labels.sqlite") as store:
        for query in store.add_queries([NewQuery(4, clip, clip, 0) for clip in clips]):
            store.add_label(query, "left", "me", 1.0)
    return folder


def labels_in(folder: Path) -> int:
    with LabelStore.open(folder / "labels.sqlite") as store:
        return store.counts().labels


@pytest.mark.medium
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_labels_are_exported_and_imported_by_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    one, other = a_run(tmp_path), a_run(tmp_path, value=10.0, answers=2)
    file = str(tmp_path / f"labels.{suffix}")
    assert main(["labels", "export", str(one), file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"labels": 3, "run": one.name, "file": file}
    for new in (3, 0):  # the second time they are there
        assert main(["labels", "import", str(other), file, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["labels"] == new
        assert labels_in(other) == 5
    assert main(["labels", "export", str(one), file]) == 0
    assert capsys.readouterr().out == f"labels 3, run {one.name[-8:]}, file {file}\n"


def test_labels_are_not_imported_into_a_run_that_cannot_compare_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that failed before its first clips: labels of any environment would look right."""
    one, empty, file = a_run(tmp_path), a_run(tmp_path, answers=0), str(tmp_path / "labels.csv")
    assert main(["labels", "export", str(one), file]) == 0
    assert main(["labels", "import", str(empty), file]) == 2
    assert "has no clips yet" in (said := capsys.readouterr().err)
    assert "--labels-from FILE" in said
    assert labels_in(empty) == 0


@pytest.mark.medium
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("labels", "missing: ACTION; try backflip labels --help"),
        ("labels exprot RUN x.csv", "did you mean `export`"),
        ("labels export latest", "missing: FILE"),
        ("labels export latest x.csv --home nowhere", "there are no runs in `nowhere/runs`"),
        ("labels export {run} x.txt", "`.jsonl`"),
        ("labels import {run} absent.csv", "absent.csv"),
        ("labels import {run} {bad}", "line 2"),
        ("serve latest --home nowhere", "there are no runs in `nowhere/runs`"),
        ("serve --home nowhere", "there is no folder `nowhere`"),
        ("serve {run} --overlap 2", "`--overlap` must be a number from 0 to 1, got `2`; try 0.1"),
        ("serve {run} --port 0", "`--port` must be a whole number from 1 to 65_535, got `0`"),
        ("teach dot --teacher humman", "unknown teacher `humman`, did you mean `human`?"),
        ("teach dot --labels-from nobody --home nowhere", "there is no run `nobody`"),
    ],
)
def test_wrong_usage_is_one_line_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    folder, bad = a_run(tmp_path), tmp_path / "bad.jsonl"
    assert main(["labels", "export", str(folder), str(bad)]) == 0
    first, *_ = bad.read_text().splitlines()
    bad.write_text(f"{first}\n{first.replace('left', 'lefft', 1)}\n")
    capsys.readouterr()
    assert main(line.format(run=folder, bad=bad).split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert says in printed.err
    assert labels_in(folder) == 3


def test_a_run_without_labels_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = a_run(tmp_path)
    for path in folder.glob("labels.sqlite*"):
        path.unlink()
    assert main(["labels", "export", str(folder), "x.csv"]) == 2
    assert "no labels" in capsys.readouterr().err
    assert not list(folder.glob("labels.sqlite*"))


@pytest.mark.medium
def test_serve_prints_the_address_and_serves_the_page(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    command = [sys.executable, "-c", REAL, "serve", "latest", "--home", str(tmp_path), "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("compare clips at http://127.0.0.1:")
        port = saved_port(folder)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/state?who=me")
        assert json.loads(connection.getresponse().read())["tally"]["labels"] == 3
        connection.close()
    finally:
        server.terminate()
        server.communicate(timeout=60)


class Terminal(io.StringIO):
    """A stream whose `isatty` is true."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize(
    ("stdin", "stderr", "options", "can_answer"),
    [
        (Terminal, Terminal, [], True),
        (Terminal, Terminal, ["--json"], False),
        (io.StringIO, Terminal, [], False),
        (Terminal, io.StringIO, [], False),
    ],
)
def test_people_answer_if_there_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    stdin: type[io.StringIO],
    stderr: type[io.StringIO],
    options: list[str],
    can_answer: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin())
    monkeypatch.setattr(sys, "stderr", stderr())
    parsed = build_parser(PROGRAM)[0].parse_args(["teach", "dot", *options])
    assert attended(parsed) is can_answer


@pytest.mark.medium
@pytest.mark.parametrize(
    ("options", "teacher"),
    [
        ("", "oracle"),
        ("--labels 10 --algorithm dqn", "oracle"),
        ("--goal swing", "human"),
        ("--no-open", "human"),
        ("--open", "human"),
        ("--port 9000", "human"),
        ("--host ::1", "human"),
        ("--host 127.0.0.1", "human"),
        ("--overlap 0.1", "human"),
        ("--overlap 0", "human"),
        ("--goal=", "human"),
        ("--goal swing --json", "human"),
        ("--goal swing --teacher human", "human"),
        ("--no-open --teacher terminal", "terminal"),
    ],
)
def test_an_option_of_the_page_means_that_people_answer(
    monkeypatch: pytest.MonkeyPatch, options: str, teacher: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    asked: dict[str, Any] = {}

    def teach(env: str, **fields: Any) -> SimpleNamespace:
        asked.update(fields)
        return SimpleNamespace(folder=Path("nowhere"), to_json=lambda: {"env": env})

    monkeypatch.setattr("backflip.teaching_api.teach", teach)
    monkeypatch.setattr("backflip.cli.progress_display.print_result", lambda *result: None)
    assert main(["teach", "dot", *options.split()]) == 0
    assert asked["teacher"] == teacher
    assert asked["algorithm"] == ("dqn" if "dqn" in options else "ppo")
    assert (asked["labelling"] is None) == (teacher == "oracle")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--goal swing --teacher oracle", "--goal is"),
        ("--teacher noisy:mistake=0.1 --no-open", "--no-open is"),
        ("--teacher oracle --host 127.0.0.1 --overlap 0", "--host and --overlap are"),
        ("--teacher module:function --port 9000", "--port is"),
        ("--reward-from latest --goal swing", "--goal is"),
    ],
)
def test_an_option_of_the_page_is_refused_if_nobody_looks_at_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, named: str
) -> None:
    assert main(["teach", "dot", *options.split(), "--home", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{named} for people who answer, and" in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "teach CartPole-v1 --teacher oracle",
        "train ppo CartPole-v1",
    ],
)
def test_resume_refuses_options_of_the_page_for_a_run_without_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    settings = ["--set=num_envs=2", "--set=rollout_length=32", "--set=minibatches=1"]
    home = ["--home", str(tmp_path)]
    budget = ["--labels", "2"] if command.startswith("teach") else []
    assert main([*command.split(), "--env-steps", "64", *budget, *settings, *home]) == 0
    capsys.readouterr()
    assert main(["resume", "latest", "--no-open", *home]) == 2
    assert "--no-open is for people who answer, and" in capsys.readouterr().err


@pytest.mark.medium
@pytest.mark.parametrize(
    ("options", "stdin"),
    [
        ("", "</dev/null"),
        pytest.param("--json", "</dev/null", marks=pytest.mark.slow),
        pytest.param("", "<&-", marks=pytest.mark.slow),
        pytest.param("", "< <(echo q)", marks=pytest.mark.slow),
    ],
)
def test_a_missing_terminal_is_refused_before_a_run_begins(
    tmp_path: Path, options: str, stdin: str
) -> None:
    command = [sys.executable, "-m", "backflip", "teach", "CartPole-v1", "--teacher", "terminal"]
    done = subprocess.run(
        ["bash", "-c", f'"$@" {stdin}', "bash", *command, *options.split(), "--home", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,  # without a controlling terminal
    )
    says = "`--teacher terminal` needs a terminal; try --teacher human"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"backflip: error: {says}\n")
    assert not list(tmp_path.iterdir())


HERE = "http://127.0.0.1:8765/"
SSH = {"SSH_CONNECTION": "10.1.1.1 50000 10.1.1.2 22", "USER": "ann"}


@pytest.mark.parametrize(
    ("address", "environ", "said"),
    [
        (HERE, {"DISPLAY": ":0"}, f"compare clips at {HERE}"),
        (HERE, {"WAYLAND_DISPLAY": "w"}, f"compare clips at {HERE}"),
        (HERE, SSH, "ssh -L 8765:127.0.0.1:8765 ann@10.1.1.2"),
        (HERE, SSH | {"DISPLAY": ":10"}, "ssh -L 8765:127.0.0.1:8765 ann@10.1.1.2"),
        (HERE, {}, "ssh -L 8765:127.0.0.1:8765 USER@THIS_MACHINE"),
        ("http://10.0.0.1:80/", {}, "compare clips at http://10.0.0.1:80/"),
    ],
)
def test_the_invitation_without_a_browser(address: str, environ: dict[str, str], said: str) -> None:
    assert said in open_page(address, environ, opens=False)


def test_a_page_is_opened_if_there_is_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda x: not opened.append(x))
    assert has_screen({"DISPLAY": ":0"})
    assert not has_screen({"DISPLAY": ":0"} | SSH)
    if sys.platform == "linux":
        assert not has_screen({})
    assert "opened in your browser" in open_page(HERE, {"DISPLAY": ":0"}, opens=True)
    assert opened == [HERE]
    monkeypatch.setattr("webbrowser.open", lambda x: False)
    assert "opened" not in open_page(HERE, dict(os.environ), opens=True)
