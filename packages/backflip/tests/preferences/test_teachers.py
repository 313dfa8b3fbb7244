"""Tests of `backflip.preferences.teachers`: what each prefers, and how often each errs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from packages.backflip.tests.conformance.teacher import check_teacher, query_of_rewards

from backflip.core.types import Transition
from backflip.envs.registry import make_native
from backflip.preferences.clips import Clip, Window, cut
from backflip.preferences.drawer import Drawer
from backflip.preferences.teacher_query import shown_clip
from backflip.preferences.teachers import (
    FunctionTeacher,
    SimulatedTeacher,
    TeacherFailed,
    parse_teacher,
)
from runshelf.errors import UsageError

DRAWS = 4000
REWARDS = hnp.arrays(np.float32, 5, elements=st.integers(-5, 5).map(float))


def rewards(*numbers):
    return np.array(numbers, np.float32)


def ask(teacher, left, right, seed=0):
    return teacher.answer(query_of_rewards(left, right), np.random.default_rng(seed))


def share_of_left(teacher, left, right):
    """Return the number of `left` answers; all others must be `right`."""
    rng = np.random.default_rng(5)
    query = query_of_rewards(left, right)
    answers = [teacher.answer(query, rng) for _ in range(DRAWS)]
    assert set(answers) <= {"left", "right"}
    return answers.count("left") / DRAWS


def within_chance(share, expected):
    """Return whether a count of DRAWS is within five standard deviations of its expectation."""
    return abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / DRAWS)


@pytest.mark.medium
@given(left=REWARDS, right=REWARDS, seed=st.integers(0, 100))
def test_the_oracle_compares_true_returns(left, right, seed):
    difference = float(left.sum() - right.sum())
    expected = "tie" if difference == 0 else "left" if difference > 0 else "right"
    assert ask(SimulatedTeacher(), left, right, seed) == expected


def test_equal_returns_tie_whatever_the_order_of_the_rewards():
    left = np.random.default_rng(0).normal(size=50).astype(np.float32)
    assert ask(SimulatedTeacher(), left, left[::-1].copy()) == "tie"


@pytest.mark.parametrize(("pay", "expected"), [(1.0, "right"), (-1.0, "left")])
def test_an_early_end_is_worse_where_living_earns_and_better_where_it_costs(pay, expected):
    """CartPole pays 1 a step, MountainCar -1: the left clip ends after two of five steps."""
    terminated = np.zeros((9, 1), bool)
    terminated[1] = True
    nothing = np.zeros_like(terminated)
    obs = np.zeros((9, 1, 2), np.float32)
    reward = np.full((9, 1), pay, np.float32)
    record = Transition(obs, np.zeros((9, 1)), reward, terminated, nothing, obs, ~nothing, extra=())
    ends, survives = cut(record, Window(0, 0), 5), cut(record, Window(2, 0), 5)
    assert ask(SimulatedTeacher(), ends.reward, survives.reward) == expected


@pytest.mark.medium
@pytest.mark.parametrize("mistake", [0.1, 0.5])
def test_mistakes_are_made_at_their_rate_on_either_side(mistake):
    teacher = SimulatedTeacher(mistake=mistake)
    assert within_chance(share_of_left(teacher, rewards(1), rewards(0)), 1 - mistake)
    assert within_chance(share_of_left(teacher, rewards(0), rewards(1)), mistake)


def test_a_teacher_who_always_errs_names_the_other_side():
    assert share_of_left(SimulatedTeacher(mistake=1.0), rewards(1), rewards(0)) == 0


def test_a_temperature_must_be_finite():
    for temperature in (np.inf, 1e308):
        with pytest.raises(UsageError, match=r"`temperature` of the teacher must lie in \[0, 1e"):
            SimulatedTeacher(temperature=temperature)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_boltzmann_choice_has_its_odds(temperature):
    teacher = SimulatedTeacher(temperature=temperature)
    expected = 1 / (1 + np.exp(-1.5 / temperature))
    assert within_chance(share_of_left(teacher, rewards(1, 0.5), rewards(0, 0)), expected)


def test_mistakes_come_on_top_of_the_boltzmann_choice():
    teacher = SimulatedTeacher(temperature=1.0, mistake=0.2)
    p = 1 / (1 + np.exp(-1.0))
    expected = 0.8 * p + 0.2 * (1 - p)
    assert within_chance(share_of_left(teacher, rewards(1), rewards(0)), expected)


@pytest.mark.medium
def test_a_huge_difference_over_a_tiny_temperature_does_not_overflow():
    teacher = SimulatedTeacher(temperature=1e-6)
    assert share_of_left(teacher, rewards(1e6), rewards(0)) == 1
    assert share_of_left(teacher, rewards(0), rewards(1e6)) == 0


@pytest.mark.parametrize(("difference", "answer"), [(2.0, "tie"), (2.001, "left"), (-2.0, "tie")])
def test_the_tie_threshold_is_the_largest_difference_that_looks_equal(difference, answer):
    teacher = SimulatedTeacher(tie=2.0)
    assert ask(teacher, rewards(difference), rewards(0)) == answer


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [(2.9, 2.9, "skip"), (0.0, 2.9, "skip"), (3.0, 0.0, "left"), (0.0, 3.1, "right")],
)
def test_a_pair_is_skipped_where_neither_clip_reaches_the_threshold(left, right, answer):
    teacher = SimulatedTeacher(skip=2.95)
    assert ask(teacher, rewards(left), rewards(right)) == answer


def test_neither_ties_nor_skips_are_undone_by_mistakes():
    teacher = SimulatedTeacher(mistake=1.0, tie=1.0, skip=-5.0)
    assert ask(teacher, rewards(0), rewards(0.5)) == "tie"
    assert ask(teacher, rewards(-6), rewards(-9)) == "skip"


@pytest.mark.medium
@given(left=REWARDS, right=REWARDS, myopia=st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_a_myopic_teacher_discounts_earlier_steps(left, right, myopia):
    seen = [sum((1 - myopia) ** (4 - t) * float(x[t]) for t in range(5)) for x in (left, right)]
    difference = seen[0] - seen[1]
    expected = "tie" if abs(difference) <= 1e-6 else "left" if difference > 0 else "right"
    assert ask(SimulatedTeacher(myopia=myopia), left, right) == expected


def test_myopia_by_hand():
    early, late = rewards(3, 0, 0), rewards(0, 0, 1)
    assert ask(SimulatedTeacher(), early, late) == "left"
    assert ask(SimulatedTeacher(myopia=0.5), early, late) == "right"  # 3/4 < 1


@pytest.mark.parametrize(
    ("text", "teacher"),
    [
        ("oracle", SimulatedTeacher()),
        ("noisy", SimulatedTeacher(mistake=0.1)),
        ("noisy:mistake=0.2,tie=2", SimulatedTeacher(mistake=0.2, tie=2.0)),
        ("noisy:temperature=1,skip=-3,myopia=.1", SimulatedTeacher(0.0, 1.0, 1e-6, -3.0, 0.1)),
    ],
)
def test_teachers_by_name(text, teacher):
    assert parse_teacher(text) == teacher


@given(mistake=st.floats(0, 1), tie=st.floats(0, 1e6), myopia=st.floats(0, 0.999))
def test_a_teacher_is_the_same_when_read_back_by_its_name(mistake, tie, myopia):
    """A run saves only the name, and a resumed run must have the same teacher."""
    teacher = SimulatedTeacher(mistake=mistake, tie=tie, myopia=myopia)
    assert parse_teacher(teacher.name) == teacher


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orakle", "did you mean `oracle`?"),
        ("", "unknown teacher ``"),
        ("oracle:mistake=0.1", "unknown teacher `oracle:mistake=0.1`"),
        ("noisy:mistakes=0.1", "did you mean `mistake`?"),
        ("noisy:mistake", "`mistake` of the teacher must be a number, got ``"),
        ("noisy:mistake=a", "must be a number, got `a`"),
        ("noisy:mistake=1.1", "`mistake` of the teacher must lie in [0, 1], got 1.1"),
        ("noisy:mistake=0.1,mistake=0.2", "has `mistake` 2 times; give it once"),
        ("noisy:mistake=nan", "`mistake` of the teacher must lie in"),
        ("noisy:temperature=-1", "`temperature` of the teacher must lie in"),
        ("noisy:tie=-1", "`tie` of the teacher must lie in"),
        ("noisy:myopia=1", "`myopia` of the teacher must lie in [0, 1), got 1"),
        ("noisy:skip=nan", "`skip` of the teacher must"),
    ],
)
def test_what_is_no_teacher_gets_one_line(text, said):
    with pytest.raises(UsageError) as caught:
        parse_teacher(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "teacher",
    [SimulatedTeacher(), SimulatedTeacher(tie=2.0, skip=-1.0), SimulatedTeacher(myopia=0.5)],
)
def test_simulated_teachers_without_chance_keep_the_protocol(teacher):
    check_teacher(teacher)


@pytest.mark.parametrize(
    "teacher", [SimulatedTeacher(mistake=0.3), SimulatedTeacher(temperature=1.0)]
)
def test_simulated_teachers_with_chance_keep_the_protocol(teacher):
    check_teacher(teacher, symmetric=False)


def prefers_more_reward(left, right):
    difference = left.rewards.sum() - right.rewards.sum()
    return "tie" if difference == 0 else "left" if difference > 0 else "right"


def prefers_brighter_frames(left, right):
    light = left.frames().mean() - right.frames().mean()
    return "tie" if light == 0 else "left" if light > 0 else "right"


def test_a_function_keeps_the_protocol():
    check_teacher(FunctionTeacher("here:prefers_more_reward", prefers_more_reward))
    frames = FunctionTeacher("here:prefers_brighter_frames", prefers_brighter_frames)
    check_teacher(frames, draws_frames=True)


def answer_of(function):
    return ask(FunctionTeacher("here:it", function), rewards(1), rewards(0))


@pytest.mark.parametrize("word", ["left", "right", "tie", "skip"])
def test_a_function_answers_in_four_words(word):
    assert answer_of(lambda left, right: word) == word
    assert answer_of(lambda left, right: np.str_(word)) == word
    assert type(answer_of(lambda left, right: np.str_(word))) is str


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (1, "returned 1 (int)"),
        (None, "returned None (NoneType)"),
        ("Left", "returned 'Left' (str)"),
        (np.zeros(1000), "(ndarray)"),
        (True, "returned True (bool)"),
    ],
)
def test_anything_else_a_function_returns_gets_one_line(returned, said):
    with pytest.raises(TeacherFailed) as caught:
        answer_of(lambda left, right: returned)
    assert f"teacher `here:it` {'returned' if '(nd' in said else said}" in str(caught.value)
    assert said in str(caught.value)
    assert 'expected one of "left", "right", "tie", "skip"' in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("error", [ValueError("two\nlines"), SystemExit(3), AssertionError()])
def test_an_exception_of_a_function_gets_one_line_and_keeps_its_cause(error):
    def fails(left, right):
        raise error

    with pytest.raises(TeacherFailed, match=f"`here:it` raised {type(error).__name__}") as caught:
        answer_of(fails)
    assert caught.value.__cause__ is error
    assert "\n" not in str(caught.value)


def test_ctrl_c_in_a_function_is_heeded():
    def interrupted(left, right):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_of(interrupted)


def test_a_function_gets_arrays_that_cannot_be_changed():
    seen = np.zeros((3, 2), np.float32)
    recorded = Clip(seen, seen, seen, np.zeros(3, np.float32), np.ones(3, bool))
    folder, spec = Path("unused"), make_native("CartPole-v1").spec
    clip = shown_clip(recorded, "CartPole-v1", Drawer(folder, "CartPole-v1", {}, spec))

    def changes(left, right):
        clip.rewards[0] = 9.0

    with pytest.raises(TeacherFailed, match="read-only"):
        answer_of(changes)


OWN = """
def prefer(left, right):
    return "left"

class Judge:
    pass

number = 3
"""


def test_a_function_of_the_current_folder_is_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "own_teacher_a.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    teacher = parse_teacher("own_teacher_a:prefer")
    assert teacher.name == "own_teacher_a:prefer"
    assert parse_teacher(teacher.name) == teacher
    assert ask(teacher, rewards(0), rewards(1)) == "left"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("own_teacher_b:prefre", "has no `prefre`, did you mean `prefer`?"),
        ("own_teacher_b:Judge", "is a class, expected a function of two clips"),
        ("own_teacher_b:number", "is of type int, expected a function of two clips"),
        ("own_teacher_b:", "must be module:name"),
        ("own_teacher_b:a.b", "must be module:name"),
        ("no_such_module:prefer", "there is no module `no_such_module`"),
        ("noisi:mistake=0.1", "did you mean `noisy`?"),
        ("broken_teacher:prefer", "`broken_teacher` cannot be imported: ZeroDivisionError"),
        ("needy_teacher:prefer", "`needy_teacher` needs `no_such_package`"),
    ],
)
def test_what_is_no_function_gets_one_line(tmp_path, monkeypatch, text, said):
    (tmp_path / "own_teacher_b.py").write_text(OWN)
    (tmp_path / "broken_teacher.py").write_text("1 / 0")
    (tmp_path / "needy_teacher.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        parse_teacher(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
