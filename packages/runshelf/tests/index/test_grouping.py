"""Runs that differ only in their seeds are one group; others are not."""

from typing import Any

import pytest

from runshelf.index.grouping import group_of

OURS: dict[str, Any] = {"command": "train", "algorithm": "ppo", "env": "dot", "config": {"lr": 1}}
THEIRS: dict[str, Any] = {"command": "run", "argv": ["python", "x.py", "--lr", "1"], "config": {}}


def test_a_group_or_name_in_the_manifest_is_the_group() -> None:
    assert group_of(OURS | {"group": "g", "name": "n"}) == "g"
    assert group_of(OURS | {"name": "n"}) == "n"
    assert group_of(OURS | {"group": "", "name": ""}) == group_of(OURS)


def test_other_groups_are_named_after_algorithm_or_command_line() -> None:
    assert group_of(OURS).startswith("ppo dot ")
    assert group_of(THEIRS).startswith("python x.py --lr 1 ")
    assert len(group_of(THEIRS).rpartition(" ")[2]) == 4
    assert len(group_of(THEIRS | {"argv": ["x" * 500, "a\nb"]})) <= 65
    assert "\n" not in group_of(THEIRS | {"argv": ["a\n\tb"]})
    assert group_of({}).startswith("run ")


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
def test_another_configuration_is_another_group(change: dict[str, Any]) -> None:
    assert group_of(OURS | change) != group_of(OURS)


@pytest.mark.parametrize("key", ["seed", "seeds", "Seed", "first_seed", "random_seed"])
@pytest.mark.parametrize("nested", [False, True])
def test_seeds_of_a_configuration_do_not_change_the_group(key: str, nested: bool) -> None:
    def manifest(value: Any) -> dict[str, Any]:
        inner = {"lr": 1, key: value}
        return OURS | {"config": {"settings": inner} if nested else inner}

    assert group_of(manifest(1)) == group_of(manifest([2, 3]))
    assert group_of(OURS | {"seeds": [1]}) == group_of(OURS | {"seeds": [2]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.py --seed 1", "x.py --seed 2"),
        ("x.py --seed=1", "x.py --seed=2"),
        ("x.py --seed=1", "x.py --seed 2"),
        ("x.py seed=1", "x.py seed=2"),
        ("x.py --random-seed 1 --lr 3", "x.py --random-seed 7 --lr 3"),
        ("x.py --SEED 1", "x.py --SEED 2"),
        ("x.py --seed 1", "x.py"),
        ("x.py --seed -1 -v", "x.py --seed 5 -v"),
        ("x.py --seed", "x.py"),
    ],
)
def test_seeds_of_a_command_line_do_not_change_the_group(one: str, other: str) -> None:
    first, second = (THEIRS | {"argv": line.split()} for line in (one, other))
    assert group_of(first) == group_of(second)


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
def test_other_arguments_of_a_command_line_change_the_group(one: str, other: str) -> None:
    first, second = (THEIRS | {"argv": line.split()} for line in (one, other))
    assert group_of(first) != group_of(second)


def test_invalid_manifests_have_a_group() -> None:
    for odd in (
        {"config": 3},
        {"config": [1]},
        {"argv": [1, None, {"a": 1}]},
        {"argv": "python x.py"},
        {"name": 5},
        {"env": ["a"]},
        {"group": {"a": 1}},
    ):
        assert isinstance(group_of(THEIRS | odd), str)
