"""Why runs are apart: settings, files and packages that differ, in words and on the page."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import make_run, ulid

from runshelf.comparison.groups import differences
from runshelf.index.run_index import open_index
from runshelf.store.run import open_run
from runshelf.web.pages.group_page import Contents, candidates, contents
from runshelf.web.subjects import runs_of_group


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def add(
    home: Path, number: int, code: dict[str, str] | None = None, score: float = 0.0, **fields: Any
) -> None:
    """Add a run with code by path and one logged score; later numbers are newer."""
    day = f"2026-11-{number + 1:02d}T00:00:00+00:00"
    ours = {"command": "train", "env": "dot", "algorithm": "ppo", "created": day} | fields
    folder = make_run(home, number, **ours, records=[{"step": 0, "score": number + score}])
    if code is not None:
        files = [{"path": p, "sha256": s * 64, "bytes": 1, "mode": 0o644} for p, s in code.items()]
        listed = {"root": "/x", "cwd": ".", "left_out": [], "files": files}
        (folder / "code.json").write_text(json.dumps(listed))
        os.utime(folder, (1e9, 1e9))


def between(home: Path, *numbers: int) -> list[str]:
    runs = [open_run(home / "runs" / ulid(number)) for number in numbers]
    return [str(one) for one in differences(runs)]


def page(home: Path, number: int) -> Contents:
    """Return the contents of the page of a run's group."""
    with open_index(home) as index:
        index.refresh()
        row = index.run(ulid(number))
        assert row
        rows = runs_of_group(index, row.group).rows
        return contents(row.group, rows, candidates(index, row.group, rows[0]))


def python(**packages: str) -> dict[str, Any]:
    return {"python": {"version": "3.11", "packages": packages}}


def test_what_differs_is_named_with_its_values(tmp_path: Path) -> None:
    add(tmp_path, 0, {"a.py": "a", "b.md": "a"}, config={"lr": 1, "seed": 1}, **python(numpy="1"))
    add(tmp_path, 1, {"a.py": "b", "b.md": "b"}, config={"lr": 2, "seed": 2}, **python(numpy="2"))
    assert between(tmp_path, 0, 1) == [
        *("settings: lr (1, 2)", "code: a.py", "packages: numpy (1, 2)", "other files: b.md"),
    ]
    assert between(tmp_path, 0, 0) == []


def test_a_command_line_is_named_if_its_settings_do_not_tell(tmp_path: Path) -> None:
    for number, line in enumerate(["x.py --lr 1", "x.py --lr 2", "x.py 3 --lr 1"]):
        config = {"lr": int(line[-1])}
        add(tmp_path, number, env=None, algorithm=None, argv=line.split(), config=config)
    assert between(tmp_path, 0, 1) == ["settings: lr (1, 2)"]
    assert between(tmp_path, 0, 2) == [
        "settings: command line (x.py --lr 1, x.py 3 --lr 1)",
    ]


def test_unknown_code_and_packages_are_not_equal_to_known_ones(tmp_path: Path) -> None:
    add(tmp_path, 0, {"a.py": "a"}, **python(numpy="1"))
    add(tmp_path, 1)
    assert between(tmp_path, 0, 1) == [
        *("code: unknown of 1 of 2 runs", "packages: unknown of 1 of 2 runs"),
    ]


def test_the_page_says_what_separates_similar_groups(tmp_path: Path) -> None:
    add(tmp_path, 0, {"a.py": "a"}, config={"lr": 1}, seeds=[1])
    add(tmp_path, 1, {"a.py": "a"}, config={"lr": 1}, seeds=[2])
    add(tmp_path, 2, {"a.py": "b"}, config={"lr": 1}, seeds=[1])
    add(tmp_path, 3, {"a.py": "b"}, config={"lr": 2}, seeds=[1])
    add(tmp_path, 4, {"a.py": "a"}, config={"lr": 1}, seeds=[1], env="other")
    found = page(tmp_path, 0)
    assert found.independent == "2 seeds"
    assert found.notes == []
    assert [(one.n, one.why) for one in found.similar] == [
        *((1, "code: a.py"), (1, "settings: lr (2, 1); code: a.py")),
    ]
    assert found.similar[0].comparison.startswith("/compare?group=")


def test_the_page_lists_repeats_and_why_they_are_not_counted(tmp_path: Path) -> None:
    add(tmp_path, 0, {}, seeds=[1, 2, 3])
    add(tmp_path, 1, {}, seeds=[2, 3], name="later")
    add(tmp_path, 2, {}, seeds=[1], name="last")
    add(tmp_path, 3, {}, seeds=[4])
    found = page(tmp_path, 0)
    assert found.independent == "4 seeds"
    assert found.seeds == {
        ulid(0): "1 (not counted: repeats last); 2, 3 (not counted: repeats later)",
        ulid(1): "2, 3",
        ulid(2): "1",
        ulid(3): "4",
    }


def test_runs_without_seeds_that_are_identical_are_named(tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path, number, {}, score=-number, name=f"r{number}")
    found = page(tmp_path, 0)
    assert found.independent == "1 independent run"
    assert found.seeds[ulid(0)] == "(not counted: same values as r2)"


def test_a_given_group_says_what_differs_in_it(tmp_path: Path) -> None:
    add(tmp_path, 0, {"a.py": "a"}, config={"lr": 1}, seeds=[1], group="g")
    add(tmp_path, 1, {"a.py": "a"}, config={"lr": 2}, seeds=[2], group="g")
    add(tmp_path, 2, {"a.py": "b"}, config={"lr": 2}, seeds=[3], group="g")
    settings, code = page(tmp_path, 0).notes
    assert settings.text == "Pooled by hand: these runs differ in settings: lr (2, 1)."
    assert code.text == "Pooled by hand: these runs differ in code: a.py."
    # The links show the newest run and one that differs from it in this.
    assert settings.address == f"/compare?run={ulid(0)}&run={ulid(2)}"
    assert code.address == f"/compare?run={ulid(1)}&run={ulid(2)}"


def test_differences_that_do_not_separate_are_said(tmp_path: Path) -> None:
    for number in range(2):
        tools = python(pytest=str(number), numpy="1")
        add(tmp_path, number, {"notes.md": str(number)}, seeds=[number], **tools)
    assert [note.text for note in page(tmp_path, 0).notes] == [
        "These runs differ in other files: notes.md. This does not separate groups.",
        "These runs differ in other packages: pytest (1, 0). This does not separate groups.",
    ]


def test_unknown_code_is_said(tmp_path: Path) -> None:
    add(tmp_path, 0, seeds=[1])
    add(tmp_path, 1, seeds=[2])
    (note,) = page(tmp_path, 0).notes
    assert note.text == "Code unknown: all 2 runs recorded none."


def test_seeds_with_identical_values_are_said(tmp_path: Path) -> None:
    for number in range(2):
        add(tmp_path, number, {}, score=-number, seeds=[number])
    (note,) = page(tmp_path, 0).notes
    assert note.text == "Seeds 0, 1 logged identical values: does the program use its seed?"


def test_an_import_without_settings_says_why_it_is_alone(tmp_path: Path) -> None:
    for number in range(2):
        source = {"from": f"/logs/PPO_{number}", "label": f"logs/PPO_{number}", "kind": "sb3"}
        add(tmp_path, number, command="import", imported=source, env=None)
    found = page(tmp_path, 0)
    assert [note.text for note in found.notes] == [
        "Imported: the code and packages of the run are unknown.",
        "The logs hold no settings, so each folder is a group of its own; `--group` pools.",
    ]
    assert [one.why for one in found.similar] == ["settings: unknown: the logs hold none"]
