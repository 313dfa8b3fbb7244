"""Tests of the network reward model's parts; its contract is in tests/conformance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import keys_of, labelled

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.rewards.inputs import empty_clip
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.network import ensemble as module
from backflip.rewards.network.architecture import (
    Standardiser,
    apply_network,
    initial_network,
    network_inputs,
    squared_weights,
)
from backflip.rewards.network.ensemble import adapted, bootstrap, standardiser_of
from backflip.rewards.network.losses import Labelled
from backflip.rewards.network.model import (
    HalfTieNetworkRewardModel,
    NetworkRewardModel,
    member_outputs,
)


def box(size):
    return Box(np.full(size, -2, np.float32), np.full(size, 2, np.float32), np.dtype("f4"))


VECTOR = EnvSpec("vector", box(2), Discrete(3), 100)
TORQUE = EnvSpec("torque", box(2), box(1), 100)
FRAME = Box(np.zeros((30, 30, 2), np.uint8), np.full((30, 30, 2), 255, np.uint8), np.dtype("u1"))
PIXELS = EnvSpec("pixels", FRAME, Discrete(3), 100)


def random_labels(n=5, length=4, size=2, padding=0, seed=0):
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(2, n + padding, 2, length, size)).astype(np.float32)
    alive = np.arange(length) < rng.integers(1, length + 1, (n + padding, 2, 1))
    preferred = rng.choice([0.0, 0.5, 1.0], n + padding).astype(np.float32)
    weight = (np.arange(n + padding) < n).astype(np.float32)
    action = rng.integers(0, 3, (n + padding, 2, length), dtype=np.int32)
    return Labelled(*map(jnp.asarray, (seen[0], action, seen[1], alive, preferred, weight)))


# Networks


def leaky(x):
    return np.where(x > 0, x, 0.01 * x)


@pytest.mark.medium
@pytest.mark.parametrize("spec", [VECTOR, TORQUE], ids=lambda spec: spec.id)
def test_a_network_for_vectors_equals_the_docstring(spec):
    rng = np.random.default_rng(0)
    params = initial_network(spec, rng)
    standardiser = Standardiser(*map(jnp.asarray, ([1.0, 2.0], [2.0, 0.5], [0.1, 4.0])))
    before, after = jnp.asarray(rng.normal(size=(2, 6, 2)), jnp.float32)
    discrete = isinstance(spec.action, Discrete)
    action = rng.integers(0, 3, 6) if discrete else np.linspace(-3, 3, 6, dtype="f4")[:, None]
    found = apply_network(spec, params, *network_inputs(spec, standardiser, before, action, after))
    for i in range(6):
        old, new = np.asarray(before[i]), np.asarray(after[i])
        seen, change = (old - [1, 2]) / [2, 0.5], (new - old) / [0.1, 4]
        acted = np.eye(3)[action[i]] if discrete else np.clip(action[i], -2, 2) / 2
        x = np.concatenate([np.clip(seen, -10, 10), np.clip(change, -10, 10), acted])
        for layer in params["body"]:
            x = leaky(x @ layer["w"] + layer["b"])
        assert len(x) == 64
        expected = x @ params["head"]["w"] + params["head"]["b"]
        assert float(found[i]) == pytest.approx(float(expected[0]), abs=1e-4)


@pytest.mark.medium
def test_a_network_for_images_convolves_the_picture_and_its_change():
    rng = np.random.default_rng(0)
    params = initial_network(PIXELS, rng)
    before, after = jnp.asarray(rng.uniform(size=(2, 3, 21 * 21 * 2)), jnp.float32)
    one = np.ones(21 * 21 * 2, np.float32)
    standardiser = Standardiser(jnp.zeros(882), jnp.asarray(one), jnp.asarray(one))
    action = np.array([0, 2, 1])
    seen = network_inputs(PIXELS, standardiser, before, action, after)
    found = apply_network(PIXELS, params, *seen)
    images = [x.reshape(3, 21, 21, 2) for x in (before, after - before)]
    x = np.concatenate(images, -1)
    for layer, stride in zip(params["filters"], (3, 2), strict=True):
        w = layer["w"].reshape(3, 3, x.shape[-1], 16)
        x = jax.lax.conv_general_dilated(
            jnp.asarray(x), w, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = leaky(np.asarray(x) + layer["b"])
    x = np.concatenate([x.reshape(3, -1), np.eye(3)[action]], 1)
    x = leaky(x @ params["body"][0]["w"] + params["body"][0]["b"])
    expected = x @ params["head"]["w"] + params["head"]["b"]
    np.testing.assert_allclose(found, expected[:, 0], rtol=1e-3, atol=1e-4)


@pytest.mark.medium
def test_the_penalty_applies_to_weights_and_not_to_biases():
    params = initial_network(VECTOR, np.random.default_rng(0))
    expected = sum(np.square(x["w"]).sum() for x in [*params["body"], params["head"]])
    assert float(squared_weights(params)) == pytest.approx(float(expected), rel=1e-5)
    gradient = jax.grad(squared_weights)(params)
    np.testing.assert_array_equal(gradient["head"]["b"], 0)
    np.testing.assert_allclose(gradient["head"]["w"], 2 * params["head"]["w"], rtol=1e-6)


# The fit


@pytest.mark.medium
def test_inputs_are_standardised_over_alive_steps():
    labels = random_labels(n=5, padding=3)
    alive = np.asarray(labels.alive)[:5]
    before, after = (np.asarray(x)[:5][alive] for x in (labels.before, labels.after))
    found = standardiser_of(VECTOR, labels)
    np.testing.assert_allclose(found.mean, before.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.deviation, before.std(0), rtol=1e-4)
    np.testing.assert_allclose(found.change, np.sqrt(np.square(after - before).mean(0)), rtol=1e-4)


@pytest.mark.slow
def test_a_bootstrap_sample_leaves_out_1_over_e_and_never_draws_padding():
    keys = jax.random.split(jax.random.key(0), 400)
    bare = np.asarray(jax.vmap(bootstrap, (0, None))(keys, jnp.ones(50)))
    weight = jnp.concatenate([jnp.ones(50), jnp.zeros(14)])
    padded = np.asarray(jax.vmap(bootstrap, (0, None))(keys, weight))
    np.testing.assert_array_equal(bare, padded[:, :50])
    np.testing.assert_array_equal(padded[:, 50:], 0)
    np.testing.assert_array_equal(bare.sum(1), 50)
    assert (bare == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.01)  # near 1/e


@pytest.mark.medium
@pytest.mark.parametrize(
    ("training", "validation", "expected"),
    [
        (0.2, 0.31, 1.5e-2),  # 1.55: overfitted
        (0.2, 0.29, 1e-2),
        (0.2, 0.23, 1e-2),
        (0.2, 0.21, 1e-2 / 1.5),  # 1.05: underfitted
        (0.2, float("nan"), 1e-2),  # no label is held out
    ],
)
def test_the_penalty_keeps_the_validation_loss_near_the_training_loss(
    training, validation, expected
):
    found = adapted(jnp.float32(1e-2), jnp.float32(training), jnp.float32(validation))
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_the_penalty_stays_between_its_limits():
    over, under = jnp.float32(9.0), jnp.float32(0.1)
    assert float(adapted(jnp.float32(1.0), jnp.float32(1.0), over)) == 1.0
    assert float(adapted(jnp.float32(1e-6), jnp.float32(1.0), under)) == pytest.approx(1e-6)


@pytest.mark.medium
def test_the_loss_of_a_label_by_hand():
    """-μ log P - (1 - μ) log (1 - P), P = 0.9 σ(R_left - R_right) + 0.05, R over alive steps."""
    labels = random_labels()
    outputs = np.random.default_rng(1).normal(size=(5, 2, 4)).astype(np.float32)
    found = module.label_losses(jnp.asarray(outputs), labels)
    for i in range(5):
        total = [sum(outputs[i, s][np.asarray(labels.alive[i, s])]) for s in (0, 1)]
        p = 0.9 / (1 + np.exp(total[1] - total[0])) + 0.05
        mu = float(labels.left_preferred[i])
        expected = -mu * np.log(p) - (1 - mu) * np.log(1 - p)
        assert float(found[i]) == pytest.approx(expected, rel=1e-4)


def _slow_ordinal_loss(labels, outputs, width, i):
    """-log P of the answer, from the cumulative logits, one label at a time."""
    total = [sum(outputs[i, s][np.asarray(labels.alive[i, s])]) for s in (0, 1)]
    difference = float(total[0] - total[1])

    def at_most(bound):  # P[answer <= bound] without noise: the noise of the logistic is below it
        return 1 / (1 + np.exp(-(bound - difference)))

    exact = {0.0: at_most(-width), 0.5: at_most(width) - at_most(-width), 1.0: 1 - at_most(width)}
    return -np.log(0.9 * exact[float(labels.left_preferred[i])] + 0.1 / 3)


@pytest.mark.medium
@pytest.mark.parametrize("width", [0.05, 1.0, 3.0])
def test_the_ordinal_loss_of_a_label_by_the_definition(width):
    labels = random_labels(n=12)
    outputs = np.random.default_rng(1).normal(size=(12, 2, 4)).astype(np.float32)
    found = module.label_losses(jnp.asarray(outputs), labels, jnp.float32(width))
    assert {float(x) for x in labels.left_preferred} == {0.0, 0.5, 1.0}
    for i in range(12):
        expected = _slow_ordinal_loss(labels, outputs, width, i)
        assert float(found[i]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.medium
def test_the_ordinal_loss_does_not_change_when_sides_are_swapped():
    labels = random_labels(n=12)
    outputs = jnp.asarray(np.random.default_rng(1).normal(size=(12, 2, 4)), jnp.float32)
    swapped = labels._replace(
        alive=labels.alive[:, ::-1], left_preferred=1.0 - labels.left_preferred
    )
    for width in (0.0, 0.7):
        one = module.label_losses(outputs, labels, jnp.float32(width))
        other = module.label_losses(outputs[:, ::-1], swapped, jnp.float32(width))
        decided = np.asarray(labels.left_preferred) != 0.5 if width == 0.0 else slice(None)
        np.testing.assert_allclose(one[decided], other[decided], rtol=1e-6)


@pytest.mark.slow
def test_gradients_of_the_ordinal_loss_are_finite_differences():
    labels = random_labels(n=12)
    outputs = np.random.default_rng(1).normal(size=(12, 2, 4))

    def loss(outputs, log_width):
        return module.label_losses(outputs, labels, jnp.exp(log_width)).sum()

    def slow(outputs, log_width):
        return sum(_slow_ordinal_loss(labels, outputs, np.exp(log_width), i) for i in range(12))

    by_output, by_width = jax.grad(loss, (0, 1))(
        jnp.asarray(outputs, jnp.float32), jnp.float32(0.3)
    )
    expected = (slow(outputs, 0.3 + 1e-5) - slow(outputs, 0.3 - 1e-5)) / 2e-5
    assert float(by_width) == pytest.approx(expected, rel=1e-3)
    for place in np.ndindex(3, 2, 4):
        step = np.zeros_like(outputs)
        step[place] = 1e-5
        expected = (slow(outputs + step, 0.3) - slow(outputs - step, 0.3)) / 2e-5
        assert float(by_output[place]) == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.medium
def test_without_ties_the_width_is_zero_and_the_loss_as_before():
    labels = random_labels(n=12, padding=3)  # the padding has ties
    decided = labels._replace(left_preferred=jnp.where(labels.weight > 0, 1.0, 0.5))
    assert module.tie_width((), labels) is None
    assert float(module.tie_width(jnp.float32(0.5), labels)) == pytest.approx(np.exp(0.5))
    width = module.tie_width(jnp.float32(0.5), decided)
    assert float(width) == 0.0
    outputs = jnp.asarray(np.random.default_rng(1).normal(size=(15, 2, 4)), jnp.float32)
    np.testing.assert_allclose(
        module.label_losses(outputs, decided, width)[:12],
        module.label_losses(outputs, decided)[:12],
        rtol=1e-5,
    )


@pytest.mark.slow
def test_the_fitted_width_follows_the_share_of_ties():
    """Clips that differ by a known number: ties where |d| < 1, then only where |d| < 0.2."""
    spec = EnvSpec("vector", box(2), Discrete(2), 100)
    rng = np.random.default_rng(0)
    widths = []
    for bound in (0.2, 1.0):
        comparisons = []
        for query in range(60):
            values = rng.uniform(-1, 1, 2)
            clips = tuple(_constant_clip(value) for value in values)
            d = 2 * (values[0] - values[1])
            answer = 0.5 if abs(d) < bound else float(d > 0)
            comparisons.append(LabelledComparison(query, lambda clips=clips: clips, answer, 0))
        model = NetworkRewardModel(spec, 60, 6)
        fitted = model.fit(model.initial(1), [comparisons], keys_of(0))
        widths.append(fitted.metrics[0]["reward_model_tie_width"])
        assert fitted.metrics[0]["reward_model_accuracy"] > 0.9
        half = HalfTieNetworkRewardModel(spec, 60, 6)
        others = half.fit(half.initial(1), [comparisons], keys_of(0)).metrics[0]
        assert "reward_model_tie_width" not in others
    assert widths[1] > 1.5 * widths[0] > 0


def _constant_clip(value):
    seen = np.full((6, 2), value, np.float32)
    return ObservedClip(seen, np.zeros(6, np.int32), seen, np.ones(6, bool))


@pytest.mark.medium
def test_losses_are_means_over_sample_and_held_out_labels():
    labels = random_labels(n=4, padding=2)
    outputs = jnp.asarray(np.random.default_rng(1).normal(size=(6, 2, 4)), jnp.float32)
    drawn = jnp.asarray([2.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    each = np.asarray(module.label_losses(outputs, labels))
    training, validation = module.split_losses(outputs, labels, drawn)
    assert float(training) == pytest.approx((2 * each[0] + each[2]) / 3, rel=1e-5)
    assert float(validation) == pytest.approx((each[1] + each[3]) / 2, rel=1e-5)
    _, none = module.split_losses(outputs, labels, labels.weight)
    assert np.isnan(none)


# The reward


@pytest.mark.slow
@pytest.mark.parametrize("ending", [pytest.param(False, marks=pytest.mark.slow), True])
def test_members_are_scaled_before_they_are_averaged(ending, monkeypatch):
    spec = EnvSpec("vector", box(2), Discrete(2), 100)  # of its own: `UPDATES` is compiled in
    monkeypatch.setattr(module, "UPDATES", 40)
    labels = labelled(spec, ending=ending)
    model = NetworkRewardModel(spec, len(labels), 6)
    fitted = model.fit(model.initial(1), [labels], keys_of(0))
    parameters, metrics = row_of(fitted.parameters, 0), fitted.metrics[0]
    rewards = []
    for label in labels:
        for clip in label.clips():
            step = map(jnp.asarray, (clip.obs, clip.action, clip.next_obs))
            rewards.append(np.asarray(member_outputs(spec, parameters, *step))[clip.alive])
    steps = np.concatenate(rewards)  # (steps, M)
    if ending:  # zero stays the value of the time after the end
        members = steps / np.sqrt(np.square(steps).mean(0))
        mean = members.mean(1)
        expected = mean / np.sqrt(np.square(mean).mean())
    else:
        members = (steps - steps.mean(0)) / steps.std(0)
        mean = members.mean(1)
        expected = (mean - mean.mean()) / mean.std()
    opinions = model.opinions(parameters, [clip for label in labels for clip in label.clips()])
    alive = np.stack([clip.alive for label in labels for clip in label.clips()])
    found = opinions.reward[alive]
    np.testing.assert_allclose(found, np.clip(expected, -3, 3), rtol=1e-2, atol=1e-3)
    spread = members.std(1) / (np.sqrt(np.square(mean).mean()) if ending else mean.std())
    np.testing.assert_allclose(opinions.spread[alive], spread, rtol=1e-2, atol=1e-3)
    sums = np.stack([x.sum(0) for x in rewards])
    np.testing.assert_allclose(opinions.clip_returns, sums, rtol=1e-2, atol=1e-3)
    assert metrics["reward_model_labels"] == len(labels)
    assert metrics["reward_model_std"] == pytest.approx(expected.std(), rel=1e-2)
    assert 0 < metrics["reward_model_training_loss"] < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [VECTOR, TORQUE, pytest.param(PIXELS, marks=pytest.mark.slow)],
    ids=lambda spec: spec.id,
)
def test_an_empty_clip_has_the_shapes_of_the_environment(spec):
    clip = empty_clip(spec, 4)
    size = 2 * 21 * 21 if spec.is_image else 2
    assert clip.before.shape == clip.after.shape == (4, size)
    assert clip.action.shape == ((4,) if isinstance(spec.action, Discrete) else (4, 1))
    assert not clip.alive.any()
