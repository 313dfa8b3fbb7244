"""Registrations are written once, hashed, never changed, and carried by runs."""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runshelf.cli.main import main
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.registrations.carrying import registered_info
from runshelf.registrations.kept import FOLDER, find, find_intact, names, register, versions
from runshelf.registrations.registration import (
    Registration,
    canonical,
    registration_of,
    values_of,
)
from runshelf.store.finding import find_run
from runshelf.store.home import shared
from runshelf.store.run import NO_INFO


def registration(**changes: Any) -> Registration:
    values = {
        "question": "is A better?",
        "hypotheses": [{"name": "A", "predicts": "its mean is higher"}],
        "metric": "score",
        "n": 10,
    }
    return registration_of({**values, **changes})


def file_of(home: Path, name: str, version: int = 1) -> Path:
    return shared(home, FOLDER) / name / f"{version}.json"


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    kept = register(tmp_path, "a", registration())
    data = file_of(tmp_path, "a").read_bytes()
    assert kept.sha256 == hashlib.sha256(data).hexdigest()
    assert data == canonical(json.loads(data))
    assert b" is A better" not in data.replace(b"is A better", b"")
    assert not file_of(tmp_path, "a").stat().st_mode & 0o222
    assert find(tmp_path, "a") == kept


def test_it_survives_the_way_through_the_file(tmp_path: Path) -> None:
    whole = registration(
        looks=5, threshold=-3.5, window=20, test="welch", commands={"A": "x --seed {seed}"}
    )
    assert register(tmp_path, "a", whole).registration == whole
    assert registration_of(values_of(whole)) == whole
    assert whole.seeds_per_look == 2


def test_it_cannot_be_changed_only_superseded(tmp_path: Path) -> None:
    first = register(tmp_path, "a", registration())
    with pytest.raises(UsageError, match="cannot be changed"):
        register(tmp_path, "a", registration(n=20))
    second = register(tmp_path, "a", registration(n=20), reason="too few")
    assert (second.version, second.reason, find(tmp_path, "a").registration.n) == (2, "too few", 20)
    assert find(tmp_path, "a", 1) == first
    assert json.loads(file_of(tmp_path, "a", 2).read_bytes())["supersedes"] == first.sha256
    with pytest.raises(UsageError, match="no registration `b` to supersede"):
        register(tmp_path, "b", registration(), reason="x")


def test_a_changed_file_is_seen_and_no_run_starts_under_it(tmp_path: Path) -> None:
    register(tmp_path, "a", registration())
    path = file_of(tmp_path, "a")
    changed = path.read_bytes().replace(b'"n":10', b'"n":11')
    path.chmod(0o644)
    path.write_bytes(changed)
    assert "changed after it was registered" in find(tmp_path, "a").changed
    with pytest.raises(UsageError, match="cannot be used"):
        find_intact(tmp_path, "a")
    path.write_bytes(b"{}")
    with pytest.raises(DamagedFile, match="damaged"):
        find(tmp_path, "a")


def test_of_many_processes_one_registers(tmp_path: Path) -> None:
    def attempt(n: int) -> int:
        try:
            register(tmp_path, "a", registration(n=n))
        except UserFacingError:
            return 0
        return n

    with ThreadPoolExecutor(8) as pool:
        done = [n for n in pool.map(attempt, range(10, 18)) if n]
    assert len(done) == 1
    assert find(tmp_path, "a").registration.n == done[0]
    assert [one.name for one in file_of(tmp_path, "a").parent.iterdir()] == ["1.json"]
    assert not find(tmp_path, "a").changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 1}, "`n` must be a whole number from 2"),
        ({"n": True}, "`n` must be a whole number"),
        ({"n": 10, "looks": 3}, "multiple of `looks`.*try 9"),
        ({"n": 4, "looks": 4}, "at least 2 seeds"),
        ({"alpha": 0.7}, "above 0 and below 0.5"),
        ({"alpha": float("nan")}, "`alpha` must be"),
        ({"test": "t"}, "permutation or welch"),
        ({"metric": ""}, "needs `metric`"),
        ({"hypotheses": ["A"]}, "needs `name` and `predicts`"),
        ({"mertic": "x"}, "no `mertic`, did you mean `metric`"),
        ({"commands": {"A": "python x.py"}}, "needs {seed}"),
        ({"commands": {"A": "x {seed} {lr}"}}, "has {lr}"),
    ],
)
def test_what_cannot_be_registered(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        registration(**changes)


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b", "a" * 65, "a\n", "-x"])
def test_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a registration is named by"):
        register(tmp_path, name, registration())
    assert names(tmp_path) == [] == versions(tmp_path, "a")


def test_a_kill_before_the_file_is_written_leaves_the_name_free(tmp_path: Path) -> None:
    register(tmp_path, "b", registration())
    hashes = shared(tmp_path, FOLDER) / "hashes.jsonl"
    with hashes.open("a") as file:
        file.write('{"name": "a", "version": 1, "sha256": "0"}\n{"torn')
    assert not register(tmp_path, "a", registration()).changed
    assert names(tmp_path) == ["a", "b"]


def command(home: Path, *words: str) -> int:
    return main([*words, "--home", str(home)])


REGISTER = ("register", "a", "--question", "q", "--hypothesis", "A=higher", "--metric", "score")


@pytest.mark.medium
def test_runs_carry_name_and_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(tmp_path, *REGISTER, "--n", "10") == 0
    kept = find(tmp_path, "a")
    assert command(tmp_path, "run", "--registered", "b", "true") == 2
    run = [sys.executable, "-m", "runshelf", "run", "--registered", "a"]
    subprocess.run([*run, "--home", str(tmp_path), "true"], check=True, capture_output=True)
    assert find_run(tmp_path, "latest").manifest["registered"] == kept.carried()
    monkeypatch.setenv("RUNSHELF_REGISTERED", "a")
    assert registered_info(tmp_path, NO_INFO).registered == kept.carried()
    script = "import runshelf; runshelf.log('score', 1)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0
    assert find_run(tmp_path, "latest").manifest["registered"] == kept.carried()
    monkeypatch.setenv("RUNSHELF_REGISTERED", "typo")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0  # what it logs is kept
    assert b"not registered: there is no registration `typo`" in done.stderr
    assert "registered" not in find_run(tmp_path, "latest").manifest


@pytest.mark.medium
def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(values_of(registration(n=20))))
    assert command(tmp_path, "register", "b", "--from", str(path), "--looks", "4", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["registered"]["n"], made["registered"]["looks"]) == (20, 4)
    assert command(tmp_path, *REGISTER) == 2
    assert "needs `n`" in capsys.readouterr().err
    assert command(tmp_path, *REGISTER, "--n", "many") == 2
    assert command(tmp_path, *REGISTER, "--n", "10") == 0
    assert command(tmp_path, *REGISTER, "--n", "12") == 2
    assert command(tmp_path, *REGISTER, "--n", "12", "--supersede") == 2
    assert command(tmp_path, *REGISTER, "--n", "12", "--supersede", "--reason", "power") == 0
    capsys.readouterr()
    assert command(tmp_path, "register", "--list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["registrations"]
    assert [(one["name"], one["version"]) for one in listed] == [("a", 2), ("b", 1)]
    assert command(tmp_path, "register", "a", "--show") == 0
    assert "supersedes version 1: power" in capsys.readouterr().out
    assert command(tmp_path, "register", "aa", "--show") == 2
    assert "did you mean `a`" in capsys.readouterr().err
