"""Tests of `backflip.preferences.reward_alarm`: the bet by hand, by definition, and its rate."""

import itertools

import numpy as np
import pytest

from backflip.preferences.fresh_pairs import BOTH, LEFT, RIGHT, Forecast, FreshAnswer
from backflip.preferences.reward_alarm import (
    BETS,
    FALSE_ALARMS,
    LARGE,
    NEWER,
    STARTS,
    SURE,
    Check,
    alarm_of,
    betting,
    checks_of,
)


def check(outcome=1.0, at=0, *, bound: float | None = 0.85):
    return Check(at, outcome, 0.95, None, outcome, bound)


def some(outcomes, **of):
    return [check(outcome, 100 * i, **of) for i, outcome in enumerate(outcomes)]


def value_by_definition(checks, planned):
    """The mean over bets and starts of products, written as loops."""
    starts = {k * planned // STARTS for k in range(STARTS)}
    values = []
    for bet, start in itertools.product(BETS, sorted(starts)):
        product = 1.0
        for one in checks[start:]:
            a = one.bound
            product *= 1 if a is None else 1 + bet / (1 - a) * (a - one.outcome)
        values.append(product)
    return np.mean(values)


@pytest.mark.parametrize("planned", [1, 5, 12, 40])
def test_the_value_equals_its_definition(planned):
    rng = np.random.default_rng(planned)
    checks = [
        check(rng.choice([0, 0.5, 1]), i, bound=rng.choice([None, rng.uniform(0.5, 0.85)]))
        for i in range(12)
    ]
    values = betting(checks, planned)
    for n in range(1, 13):
        assert values[n - 1] == pytest.approx(value_by_definition(checks[:n], planned))


def test_one_check_by_hand():
    # a is .85, so a disagreement multiplies by 1 + θ .85/.15, and an agreement by 1 - θ.
    assert betting([check(0.0)], 1)[0] == pytest.approx(1 + np.mean(BETS) * 0.85 / 0.15)
    assert betting([check(1.0)], 1)[0] == pytest.approx(1 - np.mean(BETS))


def test_a_check_that_does_not_count_changes_nothing():
    assert betting([check(0.0, bound=None)], 1)[0] == pytest.approx(1.0)


@pytest.mark.medium
@pytest.mark.parametrize("bound", [0.5, 0.65, 0.85])
def test_a_sound_model_raises_the_alarm_as_rarely_as_stated(bound):
    """At the boundary of the hypothesis, where alarms are most frequent, looking at every check."""
    rng = np.random.default_rng(7)
    runs, alarms = 2_000, 0
    for _ in range(runs):
        outcomes = (rng.random(24) < bound).astype(float)
        alarms += betting(some(outcomes, bound=bound), 24).max() >= 1 / FALSE_ALARMS
    # Ville's bound, plus three standard deviations of a binomial count.
    assert alarms / runs <= FALSE_ALARMS + 3 * np.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / runs)


def test_the_first_checks_that_all_disagree_raise_the_alarm_and_it_stays():
    alarm = alarm_of({0: some([0.0] * 4 + [1.0] * 8)}, 12)
    # Two: (2.42² + 3.83² + 5.25² + 6.38²) / 4 / 4 + 3/4 = 6.3. Three: 30.4, above 1/α = 20.
    assert (alarm.state, alarm.raised_at) == ("alarm", 200)
    assert alarm.evidence >= 1 / FALSE_ALARMS
    assert alarm.agreement == pytest.approx(8 / 12)


def test_a_reward_that_was_sound_at_first_raises_the_alarm_when_it_fails():
    alarm = alarm_of({0: some([1.0] * 6 + [0.0] * 6)}, 12)
    assert alarm.state == "alarm"
    assert 600 <= (alarm.raised_at or 0) <= 900


def test_agreement_raises_no_alarm():
    alarm = alarm_of({0: some([1.0] * 12)}, 12)
    assert (alarm.state, alarm.raised_at, alarm.evidence) == ("no alarm", None, 1.0)


def test_few_checks_are_not_enough_whatever_they_say():
    assert alarm_of({0: some([0.0])}, 12).state == "not enough checks"
    assert alarm_of({0: []}, 12) == alarm_of({0: []}, 0)
    assert alarm_of({0: []}, 12).state == "not enough checks"
    assert alarm_of({0: some([1.0])}, 12).agreement == 1.0


def test_checks_before_the_learned_return_has_risen_do_not_count():
    alarm = alarm_of({0: some([0.0] * 12, bound=None)}, 12)
    assert (alarm.state, alarm.evidence) == ("no alarm", 1.0)


def test_seeds_that_each_have_too_few_checks_raise_it_together():
    each = {seed: some([0.0, 0.0]) for seed in range(6)}
    assert alarm_of({0: each[0]}, 2).state != "alarm"
    assert alarm_of(each, 2).state == "alarm"


def test_one_hacked_seed_among_sound_ones_raises_it():
    seeds = {seed: some([1.0] * 12) for seed in range(4)} | {4: some([0.0] * 12)}
    assert alarm_of(seeds, 12).state == "alarm"


def answered(answer, newest=BOTH, left=0.8, margin=0.5, risen=0.9, against_random=0.0):
    return FreshAnswer(1, 100, Forecast(newest, left, margin, risen, against_random), answer)


def check_of(*args, **of):
    return checks_of([answered(*args, **of)])[0]


@pytest.mark.parametrize(
    ("answer", "margin", "agreement"),
    [("left", 0.5, 1), ("left", -0.5, 0), ("right", 0.5, 0), ("right", -0.5, 1), ("tie", 0.5, 0.5)],
)
def test_agreement_is_with_the_side_of_the_larger_learned_return(answer, margin, agreement):
    found = check_of(answer, margin=margin)
    assert found.agreement == found.outcome == agreement


@pytest.mark.parametrize(
    ("newest", "answer", "preferred"),
    [(BOTH, "left", None), (LEFT, "left", 1), (LEFT, "right", 0), (RIGHT, "right", 1),
     (RIGHT, "left", 0), (RIGHT, "tie", 0.5)],
)  # fmt: skip
def test_the_newest_side_is_preferred(newest, answer, preferred):
    assert check_of(answer, newest).new_preferred == preferred


@pytest.mark.parametrize(
    ("newest", "margin", "risen", "counts"),
    [(BOTH, -0.5, 0.9, True), (BOTH, 0.5, 0.5, False), (LEFT, 0.5, 0.9, True),
     (LEFT, -0.5, 0.9, False), (RIGHT, -0.5, 0.9, True), (RIGHT, 0.5, 0.9, False)],
)  # fmt: skip
def test_a_pair_with_an_earlier_clip_counts_if_the_learned_reward_prefers_the_newest(
    newest, margin, risen, counts
):
    assert (check_of("tie", newest, margin=margin, risen=risen).bound is not None) is counts


def test_against_random_play_the_teachers_preference_counts_whatever_this_pair_says():
    found = check_of("right", RIGHT, margin=0.5, against_random=1.0)
    assert (found.outcome, found.agreement) == (1.0, 0.0)
    assert found.bound == pytest.approx(0.5 + NEWER * 0.8)
    assert check_of("tie", RIGHT, against_random=1.0).bound is None


def test_the_bound_of_agreement_by_hand():
    assert check_of("left", left=0.95, margin=0.1).bound == pytest.approx(0.5 + SURE)
    assert check_of("left", left=0.5, margin=1.0).bound == pytest.approx(0.5 + LARGE)
    assert check_of("left", left=0.5, margin=0.3).bound == pytest.approx(0.5)
    assert check_of("left", left=0.05, margin=-0.1).bound == pytest.approx(0.5 + SURE)


def test_skipped_and_open_pairs_are_left_out():
    assert checks_of([answered("skip"), answered(None)]) == []


@pytest.mark.parametrize("newest", [BOTH, LEFT, RIGHT])
@pytest.mark.parametrize(("left", "answer"), [(0.1, "right"), (0.9, "left"), (0.9, "right")])
def test_equal_learned_returns_say_nothing(left, answer, newest):
    found = check_of(answer, newest, left=left, margin=0.0)
    assert (found.agreement, found.expected, found.bound) == (0.5, 0.5, None)
    assert alarm_of({0: [found] * 20}, 20).evidence == 1.0


@pytest.mark.parametrize("margin", [-0.5, 0.0, 0.5])
@pytest.mark.parametrize("answer", ["left", "right", "tie"])
@pytest.mark.parametrize(("newest", "mirrored"), [(BOTH, BOTH), (LEFT, RIGHT), (RIGHT, LEFT)])
def test_a_pair_and_its_mirror_image_say_the_same(margin, answer, newest, mirrored):
    other = {"left": "right", "right": "left", "tie": "tie"}[answer]
    one = check_of(answer, newest, left=0.25, margin=margin)
    assert one == check_of(other, mirrored, left=0.75, margin=-margin)
