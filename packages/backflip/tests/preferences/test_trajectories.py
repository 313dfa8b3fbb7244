"""Recorded trajectories: clips are those of the agent's own record, and bad files are refused."""

import io
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.rewards.test_conformance import CONTINUOUS, GRID, PIXELS, VECTOR

from backflip.core.spaces import Discrete, Group
from backflip.core.spec import EnvSpec, OwnSpaces
from backflip.core.types import Transition
from backflip.preferences import clips as agents
from backflip.preferences import trajectory_file
from backflip.preferences.trajectories import (
    clip_at,
    seen_as_learned,
    taken_as_learned,
    windows,
)
from backflip.preferences.trajectory_file import read_trajectories
from runshelf.errors import UsageError

Fields = dict[str, Any]


def recorded(steps: int = 60) -> Fields:
    """Return a file's fields: trajectories of 7 to 13 steps, every second one terminated."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(steps, 2)).astype(np.float32)
    after = np.concatenate([obs[1:], np.zeros((1, 2), np.float32)])
    terminated, truncated = np.zeros((2, steps), bool)
    ends = np.cumsum(rng.integers(7, 14, 8))
    for number, end in enumerate(ends[ends < steps]):
        after[end] = rng.normal(size=2)
        (terminated if number % 2 else truncated)[end] = True
    return {
        "observations": obs,
        "next_observations": after,
        "actions": rng.integers(2, size=steps),
        "rewards": rng.normal(size=steps).astype(np.float32),
        "terminations": terminated,
        "truncations": truncated,
    }


def with_last_observations(fields: Fields) -> Fields:
    """Return the same in the other form: one more observation for each trajectory."""
    ends = fields["terminations"] | fields["truncations"]
    ends[-1] = True
    rows: list[np.ndarray] = []
    for step, ended in enumerate(ends):
        rows.append(fields["observations"][step])
        rows += [fields["next_observations"][step]] if ended else []
    others = {name: x for name, x in fields.items() if "observations" not in name}
    return others | {"observations": np.stack(rows)}


def saved(folder: Path, fields: Fields) -> Path:
    path = folder / "data.npz"
    np.savez_compressed(path, **fields)
    return path


@pytest.mark.parametrize("form", [lambda fields: fields, with_last_observations])
def test_clips_are_those_of_the_agents_own_record(
    form: Callable[[Fields], Fields], tmp_path: Path
) -> None:
    """The second route is `clips.windows` and `clips.cut` on a record of the same steps."""
    fields, length = recorded(), 5
    found = read_trajectories(saved(tmp_path, form(recorded())), VECTOR)
    truncated = fields["truncations"].copy()
    truncated[-1] = not fields["terminations"][-1]
    record = Transition(
        obs=fields["observations"][:, None],
        action=fields["actions"].astype(np.int32)[:, None],
        reward=fields["rewards"][:, None],
        terminated=fields["terminations"][:, None],
        truncated=truncated[:, None],
        next_obs=fields["next_observations"][:, None],
        valid=np.ones((60, 1), bool),
        extra=(),
    )
    expected = agents.windows(record, length)
    assert windows(found, length).tolist() == [at.time for at in expected]
    assert 0 < len(expected) < 60
    for at in expected:
        one, other = clip_at(found, at.time, length), agents.cut(record, at, length)
        for name, array in one._asdict().items():
            np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)
            assert array.dtype == getattr(other, name).dtype
    assert not all(clip_at(found, at.time, length).alive.all() for at in expected)


def test_a_file_without_rewards_and_with_other_fields_is_read(tmp_path: Path) -> None:
    fields = recorded() | {"infos": np.zeros(3)}
    del fields["rewards"]
    found = read_trajectories(saved(tmp_path, fields), VECTOR)
    assert found.reward is None
    assert clip_at(found, 0, 4).reward.tolist() == [0] * 4
    assert found.episodes == 1 + int((fields["terminations"] | fields["truncations"])[:-1].sum())


def test_frames_may_be_stacked_or_new_and_dicts_are_flattened(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(255, size=(11, 24, 24, 2), dtype=np.uint8)
    flags = np.zeros(10, bool)
    fields = {"actions": np.zeros(10, int), "terminations": flags, "truncations": flags}
    stacked = read_trajectories(saved(tmp_path, fields | {"observations": frames}), PIXELS)
    newest = fields | {"observations": frames[..., 1:]}
    new = read_trajectories(saved(tmp_path, newest), PIXELS)
    np.testing.assert_array_equal(stacked.obs, new.obs)
    assert new.obs.shape == (11, 24, 24, 1)
    group = Group({"a": CONTINUOUS.observation}, named=True)
    own = OwnSpaces(group, Discrete(2, start=3))
    spec = EnvSpec("dict", CONTINUOUS.observation, Discrete(2), 100, own=own)
    vectors = fields | {"observations": rng.normal(size=(11, 3)), "actions": np.full(10, 4)}
    assert read_trajectories(saved(tmp_path, vectors), spec).action.tolist() == [1] * 10


@pytest.mark.parametrize("channels", [2, 1], ids=["stacked frames", "newest frames"])
@pytest.mark.parametrize(("pixel", "got"), [(256, "got 256"), (-1, "got -1"), (255, None)])
def test_pixels_outside_the_space_are_refused(channels: int, pixel: int, got: str | None) -> None:
    frames = np.zeros((3, 24, 24, channels), np.int64)
    frames[1, 2, 3, channels - 1] = pixel
    if got is None:
        assert seen_as_learned(PIXELS, frames, "observations")[1, 2, 3, 0] == pixel
        return
    with pytest.raises(UsageError, match=f"pixels must lie between 0 and 255, {got}"):
        seen_as_learned(PIXELS, frames, "observations")


def test_pixels_have_the_bounds_of_their_space() -> None:
    """Those of a grid are 0 or 1."""
    cells = np.ones((2, 8, 8, 6), np.uint8)
    assert seen_as_learned(GRID, cells, "observations").all()
    with pytest.raises(UsageError, match="must lie between 0 and 1, got 2"):
        seen_as_learned(GRID, 2 * cells[..., :3], "observations")


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Fields], Fields]:
    return lambda fields: fields | {name: change(fields[name])}


def without(name: str) -> Callable[[Fields], Fields]:
    return lambda fields: {key: x for key, x in fields.items() if key != name}


def nan_at(row: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.astype(float)
        array[row] = np.nan
        return array

    return change


def shuffled(fields: Fields) -> Fields:
    order = np.random.default_rng(0).permutation(60)
    return {name: x[order] for name, x in fields.items()}


def at_scale(factor: float, offset: float) -> Callable[[Fields], Fields]:
    """Return how to change the scale and the offset of observations."""

    def change(fields: Fields) -> Fields:
        names = ("observations", "next_observations")
        return fields | {name: factor * fields[name] + offset for name in names if name in fields}

    return change


BAD: dict[str, tuple[Callable[[Fields], Fields], str]] = {
    "no actions": (without("actions"), "`actions` is missing; the file has observations"),
    "another name": (
        lambda fields: without("actions")(fields) | {"action": fields["actions"]},
        "`actions` is missing, did you mean `action`",
    ),
    "no truncations": (without("truncations"), "`truncations` is missing"),
    "no next observations": (without("next_observations"), "`next_observations` is missing"),
    "other observations": (
        changed("observations", lambda x: np.zeros((60, 3))),
        r"`observations` does not fit environment `vector`: it must have shape \(2,\)",
    ),
    "many other observations": (
        lambda fields: (
            {name: np.concatenate([x] * 100) for name, x in fields.items()}
            | {"observations": np.zeros((6_000, 3))}
        ),
        r"`observations` does not fit.*got \(6000, 3\)",
    ),
    "other actions": (changed("actions", lambda x: x + 1), "`actions` does not fit.*got 2"),
    "actions as floats": (changed("actions", lambda x: x * 1.0), "`actions` does not fit"),
    "many actions as floats": (
        lambda fields: {
            name: np.concatenate([x * (1.0 if name == "actions" else 1)] * 100)
            for name, x in fields.items()
        },
        r"`actions` does not fit.*got shape \(6000,\)",
    ),
    "actions as a column": (changed("actions", lambda x: x[:, None]), "`actions` does not fit"),
    "NaN": (changed("observations", nan_at(7)), "`observations` has numbers that are not.*row 7"),
    "NaN later": (changed("next_observations", nan_at(59)), "`next_observations` has.*row 59"),
    "NaN reward": (changed("rewards", nan_at(3)), "`rewards` must be one finite number"),
    "large reward": (
        changed("rewards", lambda x: x.astype(float) * 1e300),
        "`rewards` has numbers.*too large",
    ),
    "rewards as text": (
        changed("rewards", lambda x: x.astype(str)),
        "`rewards` must be an array of n",
    ),
    "complex": (changed("actions", lambda x: x * 1j), "numbers, got complex128"),
    "dates": (changed("observations", lambda x: x.astype("M8[s]")), "got datetime64"),
    "too large": (changed("observations", lambda x: x.astype(float) + 1e300), "not finite"),
    "flags of 2": (changed("terminations", lambda x: x + 2), "`terminations` must be one flag"),
    "flags of two axes": (
        changed("truncations", lambda x: np.stack([x, x], 1)),
        "`truncations` must be one flag",
    ),
    "fewer actions": (changed("actions", lambda x: x[:50]), "has 60 rows, and `actions` has 50"),
    "fewer rewards": (changed("rewards", lambda x: x[:-1]), "`rewards` has 59 rows"),
    "fewer successors": (changed("next_observations", lambda x: x[1:]), "has 59 rows"),
    "another row": (
        lambda fields: (
            without("next_observations")(fields) | {"observations": np.zeros((62, 2), np.float32)}
        ),
        r"`observations` has 62 rows, expected 6\d \(60 steps \+ \d trajectories\)",
    ),
    "empty": (lambda fields: {name: x[:0] for name, x in fields.items()}, "there are no steps"),
    "nothing": (lambda fields: {}, "`observations` is missing; the file has nothing"),
    "one number": (changed("actions", lambda x: 3), "`actions` must have one row for each step"),
    "objects": (
        changed("observations", lambda x: x.astype(object)),
        "must be an array of numbers, got object",
    ),
    "a record": (
        changed("observations", lambda x: np.zeros(60, [("x", "f4")])),
        "`observations` must be an array of numbers, got records",
    ),
    "shuffled": (shuffled, "steps must be in the order of their trajectories"),
    "shuffled, of small numbers": (
        lambda fields: at_scale(1e-5, 0.0)(shuffled(fields)),
        "steps must be in the order of their trajectories",
    ),
    "shuffled, far from 0": (
        lambda fields: at_scale(1.0, 1e4)(shuffled(fields)),
        "steps must be in the order of their trajectories",
    ),
}


@pytest.mark.parametrize(("scale", "refused"), [(1.0, False), (30.0, True)])
def test_actions_in_other_units_are_refused(scale: float, refused: bool) -> None:
    """Those of a Gaussian policy of deviation 1 are not, though some of them lie outside."""
    low, high = CONTINUOUS.action.low, CONTINUOUS.action.high
    normal = np.random.default_rng(0).normal(size=(500, *low.shape)).astype(np.float32)
    actions = (low + high) / 2 + scale * (high - low) / 2 * normal
    if not refused:
        assert np.array_equal(taken_as_learned(CONTINUOUS, actions, "actions"), actions)
        return
    with pytest.raises(UsageError, match=r"9\d% of its numbers lie outside the bounds"):
        taken_as_learned(CONTINUOUS, actions, "actions")


@pytest.mark.parametrize(("factor", "offset"), [(1e-5, 0.0), (1.0, 1e4), (1e6, 0.0)])
def test_steps_in_order_are_in_order_at_every_scale(
    factor: float, offset: float, tmp_path: Path
) -> None:
    assert read_trajectories(saved(tmp_path, at_scale(factor, offset)(recorded())), VECTOR)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    change, message = BAD[kind]
    path = saved(tmp_path, change(recorded()))
    with pytest.raises(UsageError, match=message) as refused:
        read_trajectories(path, VECTOR)
    assert "\n" not in str(refused.value)
    assert "data.npz" in str(refused.value)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    trap = tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(trap),))

    fields = recorded() | {"rewards": np.array([Trap()] * 60)}
    with pytest.raises(UsageError, match="`rewards` must be an array of numbers, got object"):
        read_trajectories(saved(tmp_path, fields), VECTOR)
    assert not trap.exists()


def test_damaged_files_and_other_paths_are_refused(tmp_path: Path) -> None:
    whole = saved(tmp_path, recorded()).read_bytes()
    rng = np.random.default_rng(int.from_bytes(os.urandom(4)))
    path = tmp_path / "data.npz"
    for _ in range(60):
        damaged = bytearray(whole[: rng.integers(1, len(whole))] if rng.random() < 0.5 else whole)
        for place in rng.integers(len(damaged), size=8):
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with suppress(UsageError):  # other exceptions are not
            read_trajectories(path, VECTOR)
    for content in (b"", b"not a zip"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="cannot be read"):
            read_trajectories(path, VECTOR)
    for other in (tmp_path, tmp_path / "none.npz", tmp_path / "data.npy"):
        with pytest.raises(UsageError, match=r"must be a `\.npz` file"):
            read_trajectories(other, VECTOR)
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(UsageError, match=r"must be a `\.npz` file"):
        read_trajectories(tmp_path / "pipe.npz", VECTOR)


def test_a_header_that_promises_more_than_the_file_has_takes_no_memory(tmp_path: Path) -> None:
    path = saved(tmp_path, recorded())
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 2)}
    )
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in (members | {"observations.npy": header.getvalue()}).items():
            new.writestr(name, content)
    with pytest.raises(UsageError, match="`observations` is damaged: it is not as long"):
        read_trajectories(path, VECTOR)


def test_memory_is_computed_before_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_read(*_: Any, **__: Any) -> None:
        raise AssertionError("read before the check")

    path = saved(tmp_path, recorded())
    read_trajectories(path, VECTOR)
    monkeypatch.setattr(trajectory_file, "SHARE", 1e-12)
    monkeypatch.setattr(trajectory_file.npy, "read_array", no_read)
    with pytest.raises(UsageError, match="120 recorded observations need"):
        read_trajectories(path, VECTOR)
