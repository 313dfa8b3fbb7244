"""PPO: its formulas by hand, masks, and probes with known answers."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms import batches, probing
from packages.backflip.tests.algorithms.batches import (
    CONTINUOUS,
    DISCRETE,
    KEY,
    PIXELS,
    assert_same_bits,
    spoil,
)
from packages.backflip.tests.algorithms.probing import endless_on_the_host

from backflip.algorithms import ppo as module
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.parts import bootstrap, invalid_rows, rollout_rows
from backflip.algorithms.parts.normalization import observe, observe_returns
from backflip.algorithms.parts.rollout_rows import Rows
from backflip.algorithms.parts.stochastic_policy import Actor, preprocess
from backflip.algorithms.ppo import PPOState, loss, ppo, signal_share
from backflip.core import losses, returns
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.statistics import RunningStatistics
from backflip.core.types import Transition
from backflip.drivers.native import NativeDriver
from backflip.envs.native import probes
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.networks.actor_critic import actor_critic

SMALL = PPOConfig(
    env_steps=5 * 32,
    num_envs=4,
    rollout_length=8,
    epochs=2,
    minibatches=2,
    hidden=(16, 16),
    entropy_coef=0.01,
    entropy_coef_end=0.01,
)
SCALED = PPOConfig(**(vars(SMALL) | {"normalize_obs": True, "normalize_rewards": True}))


vectors_quickly = pytest.mark.parametrize(
    "spec",
    [DISCRETE, CONTINUOUS, pytest.param(PIXELS, marks=pytest.mark.slow)],
    ids=lambda spec: spec.id,
)
discrete_quickly = pytest.mark.parametrize(
    "spec",
    [DISCRETE, *(pytest.param(spec, marks=pytest.mark.slow) for spec in (CONTINUOUS, PIXELS))],
    ids=lambda spec: spec.id,
)


def actor_of(config: PPOConfig, spec: EnvSpec) -> Actor:
    return Actor(spec, actor_critic(spec, config.hidden), config.normalize_obs)


def start(config: PPOConfig, spec: EnvSpec, seed: int = 0) -> PPOState:
    return batches.start(ppo(config, spec), seed)


def make_batch(config: PPOConfig, spec: EnvSpec, state: PPOState, seed: int = 0) -> Transition:
    return batches.make_batch(ppo(config, spec), spec, state, seed)


_updates: dict[tuple[PPOConfig, str], Any] = {}  # compiled once for all tests


def updated(
    config: PPOConfig, spec: EnvSpec, state: PPOState, batch: Transition
) -> tuple[PPOState, dict[str, Any]]:
    key = config, spec.id
    if key not in _updates:
        _updates[key] = jax.jit(ppo(config, spec).update)
    return _updates[key](state, batch, KEY)


# The pieces, by hand


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "config"),
    [
        (CartPole(), SCALED),
        pytest.param(Dot(), SMALL, marks=pytest.mark.slow),
        pytest.param(CartPole(), SMALL, marks=pytest.mark.slow),
        pytest.param(Pendulum(), SCALED, marks=pytest.mark.slow),
    ],
)
def test_the_first_minibatch_of_an_update_has_ratio_1(env: Any, config: PPOConfig) -> None:
    assert first_ratio_error(env, config) < 2e-6


def first_ratio_error(env: Any, config: PPOConfig) -> float:
    algorithm = ppo(config, env.spec)
    learners = NativeDriver(env, algorithm).start([0])
    _, phase = NativeDriver(env, algorithm).phase(3)(learners, np.zeros(1))
    return float(np.max(phase.metrics["first_ratio_error"]))


@pytest.mark.slow
def test_updating_the_normaliser_too_early_changes_the_first_ratio(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def early(actor: Any, state: Any, batch: Any, estimate: Any) -> Any:
        moved = observe(state.obs_statistics, batch)
        return prepare(actor, state._replace(obs_statistics=moved), batch, estimate)

    monkeypatch.setattr(module, "prepare", early)
    assert first_ratio_error(CartPole(), SCALED) > 1e-4


@pytest.mark.medium
def test_schedules_by_hand() -> None:
    ends = {"learning_rate_end": 5e-4, "clip_range_end": 0.1, "entropy_coef_end": 0.06}
    config = PPOConfig(**(vars(SMALL) | {"clip_range": 0.2} | ends))
    assert config.updates == 5
    state = start(config, DISCRETE)
    batch = make_batch(config, DISCRETE, state)
    update = jax.jit(ppo(config, DISCRETE).update)
    found = []
    for _ in range(7):
        state, metrics = update(state, batch, KEY)
        found.append([metrics[name] for name in ("learning_rate", "clip_range", "entropy_coef")])
    steps = np.minimum(np.arange(7), 5)[:, None]
    expected = np.array([1e-3, 0.2, 0.01]) + steps * np.array([-1e-4, -0.02, 0.01])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert int(state.updates) == 7


@pytest.mark.parametrize(("env_steps", "updates"), [(1, 1), (32, 1), (33, 2), (160, 5)])
def test_updates_cover_the_env_steps(env_steps: int, updates: int) -> None:
    assert PPOConfig(**(vars(SMALL) | {"env_steps": env_steps})).updates == updates


@pytest.mark.slow
def test_learning_rate_0_changes_nothing() -> None:
    config = PPOConfig(**(vars(SMALL) | {"learning_rate": 0.0}))
    state = start(config, DISCRETE)
    after, metrics = updated(config, DISCRETE, state, make_batch(config, DISCRETE, state))
    assert_same_bits(state.params, after.params)
    assert float(metrics["update_ratio"]) == 0
    assert float(metrics["clip_fraction"]) == 0


@pytest.mark.slow
def test_gradients_are_clipped_by_their_global_norm() -> None:
    """Clipped to 1e-4, gradients are so small that Adam's ε of 1e-5 changes the first step."""
    once = {"epochs": 1, "minibatches": 1, "max_grad_norm": 1e-4, "learning_rate": 1.0}
    config = PPOConfig(**(vars(SMALL) | once))
    state = start(config, DISCRETE)
    after, metrics = updated(config, DISCRETE, state, make_batch(config, DISCRETE, state))
    assert float(metrics["grad_norm"]) > 1e-2
    gradient = jax.tree.map(lambda mean: np.asarray(mean, np.float64) / 0.1, after.optimizer.mu)
    norm = np.sqrt(sum((g**2).sum() for g in jax.tree.leaves(gradient)))
    np.testing.assert_allclose(norm, 1e-4, rtol=1e-3)
    moved = jax.tree.map(lambda old, new: np.asarray(old - new), state.params, after.params)
    for step, g in zip(*map(jax.tree.leaves, (moved, gradient)), strict=True):
        np.testing.assert_allclose(step, g / (np.abs(g) + 1e-5), rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_update_ratio_equals_numpy() -> None:
    state = start(SMALL, DISCRETE)
    after, metrics = updated(SMALL, DISCRETE, state, make_batch(SMALL, DISCRETE, state))
    before = np.concatenate([np.ravel(x) for x in jax.tree.leaves(state.params)])
    moved = np.concatenate([np.ravel(x) for x in jax.tree.leaves(after.params)]) - before
    expected = np.linalg.norm(moved) / np.linalg.norm(before)
    np.testing.assert_allclose(metrics["update_ratio"], expected, rtol=1e-4)


def some_rows(state: PPOState, spec: EnvSpec) -> Rows:
    """Twelve rows that another policy acted in; every third is invalid."""
    rng = np.random.default_rng(3)
    obs = jnp.asarray(rng.normal(size=(12, 5)), jnp.float32)
    action, extra = ppo(SMALL, spec).act(state, obs, KEY)
    log_prob = extra.log_prob + jnp.asarray(rng.normal(0, 0.3, 12), jnp.float32)
    advantage, target = (jnp.asarray(rng.normal(1, 2, 12), jnp.float32) for _ in range(2))
    return Rows(obs, action, log_prob, advantage, target, jnp.arange(12) % 3 != 2)


@pytest.mark.medium
@pytest.mark.parametrize("value_clip_range", [0.0, 0.5])
@pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS], ids=lambda spec: spec.id)
def test_loss_equals_the_definition_row_by_row(spec: EnvSpec, value_clip_range: float) -> None:
    state, config = (
        start(SMALL, spec),
        PPOConfig(**(vars(SMALL) | {"value_clip_range": value_clip_range})),
    )
    rows, actor = some_rows(state, spec), actor_of(config, spec)
    compiled = jax.jit(partial(loss, config, actor))
    total, metrics = compiled(state.params, rows, jnp.asarray(0.2), jnp.asarray(0.03))

    head, value = (np.asarray(x, np.float64) for x in actor.net.apply(state.params, rows.inputs))
    kept = np.flatnonzero(rows.valid)
    advantage = np.asarray(rows.advantage, np.float64)[kept]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_losses, value_losses, entropies, kls, clipped = [], [], [], [], []
    for a, i in zip(advantage, kept, strict=True):
        if isinstance(spec.action, Discrete):
            p = np.exp(head[i]) / np.exp(head[i]).sum()
            log_prob, entropy = np.log(p[int(rows.action[i])]), -(p * np.log(p)).sum()
        else:
            error = np.asarray(rows.action[i], np.float64) - head[i]  # σ = 1 at the start
            log_prob = (-0.5 * error**2 - 0.5 * math.log(2 * math.pi)).sum()
            entropy = math.log(2 * math.pi * math.e)  # ½ log 2πe for each of two
        ratio = math.exp(log_prob - float(rows.log_prob[i]))
        policy_losses.append(-min(ratio * a, min(max(ratio, 0.8), 1.2) * a))
        wanted = float(rows.target[i])
        errors, old = [value[i] - wanted], wanted - float(rows.advantage[i])
        if value_clip_range:
            errors.append(
                min(max(value[i], old - value_clip_range), old + value_clip_range) - wanted
            )
        value_losses.append(max(0.5 * error**2 for error in errors))
        entropies.append(entropy)
        kls.append(ratio - 1 - math.log(ratio))
        clipped.append(abs(ratio - 1) > 0.2)
    expected = {
        "policy_loss": np.mean(policy_losses),
        "value_loss": np.mean(value_losses),
        "entropy": np.mean(entropies),
        "approx_kl": np.mean(kls),
        "clip_fraction": np.mean(clipped),
    }
    for name, x in expected.items():
        np.testing.assert_allclose(metrics[name], x, rtol=1e-4, atol=1e-5, err_msg=name)
    assert 0 < expected["clip_fraction"] < 1
    whole = expected["policy_loss"] + 0.5 * expected["value_loss"] - 0.03 * expected["entropy"]
    np.testing.assert_allclose(total, whole, rtol=1e-4, atol=1e-5)


@pytest.mark.medium
def test_gradient_with_rows_masked_equals_that_without_the_rows() -> None:
    state = start(SMALL, DISCRETE)
    rows, actor = some_rows(state, DISCRETE), actor_of(SMALL, DISCRETE)
    kept = jax.tree.map(lambda x: x[np.flatnonzero(rows.valid)], rows)

    @jax.jit
    def gradient(rows: Rows) -> Any:
        return jax.grad(loss, argnums=2, has_aux=True)(
            SMALL, actor, state.params, rows, jnp.asarray(0.2), jnp.asarray(0.01)
        )[0]

    for a, b in zip(*(jax.tree.leaves(gradient(r)) for r in (rows, kept)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.medium
def test_rewards_are_divided_by_the_deviation_of_the_return_so_far_and_never_shifted() -> None:
    """R ← γ R + r; added to the statistics; 0 after an end: in loops, over three batches."""
    state, seen, running = start(SCALED, DISCRETE), [], np.zeros(4)
    update = jax.jit(ppo(SCALED, DISCRETE).update)
    for seed in range(3):
        batch = make_batch(SCALED, DISCRETE, state, seed)
        valid, ended = np.asarray(batch.valid), np.asarray(batch.terminated | batch.truncated)
        for t in range(8):
            for n in range(4):
                if valid[t, n]:
                    running[n] = SCALED.discount * running[n] + float(batch.reward[t, n])
                    seen.append(running[n])
                    running[n] *= not ended[t, n]
        state, metrics = update(state, batch, KEY)
        raw = np.asarray(batch.reward)[valid]
        np.testing.assert_allclose(state.return_statistics.std, np.std(seen), rtol=1e-4)
        np.testing.assert_allclose(metrics["reward_mean"], raw.mean() / np.std(seen), rtol=1e-4)
        np.testing.assert_allclose(metrics["reward_min"], raw.min() / np.std(seen), rtol=1e-4)
    np.testing.assert_allclose(state.running_return, running, rtol=1e-4, atol=1e-5)


@pytest.mark.medium
def test_the_normaliser_covers_all_valid_observations_since_the_start() -> None:
    state, seen = start(SCALED, DISCRETE), []
    update = jax.jit(ppo(SCALED, DISCRETE).update)
    for seed in range(3):
        batch = make_batch(SCALED, DISCRETE, state, seed)
        seen.append(np.asarray(batch.obs)[np.asarray(batch.valid)])
        state, _ = update(state, batch, KEY)
    rows = np.concatenate(seen)
    assert float(state.obs_statistics.rows) == len(rows)
    np.testing.assert_allclose(state.obs_statistics.mean, rows.mean(0), rtol=1e-4)
    np.testing.assert_allclose(state.obs_statistics.std, rows.std(0), rtol=1e-4)
    obs = jnp.asarray(rows[:4])
    found = preprocess(actor_of(SCALED, DISCRETE), state.obs_statistics, 100 * obs)
    normal = np.clip((100 * rows[:4] - rows.mean(0)) / rows.std(0), -10, 10)
    np.testing.assert_allclose(found, normal, rtol=1e-3)
    assert float(jnp.abs(found).max()) == 10


@pytest.mark.slow
def test_explained_variances_equal_slow_loops() -> None:
    """Against TD(λ) targets on all valid rows, and Monte-Carlo returns where they are known."""
    state = start(SMALL, DISCRETE)
    batch = make_batch(SMALL, DISCRETE, state)
    _, metrics = updated(SMALL, DISCRETE, state, batch)
    algorithm, b = ppo(SMALL, DISCRETE), jax.tree.map(np.asarray, batch)
    following = algorithm.act(state, batch.next_obs.reshape(-1, 5), KEY)[1].value.reshape(8, 4)
    ended, values = b.terminated | b.truncated, b.extra.value
    predicted, targets, known, monte_carlo = [], [], [], []
    for n in range(4):
        for t in range(8):
            if not b.valid[t, n]:
                continue
            advantage, weight, total, scale, certain = 0.0, 1.0, 0.0, 1.0, False
            for k in range(t, 8):
                bootstrap = 0.0 if b.terminated[k, n] else SMALL.discount * float(following[k, n])
                advantage += weight * (b.reward[k, n] + bootstrap - values[k, n])
                weight *= SMALL.discount * SMALL.gae_lambda
                total, scale = total + scale * b.reward[k, n], scale * SMALL.discount
                if ended[k, n]:
                    certain = bool(b.terminated[k, n])
                    break
            predicted.append(values[t, n])
            targets.append(advantage + values[t, n])
            if certain:
                known.append(values[t, n])
                monte_carlo.append(total)

    def explained(value: list[float], target: list[float]) -> float:
        return 1 - np.var(np.subtract(target, value)) / np.var(target)

    assert len(known) == 3
    found = [metrics["explained_variance"], metrics["explained_variance_mc"]]
    expected = [explained(predicted, targets), explained(known, monte_carlo)]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.medium
def test_the_batch_has_the_unclipped_actions() -> None:
    config = PPOConfig(**(vars(SMALL) | {"initial_log_std": 1.0}))
    state = start(config, CONTINUOUS)
    action, remembered = ppo(config, CONTINUOUS).act(state, jnp.zeros((64, 5)), KEY)
    assert float(jnp.abs(action).max()) > 1
    mean = ppo(config, CONTINUOUS).evaluation_action(state, jnp.zeros((64, 5)), KEY)
    error = (np.asarray(action) - np.asarray(mean)) / math.e
    expected = (-0.5 * error**2 - 1 - 0.5 * math.log(2 * math.pi)).sum(1)
    np.testing.assert_allclose(remembered.log_prob, expected, rtol=1e-4)


@pytest.mark.medium
@discrete_quickly
def test_same_state_batch_and_key_same_bits(spec: EnvSpec) -> None:
    state = start(SMALL, spec)
    batch = make_batch(SMALL, spec, state)
    assert_same_bits(updated(SMALL, spec, state, batch), updated(SMALL, spec, state, batch))


@pytest.mark.medium
@pytest.mark.parametrize("minibatches", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_key_only_assigns_rows_to_minibatches(minibatches: int) -> None:
    config = PPOConfig(**(vars(SMALL) | {"minibatches": minibatches}))
    state = start(config, DISCRETE)
    batch = make_batch(config, DISCRETE, state)
    update = jax.jit(ppo(config, DISCRETE).update)
    leaves = [
        jax.tree.leaves(update(state, batch, jax.random.key(seed))[0].params) for seed in (1, 2)
    ]
    same = all((a == b).all() for a, b in zip(*leaves, strict=True))
    assert same == (minibatches == 1)


# Advantages that are noise


@pytest.mark.medium
@pytest.mark.parametrize(("advantages", "share"), [([3.0, -3.0], 1.0), ([0.03, -0.03], 0.15)])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
@pytest.mark.parametrize("normalize_rewards", [False, True])
def test_the_policys_share_shrinks_with_advantages_below_the_floor_in_any_unit(
    advantages: list[float], share: float, unit: float, normalize_rewards: bool
) -> None:
    """σ_R = 20, c = .01: the floor is .2; in normalised rewards σ_R = 1."""
    changes = {"advantage_floor": 0.01, "normalize_rewards": normalize_rewards}
    config = PPOConfig(**(vars(SMALL) | changes))
    rows = some_rows(start(config, DISCRETE), DISCRETE)
    seen = RunningStatistics(*map(jnp.asarray, (2.0, 0.0, 2 * (20 * unit) ** 2)))
    state = start(config, DISCRETE)._replace(return_statistics=seen)
    given = jnp.tile(jnp.asarray(advantages, jnp.float32), 6) * unit
    if normalize_rewards:
        given = given / (20 * unit)
    given = jnp.where(rows.valid, given, 1e9)  # as many of both signs are valid
    found = signal_share(config, state, rows._replace(advantage=given))
    np.testing.assert_allclose(found, share, rtol=1e-5)


@pytest.mark.slow
@vectors_quickly
def test_noise_moves_the_policy_by_its_share_and_the_value_as_far_as_ever(spec: EnvSpec) -> None:
    """The floor is ten times the advantages, so the policy's one gradient step is a tenth as long.

    The network of images has a torso that both share; it acts, too.
    """
    once = vars(SMALL) | {"epochs": 1, "minibatches": 1}
    state = start(PPOConfig(**once), spec)
    batch = make_batch(PPOConfig(**once), spec, state)
    plain, metrics = updated(PPOConfig(**once), spec, state, batch)
    returns = observe_returns(SMALL.discount, state, batch).return_statistics.std
    floor = 10 * float(metrics["advantage_std"]) / float(returns)
    less, shrunk = updated(PPOConfig(**(once | {"advantage_floor": floor})), spec, state, batch)
    assert shrunk["learning_rate"] == metrics["learning_rate"]
    np.testing.assert_allclose([metrics["signal_share"], shrunk["signal_share"]], [1, 0.1], 1e-4)
    far, near = (
        jax.tree.map(lambda after, old: after - old, after.params, state.params)
        for after in (plain, less)
    )
    jax.tree.map(np.testing.assert_array_equal, near["value"], far["value"])
    tenth = partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-7)
    for name in far.keys() - {"value", "body"}:
        jax.tree.map(lambda a, b: tenth(a, b / 10), near[name], far[name])
    if not spec.is_image:
        for of_near, of_far in zip(near["body"], far["body"], strict=True):
            jax.tree.map(lambda a, b: tenth(a[0], b[0] / 10), of_near, of_far)
            jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[1]), of_near, of_far)


@pytest.mark.slow
def test_a_floor_below_the_advantages_changes_no_bits() -> None:
    state = start(SMALL, DISCRETE)
    batch = make_batch(SMALL, DISCRETE, state)
    plain, _ = updated(SMALL, DISCRETE, state, batch)
    config = PPOConfig(**(vars(SMALL) | {"advantage_floor": 1e-6}))
    assert_same_bits(plain.params, updated(config, DISCRETE, state, batch)[0].params)


# Rows that did not happen


@pytest.mark.medium
@pytest.mark.parametrize("number", [1e6, np.nan, np.inf])
@discrete_quickly
def test_contents_of_invalid_rows_change_no_bit(spec: EnvSpec, number: float) -> None:
    state = start(SCALED, spec)
    batch = make_batch(SCALED, spec, state)
    right = updated(SCALED, spec, state, batch)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    assert_same_bits(right, updated(SCALED, spec, state, spoil(batch, number)))


@pytest.mark.medium
def test_a_valid_row_does_change_bits() -> None:
    state = start(SMALL, DISCRETE)
    batch = make_batch(SMALL, DISCRETE, state)
    changed = batch._replace(reward=batch.reward.at[1, 1].add(1.0))
    one, other = (updated(SMALL, DISCRETE, state, b)[0] for b in (batch, changed))
    first, second = jax.tree.leaves(one.params)[0], jax.tree.leaves(other.params)[0]
    assert (first != second).any()


@pytest.mark.slow
def test_weight_0_without_blanking_lets_nan_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place in (invalid_rows, bootstrap, rollout_rows):
        monkeypatch.setattr(place, "blank", lambda x, valid: x)
    state = start(SMALL, DISCRETE)
    batch = spoil(make_batch(SMALL, DISCRETE, state), np.nan)
    after, _ = jax.jit(ppo(SMALL, DISCRETE).update)(state, batch, KEY)
    assert not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after.params))


# Probes: tasks whose answers are known beforehand, and broken variants that miss them

PROBE = PPOConfig(
    env_steps=64 * 60,
    num_envs=8,
    rollout_length=8,
    epochs=8,
    minibatches=2,
    learning_rate=1e-2,
    discount=0.9,
    gae_lambda=0.95,
    clip_range_end=0.2,
    hidden=(16, 16),
)
SEEDS = [0, 1, 2]


def learn(env: Any, shown: list[float], config: PPOConfig = PROBE) -> tuple[Any, Any]:
    """Values (seeds, shown) and greedy actions (seeds, shown) after learning."""
    algorithm = ppo(config, env.spec)
    learners = NativeDriver(env, algorithm).start(SEEDS)
    run = NativeDriver(env, algorithm).phase(config.updates)
    learners, _ = run(learners, np.zeros(len(SEEDS)))
    obs = jnp.asarray(shown)[:, None]

    def ask(state: PPOState) -> tuple[Any, Any]:
        return algorithm.act(state, obs, KEY)[1].value, algorithm.evaluation_action(state, obs, KEY)

    state = jax.tree.map(jnp.asarray, jax.tree.map(np.asarray, learners.algorithm))
    return tuple(np.asarray(x) for x in jax.jit(jax.vmap(ask))(state))


def value_of_nothing(env: Any) -> float:
    return float(np.abs(learn(env, [0.0])[0] - 1).max())


def value_of_what_is_seen(env: Any) -> float:
    return float(np.abs(learn(env, [-1.0, 1.0])[0] - np.array([[-1, 1]])).max())


def value_of_a_delay(env: Any) -> float:
    return float(np.abs(learn(env, [0.0, 1.0])[0] - np.array([[0.9, 1.0]])).max())


def value_and_choice(env: Any) -> float:
    value, action = learn(env, [0.0])
    return float(np.abs(value - 1).max() + (action != 1).sum())


def value_and_match(env: Any) -> float:
    value, action = learn(env, [-1.0, 1.0])
    return float(np.abs(value - 1).max() + (action != np.array([[0, 1]])).sum())


def value_of_eternity(env: Any) -> float:
    long = PPOConfig(**(vars(PROBE) | {"env_steps": 64 * 200}))
    return float(np.abs(learn(env, [0.0], long)[0] / 10 - 1).max())  # 1 / (1 - .9)


def mean_action(env: Any) -> float:
    long = PPOConfig(**(vars(PROBE) | {"env_steps": 64 * 150, "initial_log_std": -1.0}))
    return float(np.abs(learn(env, [0.0], long)[1] - 0.5).max())


def advantage_flipped(log_prob: Any, old: Any, advantage: Any, clip: Any) -> Any:
    return losses.clipped_surrogate(log_prob, old, -advantage, clip)


def value_gradient_stopped(value: Any, target: Any) -> Any:
    return losses.squared_error(jax.lax.stop_gradient(value), target)


def undiscounted(*stream: Any, discount: float, gae_lambda: float) -> Any:
    return returns.gae(*stream, discount=1.0, gae_lambda=gae_lambda)


def bootstrapped_at_termination(
    rewards: Any, values: Any, next_values: Any, terminated: Any, truncated: Any, **factors: float
) -> Any:
    ended = terminated | truncated
    return returns.gae(rewards, values, next_values, ended & False, ended, **factors)


def truncation_as_termination(
    rewards: Any, values: Any, next_values: Any, terminated: Any, truncated: Any, **factors: float
) -> Any:
    ended = terminated | truncated
    return returns.gae(rewards, values, next_values, ended, ended & False, **factors)


def observations_shifted(*arguments: Any) -> Any:
    rows = prepare(*arguments)
    return rows._replace(inputs=jnp.roll(rows.inputs, 1, axis=0))


def actions_shifted(*arguments: Any) -> Any:
    rows = prepare(*arguments)
    return rows._replace(action=jnp.roll(rows.action, 1, axis=0))


prepare = rollout_rows.prepare
PROBES = {
    "constant": (probes.ConstantReward(), value_of_nothing, 0.05),
    "observed": (probes.ObservedReward(), value_of_what_is_seen, 0.05),
    "delayed": (probes.DelayedReward(), value_of_a_delay, 0.04),
    "chosen": (probes.ChosenReward(), value_and_choice, 0.1),
    "matched": (probes.MatchedReward(), value_and_match, 0.1),
    "endless": (probes.EndlessReward(), value_of_eternity, 0.05),
    "continuous": (probes.QuadraticReward(), mean_action, 0.1),
}
BROKEN = [
    ("constant", "squared_error", value_gradient_stopped),
    ("constant", "gae", bootstrapped_at_termination),
    ("observed", "prepare", observations_shifted),
    ("delayed", "gae", undiscounted),
    ("chosen", "clipped_surrogate", advantage_flipped),
    ("matched", "prepare", actions_shifted),
    ("matched", "prepare", observations_shifted),
    ("endless", "gae", truncation_as_termination),
    ("endless", "gae", undiscounted),
    ("continuous", "clipped_surrogate", advantage_flipped),
    ("continuous", "prepare", actions_shifted),
]


@pytest.mark.medium
@pytest.mark.parametrize(
    "probe", ["constant", *(pytest.param(p, marks=pytest.mark.slow) for p in list(PROBES)[1:])]
)
def test_probe_is_learned_on_every_seed(probe: str) -> None:
    env, error, tolerance = PROBES[probe]
    assert error(env) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "name", "broken"),
    [BROKEN[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in BROKEN[1:])],
    ids=[f"{p}-{b.__name__}" for p, _, b in BROKEN],
)
def test_probe_is_missed_when_ppo_is_broken(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str, broken: Any
) -> None:
    env, error, tolerance = PROBES[probe]
    monkeypatch.setattr(module, name, broken)
    assert error(env) > 2 * tolerance


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_a_time_limit_is_not_a_termination_on_the_host_driver(
    monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    if not right:
        monkeypatch.setattr(module, "gae", truncation_as_termination)
    config, probe = replace(PROBE, env_steps=64 * 200), probing.PROBES["endless"]
    algorithm = ppo(config, probe.env.spec)
    wrong = probing.error(endless_on_the_host(algorithm), probe, config.updates)
    assert wrong < 0.1 if right else wrong > 0.2
