"""The conformance suite of `RewardModel`. `CLAUSES` maps names to checks of one class.

A check is called with `make`, which takes a label budget and returns a new model, and with the
environment's spec. It fails with `AssertionError`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.losses import NO_TIES, answer_probabilities
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import flatten, row_of, unflatten
from backflip.core.types import Transition
from backflip.rewards.interface import (
    EmbedsClips,
    LabelledComparison,
    ObservedClip,
    PredictsSpread,
    RewardModel,
)

LENGTH = 6  # steps in a clip
LABELS = 24
SEEDS = 2
ACCURACY = 0.75  # required on new comparisons of a known reward, after LABELS clean labels

AGREEMENT = 0.9  # correlation required of an embedding's returns with those of the members

Make = Callable[[int], RewardModel]
Check = Callable[[Make, EnvSpec], None]
CLAUSES: dict[str, Check] = {}

_programs: list[str] = []  # JAX's events of tracing and compiling
jax.monitoring.register_event_duration_secs_listener(
    lambda name, _seconds, **_: _programs.append(name)
)


def clause(check: Check) -> Check:
    """Register a check under its name."""
    CLAUSES[check.__name__] = check
    return check


# Inputs of models


def trajectory(spec: EnvSpec, rng: np.random.Generator, steps: int) -> np.ndarray:
    """Return observations (steps + 1, ...): a random walk, or images of a moving bar."""
    if not spec.is_image:
        start = rng.normal(size=(1, *spec.observation.shape))
        moves = rng.normal(scale=0.3, size=(steps, *spec.observation.shape))
        return np.cumsum(np.concatenate([start, moves]), axis=0).astype(np.float32)
    height, width, channels = spec.observation.shape
    place = rng.integers(width - 6) + np.cumsum(rng.integers(-2, 3, steps + 1))
    place = np.clip(place, 0, width - 6)
    frames = np.zeros((steps + 1, height, width, channels // spec.frame_stack), np.uint8)
    for frame, left in zip(frames, place, strict=True):
        frame[:, left : left + 6] = 255
    return frames


def known_reward(spec: EnvSpec, next_obs: np.ndarray) -> np.ndarray:
    """Return the first number of each observation, or the horizontal position of the bar."""
    if not spec.is_image:
        return next_obs[:, 0]
    columns = np.arange(next_obs.shape[2]) / next_obs.shape[2] - 0.5
    return next_obs.mean((1, 3)) @ columns / 40


def some_actions(spec: EnvSpec, rng: np.random.Generator, *shape: int) -> np.ndarray:
    if isinstance(spec.action, Discrete):
        return rng.integers(spec.action.n, size=shape, dtype=np.int32)
    return rng.uniform(-1, 1, (*shape, *spec.action.shape)).astype(np.float32)


def some_clip(spec: EnvSpec, rng: np.random.Generator, *, ending: bool = False) -> ObservedClip:
    obs = trajectory(spec, rng, LENGTH)
    alive = np.arange(LENGTH) < (rng.integers(2, LENGTH + 1) if ending else LENGTH)
    return ObservedClip(obs[:-1], some_actions(spec, rng, LENGTH), obs[1:], alive)


def value(spec: EnvSpec, clip: ObservedClip) -> float:
    return float(known_reward(spec, clip.next_obs)[clip.alive].sum())


def labelled(
    spec: EnvSpec, seed: int = 0, count: int = LABELS, *, ending: bool = False
) -> list[LabelledComparison]:
    """Return clean labels of the known reward."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        pair = some_clip(spec, rng, ending=ending), some_clip(spec, rng, ending=ending)
        better = float(value(spec, pair[0]) > value(spec, pair[1]))
        found.append(LabelledComparison(1000 * seed + i, lambda p=pair: p, better, 100 * (i // 8)))
    return found


def some_batch(spec: EnvSpec, seed: int = 5, time: int = 7, envs: int = 3) -> Transition:
    """Return a batch (T, N) as training passes it to `predict`, with stacked frames."""
    rng = np.random.default_rng(seed)
    walks = np.stack([trajectory(spec, rng, time) for _ in range(envs)], axis=1)
    if spec.is_image:
        walks = np.concatenate([walks] * spec.frame_stack, axis=-1)
    flags = np.zeros((time, envs), bool)
    reward = rng.normal(size=(time, envs)).astype(np.float32)
    action = some_actions(spec, rng, time, envs)
    return Transition(walks[:-1], action, reward, flags, flags, walks[1:], ~flags, ())


def random_record(spec: EnvSpec, seed: int) -> Transition:
    """Return transitions of a random policy, with newest frames only."""
    record = some_batch(spec, seed, time=40, envs=8)
    return record._replace(
        obs=newest_frame(spec, record.obs), next_obs=newest_frame(spec, record.next_obs)
    )


def keys_of(*seeds: int) -> np.ndarray:
    return np.stack([np.asarray(jax.random.key_data(jax.random.key(seed))) for seed in seeds])


def ready(make: Make, spec: EnvSpec, labels: int = LABELS, seeds: int = SEEDS) -> RewardModel:
    """Return a model that has observed the random policy of its seeds."""
    model = make(labels)
    for seed in range(seeds):
        model.observe(random_record(spec, 50 + seed))
    return model


def fitted(model: RewardModel, labels: Sequence[Sequence[LabelledComparison]], *seeds: int) -> Any:
    keys = keys_of(*(seeds or range(len(labels))))
    return model.fit(model.initial(len(labels)), labels, keys).parameters


def predicted(model: RewardModel, parameters: Any, batch: Transition, row: int = 0) -> np.ndarray:
    return np.asarray(jax.jit(model.predict)(row_of(parameters, row), batch))


def same_bits(one: Any, other: Any) -> bool:
    one, other = flatten(one), flatten(other)
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


def near(one: np.ndarray, other: np.ndarray, tolerance: float = 0.05) -> bool:
    """Return whether two rewards differ by at most `tolerance` standard deviations."""
    return bool(np.abs(one - other).max() <= tolerance * one.std())


# Clauses


@clause
def rewards_are_finite_numbers_of_each_transition(make: Make, spec: EnvSpec) -> None:
    model, batch = ready(make, spec), some_batch(spec)
    reward = predicted(model, fitted(model, [labelled(spec), labelled(spec, 1)]), batch)
    assert reward.shape == (7, 3)
    assert reward.dtype == np.float32
    assert np.isfinite(reward).all()
    assert reward.std() > 0
    alone = jax.tree.map(lambda x: x[2:3, 1:2], batch)
    parameters = fitted(model, [labelled(spec), labelled(spec, 1)])
    np.testing.assert_allclose(
        predicted(model, parameters, alone)[0, 0], reward[2, 1], rtol=1e-3, atol=1e-4
    )


@clause
def nothing_is_rewarded_before_the_first_label(make: Make, spec: EnvSpec) -> None:
    model, batch = ready(make, spec), some_batch(spec)
    clips = [some_clip(spec, np.random.default_rng(0)) for _ in range(2)]
    for parameters in (model.initial(SEEDS), fitted(model, [[], []])):
        np.testing.assert_array_equal(predicted(model, parameters, batch), 0)
        assert model.opinions(row_of(parameters, 0), clips) is None
    both = fitted(model, [labelled(spec), []])
    np.testing.assert_array_equal(predicted(model, both, batch, row=1), 0)


@clause
def preferences_are_symmetric(make: Make, spec: EnvSpec) -> None:
    """P[A ≻ B] + P[B ≻ A] = 1, and swapping the sides of all labels changes nothing."""
    labels, batch = labelled(spec), some_batch(spec)

    def turn(label: LabelledComparison) -> LabelledComparison:
        clips = label.clips()[::-1]
        return label._replace(clips=lambda: clips, left_preferred=1 - label.left_preferred)

    one, other = ready(make, spec, seeds=1), ready(make, spec, seeds=1)
    parameters = fitted(one, [labels])
    turned = fitted(other, [[turn(label) for label in labels]])
    assert near(predicted(one, parameters, batch), predicted(other, turned, batch))
    rng = np.random.default_rng(1)
    a, b = some_clip(spec, rng), some_clip(spec, rng)
    ab, ba = (one.opinions(row_of(parameters, 0), clips) for clips in ([a, b], [b, a]))
    assert ab is not None
    assert ba is not None
    differences = (jnp.asarray(x.clip_returns[0] - x.clip_returns[1]) for x in (ab, ba))
    p, q = (answer_probabilities(x, NO_TIES, 0.1)[..., 2] for x in differences)
    np.testing.assert_allclose(p + q, 1.0, atol=1e-4)


@clause
def a_refit_compiles_nothing(make: Make, spec: EnvSpec) -> None:
    """The reward is data, and a fit to more labels uses the same programs."""
    model, batch = ready(make, spec), some_batch(spec)
    predict = jax.jit(model.predict)
    parameters = model.initial(SEEDS)
    for count in (8, 10):  # the second fit, with more labels, must compile nothing
        _programs.clear()
        labels = [labelled(spec, 3, count), labelled(spec, 4, count - 1)]
        parameters = model.fit(parameters, labels, keys_of(count, 1)).parameters
        rewards = [np.asarray(predict(row_of(parameters, row), batch)) for row in range(SEEDS)]
        assert not np.array_equal(*rewards)
    assert [name for name in _programs if "trace" in name or "backend_compile" in name] == []


@clause
def the_same_seed_gives_the_same_bits(make: Make, spec: EnvSpec) -> None:
    labels = [labelled(spec), labelled(spec, 1)]
    one, other = (fitted(ready(make, spec), labels, 3, 4) for _ in range(2))
    assert same_bits(one, other)


@clause
def a_resumed_run_gives_the_same_bits(make: Make, spec: EnvSpec) -> None:
    """A model continues from the parameters in a checkpoint alone."""
    first, batch = [labelled(spec, 0, 8), labelled(spec, 1, 8)], some_batch(spec)
    second = [labelled(spec, 0, 16), labelled(spec, 1, 16)]
    model = ready(make, spec)
    before = fitted(model, first)
    after = model.fit(before, second, keys_of(7, 8))
    resumed = ready(make, spec)
    restored = unflatten(resumed.initial(SEEDS), flatten(before))
    assert same_bits(before, restored)
    np.testing.assert_array_equal(
        predicted(model, before, batch), predicted(resumed, restored, batch)
    )
    again = resumed.fit(restored, second, keys_of(7, 8))
    assert same_bits(after.parameters, again.parameters)
    assert same_bits(after.metrics, again.metrics)


@clause
def parameters_depend_on_the_environment_alone(make: Make, spec: EnvSpec) -> None:
    """A run with another budget or number of seeds can use the parameters."""
    few, many = flatten(make(0).initial(1)), flatten(make(50).initial(3))
    assert few.keys() == many.keys()
    for name, array in few.items():
        assert array.shape == (1, *many[name].shape[1:])
        assert array.dtype == many[name].dtype
    model = ready(make, spec)
    found = flatten(fitted(model, [labelled(spec), labelled(spec, 1)]))
    assert {name: (x.shape[1:], x.dtype) for name, x in found.items()} == {
        name: (x.shape[1:], x.dtype) for name, x in few.items()
    }


@clause
def the_true_reward_is_not_read(make: Make, spec: EnvSpec) -> None:
    """Clips come without it; in a batch it may be NaN."""
    batch = some_batch(spec)
    blind = batch._replace(reward=np.full_like(batch.reward, np.nan))
    seeing, unseeing = ready(make, spec), make(LABELS)
    for seed in range(SEEDS):
        record = random_record(spec, 50 + seed)
        unseeing.observe(record._replace(reward=np.full_like(record.reward, np.nan)))
    labels = [labelled(spec), labelled(spec, 1)]
    one, other = fitted(seeing, labels), fitted(unseeing, labels)
    assert same_bits(one, other)
    np.testing.assert_array_equal(predicted(seeing, one, batch), predicted(unseeing, other, blind))


@clause
def padding_changes_nothing(make: Make, spec: EnvSpec) -> None:
    """A larger budget, or more labels than the budget, gives the same reward."""
    labels, batch = [labelled(spec, 0, 12)], some_batch(spec)
    rewards = []
    for budget in (12, 20, 5):
        model = ready(make, spec, budget, seeds=1)
        rewards.append(predicted(model, fitted(model, labels), batch))
    assert near(rewards[0], rewards[1])
    assert near(rewards[0], rewards[2])


@clause
def steps_after_the_end_count_for_nothing(make: Make, spec: EnvSpec) -> None:
    labels, batch = labelled(spec, ending=True), some_batch(spec)

    def spoil(clip: ObservedClip) -> ObservedClip:
        obs, next_obs = clip.obs.copy(), clip.next_obs.copy()
        obs[~clip.alive] = next_obs[~clip.alive] = 9
        return clip._replace(obs=obs, next_obs=next_obs)

    def spoilt(label: LabelledComparison) -> LabelledComparison:
        left, right = (spoil(clip) for clip in label.clips())
        return label._replace(clips=lambda: (left, right))

    one, other = ready(make, spec, seeds=1), ready(make, spec, seeds=1)
    parameters = fitted(one, [labels])
    others = fitted(other, [[spoilt(label) for label in labels]])
    assert near(predicted(one, parameters, batch), predicted(other, others, batch), 1e-3)
    clips = [clip for label in labels[:4] for clip in label.clips()]
    opinions = one.opinions(row_of(parameters, 0), clips)
    assert opinions is not None
    dead = ~np.stack([clip.alive for clip in clips])
    assert dead.any()
    assert (opinions.reward[dead] == 0).all()
    assert (opinions.spread[dead] == 0).all()
    longer = one.opinions(row_of(parameters, 0), [spoil(clip) for clip in clips])
    assert longer is not None
    np.testing.assert_allclose(opinions.clip_returns, longer.clip_returns, rtol=1e-4, atol=1e-4)


@clause
def opinions_are_the_predicted_rewards(make: Make, spec: EnvSpec) -> None:
    """Clips and training use the same computation."""
    model, rng = ready(make, spec), np.random.default_rng(2)
    parameters = fitted(model, [labelled(spec), labelled(spec, 1)])
    clips = [some_clip(spec, rng) for _ in range(3)]
    opinions = model.opinions(row_of(parameters, 0), clips)
    assert opinions is not None
    assert opinions.reward.shape == opinions.spread.shape == (3, LENGTH)
    assert opinions.clip_returns.shape[0] == 3
    assert (opinions.spread >= 0).all()
    for clip, reward in zip(clips, opinions.reward, strict=True):
        flags = np.zeros((LENGTH, 1), bool)
        stack = [clip.obs[:, None], clip.next_obs[:, None]]
        if spec.is_image:
            stack = [np.concatenate([x] * spec.frame_stack, axis=-1) for x in stack]
        nothing = np.full((LENGTH, 1), np.nan, np.float32)
        batch = Transition(
            stack[0], clip.action[:, None], nothing, flags, flags, stack[1], ~flags, ()
        )
        np.testing.assert_allclose(
            predicted(model, parameters, batch)[:, 0], reward, rtol=1e-3, atol=1e-3
        )


@clause
def spreads_are_those_of_opinions(make: Make, spec: EnvSpec) -> None:
    """`predict_spread` is optional: a model without it passes."""
    model, batch = ready(make, spec), some_batch(spec)
    if not isinstance(model, PredictsSpread):
        return
    parameters = fitted(model, [labelled(spec), labelled(spec, 1)])
    seen = [newest_frame(spec, x) for x in (batch.obs, batch.next_obs)]
    alive = np.ones(len(batch.valid), bool)
    clips = [
        ObservedClip(seen[0][:, i], batch.action[:, i], seen[1][:, i], alive)
        for i in range(batch.valid.shape[1])
    ]
    for row in range(SEEDS):
        own = row_of(parameters, row)
        found, opinions = jax.jit(model.predict_spread)(own, batch), model.opinions(own, clips)
        assert opinions is not None
        assert opinions.spread.std() > 0
        close = {"rtol": 1e-3, "atol": 1e-4}
        np.testing.assert_allclose(found.reward, predicted(model, parameters, batch, row), **close)
        np.testing.assert_allclose(np.asarray(found.spread).T, opinions.spread, **close)
    for blank in (model.initial(1), fitted(model, [[], []])):
        np.testing.assert_array_equal(model.predict_spread(row_of(blank, 0), batch).spread, 0)


@clause
def an_embedding_is_that_of_the_fit(make: Make, spec: EnvSpec) -> None:
    """`embed` is optional: a model without it passes."""
    model, labels = ready(make, spec), [labelled(spec, ending=True), labelled(spec, 1, ending=True)]
    if not isinstance(model, EmbedsClips):
        return
    parameters, resumed = fitted(model, labels), ready(make, spec)
    for row, own in enumerate(labels):
        clips = [clip for label in own for clip in label.clips()]
        found = model.embed(row, own, clips)
        opinions = model.opinions(row_of(parameters, row), clips)
        assert found is not None
        assert opinions is not None
        assert all(np.isfinite(part).all() for part in found)
        assert found.tie_width >= 0
        assert found.weights.shape == found.clips.shape[1:]
        differences = found.clips[0::2] - found.clips[1::2]
        close = {"rtol": 1e-3, "atol": 1e-3 * np.abs(differences).max()}
        np.testing.assert_allclose(found.labelled, differences, **close)
        returns = opinions.clip_returns.mean(1)
        assert np.corrcoef(found.clips @ found.weights, returns)[0, 1] >= AGREEMENT
        again = resumed.embed(row, own, clips)  # from the labels and the random policy alone
        assert again is not None
        for one, other in zip(found, again, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
        assert model.embed(row, [], clips) is None


@clause
def a_known_reward_is_learned(make: Make, spec: EnvSpec) -> None:
    """Each of three seeds predicts new comparisons after clean labels."""
    model = ready(make, spec, seeds=3)
    parameters = fitted(model, [labelled(spec, seed) for seed in (10, 11, 12)])
    new = labelled(spec, 99, 60)
    pairs = [label.clips() for label in new]
    better = np.array([label.left_preferred for label in new]) > 0.5
    for row in range(3):
        opinions = model.opinions(
            row_of(parameters, row), [clip for pair in pairs for clip in pair]
        )
        assert opinions is not None
        total = opinions.reward.sum(1)
        accuracy = ((total[0::2] > total[1::2]) == better).mean()
        assert accuracy >= ACCURACY, (row, accuracy)
