"""What a run computes: settings without seeds, code, and packages."""

import json
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import make_run

from runshelf.index.grouping import group_of
from runshelf.index.identity import code_of, identity_of, is_code, seeds_of

OURS: dict[str, Any] = {"command": "train", "algorithm": "ppo", "env": "dot", "config": {"lr": 1}}
THEIRS: dict[str, Any] = {"command": "run", "argv": ["python", "x.py", "--lr", "1"], "config": {}}
LOGS: dict[str, Any] = {
    "command": "import",
    "algorithm": "ppo",
    "env": "dot",
    "config": {"lr": 1, "seed": 1},
    "imported": {"from": "/logs/a", "kind": "cleanrl"},
}


@pytest.fixture
def group(tmp_path: Path):
    """Return the group of a run with a manifest and files of code, by path."""
    numbers = iter(range(100))

    def group(manifest: dict[str, Any], code: dict[str, str] | None = None) -> str:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        if code is not None:
            archive(folder, code)
        return group_of(manifest, identity_of(folder, manifest))

    return group


def archive(folder: Path, code: dict[str, str]) -> None:
    """Write a `code.json` with these hashes by path."""
    files = [{"path": p, "sha256": sha, "bytes": 1, "mode": 0o644} for p, sha in code.items()]
    fields = {"root": "/x", "cwd": ".", "left_out": [], "files": files}
    (folder / "code.json").write_text(json.dumps(fields))


# --- names ------------------------------------------------------------------------------------


def test_a_given_group_is_the_group_and_a_name_is_only_a_label(group) -> None:
    assert group(OURS | {"group": "g", "name": "n"}) == "g"
    assert group(OURS | {"name": "n"}) == group(OURS | {"name": "m"}) == group(OURS)
    assert group(OURS | {"group": "", "name": ""}) == group(OURS)


def test_other_groups_are_named_after_algorithm_or_command_line(group) -> None:
    assert group(OURS).startswith("ppo dot ")
    assert group(THEIRS).startswith("python x.py --lr 1 ")
    assert group(LOGS).startswith("ppo dot ")
    assert group(LOGS | {"config": {}}).startswith("a ")
    assert len(group(THEIRS).rpartition(" ")[2]) == 6
    assert len(group(THEIRS | {"argv": ["x" * 500, "a\nb"]})) <= 67
    assert "\n" not in group(THEIRS | {"argv": ["a\n\tb"]})
    assert group({}).startswith("run ")


def test_invalid_manifests_have_a_group(group) -> None:
    for odd in (
        {"config": 3},
        {"config": [1]},
        {"argv": [1, None, {"a": 1}]},
        {"argv": "python x.py"},
        {"name": 5},
        {"env": ["a"]},
        {"group": {"a": 1}},
        {"command": "import", "imported": 3},
        {"command": "import", "imported": {"from": 3}, "config": 5},
        {"python": {"packages": 3}},
        {"versions": [1]},
        {"environment": {"SEED": "many"}},
    ):
        assert isinstance(group(THEIRS | odd), str)
        assert isinstance(seeds_of(THEIRS | odd), list)


# --- configuration ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"lr": 2}},
        {"config": {"lr": 1, "more": None}},
        {"algorithm": "sac"},
        {"env": "CartPole-v1"},
        {"command": "teach"},
    ],
)
def test_another_configuration_is_another_group(change: dict[str, Any], group) -> None:
    assert group(OURS | change) != group(OURS)


@pytest.mark.parametrize(
    "key", ["seed", "seeds", "Seed", "first_seed", "random_seed", "env-seed", "train.seed"]
)
@pytest.mark.parametrize("nested", [False, True])
def test_seeds_of_a_configuration_do_not_change_the_group(key: str, nested: bool, group) -> None:
    def manifest(value: Any) -> dict[str, Any]:
        inner = {"lr": 1, key: value}
        return OURS | {"config": {"settings": inner} if nested else inner}

    assert group(manifest(1)) == group(manifest([2, 3]))
    assert group(OURS | {"seeds": [1]}) == group(OURS | {"seeds": [2]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.py --seed 1", "x.py --seed 2"),
        ("x.py --seed=1", "x.py --seed=2"),
        ("x.py --seed=1", "x.py --seed 2"),
        ("x.py seed=1", "x.py seed=2"),
        ("x.py train.seed=1", "x.py train.seed=2"),
        ("x.py ++seed=1", "x.py ++seed=2"),
        ("x.py --random-seed 1 --lr 3", "x.py --random-seed 7 --lr 3"),
        ("x.py --SEED 1", "x.py --SEED 2"),
        ("x.py --seed 1", "x.py"),
        ("x.py --seed -1 -v", "x.py --seed 5 -v"),
        ("x.py --seed", "x.py"),
        ("python x.py", "/usr/bin/python3.11 x.py"),
    ],
)
def test_seeds_of_a_command_line_do_not_change_the_group(one: str, other: str, group) -> None:
    first, second = (THEIRS | {"argv": line.split()} for line in (one, other))
    assert group(first) == group(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.py --lr 1", "x.py --lr 2"),
        ("x.py seed 1", "x.py seed 2"),
        ("x.py --seedling 1", "x.py --seedling 2"),
        ("x.py --seed 1 --lr 1", "x.py --seed 1 --lr 2"),
        ("x.py --seed=1 2", "x.py --seed=1 3"),
        ("x.py --seed --lr 1", "x.py --seed --lr 2"),
    ],
)
def test_other_arguments_of_a_command_line_change_the_group(one: str, other: str, group) -> None:
    first, second = (THEIRS | {"argv": line.split()} for line in (one, other))
    assert group(first) != group(second)


def test_the_working_folder_is_part_of_a_command(group) -> None:
    here, there = ({"snapshot": {"cwd": folder}} for folder in (".", "b"))
    assert group(THEIRS | here, {}) != group(THEIRS | there, {})
    assert group(OURS | here, {}) == group(OURS | there, {})


def test_imports_group_by_the_settings_in_their_files(group) -> None:
    other = {"imported": {"from": "/logs/b", "kind": "cleanrl"}}
    seed = {"config": {"lr": 1, "seed": 2}}
    assert group(LOGS | other | seed) == group(LOGS)
    assert group(LOGS | other | {"config": {"lr": 2, "seed": 2}}) != group(LOGS)
    assert group(LOGS | {"imported": {"from": "/logs/a", "kind": "sb3"}}) != group(LOGS)
    # The name of a folder tells the seed and the algorithm, but no setting.
    unknown = {"config": {"exp_name": "ppo", "seed": 1}}
    assert group(LOGS | unknown) != group(LOGS | unknown | other)
    same_end = {"imported": {"from": "/elsewhere/a", "kind": "cleanrl"}}
    assert group(LOGS | unknown) != group(LOGS | unknown | same_end)


# --- seeds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "seeds"),
    [
        ({"seeds": [3, 4], "config": {"seed": 9}}, [3, 4]),
        ({"config": {"seed": 9}}, [9]),
        ({"config": {"train": {"env_seed": 8}}}, [8]),
        ({"config": {"env_seed": 8, "training.seed": 7}}, [7]),
        ({"environment": {"SEED": "5"}}, [5]),
        ({"config": {"seed": 9}, "environment": {"SEED": "5"}}, [9]),
        ({"config": {"seed": True}}, []),
        ({"config": {"seed": 1.5}}, []),
        ({"seeds": ["1", 2**70]}, []),
        ({}, []),
    ],
)
def test_seeds_are_recorded_or_in_the_settings(manifest: dict[str, Any], seeds: list[int]) -> None:
    assert seeds_of(manifest) == seeds


# --- code -------------------------------------------------------------------------------------


def test_changed_code_is_another_group_and_changed_notes_are_not(group) -> None:
    code = {"train.py": "a" * 64, "conf.yaml": "b" * 64, "README.md": "c" * 64}
    same = group(THEIRS, code)
    assert group(THEIRS, code | {"README.md": "d" * 64, "out.csv": "e" * 64}) == same
    assert group(THEIRS, code | {".gitignore": "d" * 64, "model.zip": "e" * 64}) == same
    assert group(THEIRS, code | {"train.py": "d" * 64}) != same
    assert group(THEIRS, code | {"conf.yaml": "d" * 64}) != same
    assert group(THEIRS, code | {"new": "d" * 64}) != same
    assert group(THEIRS, None) != same, "unknown code is not known to be the same"
    assert group(THEIRS, None) == group(THEIRS, None)


@pytest.mark.parametrize("text", ["", "[]", '{"files": 3}', "{" * 100_000])
def test_a_damaged_list_of_code_is_unknown_code(tmp_path: Path, text: str) -> None:
    folder = make_run(tmp_path, 1)
    (folder / "code.json").write_text(text)
    assert code_of(folder) is None
    assert identity_of(folder, THEIRS).code == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("a/train.py", True), ("Makefile", True), ("x.json", True), ("robot.xml", True)),
        *(("a.c", True), ("data.unknown", True), ("docs/a.py", True)),
        *(("docs/a.md", False), ("LICENSE", False), ("a/results.CSV", False), ("m.tar.gz", False)),
        *((".github/x.yml", False), (".gitignore", False), ("index.sqlite.lock", False)),
        *(("events.out.tfevents.1.host", False), ("uv.lock", False)),
    ],
)
def test_kinds_of_files(path: str, expected: bool) -> None:
    assert is_code(path) == expected


# --- packages ---------------------------------------------------------------------------------


def test_packages_that_compute_are_part_of_a_group_and_tools_are_not(group) -> None:
    def manifest(**packages: str) -> dict[str, Any]:
        known = {"numpy": "2.4.6", "pytest": "8.4", "dm_control": "1"} | packages
        return OURS | {"python": {"version": "3.11", "packages": known}}

    assert group(manifest()) == group(manifest(pytest="9.0", rich="13"))
    for changed in ({"numpy": "2.5"}, {"torch": "3"}, {"dm_control": "2"}, {"Gymnasium": "1"}):
        assert group(manifest(**changed)) != group(manifest())
    assert group(manifest(dm_control="1")) == group(manifest(**{"dm-control": "1"}))
    old = OURS | {"versions": {"numpy": "1.0", "runshelf": "1"}}
    assert group(old) == group(OURS | {"versions": {"numpy": "1.0", "runshelf": "2"}})
    assert group(old) != group(OURS | {"versions": {"numpy": "2.0"}})
