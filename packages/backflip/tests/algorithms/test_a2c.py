"""A2C: its formulas by hand, masks, and probes with known answers."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms.batches import (
    CONTINUOUS,
    DISCRETE,
    KEY,
    PIXELS,
    assert_same_bits,
    make_batch,
    spoil,
    start,
)
from packages.backflip.tests.algorithms.probing import PROBES, endless_on_the_host, error, native

from backflip.algorithms import a2c as module
from backflip.algorithms.a2c import A2CState, a2c, estimate, loss
from backflip.algorithms.entries.a2c import A2CConfig
from backflip.algorithms.parts.rollout_rows import Rows, prepare
from backflip.algorithms.parts.stochastic_policy import Actor
from backflip.core import losses, returns
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.networks.actor_critic import actor_critic

SMALL = A2CConfig(env_steps=5 * 32, num_envs=4, rollout_length=8, hidden=(16, 16))
SCALED = replace(SMALL, normalize_obs=True, normalize_rewards=True)
by_kind = pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS], ids=lambda spec: spec.id)


def actor_of(config: A2CConfig, spec: EnvSpec) -> Actor:
    return Actor(spec, actor_critic(spec, config.hidden), config.normalize_obs)


def some_rows(state: A2CState, spec: EnvSpec) -> Rows:
    """Twelve rows; every third is invalid."""
    rng = np.random.default_rng(3)
    obs = jnp.asarray(rng.normal(size=(12, 5)), jnp.float32)
    action, extra = a2c(SMALL, spec).act(state, obs, KEY)
    advantage, target = (jnp.asarray(rng.normal(1, 2, 12), jnp.float32) for _ in range(2))
    return Rows(obs, action, extra.log_prob, advantage, target, jnp.arange(12) % 3 != 2)


# The pieces, by hand


@pytest.mark.medium
@by_kind
@pytest.mark.parametrize("normalized", [False, True])
def test_loss_equals_the_definition_row_by_row(spec: EnvSpec, normalized: bool) -> None:
    config = replace(SMALL, entropy_coef=0.03, normalize_advantage=normalized)
    state, actor = start(a2c(config, spec)), actor_of(config, spec)
    rows = some_rows(state, spec)
    total, metrics = jax.jit(partial(loss, config, actor))(state.params, rows)

    head, value = (np.asarray(x, np.float64) for x in actor.net.apply(state.params, rows.inputs))
    kept = np.flatnonzero(rows.valid)
    advantage = np.asarray(rows.advantage, np.float64)[kept]
    if normalized:
        advantage = (advantage - advantage.mean()) / advantage.std()
    policy_losses, value_losses, entropies = [], [], []
    for a, i in zip(advantage, kept, strict=True):
        if isinstance(spec.action, Discrete):
            p = np.exp(head[i]) / np.exp(head[i]).sum()
            log_prob, entropy = np.log(p[int(rows.action[i])]), -(p * np.log(p)).sum()
        else:
            apart = np.asarray(rows.action[i], np.float64) - head[i]  # σ = 1 at the start
            log_prob = (-0.5 * apart**2 - 0.5 * math.log(2 * math.pi)).sum()
            entropy = math.log(2 * math.pi * math.e)  # ½ log 2πe for each of two
        policy_losses.append(-log_prob * a)
        value_losses.append(0.5 * (value[i] - float(rows.target[i])) ** 2)
        entropies.append(entropy)
    expected = {
        "policy_loss": np.mean(policy_losses),
        "value_loss": np.mean(value_losses),
        "entropy": np.mean(entropies),
    }
    for name, x in expected.items():
        np.testing.assert_allclose(metrics[name], x, rtol=1e-4, atol=1e-5, err_msg=name)
    whole = expected["policy_loss"] + 0.5 * expected["value_loss"] - 0.03 * expected["entropy"]
    np.testing.assert_allclose(total, whole, rtol=1e-4, atol=1e-5)


@pytest.mark.medium
def test_targets_are_n_step_returns_to_the_end_of_rollout_or_episode() -> None:
    """Two routes to one number: A + V with λ = 1, and the definition of G as a sum."""
    rng = np.random.default_rng(0)
    rewards, values, following = (jnp.asarray(rng.normal(size=7), jnp.float32) for _ in range(3))
    # V of the true successor is V of the next row, but where an episode ends, and at the end.
    terminated = jnp.asarray([False, False, True, False, False, False, False])
    truncated = jnp.asarray([False, False, False, False, True, False, False])
    unknown = (terminated | truncated).at[-1].set(True)
    following = jnp.where(unknown, following, jnp.roll(values, -1))
    stream = (rewards, values, following, terminated, truncated)
    advantage, target = estimate(SMALL, *stream)
    expected = []
    for t in range(7):
        last = next(k for k in range(t, 7) if unknown[k])
        summed = sum(SMALL.discount ** (k - t) * float(rewards[k]) for k in range(t, last + 1))
        bootstrap = 0.0 if terminated[last] else float(following[last])
        expected.append(summed + SMALL.discount ** (last + 1 - t) * bootstrap)
    expected = np.array(expected)
    np.testing.assert_allclose(target, expected, rtol=1e-5)
    np.testing.assert_allclose(advantage, expected - np.asarray(values), rtol=1e-4, atol=1e-6)


@pytest.mark.medium
def test_rmsprop_by_hand_has_its_epsilon_inside_the_root_and_starts_at_1() -> None:
    """The mean square is .99 + .01 · 9 = 1.08, then .99 · 1.08 + .01 · 9 = 1.1592."""
    params = {"w": jnp.zeros(1)}
    optimizer = module.optax.ScaleByRmsState(jax.tree.map(jnp.ones_like, params))
    config = replace(SMALL, rms_epsilon=0.01)
    for v in (1.08, 1.1592):
        step, optimizer = module.rmsprop(config, {"w": jnp.array([3.0])}, optimizer)
        np.testing.assert_allclose(optimizer.nu["w"], [v], rtol=1e-5)
        np.testing.assert_allclose(step["w"], [3 / math.sqrt(v + 0.01)], rtol=1e-5)
    assert_same_bits(start(a2c(SMALL, DISCRETE)).optimizer.nu["value"]["b"], jnp.ones(1))


@pytest.mark.medium
def test_an_update_is_one_step_along_the_clipped_gradient() -> None:
    state, actor = start(a2c(SMALL, DISCRETE)), actor_of(SMALL, DISCRETE)
    algorithm = a2c(SMALL, DISCRETE)
    batch = make_batch(algorithm, DISCRETE, state)
    after, metrics = jax.jit(algorithm.update)(state, batch, KEY)

    @jax.jit
    def gradient_of(params: Any) -> Any:
        rows = prepare(actor, state, batch, partial(estimate, SMALL))
        return jax.grad(lambda p: loss(SMALL, actor, p, rows)[0])(params)

    gradient = gradient_of(state.params)
    leaves = [np.asarray(g, np.float64) for g in jax.tree.leaves(gradient)]
    norm = math.sqrt(sum((g**2).sum() for g in leaves))
    assert norm > 0.5
    np.testing.assert_allclose(metrics["grad_norm"], norm, rtol=1e-4)
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(after.params), leaves, strict=True)
    for before, now, g in pairs:
        g = g * 0.5 / norm
        expected = before - 7e-4 * g / np.sqrt(0.99 + 0.01 * g**2 + 1e-5)
        np.testing.assert_allclose(now, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.slow
def test_the_learning_rate_follows_its_schedule() -> None:
    config = replace(SMALL, learning_rate=1e-3, learning_rate_end=5e-4)
    algorithm = a2c(config, DISCRETE)
    state = start(algorithm)
    batch = make_batch(algorithm, DISCRETE, state)
    update, found = jax.jit(algorithm.update), []
    for _ in range(7):
        state, metrics = update(state, batch, KEY)
        found.append(float(metrics["learning_rate"]))
    np.testing.assert_allclose(found, 1e-3 - 1e-4 * np.minimum(np.arange(7), 5), rtol=1e-5)


@pytest.mark.medium
def test_gradients_of_policy_and_value_reach_only_their_own_networks() -> None:
    """Advantages are no path from the policy's loss to the value function, nor targets back."""
    actor, state = actor_of(SMALL, DISCRETE), start(a2c(SMALL, DISCRETE))
    batch = make_batch(a2c(SMALL, DISCRETE), DISCRETE, state)

    def gradient(value_coef: float, advantage: float) -> Any:
        config = replace(SMALL, value_coef=value_coef, entropy_coef=0.0)

        def whole(params: Any) -> Any:
            """Everything from the parameters on, advantages and targets included."""
            look = jax.vmap(partial(a2c(config, DISCRETE).act, state._replace(params=params)))
            value = look(batch.obs, jax.random.split(KEY, 8))[1].value
            seen = batch._replace(extra=batch.extra._replace(value=value))
            there = state._replace(params=params)
            rows = prepare(actor, there, seen, partial(estimate, config))
            rows = rows._replace(advantage=rows.advantage * advantage)
            return loss(config, actor, params, rows)[0]

        return jax.jit(jax.grad(whole))(state.params)

    def norms(g: Any) -> tuple[float, float]:
        policy = [layer[name][0] for layer in g["body"] for name in layer]
        value = [layer[name][1] for layer in g["body"] for name in layer]
        sides = ([*policy, *g["policy"].values()], [*value, *g["value"].values()])
        one, other = (float(sum(jnp.abs(x).sum() for x in side)) for side in sides)
        return one, other

    one, other = norms(gradient(value_coef=0.0, advantage=1.0))
    assert one > 0.01
    assert other == 0
    one, other = norms(gradient(value_coef=0.5, advantage=0.0))
    assert one == 0
    assert other > 0.01


# Rows that did not happen


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(1e6, marks=pytest.mark.slow), np.nan])
@pytest.mark.parametrize(
    "spec",
    [DISCRETE, CONTINUOUS, pytest.param(PIXELS, marks=pytest.mark.slow)],  # PPO has pixels
    ids=lambda spec: spec.id,
)
def test_contents_of_invalid_rows_change_no_bit(spec: EnvSpec, number: float) -> None:
    algorithm = a2c(SCALED, spec)
    state = start(algorithm)
    batch, update = make_batch(algorithm, spec, state), jax.jit(algorithm.update)
    right = update(state, batch, KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    assert_same_bits(right, update(state, spoil(batch, number), KEY))
    assert_same_bits(right, update(state, batch, jax.random.key(1)))  # nothing is drawn


@pytest.mark.medium
def test_gradient_with_rows_masked_equals_that_without_the_rows() -> None:
    state, actor = start(a2c(SMALL, DISCRETE)), actor_of(SMALL, DISCRETE)
    config = replace(SMALL, normalize_advantage=True)
    rows = some_rows(state, DISCRETE)
    kept = jax.tree.map(lambda x: x[np.flatnonzero(rows.valid)], rows)
    gradient = jax.jit(jax.grad(lambda p, rows: loss(config, actor, p, rows)[0]))
    ones, others = (jax.tree.leaves(gradient(state.params, r)) for r in (rows, kept))
    for a, b in zip(ones, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.medium
@pytest.mark.parametrize(("env_steps", "updates"), [(1, 1), (32, 1), (33, 2), (160, 5)])
def test_updates_cover_the_env_steps(env_steps: int, updates: int) -> None:
    assert replace(SMALL, env_steps=env_steps).updates == updates


# Probes


PROBE = A2CConfig(
    env_steps=40 * 300,
    num_envs=8,
    rollout_length=5,
    learning_rate=2e-2,
    discount=0.9,
    entropy_coef=0.0,
    hidden=(16, 16),
)
LONG = replace(PROBE, env_steps=40 * 1000)
SLOW = replace(LONG, learning_rate=1e-2)
CONFIGS = {
    "delayed": SLOW,
    "chosen": SLOW,
    "matched": SLOW,
    "endless": LONG,
    "continuous": replace(SLOW, initial_log_std=-1.0),
}


def miss(probe: str) -> float:
    config = CONFIGS.get(probe, PROBE)
    algorithm = a2c(config, PROBES[probe].env.spec)
    return error(native(PROBES[probe], algorithm), PROBES[probe], config.updates)


def flipped(log_prob: Any, advantage: Any) -> Any:
    return losses.policy_gradient(log_prob, -advantage)


def value_gradient_stopped(value: Any, target: Any) -> Any:
    return losses.squared_error(jax.lax.stop_gradient(value), target)


def undiscounted(*stream: Any, discount: float, gae_lambda: float) -> Any:
    return returns.gae(*stream, discount=1.0, gae_lambda=gae_lambda)


def truncation_as_termination(*stream: Any, **factors: float) -> Any:
    ended = stream[3] | stream[4]
    return returns.gae(*stream[:3], ended, ended & False, **factors)


def termination_as_truncation(*stream: Any, **factors: float) -> Any:
    ended = stream[3] | stream[4]
    return returns.gae(*stream[:3], ended & False, ended, **factors)


def observations_shifted(*arguments: Any) -> Any:
    rows = prepare(*arguments)
    return rows._replace(inputs=jnp.roll(rows.inputs, 1, axis=0))


def actions_shifted(*arguments: Any) -> Any:
    rows = prepare(*arguments)
    return rows._replace(action=jnp.roll(rows.action, 1, axis=0))


BROKEN = [
    ("constant", "squared_error", value_gradient_stopped),
    ("constant", "gae", termination_as_truncation),
    ("observed", "prepare", observations_shifted),
    ("delayed", "gae", undiscounted),
    ("chosen", "policy_gradient", flipped),
    ("matched", "prepare", actions_shifted),
    ("endless", "gae", truncation_as_termination),
    ("continuous", "policy_gradient", flipped),
]


@pytest.mark.slow
@pytest.mark.parametrize("probe", PROBES)
def test_probe_is_learned_on_every_seed(probe: str) -> None:
    assert miss(probe) < PROBES[probe].tolerance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "name", "broken"), BROKEN, ids=[f"{p}-{b.__name__}" for p, _, b in BROKEN]
)
def test_probe_is_missed_when_a2c_is_broken(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str, broken: Any
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert miss(probe) > 2 * PROBES[probe].tolerance


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_a_time_limit_is_not_a_termination_on_the_host_driver(
    monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    if not right:
        monkeypatch.setattr(module, "gae", truncation_as_termination)
    # All environments are cut at once: shortened, the few wrong gradients would weigh too little.
    config = replace(PROBE, env_steps=40 * 400, max_grad_norm=100.0)
    algorithm = a2c(config, PROBES["endless"].env.spec)
    wrong = error(endless_on_the_host(algorithm), PROBES["endless"], config.updates)
    assert wrong < 0.1 if right else wrong > 0.2


@pytest.mark.slow
def test_cartpole_is_learned_on_every_seed() -> None:
    """Measured at 200k env steps: see docs/algorithms/a2c.md; a random policy gets 22."""
    config = A2CConfig(env_steps=200_000, entropy_coef=0.0)
    env, seeds = CartPole(), [0, 1, 2]
    driver = NativeDriver(env, a2c(config, env.spec))
    learners, done = driver.phase(config.updates)(driver.start(seeds), np.zeros(3))
    assert float(np.max(done.metrics["first_ratio_error"])) < 1e-5
    assert driver.evaluate(learners, seeds, episodes=50).returns.mean(1).min() > 300
