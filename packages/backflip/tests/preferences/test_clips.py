"""Tests of `backflip.preferences.clips` against a loop over single steps."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.types import Transition
from backflip.preferences.clips import (
    Window,
    Windows,
    cut,
    episode_steps,
    from_arrays,
    last_steps,
    windows,
)
from backflip.preferences.labels import LabelStore


def record_of(kinds, envs):
    """Return a record of shape (T', envs); a kind is `-`, `end`, `cut` (in time) or `reset`.

    As in a vector environment with a separate reset step, a `reset` row is no transition.
    """
    kinds = np.array(kinds, dtype=object).reshape(-1, envs)
    ticks = np.arange(kinds.size, dtype=np.float32).reshape(kinds.shape)
    return Transition(
        obs=np.stack([ticks, -ticks], axis=-1),
        action=ticks.astype(np.int32),
        reward=ticks + 1,
        terminated=kinds == "end",
        truncated=kinds == "cut",
        next_obs=np.stack([ticks + 0.5, -ticks], axis=-1),
        valid=kinds != "reset",
        extra=(),
        scene=np.stack([ticks + 100, -ticks, ticks], axis=-1),
    )


@st.composite
def records(draw):
    """Records whose episodes end, are cut, and are followed by a reset row or by none."""
    envs, horizon = draw(st.integers(1, 3)), draw(st.integers(1, 14))
    resets = draw(st.booleans())
    columns = []
    for _ in range(envs):
        column = ["reset"] * draw(st.integers(0, 1)) if resets else []
        while len(column) < horizon:
            kind = draw(st.sampled_from(["-", "-", "-", "end", "cut"]))
            column += [kind, "reset"] if resets and kind != "-" else [kind]
        columns.append(column[:horizon])
    return record_of(np.array(columns, dtype=object).T, envs)


def slow_clip(record, time, env, length):
    """Return (row, alive) of each step of a clip, or None if it leaves its trajectory."""
    steps, row, over = [], time, False
    while len(steps) < length:
        if over:
            steps.append((row, False))
            continue
        if row >= len(record.valid) or not record.valid[row, env]:
            return None
        steps.append((row, True))
        over = record.terminated[row, env]
        if record.truncated[row, env] and not over and len(steps) < length:
            return None
        row += not over
    return steps


def ends_in_a_reset(record, row, env):
    """Whether the state after a step is that of the next row, in which the environment resets."""
    return row + 1 < len(record.valid) and not record.valid[row + 1, env]


@pytest.mark.medium
@given(record=records(), length=st.integers(1, 6))
def test_windows_are_where_one_trajectory_fills_a_clip(record, length):
    horizon, envs = record.valid.shape
    slow = {
        (time, env)
        for time in range(horizon)
        for env in range(envs)
        if slow_clip(record, time, env, length) is not None
    }
    found = windows(record, length)
    assert len(found) == len(set(found))
    assert set(found) == slow


@pytest.mark.medium
@given(record=records(), length=st.integers(1, 6))
def test_a_clip_is_one_trajectory_with_zero_reward_after_its_end(record, length):
    for window in windows(record, length):
        time, env = window
        steps = slow_clip(record, time, env, length)
        clip = cut(record, window, length)
        rows = [row for row, _ in steps]
        lived = [lived for _, lived in steps]
        assert {len(field) for field in clip} == {length}
        np.testing.assert_array_equal(clip.alive, lived)
        np.testing.assert_array_equal(clip.obs, [record.obs[row, env] for row in rows])
        np.testing.assert_array_equal(clip.action, [record.action[row, env] for row in rows])
        shown = [row + (not alive and ends_in_a_reset(record, row, env)) for row, alive in steps]
        np.testing.assert_array_equal(clip.scene, [record.scene[row, env] for row in shown])
        np.testing.assert_array_equal(clip.next_obs, [record.next_obs[row, env] for row in rows])
        paid = [record.reward[row, env] * alive for row, alive in steps]
        np.testing.assert_array_equal(clip.reward, paid)
        assert record.valid[rows, env].all()
        assert not record.truncated[rows[:-1], env].any()


@pytest.mark.medium
@given(record=records())
def test_a_clip_knows_the_env_step_of_its_episode(record):
    horizon, envs = record.valid.shape
    for env in range(envs):
        step = None  # of the next row; unknown until an episode has begun
        for row in range(horizon):
            if record.valid[row, env]:
                expected = -1 if step is None else step
                place = Windows(np.array([row]), np.array([env]))
                assert episode_steps(record, place) == expected
            ended = record.terminated[row, env] or record.truncated[row, env]
            if ended or not record.valid[row, env]:
                step = 0
            elif step is not None:
                step += 1


def test_env_steps_of_episodes_by_hand():
    record = record_of(["-", "cut", "-", "-", "end", "reset", "-", "-"], envs=1)
    places = Windows(np.array([0, 1, 2, 3, 4, 6, 7]), np.zeros(7, int))
    assert episode_steps(record, places).tolist() == [-1, -1, 0, 1, 2, 0, 1]
    assert last_steps(record, places, 4).tolist() == [3, 4, 4, 4, 4, 7, 7]


def test_windows_and_cuts_by_hand():
    record = record_of(["-", "-", "end", "-", "cut", "-"], envs=1)
    assert list(windows(record, 3)) == [Window(0, 0), Window(1, 0), Window(2, 0)]
    clip = cut(record, Window(1, 0), 3)
    np.testing.assert_array_equal(clip.reward, [2, 3, 0])
    np.testing.assert_array_equal(clip.alive, [True, True, False])
    assert windows(record, 2)[-1] == Window(3, 0)  # a cut may be a clip's last step


def test_a_record_shorter_than_a_clip_has_no_window_unless_its_episode_ends():
    assert list(windows(record_of(["-", "-"], envs=1), 3)) == []
    assert list(windows(record_of(["-", "end"], envs=1), 3)) == [Window(0, 0), Window(1, 0)]


def test_records_without_scenes_give_clips_without_scenes():
    record = record_of(["-", "-", "end", "-"], envs=1)
    clip = cut(record._replace(scene=()), Window(1, 0), 3)
    assert clip.scene.shape == (0,)
    assert clip.scene.dtype == np.float32
    with_scenes = cut(record, Window(1, 0), 3)
    for name, array in clip._replace(scene=with_scenes.scene)._asdict().items():
        np.testing.assert_array_equal(array, getattr(with_scenes, name))


def test_stored_clips_round_trip_with_and_without_scenes(tmp_path: Path):
    record = record_of(["-", "-", "end", "-"], envs=1)
    drawn = cut(record, Window(1, 0), 3)
    plain = cut(record._replace(scene=()), Window(0, 0), 3)
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        query = store.add_query(0, drawn._asdict(), plain._asdict(), env_steps=0)
        for clip, arrays in zip((drawn, plain), store.clips(query), strict=True):
            back = from_arrays(arrays)
            for field, found in zip(clip, back, strict=True):
                np.testing.assert_array_equal(found, field)
                assert (found.shape, found.dtype) == (field.shape, field.dtype)


def test_old_clips_without_scenes_can_be_read():
    arrays = cut(record_of(["-", "end"], envs=1), Window(0, 0), 2)._asdict()
    del arrays["scene"]
    assert from_arrays(arrays).scene.size == 0
