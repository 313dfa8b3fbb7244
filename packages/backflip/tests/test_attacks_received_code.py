"""Attacks: received runs that name code, which commands would import and call."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import backflip
from backflip.cli.main import main
from backflip.core.checkpoint import load_arrays, save_arrays
from backflip.teaching_api import resume_teach, teach_more
from backflip.training.policy import POLICY
from backflip.training.train import resume_train, train_more
from runshelf.errors import UserFacingError
from runshelf.store import trust
from runshelf.store.run import create_run, open_run

pytestmark = [pytest.mark.attack, pytest.mark.medium]
Tried = Callable[[int, str], None]
Change = Callable[[dict[str, Any], str], None]

SMALL = {"hidden": (8,), "num_envs": 2, "rollout_length": 16, "reward_model": "linear"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of `teach` that was made here."""
    return backflip.teach(
        "CartPole-v1",
        labels=4,
        env_steps=64,
        settings=SMALL | {"phases": 1},
        home=tmp_path_factory.mktemp("own"),
    ).folder


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """Return the name of a module in the current folder, and the file that importing it makes."""
    name, mark = f"canary_{tmp_path.name}".replace("-", "_"), tmp_path / "imported"
    code = f"open({str(mark)!r}, 'w').close()\n"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return name, mark


def as_env(prefix: str = "") -> Change:
    return lambda fields, code: fields.update(env=f"{prefix}{code}")


def as_setting(name: str) -> Change:
    return lambda fields, code: fields["config"]["settings"].update({name: code})


def as_reward_model(fields: dict[str, Any], code: str) -> None:
    fields["config"]["teaching"]["reward_model"] = code


def as_teacher(fields: dict[str, Any], code: str) -> None:
    fields["config"]["teacher"] = code


CHANGES: dict[str, Change] = {
    "environment": as_env(),
    "environment of Gymnasium": as_env("gymnasium:"),
    "environment that does not observe time": as_env("fixed:"),
    "network": as_setting("network"),
    "reward model": as_reward_model,
    "teacher": as_teacher,
}
COMMANDS = {
    "teach": (
        *("resume RUN", "watch RUN", "export-policy RUN out.npz", "teach --more RUN --labels 4"),
        "teach CartPole-v1 --reward-from RUN",
    ),
    "train": (
        "resume RUN",
        "watch RUN",
        "export-policy RUN out.npz",
        "train --more RUN --env-steps 64",
    ),
}


def received(own: Path, home: Path, change: Change, code: str, command: str = "teach") -> Path:
    """Return a changed copy of a run, unfinished, in a home of its own."""
    folder = home / "runs" / own.name
    shutil.copytree(own, folder)
    fields = json.loads((folder / "run.json").read_text())
    change(fields, code)
    (folder / "run.json").write_text(json.dumps(fields | {"command": command}))
    events = (folder / "events.jsonl").read_text().splitlines()
    kept = [line for line in events if '"finished"' not in line]
    (folder / "events.jsonl").write_text("\n".join([*kept, '{"status": "stopped"}']) + "\n")
    return folder


@pytest.mark.parametrize(
    "what",
    # Every command is tried with the first one.
    [pytest.param(one, marks=pytest.mark.slow) if one == "environment" else one for one in CHANGES],
)
def test_no_command_imports_what_a_received_run_names(
    own: Path,
    tmp_path: Path,
    marked: tuple[str, Path],
    capsys: pytest.CaptureFixture[str],
    tried: Tried,
    what: str,
) -> None:
    module, mark = marked
    count = 0
    for command, lines in COMMANDS.items():
        home = tmp_path / command
        folder = received(own, home, CHANGES[what], f"{module}:Made", command)
        for line in lines:
            argv = [folder.name if word == "RUN" else word for word in line.split()]
            status = main([*argv, "--home", str(home)])
            said = capsys.readouterr().err
            assert not mark.exists(), line
            count += 1
            if line.startswith("export-policy"):  # needs only what the policy itself names
                continue
            assert status == 2, line
            assert f"type backflip trust {folder}" in said, line
        count += refused_from_python(folder, command)
        assert not mark.exists()
    tried(count, "commands on a received run that names code")


def refused_from_python(folder: Path, command: str) -> int:
    """Call everything that Python offers for a run; return how many calls."""
    run = open_run(folder)
    calls: list[Callable[[], Any]] = (
        [lambda: resume_train(run), lambda: train_more(run, env_steps=9)]
        if command == "train"
        else [lambda: resume_teach(run), lambda: teach_more(run, labels=2)]
    )
    for call in calls:
        with pytest.raises(UserFacingError, match="was not made here"):
            call()
    return len(calls)


def with_network(folder: Path, code: str) -> None:
    """Let the policy of a run name a network, but not its `run.json`."""
    loaded = load_arrays(folder / POLICY)
    about = json.loads(loaded.metadata["about"])
    about["settings"]["network"] = code
    save_arrays(folder / POLICY, loaded.arrays, {**loaded.metadata, "about": json.dumps(about)})


def test_a_policy_names_no_code_that_its_run_does_not_name(
    own: Path, tmp_path: Path, marked: tuple[str, Path], tried: Tried
) -> None:
    module, mark = marked
    folder = received(own, tmp_path / "home", lambda fields, code: None, "")
    trust.trust(folder)
    with_network(folder, f"{module}:made")
    for call in (
        lambda: backflip.load_policy(folder),
        lambda: backflip.load_run(folder).policy(),
    ):
        with pytest.raises(UserFacingError, match="does not name"):
            call()
    assert main(["watch", str(folder)]) != 0
    assert main(["export-policy", str(folder), str(tmp_path / "out.npz")]) != 0
    assert not mark.exists()
    tried(4, "policies that name code")


# --- who made a run ---------------------------------------------------------------------------


def made(home: Path) -> Path:
    with create_run(home, command="train", config={"a": 1}, argv=["x"]) as writer:
        return writer.folder


def test_a_run_made_here_is_trusted_also_after_its_home_has_moved(tmp_path: Path) -> None:
    folder = made(tmp_path / "one")
    assert trust.is_trusted(folder)
    (tmp_path / "one").rename(tmp_path / "two")
    assert trust.is_trusted(tmp_path / "two" / "runs" / folder.name)


def record_of_copy(run: Path) -> Path:
    """Return the record of a trusted run with the same `run.json`."""
    other = made(run.parents[1])
    shutil.copy(run / "run.json", other)
    trust.trust(other)
    return run.parent / ".runshelf" / trust.TRUSTED / other.name


FORGERIES: dict[str, Callable[[Path, Path], object]] = {
    "no record": lambda record, run: record.unlink(),
    "an empty record": lambda record, run: record.write_bytes(b""),
    "a record of another length": lambda record, run: record.write_bytes(record.read_bytes() * 2),
    "a hash without the key": lambda record, run: record.write_text("0" * 64),
    "a link to the record of another run": lambda record, run: (
        record.rename(record.with_name("kept")),
        record.symlink_to("kept"),
    ),
    "a changed run": lambda record, run: (run / "run.json").write_text(
        (run / "run.json").read_text().replace('"a": 1', '"a": 2')
    ),
    "the record of another run": lambda record, run: record.write_bytes(
        (record.parent / made(run.parents[1]).name).read_bytes()
    ),
    "the record of a run with the same run.json": lambda record, run: record.write_bytes(
        record_of_copy(run).read_bytes()
    ),
    "a linked run.json": lambda record, run: (
        (run / "run.json").rename(run / "other"),
        (run / "run.json").symlink_to("other"),
    ),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_received_run_cannot_pass_for_one_made_here(
    tmp_path: Path, tried: Tried, how: str
) -> None:
    folder = made(tmp_path)
    record = tmp_path / "runs" / ".runshelf" / trust.TRUSTED / folder.name
    FORGERIES[how](record, folder)
    assert not trust.is_trusted(folder)
    tried(1, "forged records of trust")


def test_a_received_home_cannot_vouch_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Tried
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of the other user"))
    folder = made(tmp_path / "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    assert not trust.is_trusted(folder), "without a key"
    made(tmp_path / "another home")
    assert not trust.is_trusted(folder), "with a key of my own"
    tried(2, "forged records of trust")
    assert main(["trust", "--all", "--home", str(tmp_path / "home")]) == 0
    assert trust.is_trusted(folder)


def test_the_key_is_of_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made(tmp_path)
    assert trust.key_file().stat().st_mode & 0o077 == 0


def test_a_run_is_made_where_no_key_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "below"))
    folder = made(tmp_path)
    assert not trust.is_trusted(folder)
    assert main(["trust", folder.name, "--home", str(tmp_path)]) == 2


# --- the question -----------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize(("answer", "imports"), [("yes\n", True), ("no\n", False), ("", False)])
def test_a_terminal_asks_once_and_the_home_remembers(
    own: Path,
    tmp_path: Path,
    marked: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    imports: bool,
) -> None:
    module, mark = marked
    folder = received(own, tmp_path / "home", as_env(), f"{module}:Made")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said := Terminal())
    assert main(["watch", folder.name, "--home", str(tmp_path / "home")]) == 2
    assert "was not made here. It imports" in said.getvalue()
    assert f"`{module}:Made`" in said.getvalue()
    assert mark.exists() is imports
    assert trust.is_trusted(folder) is imports
    if imports:
        monkeypatch.setattr(sys, "stderr", said := Terminal())
        main(["watch", folder.name, "--home", str(tmp_path / "home")])
        assert "was not made here" not in said.getvalue()
    else:
        assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_trust_with_one_command_lets_the_run_import(
    own: Path, tmp_path: Path, marked: tuple[str, Path]
) -> None:
    module, mark = marked
    folder = received(own, tmp_path / "home", as_env(), f"{module}:Made")
    assert main(["trust", os.fspath(folder)]) == 0
    main(["watch", folder.name, "--home", str(tmp_path / "home")])
    assert mark.exists()
