"""The commands that find, compare and remove runs: what they print and return."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid

from runshelf.cli import tables
from runshelf.cli.main import main
from runshelf.cli.tables import harmless, size_of, value_of
from runshelf.store.finding import find_run
from runshelf.store.run import create_run

HOSTILE = "\x1b]8;;http://evil\x07click\x1b]8;;\x07 \x1b[2J\x9b31m\u202e\r\n\x00"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BACKFLIP_HOME", raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with three runs, which is the current folder."""
    home = tmp_path / "home"
    for number in range(3):
        make_run(
            home,
            number,
            config={"lr": 10.0**-number},
            seeds=[number],
            question="does it learn?",
            name=f"run{number}",
            group="g",
            tags=["a"] if number else [],
            records=[{"step": n, "loss": 1.0 if n < 3 else float(number)} for n in range(5)],
        )
    monkeypatch.chdir(home)
    return home


class Screen:
    """Runs command lines and returns what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *line: str, status: int = 0) -> str:
        """Return what a command line prints on stdout; `err` holds the rest."""
        assert main(list(line)) == status
        printed = self._capsys.readouterr()
        self.err = printed.err
        return printed.out

    def json(self, *line: str) -> Any:
        """Return the document that a command line prints with `--json`."""
        return json.loads(self(*line, "--json"), parse_constant=pytest.fail)


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(capsys)


# --- runs -------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_with_the_requested_columns(
    home: Path, screen: Screen
) -> None:
    lines = screen("runs", "--columns", "lr, loss").splitlines()
    assert lines[0].split()[:5] == ["run", "loss", "created", "state", "took"]
    assert [line.split()[0] for line in lines[1:]] == [ulid(n)[-8:] for n in (2, 1, 0)]
    assert lines[1].split()[1] == "2"
    assert lines[1].split()[-1] == "0.01"
    assert "finished" in lines[1]
    assert "1 h" in lines[1]
    assert "does it learn?" in lines[1]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["lr<1"], [2, 1]),
        (["lr<1", "tag=a", "name~2"], [2]),
        (["lr<1 name~2"], [2]),
        (["--sort=lr"], [2, 1, 0]),
        (["--sort=-lr"], [0, 1, 2]),
        (["--limit", "1"], [2]),
        (["--limit", "1", "--all"], [2, 1, 0]),
        (["state!=finished"], []),
    ],
)
def test_runs_are_filtered_sorted_and_counted(
    home: Path, screen: Screen, line: list[str], found: list[int]
) -> None:
    answer = screen.json("runs", *line)
    assert [row["run"] for row in answer["runs"]] == [ulid(n) for n in found]
    assert not any("ulid" in row for row in answer["runs"])
    assert answer["total"] == (3 if "--limit" in line else len(found))


def test_groups_are_listed(home: Path, screen: Screen) -> None:
    (row,) = screen.json("runs", "--groups", "--columns", "loss")["groups"]
    assert (row["group"], row["runs"], row["n"], row["values"]) == ("g", 3, 3, {"loss": 1.0})
    assert "3 finished" in screen("runs", "--groups")


@pytest.mark.medium
def test_the_result_is_the_second_column_and_can_be_named_once(home: Path, screen: Screen) -> None:
    heads = [line.split()[:2] for line in screen("runs").splitlines()]
    assert heads == [["run", "loss"], *([ulid(n)[-8:], f"{n}"] for n in (2, 1, 0))]
    make_run(home, 3, records=[{"loss": 7.0, "acc": 0.5}])
    assert screen("runs").splitlines()[0].split()[:2] == ["run", "result"]
    assert "0.5 acc" in screen("runs")
    rows = screen.json("runs", "--metric", "loss", "--sort=-result")["runs"]
    assert [row["result"]["value"] for row in rows] == [7.0, 2.0, 1.0, 0.0]
    assert screen("runs", "result>1").splitlines()[1].split()[:2] == [ulid(3)[-8:], "7"]
    assert "result      loss 7" in screen("show", ulid(3))
    group = screen.json("runs", "--groups", "group=g")["groups"][0]
    assert group["result"] == {"metric": "loss", "value": 1.0, "seeds": 3}
    screen("runs", "--metric", "los", status=2)
    assert "no run has a metric `los`, did you mean `loss`?" in screen.err
    screen("runs", "--metric", "none")
    assert screen.json("show", ulid(3))["result"] == (
        {"metric": "acc", "value": 0.5, "seeds": 1, "low_95": None, "high_95": None}
    )


def test_a_narrow_table_cuts_names_where_they_are_alike() -> None:
    names = [f"a long name of a run with a learning rate of {rate}" for rate in (0.1, 0.2)]
    widths = {"name": 20}
    cut = tables._cut({"name": names}, widths, ())["name"]
    assert [name[-3:] for name in cut] == ["0.1", "0.2"]
    assert max(map(len, cut)) <= 20
    sides = {side: [f"{'x' * 30}{number}"] for side, number in (("A", 1), ("B", 2))}
    beside = tables._cut(sides, {"A": 9, "B": 9}, ("A", "B"))
    assert beside == {"A": ["…xxxxxx1"], "B": ["…xxxxxx2"]}


@pytest.mark.medium
def test_every_command_shows_and_takes_the_short_form_of_an_id(home: Path, screen: Screen) -> None:
    short = ulid(1)[-8:]
    assert f"{short} ({ulid(1)})" in screen("show", short.lower())
    assert screen("diff", short, "run2").splitlines()[:2] == [
        f"A {short}  run1",
        f"B {ulid(2)[-8:]}  run2",
    ]
    fields = screen.json("diff", short, "run2")
    assert (fields["run"], fields["other"]) == (ulid(1), ulid(2))
    for line in (["runs"], ["du"], ["rm", short], ["restore"], ["restore", short]):
        printed = screen(*line)
        assert short in printed, line
        assert ulid(1) not in printed.replace(f"runs/{ulid(1)}", ""), line
    path = str(home / "out.csv")
    assert screen("export", short, path).startswith(f"run {short}, ")
    assert screen.json("export", short, f"{path}.csv")["run"] == ulid(1)
    assert [row["run"] for row in screen.json("runs", f"id={short.lower()}")["runs"]] == [ulid(1)]


def test_empty_results_and_unknown_keys_are_reported(
    home: Path, screen: Screen, tmp_path: Path
) -> None:
    assert "no runs match the filter in" in screen("runs", "nothing")
    assert "there are no runs in" in screen("runs", "--home", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    screen("runs", "los>1", status=2)
    assert screen.err.count("\n") == 1
    assert "unknown key `los` at character 1, did you mean `loss`?" in screen.err
    screen("runs", "--limit", "2")
    assert "2 of" not in screen("runs", "--limit", "2")
    assert "2 of 3; --all shows all" in screen.err


def test_lost_runs_and_skipped_folders_are_shown(home: Path, screen: Screen) -> None:
    make_run(home, 5, events=[{"status": "started", "time": "2026-11-21T10:00:00+00:00"}])
    for number in (6, 7):
        (make_run(home, number) / "run.json").write_text("no")
    assert "lost" in screen("runs").splitlines()[1]
    assert "is damaged" in screen.err
    assert "and 1 more; runshelf reindex lists all" in screen.err


@pytest.mark.medium
def test_on_a_terminal_the_table_fits_and_has_colours(home: Path) -> None:
    make_run(home, 8, name="x" * 300, question="y" * 300)
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "import sys; from runshelf.cli.main import main; main()",
        "runs",
    ]
    env = os.environ | {"TERM": "xterm-256color", "COLUMNS": "90"}
    done = subprocess.run(command, stdout=slave, stderr=slave, env=env, cwd=home, timeout=60)
    os.close(slave)
    text = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0, text
    assert "\x1b[32mfinished" in text
    assert ulid(8)[-8:] in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(len(line) for line in plain.splitlines()) <= 90


# --- show and diff ----------------------------------------------------------------------------


def test_show_starts_with_the_question_and_has_all_data(home: Path, screen: Screen) -> None:
    folder = make_run(
        home,
        9,
        question="why?",
        name="n",
        tags=["t"],
        seeds=[1, 2],
        env="dot",
        parent=ulid(0),
        cost_per_hour=2.0,
        masked=["--api-key", "env:WANDB_API_KEY"],
        argv=["python", "a b.py"],
        git={"commit": "c" * 40, "dirty": True, "branch": "main", "remote": "git@host:x"},
        python={"version": "3.11.2", "packages": {"numpy": "2.0"}},
        hardware={"cpu": "Z80", "cores": 8, "memory_bytes": 2**34, "gpus": [{"name": "H200"}]},
        records=[{"step": 0, "loss": 0.5}],
    )
    (folder / "output.log").write_text("0.100\tout\t6\thello\n0.200\terr\t4\toh\n")
    (folder / "outputs.json").write_text('[{"path": "a.txt", "bytes": 5, "sha256": "abc"}]')
    text = screen("show", "n")
    assert text.splitlines()[0].split(None, 1) == ["question", "why?"]
    for expected in (
        *("finished, 1 h", ulid(9), "'a b.py'", ulid(0)[-8:], "2.00", "cccccccccccc on main"),
        *("uncommitted changes", "git@host:x", "Z80, 8 cores, 16.0 GiB, H200", "1 package;"),
        *("--api-key, env:WANDB_API_KEY", "hello", "oh", "loss", "0.5", "a.txt", "run.json"),
    ):
        assert expected in text, expected
    fields = screen.json("show", "n")
    assert fields["run"] == ulid(9)
    assert "ulid" not in fields
    assert (fields["state"], fields["metrics"]["loss"]["last"]) == ("finished", 0.5)
    assert fields["outputs"][0]["path"] == "a.txt"
    assert [line["text"] for line in fields["output"]] == ["hello", "oh"]
    assert screen("show", "n", "--packages") == "numpy==2.0\n"
    assert screen("show", "n", "--output") == "hello\n"
    assert screen.err == "oh\n"
    screen("show", "n", "--code", status=2)
    assert "its code was not archived" in screen.err


def test_show_reports_invalid_metric_lines_and_reads_the_rest(home: Path, screen: Screen) -> None:
    path = next(find_run(home, "run1").folder.glob("metrics-*.jsonl"))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], b'{"step": 2, "lo\n', *whole[2:]]))
    assert f"line 3 of {path.name} is not a metric record" in screen("show", "run1")
    assert screen.json("show", "run1")["unreadable"] == [{"file": path.name, "line": 3}]
    assert screen.json("show", "run1")["metrics"]["loss"]["n"] == 5
    assert "not a metric record" not in screen("show", "run2")


def test_show_suggests_the_nearest_name(home: Path, screen: Screen) -> None:
    screen("show", "latset", status=2)
    assert "did you mean `latest`?" in screen.err
    assert ulid(2) in screen("show")


@pytest.mark.parametrize("name", ["x" * 300, "/" + "x/" * 3_000, "x" * 300 + "/y"])
@pytest.mark.parametrize(
    "line",
    [
        *("show NAME", "rm NAME", "compare NAME run1", "note hello --run NAME", "import NAME"),
        *("sweep NAME", "battery NAME", "battery NAME --add r -- true", "alerts NAME"),
        *("export run1 NAME", "compare run1 run2 --csv NAME/x.csv", "run -- NAME"),
    ],
)
def test_names_that_are_no_path_are_refused_in_one_line(
    home: Path, screen: Screen, line: str, name: str
) -> None:
    status = 1 if line.startswith("export") else 2
    screen(*line.replace("NAME", name).split(), status=status)
    assert screen.err.startswith("runshelf: error: ")
    assert screen.err.count("\n") == 1


@pytest.mark.parametrize(
    "line", ["runs --limit=--", "runs --sort=--", "budget --weekly=--", "note x --run=--"]
)
def test_two_dashes_are_no_value(home: Path, screen: Screen, line: str) -> None:
    screen(*line.split(), status=2)
    option = line.split()[-1].partition("=")[0]
    assert screen.err == f"runshelf: error: `{option}` needs a value, got `--`\n"


@pytest.mark.parametrize("name", ["x" * 300, "/" + "x/" * 3_000])
def test_a_run_is_found_by_a_name_that_is_no_path(home: Path, screen: Screen, name: str) -> None:
    make_run(home, 7, name=name)
    assert ulid(7) in screen("show", name)


def test_diff_starts_with_the_configuration(home: Path, screen: Screen) -> None:
    text = screen("diff", "run1", "run2")
    parts = [part.splitlines()[0] for part in text.split("\n\n")]
    assert [part.partition(":")[0] for part in parts[1:]] == [
        *("configuration", "command", "code", "git", "packages", "hardware", "metrics")
    ]
    assert "lr" in text.split("\n\n")[1]
    assert "metrics: identical up to step 2" in text
    assert "identical at all steps, up to step 4" in screen("diff", "run1", "run1")
    fields = screen.json("diff", "run1", "run2")
    assert fields["config"] == [{"key": "lr", "one": 0.1, "other": 0.01}]
    assert fields["metrics"]["identical_until"] == 2
    assert fields["metrics"]["metrics"][0]["name"] == "loss"


@pytest.mark.medium
def test_diff_cuts_lines_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: Screen
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / "data.jsonl").write_text(f"{name}{'x' * 5_000}\n")
        assert main(["run", "--name", name, "--", sys.executable, "-c", "pass"]) == 0
    lines = screen("diff", "one", "two").splitlines()
    assert max(map(len, lines)) < 250
    assert sum("… and 4,804 characters" in line for line in lines) == 2
    assert f"  +two{'x' * 5_000}" in screen("diff", "one", "two", "--code").splitlines()


@pytest.mark.parametrize("command", ["runs", "show", "diff", "groups", "reindex", "du", "gc"])
def test_control_characters_of_a_run_never_reach_the_terminal(
    tmp_path: Path, screen: Screen, command: str
) -> None:
    home = tmp_path / "hostile"
    text = HOSTILE
    for number in (1, 2):
        folder = make_run(
            home,
            number,
            name=text,
            group=text,
            question=text,
            tags=[text],
            env=text,
            algorithm=text,
            parent=text,
            cwd=text,
            masked=[text],
            argv=[text],
            config={text: f"{text}{number}"},
            command=text,
            git={"commit": text, "branch": text, "remote": text, "dirty": True},
            python={"version": text, "packages": {text: f"{text}{number}"}},
            hardware={"cpu": f"{text}{number}", "host": text, "gpus": [{"name": text}]},
            events=[{"status": "failed", "error": text, "time": text}],
            records=[{"step": 0, text: number, f"{text}{number}": 2}],
        )
        (folder / "output.log").write_bytes(b"0.1\tout\t5\t" + text[:-3].encode() + b"\n")
        (folder / f"\x1b[31m{number}").write_text("")
        (folder / "outputs.json").write_text(json.dumps([{"path": text, "sha256": text}]))
    (home / "runs" / "\x1b[31mfolder").mkdir()
    lines = {
        "runs": [["runs", "--columns", text]],
        "groups": [["runs", "--groups", "--columns", text]],
        "show": [["show"], ["show", "--output"], ["show", "--packages"]],
        "diff": [["diff", ulid(1), ulid(2), "--code"]],
    }.get(command, [[command]])
    for line in lines:
        printed = screen(*line, "--home", str(home)) + screen.err
        for forbidden in ("\x1b", "\x07", "\x9b", "\u202e", "\r", "\x00"):
            assert forbidden not in printed


def test_only_control_characters_are_escaped() -> None:
    assert harmless("größe 日本 ✓ -> x") == "größe 日本 ✓ -> x"
    assert harmless("a\tb\n") == "a\\tb\\n"
    assert harmless("a\tb", tabs=True) == "a\tb"
    assert harmless(HOSTILE).isprintable()
    assert harmless("\udcff") == "\\udcff"


def test_text_of_values_and_sizes() -> None:
    assert [value_of(v) for v in (None, True, 1, 0.00012345678, [1, 2.5], "x")] == [
        *("", "true", "1", "0.00012346", "1,2.5", "x")
    ]
    assert [size_of(n) for n in (0, 999, 1000, 1024**2, 10**15)] == [
        *("0 B", "999 B", "1.0 KiB", "1.0 MiB", "909.5 TiB")
    ]


# --- the trash and the disk -------------------------------------------------------------------


def test_rm_and_restore(home: Path, screen: Screen) -> None:
    assert screen("rm", "run1", ulid(2)).count("is in the trash") == 2
    assert [row["run"] for row in screen.json("runs")["runs"]] == [ulid(0)]
    assert screen("restore").split() == [ulid(1)[-8:], ulid(2)[-8:]]
    assert screen.json("restore", ulid(1)) == {"restored": [ulid(1)]}
    assert screen.json("runs")["total"] == 2
    assert screen.json("rm", "run1", "run1") == {"removed": [ulid(1)]}
    screen("restore", "zzz", status=2)
    assert ulid(2)[-8:] in screen.err


def test_rm_moves_nothing_if_one_name_is_mistyped(home: Path, screen: Screen) -> None:
    screen("rm", "run1", "mistyped", status=2)
    assert screen.json("runs")["total"] == 3


def test_rm_refuses_a_running_run(home: Path, screen: Screen) -> None:
    with create_run(home, command="run", config={}, argv=[]) as writer:
        screen("rm", "latest", status=2)
        assert f"run {writer.run.short} is running: stop it first" in screen.err


@pytest.mark.medium
def test_gc_changes_nothing_without_yes(home: Path, screen: Screen) -> None:
    screen("rm", "run1")
    text = screen("gc", "--trash", "0")
    assert "1 old run in the trash" in text
    assert "2 runs with metrics to compact" in text
    assert "nothing has been changed; runshelf gc --yes does it" in text
    assert screen("restore").split() == [ulid(1)[-8:]]
    done = screen.json("gc", "--trash", "0", "--yes")
    assert (done["done"], done["trashed"], len(done["compactable"])) == (True, [ulid(1)], 2)
    assert screen("restore") == "the trash is empty\n"
    assert screen("gc") == "there is nothing to remove\n"
    assert screen.json("runs", "loss>1")["total"] == 1


def test_du_adds_up(home: Path, screen: Screen) -> None:
    fields = screen.json("du")
    sums = fields["bytes"]
    assert sums.pop("total") == sum(sums.values())
    assert sums["runs"] == sum(row["bytes"] for row in fields["runs"])
    assert len(screen("du", "--limit", "1").splitlines()) == 2 + 5
    assert "1 of 3" in screen.err


def test_reindex_lists_skipped_folders(home: Path, screen: Screen) -> None:
    for number in (5, 6):
        (make_run(home, number) / "run.json").write_text("no")
    assert "3 runs in `runs/.runshelf/index.sqlite`, 2 folders skipped" in screen("reindex")
    assert screen.err.count("skipped: ") == 2
    fields = screen.json("reindex")
    assert (fields["runs"], len(fields["skipped"])) == (3, 2)
    assert fields["skipped"][0]["folder"].endswith(ulid(5))
