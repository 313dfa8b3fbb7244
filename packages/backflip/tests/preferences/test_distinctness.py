"""Tests of `backflip.preferences.distinctness`."""

import numpy as np
import pytest

from backflip.preferences.clips import Clip
from backflip.preferences.distinctness import Distinctness, one_stage


def clip_of(next_obs, alive=None):
    next_obs = np.asarray(next_obs)
    length = len(next_obs)
    alive = np.ones(length, bool) if alive is None else np.asarray(alive)
    zeros = np.zeros(length, np.float32)
    return Clip(next_obs, np.zeros(length, np.int32), next_obs, zeros, alive)


def test_the_distance_is_in_standard_deviations_of_each_number():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(6, 4, 2)).astype(np.float32) * [1.0, 100.0]
    clips = [clip_of(one.astype(np.float32)) for one in seen]
    deviation = seen.reshape(-1, 2).std(0)
    pairs = np.array([[0, 1], [2, 5]])
    expected = [
        np.sqrt(
            np.mean(
                [
                    ((seen[i, t, d] - seen[j, t, d]) / deviation[d]) ** 2
                    for t in range(4)
                    for d in range(2)
                ]
            )
        )
        for i, j in pairs
    ]
    np.testing.assert_allclose(Distinctness(clips).distances(pairs), expected, rtol=1e-5)


def test_clips_that_look_the_same_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(5, 3)).astype(np.float32)
    other = rng.normal(size=(5, 3)).astype(np.float32)
    clips = [clip_of(first), clip_of(first + np.float32(0.01)), clip_of(other)]
    asked = Distinctness(clips).can_be_told_apart(np.array([[0, 1], [1, 0], [0, 2]]))
    np.testing.assert_array_equal(asked, [False, False, True])


def test_an_end_can_be_seen():
    still = np.zeros((4, 2), np.float32)
    clips = [clip_of(still), clip_of(still, [True, True, False, False])]
    assert Distinctness(clips).distances(np.array([[0, 1]])) == pytest.approx([np.sqrt(0.5)])


def test_one_object_that_moves_in_a_picture_is_seen():
    def picture(column):
        frames = np.zeros((3, 40, 40, 1), np.uint8)
        frames[:, 10:14, column : column + 4] = 255
        return clip_of(frames)

    clips = [picture(column) for column in (0, 10, 20, 30, 30)]
    asked = Distinctness(clips).can_be_told_apart(np.array([[0, 1], [3, 4]]))
    np.testing.assert_array_equal(asked, [True, False])


def test_stages_are_equal_parts_of_the_known_beginnings():
    begins = np.array([0, 10, 500, 990, -1])
    pairs = np.array([[0, 1], [0, 2], [2, 3], [0, 4], [4, 3]])
    np.testing.assert_array_equal(one_stage(begins, 1, pairs), [True] * 5)
    np.testing.assert_array_equal(one_stage(begins, 2, pairs), [True, False, True, True, True])
    np.testing.assert_array_equal(one_stage(begins, 4, pairs), [False, False, False, True, True])
    assert one_stage(np.full(5, -1), 3, pairs).all()


def test_stages_hold_equally_many_clips():
    begins = np.arange(100)
    pairs = np.array([[i, j] for i in range(100) for j in range(100)])
    same = one_stage(begins, 4, pairs).reshape(100, 100)
    np.testing.assert_array_equal(same.sum(1), np.full(100, 25))
