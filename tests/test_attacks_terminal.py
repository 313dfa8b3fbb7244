"""Attacks: control characters in every text of a run, a home and a repository.

They must not reach a terminal through any command of both programs.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backflip.cli.main import PROGRAM as BACKFLIP
from runshelf.cli.command_line import Program, build_parser, run_program
from runshelf.cli.main import PROGRAM as RUNSHELF
from runshelf.snapshot.capture import capture
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import RunInfo, create_run

pytestmark = [pytest.mark.attack, pytest.mark.medium]
Tried = Callable[[int, str], None]

EVIL = (
    "\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x1b\\ \x1b]0;title\x07\x9b2J\x85\x9d0;t\x9c"
    "\u202etxt.exe\u202c\u2066x\u2069\u200e\u061c \x07\x08\x08\x7f\r\x0b\x0c\u2028\x1b[2K[b]\x1bc"
)
PLAIN = frozenset("\n\t")
# Words that a command needs to find and read a run; each is planted alone.
STRUCTURE = ("schema", "run", "created", "command", "status", "time")
# Commands of both programs, with `RUN` for the attacked run, `OTHER` for another and `OUT` for a
# new path. A command that is not here fails the test below.
COMMANDS: dict[str, list[str]] = {
    "run": ["run true", "run --name EVIL true", "run EVIL", "run -- sh -c EVIL", "run --EVIL x"],
    "rerun": ["rerun RUN", "rerun RUN EVIL", "rerun OTHER EVIL=3", "rerun OTHER lr=EVIL"],
    "budget": ["budget", "budget --json", "budget --weekly EVIL"],
    "runs": ["runs", "runs --all", "runs --groups", "runs --json", "runs EVIL", "runs --sort EVIL"],
    "show": [
        *("show RUN", "show RUN --output", "show RUN --code", "show RUN --packages"),
        *("show RUN --json", "show EVIL", "show RUN --EVIL"),
    ],
    "diff": ["diff RUN OTHER", "diff OTHER RUN --code", "diff RUN OTHER --json", "diff RUN EVIL"],
    "compare": [
        *("compare RUN OTHER", "compare RUN", "compare OTHER RUN --json", "compare EVIL RUN"),
        *("compare RUN --metric EVIL", "compare RUN PROGRESS --metric loss", "compare --EVIL"),
        *("compare RUN --registered EVIL", "compare RUN --low EVIL=1", "compare RUN --html EVIL"),
    ],
    "register": [
        "register EVIL",
        "register a --question EVIL --hypothesis EVIL=EVIL --metric EVIL --n 4",
        *(
            "register a --show",
            "register a --json --show",
            "register --list",
            "register a --n EVIL",
        ),
    ],
    "gc": ["gc", "gc --yes --trash 0", "gc --EVIL"],
    "du": ["du", "du --json", "du --limit EVIL"],
    "reindex": ["reindex", "reindex --json"],
    "note": [
        *(
            "note EVIL",
            "note EVIL --run RUN --next EVIL",
            "note",
            "note --json",
            "note --search EVIL",
        ),
        *("note x --log EVIL", "note x --run EVIL", "note x --answers EVIL", "note --EVIL"),
    ],
    "now": ["now", "now --json", "now --EVIL"],
    "hours": ["hours start EVIL", "hours plan a EVIL", "hours EVIL", "hours done EVIL", "hours"],
    "digest": ["digest", "digest --json", "digest --since EVIL", "digest --save EVIL"],
    "premortem": [
        *("premortem RUN --surprise 50% --risk EVIL=30%", "premortem RUN", "premortem"),
        *("premortem RUN --surprise EVIL", "premortem RUN --outcome EVIL", "premortem EVIL"),
        "premortem RUN --outcome failed --came-true EVIL",
    ],
    "alerts": [
        *("alerts", "alerts RUN --json", "alerts --rule EVIL", "alerts --to EVIL", "alerts EVIL"),
        *("alerts --to env:EVIL", "alerts --to command:EVIL", "alerts --quiet EVIL"),
        *("alerts --to smtp://EVIL", "alerts --to https://EVIL"),
    ],
    "import": ["import OUT", "import EVIL", "import PROGRESS"],
    "export": ["export RUN OUT", "export EVIL OUT", "export RUN /nowhere/EVIL"],
    "report": ["report RUN OUT", "report EVIL OUT"],
    "serve": ["serve EVIL", "serve --port EVIL"],
    "trust": ["trust RUN", "trust EVIL", "trust --all", "trust"],
    "resume": ["resume RUN", "resume EVIL"],
    "watch": ["watch RUN", "watch EVIL"],
    "export-policy": ["export-policy RUN OUT", "export-policy EVIL OUT"],
    "lint": ["lint PROGRAM", "lint PROGRAM --json", "lint BROKEN", "lint EVIL", "lint --EVIL"],
    "doctor": [
        *("doctor RUN", "doctor RUN --json", "doctor PROGRESS", "doctor EVIL", "doctor --EVIL"),
        *("doctor PROGRESS --map EVIL=entropy", "doctor RUN --about EVIL=1", "doctor --map EVIL"),
    ],
    "probe": ["probe EVIL", "probe EVIL:make", "probe ppo --set EVIL", "probe --EVIL"],
    "labels": ["labels export RUN OUT", "labels import RUN PROGRESS", "labels EVIL"],
    "teach": ["teach EVIL", "teach --more RUN", "teach dot --teacher EVIL"],
    "train": [
        "train EVIL EVIL",
        "train --more RUN",
        "train ppo EVIL",
        "train ppo dot --set EVIL=1",
    ],
    "look": ["look EVIL", "look dot --env-arg EVIL=1"],
    "play": ["play EVIL"],
    "battery": [
        *("battery EVIL", "battery EVIL --rows EVIL", "battery EVIL --add EVIL -- EVIL {seed}"),
        *("battery . --EVIL", "battery . --metric EVIL", "battery . --budget EVIL"),
    ],
    "sweep": [
        *("sweep EVIL", "sweep EVIL --over EVIL=1 -- EVIL {EVIL} {seed}", "sweep x --over EVIL"),
        *("sweep x --over lr=EVIL -- x {lr} {seed}", "sweep x --over lr=1 -- x {EVIL} {seed}"),
        *("sweep --EVIL", "sweep x --engine EVIL", "sweep train EVIL EVIL --over EVIL=1"),
        "sweep x --over lr=1 --engine EVIL -- EVIL {lr} {seed}",
    ],
    "ablate": ["ablate EVIL", "ablate OTHER", "ablate --EVIL"],
    "sensitivity": ["sensitivity EVIL EVIL", "sensitivity ppo EVIL", "sensitivity ppo --EVIL"],
    "restore": ["restore", "restore EVIL", "restore RUN"],
    "rm": ["rm EVIL", "rm RUN"],
}


def planted(value: Any) -> Any:
    """Return JSON with the attack in every text and key, but not where a run needs the word."""
    match value:
        case str():
            return value + EVIL
        case dict():
            return {
                key if key in STRUCTURE or isinstance(item, dict | list) else key + EVIL: item
                if key in STRUCTURE
                else planted(item)
                for key, item in value.items()
            } | {key: planted(item) for key, item in value.items() if key not in STRUCTURE}
        case list():
            return [planted(item) for item in value]
        case _:
            return value


def rewrite(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the JSON of a file, line by line in a `.jsonl` file."""
    text = path.read_text()
    parts = text.splitlines() if path.suffix == ".jsonl" else [text]
    path.write_text("\n".join(json.dumps(change(json.loads(part))) for part in parts) + "\n")


def made_run(home: Path, code: Path, name: str) -> Path:
    """Return the folder of a new run with every kind of record."""
    argv = [sys.executable, "train.py", "--lr=3"]
    info = RunInfo(name, "group", "question?", ("tag",), cost_per_hour=3.0)
    keep = capture(home, argv, say=lambda line: None, cwd=code)
    with create_run(
        home,
        command="train",
        config={"lr": 3, "settings": {"a": "b"}, "env_args": {}},
        seeds=[0],
        env="CartPole-v1",
        algorithm="ppo",
        argv=argv,
        cwd=code,
        info=info,
        capture=keep,
    ) as writer:
        with MetricsWriter(writer.folder, "train") as file:
            for step in range(3):
                file.write({"seed": 0, "env_steps": step, "loss" + EVIL: 1.0 / (step + 1)})
        line = f"0.1\tout\t100\tprinted {EVIL}".replace("\r", "") + "\n"
        (writer.folder / "output.log").write_text(line)
        (writer.folder / "outputs").mkdir()
        (writer.folder / "outputs" / f"file{EVIL.replace('/', '')}").write_text("x")
        writer.record("failed", error="why", outputs=[{"path": "a", "bytes": 1, "sha256": "0"}])
    return writer.folder


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path, Path]]:
    """Return a home with an attacked run and another one, and their folders."""
    code = tmp_path / f"code{EVIL.replace('/', '')}"
    code.mkdir()
    (code / "train.py").write_text("print(1)\n")
    (code / f"data{EVIL.replace('/', '')}.py").write_text("1\n")
    home = tmp_path / "home"
    run, other = made_run(home, code, "first"), made_run(home, code, "second")
    for name in ("run.json", "events.jsonl", "code.json"):
        rewrite(run / name, planted)
    for name in ("budget.json", "metric.json"):
        path = home / "runs" / ".runshelf" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"weekly": EVIL, "metric": EVIL, EVIL: EVIL}))
    for name in ("RUNSHELF_HOME", "BACKFLIP_HOME", "RUNSHELF_RUN", "BACKFLIP_RUN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield home, run, other
    shutil.rmtree(home)


def command_lines(program: Program) -> list[str]:
    """Return the command lines to try, of all commands of a program."""
    return [line for name in build_parser(program)[1] for line in COMMANDS[name]]


def controls(text: str) -> set[str]:
    """Return the characters of a text that a terminal may obey."""
    return {c for c in text if not c.isprintable()} - PLAIN


@pytest.mark.slow
@pytest.mark.parametrize("program", [RUNSHELF, BACKFLIP], ids=lambda program: program.name)
def test_no_command_prints_control_characters_of_a_run(
    attacked: tuple[Path, Path, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    tried: Tried,
    program: Program,
) -> None:
    home, run, other = attacked
    progress = tmp_path / "progress.csv"
    progress.write_text(f"time/total_timesteps,loss{EVIL.replace(chr(13), '')}\n1,2\n")
    found_in, broken = tmp_path / f"a{EVIL.replace('/', '')}.py", tmp_path / "broken.py"
    found_in.write_text(f"eps = 1.0\neps *= 1.1  # {EVIL.replace(chr(13), '')}\n")
    broken.write_text(f"eps = {EVIL}\n")
    leaked: dict[str, set[str]] = {}
    for number, line in enumerate(command_lines(program)):
        words = {"RUN": run.name, "OTHER": other.name, "OUT": str(tmp_path / f"out{number}")}
        words |= {"PROGRESS": str(progress), "PROGRAM": str(found_in), "BROKEN": str(broken)}
        argv = [words.get(word, word).replace("EVIL", EVIL) for word in line.split()]
        run_program(program, [argv[0], *_home_option(argv, home), *argv[1:]])
        out, err = capfd.readouterr()
        if found := controls(out) | controls(err):
            leaked[line] = found
    assert leaked == {}
    tried(len(command_lines(program)), "commands with control characters in every text")


def _home_option(argv: list[str], home: Path) -> list[str]:
    takes_none = argv[0] in ("look",) or argv[0] == "labels"
    return [] if takes_none else ["--home", str(home)]


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(field, marks=[] if field in ("run", "status") else pytest.mark.slow)
        for field in STRUCTURE
    ],
)
def test_no_error_prints_control_characters(
    attacked: tuple[Path, Path, Path], capfd: pytest.CaptureFixture[str], tried: Tried, field: str
) -> None:
    home, run, _ = attacked
    for name in ("run.json", "events.jsonl"):
        rewrite(run / name, lambda fields: fields | ({field: EVIL} if field in fields else {}))
    for line in ("runs", "show RUN", "resume RUN", "watch RUN", "reindex", "gc", "rerun RUN"):
        argv = [run.name if word == "RUN" else word for word in line.split()]
        run_program(BACKFLIP, [*argv, "--home", str(home)])
        out, err = capfd.readouterr()
        assert (controls(out), controls(err)) == (set(), set()), line
    tried(7, "commands with a damaged run")


def test_no_print_is_left_outside_of_the_one_function() -> None:
    """A new `print` fails the linter; this finds writes that the linter does not know."""
    root = Path(__file__).parents[1]
    sources = [path for path in root.glob("packages/*/src/**/*.py") if "terminal" not in path.name]
    writes = ("sys.stdout.write(", "sys.stderr.write(", "noqa: T201")
    found = {
        f"{path.name}: {line.strip()}"
        for path in sources
        for line in path.read_text().splitlines()
        if any(write in line for write in writes)
    }
    assert found == {
        '__main__.py: sys.stderr.write("backflip: interrupted\\n")',
        '__main__.py: sys.stderr.write("runshelf: interrupted\\n")',
        'page.py: sys.stdout.write(json.dumps(fields) + "\\n")',
        "progress.py: sys.stderr.write(_CLEARED)",
    }


def test_the_name_of_a_folder_and_the_words_of_a_command_are_escaped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / f"home{EVIL.replace('/', '')}"
    folder.mkdir()
    for program in (RUNSHELF, BACKFLIP):
        for argv in (["runs"], ["show", "x"], ["gc"], ["du"], ["budget"], [EVIL], [f"--{EVIL}"]):
            run_program(program, [*argv, "--home", os.fspath(folder)])
            out, err = capfd.readouterr()
            assert (controls(out), controls(err)) == (set(), set()), argv
