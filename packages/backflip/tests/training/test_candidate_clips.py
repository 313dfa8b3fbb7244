"""Which clips of a record queries are made from."""

import jax
import numpy as np
import pytest

from backflip.core.types import Transition
from backflip.preferences.clips import windows
from backflip.rewards.interface import LabelledComparison
from backflip.training.queries.candidate_clips import (
    RARE_SHARE,
    RandomClips,
    clip_features,
    farthest,
    rare_clips,
    some_clips,
    uniform_in_log,
)
from backflip.training.queries.query_choice import Known
from backflip.training.queries.query_maker import QueryMaker
from backflip.training.teaching.config import TeachConfig
from runshelf.errors import UserFacingError

LENGTH = 10


def hanging(horizon=400, envs=5, fall=12):
    """Return a record in which each pendulum falls in the first steps, and then hangs still."""
    rng = np.random.default_rng(0)
    angle = np.where(np.arange(horizon) < fall, np.arange(horizon) / fall, 1.0)
    place = np.cumsum(rng.normal(size=(horizon, envs)), 0)  # something that goes on changing
    obs = np.stack([np.tile(angle[:, None], envs), place], -1).astype(np.float32)
    flags = np.zeros((horizon, envs), bool)
    return Transition(obs, flags, flags, flags, flags, obs, ~flags, ())


def labels_with(ties, decided):
    answers = [0.5] * ties + [1.0] * decided
    return [LabelledComparison(i, lambda: (), answer, 0) for i, answer in enumerate(answers)]


def shows_the_fall(clips):
    return sum(bool(clip.obs[0, 0] < 1) for clip in clips)


@pytest.mark.parametrize(("ties", "decided", "share"), [(6, 4, RARE_SHARE), (5, 5, 0), (0, 0, 0)])
def test_rare_clips_are_wanted_while_most_answers_are_ties(ties, decided, share):
    assert rare_clips(hanging(), labels_with(ties, decided), 100) == 100 * share


def test_clips_of_images_are_uniform():
    record = hanging()
    images = record._replace(obs=np.zeros((400, 5, 4, 4, 1), np.uint8))
    assert rare_clips(images, labels_with(9, 1), 100) == 0


def test_the_first_early_clip_has_an_age_t_with_a_chance_of_1_over_1_plus_t():
    ages, rng = np.array([0, 4, 1, 0, 9]), np.random.default_rng(0)
    chances = 1 / (1 + ages)
    found = [uniform_in_log(rng, ages, 1)[0] for _ in range(20_000)]
    drawn = np.bincount(found, minlength=5) / 20_000
    np.testing.assert_allclose(drawn, chances / chances.sum(), atol=0.012)


def test_early_clips_differ_and_there_are_as_many_as_asked():
    found = uniform_in_log(np.random.default_rng(0), np.arange(50), 20)
    assert len(set(found.tolist())) == 20
    assert len(uniform_in_log(np.random.default_rng(0), np.arange(5), 20)) == 5


@pytest.mark.medium
def test_early_clips_show_how_episodes_begin():
    """A second episode begins at 200."""
    record = hanging(envs=16)
    truncated = np.zeros_like(record.truncated)
    truncated[199] = True
    record = record._replace(truncated=truncated)
    begins = {
        early: [
            some_clips(np.random.default_rng(seed), record, LENGTH, 40, shown=False, early=early)
            for seed in range(20)
        ]
        for early in (0, 20)
    }
    shares = {
        early: np.mean([[0 <= age < 13 for age in one.begins] for one in found])
        for early, found in begins.items()
    }
    assert shares[0] < 0.06  # 13 of 381
    assert 0.2 < shares[20] < 0.4  # half of the clips, half of them before log(1 + t) = log(14)
    assert all(len({clip.obs.tobytes() for clip in one.clips}) == 40 for one in begins[20])


@pytest.mark.medium
def test_rare_clips_show_what_uniform_ones_miss():
    """The fall is in 12 of 400 windows of each pendulum."""
    uniform, covering = (
        [
            shows_the_fall(
                some_clips(
                    np.random.default_rng(seed), hanging(), LENGTH, 40, shown=False, rare=rare
                ).clips
            )
            for seed in range(10)
        ]
        for rare in (0, 20)
    )
    assert np.mean(uniform) < 3
    assert min(covering) >= 4


def test_clips_of_the_random_policy_are_kept_by_what_they_show():
    rng = np.random.default_rng(3)
    usual, rare, _ = RandomClips.of(rng, hanging(), LENGTH, 30, early=15, shown=False)
    assert len(usual) == len(rare) == 30
    assert min(shows_the_fall(usual), shows_the_fall(rare)) >= 4  # uniform ones show it once


def test_random_clips_of_images_are_uniform():
    images = hanging()._replace(obs=np.zeros((400, 5, 4, 4, 1), np.uint8))
    usual, rare, _ = RandomClips.of(
        np.random.default_rng(3), images, LENGTH, 30, early=15, shown=False
    )
    assert rare is usual


def test_the_number_of_clips_is_as_asked_and_all_differ():
    found = some_clips(np.random.default_rng(1), hanging(), LENGTH, 40, shown=False, rare=20)
    assert len(found.clips) == len(found.begins) == 40
    assert len({clip.obs.tobytes() for clip in found.clips}) == 40
    few = some_clips(np.random.default_rng(1), hanging(12, 2), LENGTH, 40, shown=False, rare=20)
    assert len(few.clips) == 6


def test_a_record_too_short_for_a_clip_has_no_clips():
    short = hanging(horizon=LENGTH - 1)
    found = some_clips(np.random.default_rng(1), short, LENGTH, 40, shown=False, rare=20)
    assert found.clips == found.begins == []


def test_rare_clips_are_those_of_the_greedy_rule_computed_slowly():
    features = np.random.default_rng(2).normal(size=(30, 3))
    covered, expected = list(range(8)), []
    for _ in range(5):
        gaps = [min(np.linalg.norm(x - features[i]) for i in covered) for x in features]
        expected.append(int(np.argmax(gaps)))
        covered.append(expected[-1])
    np.testing.assert_array_equal(farthest(features, 8, 5), expected)


@pytest.mark.parametrize("reset", [True, False])
def test_features_are_means_deviations_and_ages_in_units_of_their_spread(reset):
    record = hanging()
    record.truncated[149] = True  # a new episode begins at 150
    places = windows(record, LENGTH)
    places = places.some(np.isin(places.times, (0, 100, 150, 200)))
    found = clip_features(record, places, LENGTH, reset=reset)
    seen = [record.obs[at.time : at.time + LENGTH, at.env] for at in places]
    ages = {0: 0, 100: 100, 150: 0, 200: 50} if reset else {0: 400, 100: 400, 150: 0, 200: 50}
    means = [
        [*x.mean(0), *x.std(0), np.log(1 + ages[at.time])]
        for x, at in zip(seen, places, strict=True)
    ]
    raw = np.array(means, float)
    np.testing.assert_allclose(found, raw / raw.std(0), rtol=1e-5)
    constant = record._replace(obs=np.ones_like(record.obs))
    assert np.isfinite(clip_features(constant, places, LENGTH, reset=reset)).all()
    rounded = 1 + 1e-7 * np.random.default_rng(0).normal(size=record.obs.shape)
    noise = record._replace(obs=rounded.astype(np.float32))
    assert clip_features(noise, places, LENGTH, reset=reset)[:, :-1].std(0).max() < 0.1


@pytest.mark.medium
def test_rare_clips_show_how_episodes_begin():
    """What is seen is noise: only the age of clips tells the beginnings, 1 window of 40, apart."""
    record = hanging()
    obs = np.random.default_rng(5).normal(size=record.obs.shape).astype(np.float32)
    truncated = np.zeros((400, 5), bool)
    truncated[199] = True
    record = record._replace(obs=obs, truncated=truncated)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        begins = np.array(some_clips(rng, record, LENGTH, 60, shown=False, rare=30).begins)
        assert ((begins >= 0) & (begins < 5)).sum() >= 4


def test_first_clips_are_usual_and_rare_ones():
    clips = RandomClips.of(np.random.default_rng(3), hanging(), LENGTH, 30, early=15, shown=False)
    expected = [*clips.usual[:15], *clips.rare[15:]]
    assert all(one is other for one, other in zip(clips.first(), expected, strict=True))
    images = hanging()._replace(obs=np.zeros((400, 5, 4, 4, 1), np.uint8))
    uniform = RandomClips.of(np.random.default_rng(3), images, LENGTH, 30, early=15, shown=False)
    assert all(one is other for one, other in zip(uniform.first(), uniform.usual, strict=True))


class KeptQueries:
    """A label store that only keeps the queries added to it."""

    def __init__(self):
        self.clips = []

    def count_queries(self, seed, env_steps):
        """Return that there are none."""
        return 0

    def add_queries(self, queries):
        """Keep the observations of both clips."""
        self.clips += [clip["obs"] for query in queries for clip in (query.left, query.right)]


@pytest.mark.parametrize("recorded", [False, True])
def test_the_first_queries_show_rare_clips_of_the_random_policy(recorded):
    """If they show recorded clips, there are no clips of the random policy."""
    clips = RandomClips.of(np.random.default_rng(3), hanging(), LENGTH, 30, early=15, shown=False)
    known = {one.obs.tobytes() for one in clips.usual}
    store = KeptQueries()
    config, never = TeachConfig(clip_length=LENGTH), lambda: False
    maker = QueryMaker("x", config, None, store, None, never, shows_clips=False, say=print)
    maker.random_policy |= {} if recorded else {0: clips}
    maker.add_queries(0, clips.usual, None, Known(0, None), 50, 0)
    usual = np.mean([obs.tobytes() in known for obs in store.clips])
    assert len(store.clips) == 100
    assert usual == 1 if recorded else 0.3 < usual < 0.8


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0, 6), (0.5, 9, 40)])
def test_queries_show_early_clips_of_the_agent(share, least, most):
    """The fall of the second episode, known to be its beginning, is in 12 of 800 windows."""
    first = hanging()
    ended = np.zeros_like(first.truncated)
    ended[-1] = True
    both = zip(first._replace(truncated=ended), first, strict=True)
    record = Transition(*(np.concatenate(x) if len(x[0]) else () for x in both))
    config = TeachConfig(clip_length=LENGTH, queries="uniform", early_share=share)
    store, options = KeptQueries(), {"shows_clips": False, "say": print}
    maker = QueryMaker("x", config, None, store, None, lambda: False, **options)
    maker.add_queries(0, [], record, Known(0, None), 50, 100)
    assert sum(bool(obs[0, 0] < 1) for obs in store.clips) in range(least, most)


@pytest.mark.parametrize(
    ("length", "advice"),
    [
        (20, "start a new run with --set clip_length=10"),
        (3, "start a new run with --set clip_length=2"),
        (2, "its episodes are too short to be compared in clips"),
    ],
)
def test_episodes_without_two_clips_fail_with_a_length_that_may_fit(length, advice):
    config = TeachConfig(clip_length=length)
    options = {"shows_clips": False, "say": print}
    maker = QueryMaker("x", config, None, KeptQueries(), None, lambda: False, **options)
    says = f"`x` have fewer than two clips of {length} env steps: {advice}$"
    with pytest.raises(UserFacingError, match=says) as failed:
        maker.add_queries(0, [], None, Known(0, None), 2, 0)
    assert failed.value.exit_status == 1


@pytest.mark.parametrize(
    ("episode", "advice"),
    [
        (7, "start a new run with --set clip_length=7"),
        (1, "its episodes are too short to be compared in clips"),
    ],
)
def test_the_length_that_may_fit_is_that_of_random_episodes(episode, advice):
    record = hanging()
    truncated = np.zeros_like(record.truncated)
    truncated[episode - 1 :: episode] = True
    record = record._replace(truncated=truncated)
    config, rng = TeachConfig(clip_length=LENGTH), np.random.default_rng(0)
    options = {"shows_clips": False, "say": print}
    maker = QueryMaker("x", config, None, KeptQueries(), None, lambda: False, **options)
    maker.random_policy = {0: RandomClips.of(rng, record, LENGTH, 30, early=15, shown=False)}
    with pytest.raises(UserFacingError, match=f"clips of {LENGTH} env steps: {advice}$"):
        maker.add_queries(0, [], None, Known(0, None), 2, 0)


def test_queries_without_a_clip_of_the_agent_are_told_once():
    record = hanging()
    clips = RandomClips.of(np.random.default_rng(3), record, LENGTH, 30, early=15, shown=False)
    short = jax.tree.map(lambda x: x[: LENGTH - 1], record)
    said, store = [], KeptQueries()
    config = TeachConfig(clip_length=LENGTH, queries="uniform")
    options = {"shows_clips": False, "say": said.append}
    maker = QueryMaker("x", config, None, store, None, lambda: False, **options)
    for seed in range(2):
        maker.add_queries(seed, clips.usual, short, Known(0, None), 2, 100)
    assert len(said) == 1
    assert said[0].startswith(f"NO CLIP OF THE AGENT: no clip of {LENGTH} env steps fits into")
    assert f"--set clip_length={(LENGTH - 1) // 2}," in said[0]
