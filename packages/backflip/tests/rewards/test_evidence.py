"""Tests of the fit and the scaling of the linear reward model."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.losses import preference_loss, preference_probability
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.linear import evidence as module
from backflip.rewards.linear import model as linear
from backflip.rewards.linear.evidence import MEMBERS, Labelled, fit
from backflip.rewards.linear.model import LinearRewardModel, last_doubling
from backflip.rewards.representations.interface import Inputs
from backflip.rewards.representations.slow import group_sizes

GROUPS = (1, 5, 4, 2)
SIZE = sum(GROUPS)
SPEC = EnvSpec(
    "vector",
    Box(np.full(2, -9, np.float32), np.full(2, 9, np.float32), np.dtype("f4")),
    Discrete(2),
    100,
)

fit_jit = jax.jit(fit, static_argnums=1)
most_probable = jax.jit(module._most_probable)


def labels_of(weights, count, padding=0, seed=0):
    """Return noise-free labels of a reward that is linear in random features."""
    rng = np.random.default_rng(seed)
    difference = np.zeros((count + padding, len(weights)), np.float32)
    difference[:count] = rng.normal(size=(count, len(weights))) * 3
    preferred, weight = np.zeros((2, count + padding), np.float32)
    preferred[:count] = difference[:count] @ weights > 0
    weight[:count] = 1
    return Labelled(*(jnp.asarray(x) for x in (difference, preferred, weight)))


def some_labels(count=20, padding=0):
    return labels_of(np.random.default_rng(9).normal(size=SIZE), count, padding)


def kernel_of(count, scale=5.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 6))
    return jnp.asarray(scale * rows @ rows.T / 6, jnp.float32)


def log_likelihood(logits, log_width, preferred, weight):
    """Return the log-likelihood of labels by its definition, plus the log prior of log θ."""
    ties = bool(((preferred == 0.5) & (weight > 0)).any())
    width = jnp.exp(log_width) if ties else 0.0
    left, right = jax.nn.sigmoid(logits - width), jax.nn.sigmoid(-logits - width)
    tie = 1 - left - right
    chosen = jnp.where(preferred == 1, left, jnp.where(preferred == 0, right, tie))
    p = (1 - module.NOISE) * chosen + module.NOISE / (3 if ties else 2)
    prior = -0.5 * jnp.square(log_width / module.WIDTH_DEVIATION)
    return (weight * jnp.log(p)).sum() + prior


def test_probabilities_of_both_orders_of_a_pair_sum_to_one():
    """Rahtz's bug 2; there is no dropout: what is scored is what is predicted."""
    left, right = jax.random.normal(jax.random.key(0), (2, 1000)) * 10

    @jax.jit
    def both(left, right):
        one = preference_probability(left, right, module.NOISE)
        return one + preference_probability(right, left, module.NOISE)

    np.testing.assert_allclose(both(left, right), 1.0, atol=1e-6)
    swapped = some_labels()
    turned = Labelled(-swapped.difference, 1 - swapped.left_preferred, swapped.weight)
    one, other = (fit_jit(x, GROUPS, jax.random.key(3)) for x in (swapped, turned))
    np.testing.assert_allclose(one.models, other.models, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(one.members, other.members, rtol=1e-3, atol=1e-3)


@pytest.mark.medium
@pytest.mark.parametrize("scale", [0.5, 10.0, 100.0])
def test_the_posterior_gradient_is_zero_at_the_most_probable_logits(scale):
    """At the maximum, a = ∂ log p / ∂m at m = K a, and ∂ log p / ∂ log θ is 0."""
    kernel = kernel_of(12, scale)
    rng = np.random.default_rng(1)
    preferred = jnp.asarray(rng.choice([0, 0.5, 1], 12), jnp.float32)
    weight = jnp.asarray(rng.integers(0, 3, 12), jnp.float32)
    dual, _, width = most_probable(kernel, preferred, weight)
    slopes = jax.grad(log_likelihood, (0, 1))
    gradient, of_width = slopes(kernel @ dual, jnp.log(width), preferred, weight)
    np.testing.assert_allclose(dual, gradient, atol=2e-2 * float(jnp.abs(gradient).max()))
    np.testing.assert_array_equal(dual[weight == 0], 0)
    assert abs(float(of_width)) < 0.1


@pytest.mark.medium
def test_the_most_probable_logits_are_a_maximum():
    kernel = np.asarray(kernel_of(6), np.float64) + 1e-3 * np.eye(6)
    preferred, weight = jnp.asarray([1.0, 0, 1, 1, 0, 0.5]), jnp.ones(6)
    dual, _, width = most_probable(jnp.asarray(kernel, jnp.float32), preferred, weight)

    def posterior(logits, log_width):
        fit = float(log_likelihood(jnp.asarray(logits, jnp.float32), log_width, preferred, weight))
        return fit - 0.5 * logits @ np.linalg.solve(kernel, logits)

    best, log_width = kernel @ np.asarray(dual, np.float64), float(np.log(width))
    rng = np.random.default_rng(0)
    chol = np.linalg.cholesky(kernel)
    others = [
        posterior(best + 0.3 * chol @ rng.normal(size=6), log_width + 0.3 * rng.normal())
        for _ in range(50)
    ]
    assert posterior(best, log_width) > max(others)


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_primal_and_the_dual_solution_are_equal(scale):
    """The fit with matrices of labels equals the fit with matrices of features."""
    rng = np.random.default_rng(3)
    seen = jnp.asarray(scale * rng.normal(size=(30, 6)), jnp.float32)
    preferred = jnp.asarray(rng.choice([0, 0.5, 1], 30), jnp.float32)
    weight = jnp.asarray(rng.integers(0, 3, 30), jnp.float32)
    dual, evidence, width = most_probable(seen @ seen.T, preferred, weight)
    weights, same, same_width = module._most_probable_weights(seen, preferred, weight)
    assert float(same_width) == pytest.approx(float(width), rel=1e-3)
    np.testing.assert_allclose(weights, seen.T @ dual, rtol=1e-3, atol=1e-4)
    assert float(same) == pytest.approx(float(evidence), abs=1e-3)


def marginal(kernel, preferred, noise=0.1, points=60):
    """Return the log evidence by Gauss-Hermite quadrature over independent coordinates."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(kernel)))
    total = 0.0
    for chosen in itertools.product(range(points), repeat=len(kernel)):
        logits = root @ nodes[list(chosen)]
        p = (1 - noise) / (1 + np.exp(-logits)) + noise / 2
        likelihood = np.prod(np.where(preferred > 0.5, p, 1 - p))
        total += weights[list(chosen)].prod() * likelihood
    return np.log(total)


@pytest.mark.parametrize(
    ("kernel", "preferred"),
    [
        ([[1.0]], [1.0]),
        ([[4.0]], [0.0]),
        ([[2.0, 1.5], [1.5, 2.0]], [1.0, 1.0]),
        ([[2.0, 1.5], [1.5, 2.0]], [1.0, 0.0]),
        ([[2.0, -1.5], [-1.5, 2.0]], [1.0, 1.0]),
    ],
)
def test_the_evidence_is_near_the_marginal_likelihood(kernel, preferred):
    kernel, preferred = np.array(kernel), np.array(preferred)
    _, evidence, _ = most_probable(
        jnp.asarray(kernel, jnp.float32), jnp.asarray(preferred, jnp.float32), jnp.ones(len(kernel))
    )
    # Laplace's approximation: exact for none of these, 0.15 nats off at most.
    assert float(evidence) == pytest.approx(marginal(kernel, preferred), abs=0.15)


@pytest.mark.parametrize("preferred", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("variance", [0.3, 4.0])
def test_the_evidence_of_a_tie_and_an_answer_integrates_over_the_width(preferred, variance):
    """Two labels of the same pair, one of them a tie: by quadrature over the logit and log θ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    logits, widths = np.sqrt(variance) * nodes[:, None], np.exp(nodes[None])
    left, right = (np.exp(-np.logaddexp(0, widths - sign * logits)) for sign in (1, -1))
    answers = {0.0: right, 0.5: 1 - left - right, 1.0: left}
    both = (0.9 * answers[preferred] + 0.1 / 3) * (0.9 * answers[0.5] + 0.1 / 3)
    chance = np.outer(weights, weights) / weights.sum() ** 2
    kernel = jnp.full((2, 2), variance)
    _, evidence, _ = most_probable(kernel, jnp.asarray([preferred, 0.5]), jnp.ones(2))
    assert float(evidence) == pytest.approx(np.log((chance * both).sum()), abs=0.3)


def test_without_ties_the_likelihood_is_that_of_bradley_and_terry():
    logits, preferred = jnp.asarray([0.3, -2.0, 5.0]), jnp.asarray([1.0, 0.0, 0.0])
    score = module._score(logits, jnp.float32(1.0), preferred, jnp.ones(3))
    expected = -preference_loss(logits, jnp.zeros(3), preferred, module.NOISE).sum()
    assert float(score.log_likelihood) == pytest.approx(float(expected), rel=1e-5)
    assert float(score.tie_width) == float(score.width_gradient) == float(score.width_fisher) == 0


def test_a_tie_says_that_the_clips_are_close_not_that_the_reward_is_small():
    """As half a label for each side, ties would shrink the prior; without them, less is known."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        difference = 3 * rng.normal(size=(40, SIZE))
        truth = rng.normal(size=SIZE)
        returns = difference @ truth
        close = np.abs(returns) < np.quantile(np.abs(returns), 0.5)
        preferred = np.where(close, 0.5, returns > 0)
        labelled = Labelled(*(jnp.asarray(x, jnp.float32) for x in (difference, preferred, ~close)))
        fresh = rng.normal(size=(500, SIZE))
        both = [labelled, labelled._replace(weight=jnp.ones(40))]
        fits = [fit_jit(x, GROUPS, jax.random.key(0)) for x in both]
        found = [np.corrcoef(fresh @ (x.chances @ x.models), fresh @ truth)[0, 1] for x in fits]
        gains.append(found[1] - found[0])
    assert np.mean(gains) > 0.02


def test_with_zero_variance_the_evidence_is_that_of_guessing():
    preferred = jnp.asarray([1.0, 0.0, 1.0])
    dual, evidence, _ = most_probable(jnp.zeros((3, 3)), preferred, jnp.ones(3))
    assert float(evidence) == pytest.approx(3 * np.log(0.5), abs=1e-5)
    assert np.isfinite(dual).all()


def test_evidence_selects_the_relevant_group():
    weights = np.zeros(SIZE)
    weights[6:10] = [1, -1, 2, 1]  # the third group
    labelled = labels_of(weights, 60)
    ensemble = fit_jit(labelled, GROUPS, jax.random.key(0))
    grid, evidence = np.asarray(module._combinations(4)), np.asarray(ensemble.log_evidence)
    assert len(grid) == len(evidence) == 4 * 2 + 6 * 4 + 4 * 2 + 2  # one, two, three or all groups
    without = evidence[grid[:, 2] == 0].max()
    assert evidence[grid[:, 2] > 0].max() > without + 10  # nats
    alone = evidence[((grid > 0) == [False, False, True, False]).all(1)].max()
    assert alone > without + 10
    expected = np.asarray(ensemble.chances) @ (grid > 0)
    assert expected[2] > 0.99
    assert max(expected[[0, 1, 3]]) < 0.2


def test_each_group_is_active_with_the_prior_probability(monkeypatch):
    monkeypatch.setattr(module, "IN_PLAY", 0.25)
    grid = module._combinations(4)
    # Odds of 1 to 3 for each active group, shared by 2, 4, 2 or 2 combinations of variances.
    of_active = {1: 1 / 3 / 2, 2: 1 / 9 / 4, 3: 1 / 27 / 2, 4: 1 / 81 / 2}
    expected = [of_active[int(count)] for count in (grid > 0).sum(1)]
    np.testing.assert_allclose(np.exp(module._log_prior(grid)), expected, rtol=1e-5)
    every = np.exp(module._log_prior(module._combinations(3))).sum()
    assert every == pytest.approx((4 / 3) ** 3 - 1, rel=1e-5)  # all but none in play


@pytest.mark.medium
@pytest.mark.parametrize("padding", [-5, 3], ids=["fewer labels than features", "more"])
def test_models_use_all_labels_and_are_weighted_by_prior_times_evidence(padding):
    labelled = some_labels(16 + min(padding, 0), padding=max(padding, 0))
    ensemble = fit_jit(labelled, GROUPS, jax.random.key(0))
    parts, scales, _ = module._scaled_groups(labelled, GROUPS)
    posterior = []
    for at, variances in enumerate(np.asarray(module._combinations(4))):
        kernel = sum(v * part @ part.T for v, part in zip(variances, parts, strict=True))
        dual, evidence, _ = most_probable(kernel, labelled.left_preferred, labelled.weight)
        found = [
            v * scale * part.T @ dual
            for v, scale, part in zip(variances, scales, parts, strict=True)
        ]
        np.testing.assert_allclose(ensemble.models[at], np.concatenate(found), rtol=1e-2, atol=1e-2)
        assert float(ensemble.log_evidence[at]) == pytest.approx(float(evidence), abs=5e-2)
        active = int((variances > 0).sum())
        prior = (module.IN_PLAY / (1 - module.IN_PLAY)) ** active / {1: 2, 2: 4, 3: 2, 4: 2}[active]
        posterior.append(np.exp(ensemble.log_evidence[at]) * prior)
    np.testing.assert_allclose(ensemble.chances, posterior / np.sum(posterior), rtol=1e-3)


def test_groups_are_scaled_to_a_mean_squared_length_of_one():
    labelled = some_labels(15, padding=5)
    parts, scales, _ = module._scaled_groups(labelled, GROUPS)
    start = 0
    for part, scale, size in zip(parts, scales, GROUPS, strict=True):
        assert part.shape == (20, size)
        assert float(jnp.square(part).sum()) / 15 == pytest.approx(1, rel=1e-4)
        piece = labelled.difference[:, start : start + size]
        np.testing.assert_allclose(part, piece * scale, rtol=1e-5)
        start += size


def test_a_constant_group_has_zero_weights():
    labelled = some_labels()
    labelled = labelled._replace(difference=labelled.difference.at[:, 0].set(0.0))
    ensemble = fit_jit(labelled, GROUPS, jax.random.key(0))
    np.testing.assert_array_equal(ensemble.models[:, 0], 0)
    np.testing.assert_array_equal(ensemble.members[:, 0], 0)
    assert np.isfinite(ensemble.models).all()


def test_bootstrap_samples_have_the_number_of_labels_and_no_padding():
    weight = jnp.asarray([1.0] * 10 + [0.0] * 6)
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = np.asarray(jax.vmap(module._bootstrap, (0, None))(keys, weight))
    np.testing.assert_array_equal(drawn.sum(1), 10)
    np.testing.assert_array_equal(drawn[:, 10:], 0)
    # Each count is binomial(10, 1/10): mean 1, variance 0.9, 0 with probability 0.9¹⁰.
    error = 5 / np.sqrt(4000)
    np.testing.assert_allclose(drawn[:, :10].mean(0), 1, atol=error * np.sqrt(0.9))
    np.testing.assert_allclose(drawn[:, :10].var(0), 0.9, atol=0.15)
    left_out = 0.9**10
    np.testing.assert_allclose(
        (drawn[:, :10] == 0).mean(0), left_out, atol=error * np.sqrt(left_out * (1 - left_out))
    )


def test_members_draw_different_labels():
    drawn = np.asarray(fit_jit(some_labels(), GROUPS, jax.random.key(0)).drawn)
    assert drawn.shape == (MEMBERS, 20)
    assert len({row.tobytes() for row in drawn}) == MEMBERS


@pytest.mark.medium
def test_padding_changes_only_the_bootstrap_samples():
    """The evidence and the fit of a member do not depend on padding."""
    bare, padded = some_labels(20), some_labels(20, padding=12)
    rubbish = padded._replace(
        difference=padded.difference.at[20:].set(1e3), left_preferred=padded.left_preferred + 0.5
    )
    rubbish = rubbish._replace(
        left_preferred=jnp.where(padded.weight > 0, padded.left_preferred, 0.5)
    )
    one, other, wild = (fit_jit(x, GROUPS, jax.random.key(0)) for x in (bare, padded, rubbish))
    assert float(one.log_evidence.max()) == pytest.approx(float(other.log_evidence.max()), rel=1e-5)
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-4)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(other.members, wild.members, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(other.drawn[:, 20:], 0)
    counts = other.drawn[0]
    parts = module._scaled_groups(padded, GROUPS).parts
    kernel = sum(10.0 * part @ part.T for part in parts)
    long, _, _ = most_probable(kernel, padded.left_preferred, counts)
    short, _, _ = most_probable(kernel[:20, :20], bare.left_preferred, counts[:20])
    np.testing.assert_allclose(long[:20], short, rtol=1e-3, atol=1e-5)


def test_a_known_linear_reward_is_recovered():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=SIZE)
    ensemble = fit_jit(labels_of(truth, 100), GROUPS, jax.random.key(0))
    fresh = rng.normal(size=(1000, SIZE))
    found = fresh @ (ensemble.chances @ ensemble.models)
    assert np.corrcoef(found, fresh @ truth)[0, 1] > 0.9


@pytest.mark.medium
def test_ties_alone_give_zero_weights():
    labelled = some_labels()
    labelled = labelled._replace(left_preferred=jnp.full(20, 0.5))
    ensemble = fit_jit(labelled, GROUPS, jax.random.key(0))
    np.testing.assert_allclose(ensemble.models, 0, atol=1e-6)
    np.testing.assert_allclose(ensemble.members, 0, atol=1e-6)


def test_the_fit_is_a_pure_function():
    one, again = (fit_jit(some_labels(), GROUPS, jax.random.key(1)) for _ in range(2))
    for left, right in zip(one, again, strict=True):
        np.testing.assert_array_equal(left, right)
    other = fit_jit(some_labels(), GROUPS, jax.random.key(2))
    np.testing.assert_array_equal(one.models, other.models)  # chance is the members' alone
    assert not np.array_equal(one.members, other.members)


def labels_on_clips(count, ending=False, seed=0, asked_at=0):
    """Return labels on clips of 6 steps, the better of which stays nearer to zero."""
    rng = np.random.default_rng(seed)

    def clip():
        steps = rng.normal(size=(7, 2)).astype(np.float32)
        alive = np.arange(6) < (rng.integers(2, 7) if ending else 6)
        return ObservedClip(steps[:-1], rng.integers(0, 2, 6), steps[1:], alive)

    def label(query):
        pair = clip(), clip()
        cost = [np.square(x.obs[x.alive]).sum() for x in pair]
        return LabelledComparison(query, lambda: pair, float(cost[0] < cost[1]), asked_at)

    return [label(100 * seed + i) for i in range(count)]


def record(seed=0):
    """Return observations of a random policy: a random walk."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 1, 2)).astype(np.float32)
    moved = x + rng.normal(scale=0.2, size=x.shape).astype(np.float32)
    flags = np.zeros((500, 1), bool)
    return Transition(x, flags, flags, flags, flags, moved, ~flags, ())


def ready(budget=12, seeds=1):
    model = LinearRewardModel(SPEC, budget, 6)
    for _ in range(seeds):
        model.observe(record())
    return model


def fitted(model, *labels):
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), len(labels))))
    return model.fit(model.initial(len(labels)), labels, keys)


def refitted(labels, budget=12):
    """Return one seed's parameters, metrics, and features of all alive steps."""
    model = ready(budget)
    found = fitted(model, labels)
    parameters = row_of(found.parameters, 0)
    size = sum(group_sizes(SPEC))
    steps = model._steps(parameters.inputs, labels).alive if labels else np.zeros((0, size))
    return parameters, found.metrics[0], steps


@pytest.mark.medium
@pytest.mark.parametrize("ending", [False, True])
def test_the_reward_has_a_constant_spread_over_labelled_clips(ending):
    parameters, metrics, steps = refitted(labels_on_clips(12, ending))
    raw = (steps @ parameters.weights - parameters.offset) / parameters.scale
    if ending:  # zero stays what comes after the end
        assert parameters.offset == 0
        assert np.sqrt(np.square(raw).mean()) == pytest.approx(1, rel=1e-3)
    else:
        assert raw.mean() == pytest.approx(0, abs=1e-4)
        assert raw.std() == pytest.approx(1, rel=1e-3)
    assert metrics["reward_model_std"] == pytest.approx(raw.std(), rel=1e-3)
    assert metrics["reward_model_mean"] == pytest.approx(raw.mean(), abs=1e-4)
    assert metrics["reward_model_min"] == pytest.approx(raw.min(), rel=1e-3)
    assert metrics["reward_model_max"] == pytest.approx(raw.max(), rel=1e-3)


def test_the_reward_is_the_mean_of_models_of_equal_spread():
    """The weight of a model is its probability, independent of the size of its rewards."""
    labels = labels_on_clips(12)
    parameters, _, steps = refitted(labels)
    padded = linear._padded(ready()._steps(parameters.inputs, labels), 12)
    key = jax.random.split(jax.random.key(0), 1)[0]
    ensemble = jax.tree.map(np.asarray, fit_jit(padded, tuple(group_sizes(SPEC)), key))
    worth = np.zeros(len(steps))
    for chance, weights in zip(ensemble.chances, ensemble.models, strict=True):
        said = steps @ weights
        worth += chance * said / max(said.std(), 1e-8)
    np.testing.assert_allclose(steps @ parameters.weights, worth, rtol=1e-2, atol=1e-3)


def test_opinions_have_the_reward_and_the_members_spread():
    labels = labels_on_clips(12, ending=True)
    model = ready()
    parameters = row_of(fitted(model, labels).parameters, 0)
    clips = labels[0].clips()
    opinions = model.opinions(parameters, clips)
    seen = model._clip_features(parameters.inputs, [model._clips.encode(x) for x in clips])
    worth = [[float(x @ parameters.weights) for x in clip] for clip in seen]
    votes = np.array([[[float(w @ x) for w in parameters.members] for x in clip] for clip in seen])
    means = votes.mean(2)
    factor = (np.array(worth) * means).sum() / np.square(means).sum()
    for i, clip in enumerate(clips):
        reward = np.clip((np.array(worth[i]) - parameters.offset) / parameters.scale, -3, 3)
        apart = abs(factor) * votes[i].std(1) / parameters.scale
        np.testing.assert_allclose(opinions.reward[i], reward * clip.alive, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(opinions.spread[i], apart * clip.alive, rtol=1e-3, atol=1e-4)


def test_metrics_of_labels_ties_and_accuracy():
    labels = labels_on_clips(12)
    labels[3] = labels[3]._replace(left_preferred=0.5)
    parameters, metrics, _ = refitted(labels)
    assert metrics["reward_model_labels"] == 12
    assert metrics["reward_model_ties"] == 1
    assert 0.6 < metrics["reward_model_accuracy"] <= 1
    assert 0 <= metrics["reward_model_held_out_accuracy"] <= 1
    assert np.isfinite(parameters.members).all()


def test_from_ties_alone_the_reward_is_zero():
    """Not the rounding noise of the fit, scaled up."""
    ties = [label._replace(left_preferred=0.5) for label in labels_on_clips(12)]
    model = ready()
    parameters = row_of(fitted(model, ties).parameters, 0)
    assert not np.asarray(parameters.weights).any()
    assert model.opinions(parameters, ties[0].clips()) is None
    decided = [*ties[:-1], labels_on_clips(12)[-1]]
    other = row_of(fitted(ready(), decided).parameters, 0)
    assert np.asarray(other.members).any()


def test_the_embedding_has_the_mixtures_prior_and_weights():
    """Its returns are those of the mean model; its kernel is Σ P(v) α_vg K_g, group by group."""
    labels = labels_on_clips(12)
    model = ready()
    parameters = row_of(fitted(model, labels).parameters, 0)
    clips = [clip for label in labels for clip in label.clips()]
    found = model.embed(0, labels, clips)
    inputs = Inputs(parameters.encoder, ())
    sums, groups = model._steps(inputs, labels).sums, tuple(filter(None, group_sizes(SPEC)))
    difference = sums[0::2] - sums[1::2]
    preferred = np.array([one.left_preferred for one in labels], np.float32)
    labelled = Labelled(*(jnp.asarray(x) for x in (difference, preferred, np.ones(12, np.float32))))
    ensemble = fit(labelled, groups, jax.random.key(9))
    np.testing.assert_allclose(
        found.clips @ found.weights, sums @ (ensemble.chances @ ensemble.models), atol=2e-3
    )
    every = itertools.product(module.VARIANCES, repeat=len(groups))
    grid = np.array([variances for variances in every if module._is_candidate(variances)])
    kernel, start = np.zeros((12, 12)), 0
    for group, size in enumerate(groups):
        part = difference[:, start : start + size]
        scale = np.square(part).sum() / 12
        alpha = float(ensemble.chances @ grid[:, group])
        kernel += alpha * part @ part.T / max(scale, 1e-12)
        start += size
    np.testing.assert_allclose(found.labelled @ found.labelled.T, kernel, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(found.clips[0::2] - found.clips[1::2], found.labelled, atol=1e-3)


def test_a_resumed_model_embeds_as_one_that_was_fitted():
    labels = labels_on_clips(12)
    one, resumed = ready(), ready()
    fitted(one, labels)
    clips = labels[0].clips()
    for x, y in zip(one.embed(0, labels, clips), resumed.embed(0, labels, clips), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    assert resumed.embed(0, [], clips) is None


@pytest.mark.medium
def test_the_fit_of_a_seed_does_not_depend_on_other_seeds():
    seeds = [labels_on_clips(12, seed=1), labels_on_clips(7, seed=2), []]
    model = ready(seeds=3)
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 3)))
    together = model.fit(model.initial(3), seeds, keys).parameters
    for i, labels in enumerate(seeds):
        alone = ready().fit(model.initial(1), [labels], keys[i : i + 1]).parameters
        np.testing.assert_array_equal(together.weights[i], alone.weights[0])
        np.testing.assert_array_equal(together.members[i], alone.members[0])


@pytest.mark.parametrize(
    ("asked_at", "labels"),
    [([], 0), ([0, 0], 2), ([0, 0, 9], 2), ([0, 0, 9, 9], 4), ([0, 0, 9, 9, 20, 20, 30], 4)],
)
def test_encoders_are_fitted_when_labels_have_doubled(asked_at, labels):
    assert last_doubling(asked_at) == labels


@pytest.mark.medium
def test_an_encoder_is_cached_until_labels_have_doubled_or_one_is_undone():
    first = labels_on_clips(4)
    later = labels_on_clips(3, seed=1, asked_at=9)
    model = ready()

    def mean(labels):
        return np.asarray(fitted(model, labels).parameters.encoder.mean)[0]

    kept = mean(first)
    np.testing.assert_array_equal(mean(first + later), kept)
    assert not np.array_equal(mean(first[1:] + later), kept)
    more = mean(first + later + labels_on_clips(1, seed=2, asked_at=9))
    assert not np.array_equal(more, kept)
