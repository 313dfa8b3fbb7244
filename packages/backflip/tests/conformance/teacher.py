"""The conformance suite of `Teacher`: `check_teacher`."""

from collections.abc import Callable

import numpy as np

from backflip.preferences.label_records import ANSWERS, Answer
from backflip.preferences.teacher_query import ShownClip, TeacherQuery
from backflip.preferences.teachers import Teacher

MIRRORED: dict[Answer, Answer] = {"left": "right", "right": "left", "tie": "tie", "skip": "skip"}
QUERIES = 40
LENGTH = 6


def query_of_rewards(left: np.ndarray, right: np.ndarray) -> TeacherQuery:
    """Return a query whose clips differ only in their rewards, and whose frames fail if drawn."""
    return TeacherQuery(clip_of_rewards(left), clip_of_rewards(right))


def clip_of_rewards(
    rewards: np.ndarray,
    alive: np.ndarray | None = None,
    frames: Callable[[], np.ndarray] | None = None,
) -> ShownClip:
    """Return a clip with two observed numbers; the first is the sum of rewards so far."""
    length = len(rewards)
    seen = np.stack([np.cumsum(rewards), np.arange(length)], 1).astype(np.float32)
    arrays = (seen, np.zeros(length, np.int32), seen + 1, np.asarray(rewards, np.float32))
    alive = np.ones(length, bool) if alive is None else alive
    for array in (*arrays, alive):
        array.flags.writeable = False
    return ShownClip("CartPole-v1", *arrays, alive, frames or _not_drawn)


def check_teacher(
    teacher: Teacher,
    *,
    repeats: bool = True,
    symmetric: bool = True,
    draws_frames: bool = False,
) -> None:
    """Check a teacher on random queries.

    It must return one of the four answers, must not change the clips, and must depend only on the
    query and the random numbers.

    Args:
        teacher: the teacher.
        repeats: require the same answer for the same query and random numbers.
        symmetric: require the mirrored answer for swapped sides.
        draws_frames: allow the teacher to draw frames.
    """
    rng = np.random.default_rng(0)
    for number in range(QUERIES):
        left, right = (_random_clip(rng, draws_frames=draws_frames) for _ in range(2))
        answer = _answer(teacher, left, right, number)
        assert answer in ANSWERS, answer
        assert type(answer) is str
        if repeats:
            assert _answer(teacher, left, right, number) == answer
        if symmetric:
            assert _answer(teacher, right, left, number) == MIRRORED[answer]
            assert _answer(teacher, left, left, number) in ("tie", "skip")


def _answer(teacher: Teacher, left: ShownClip, right: ShownClip, seed: int) -> Answer:
    before = [_bytes(clip) for clip in (left, right)]
    answer = teacher.answer(TeacherQuery(left, right), np.random.default_rng(seed))
    assert [_bytes(clip) for clip in (left, right)] == before, "the teacher changed a clip"
    return answer


def _bytes(clip: ShownClip) -> list[bytes]:
    arrays = (clip.observations, clip.actions, clip.next_observations, clip.rewards, clip.alive)
    return [array.tobytes() for array in arrays]


def _random_clip(rng: np.random.Generator, *, draws_frames: bool) -> ShownClip:
    alive = np.arange(LENGTH) < rng.integers(1, LENGTH + 1)
    rewards = np.where(alive, rng.integers(-3, 4, LENGTH), 0).astype(np.float32)
    shade = np.uint8(rng.integers(256))
    return clip_of_rewards(
        rewards, alive, (lambda: np.full((LENGTH, 4, 5, 3), shade)) if draws_frames else None
    )


def _not_drawn() -> np.ndarray:
    raise AssertionError("the teacher asked for frames")
