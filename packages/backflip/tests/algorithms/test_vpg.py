"""VPG: its formulas by hand, two independent networks, and probes."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
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

from backflip.algorithms import vpg as module
from backflip.algorithms.entries.vpg import VPGConfig
from backflip.algorithms.parts.rollout_rows import Rows, prepare
from backflip.algorithms.parts.stochastic_policy import Actor
from backflip.algorithms.vpg import (
    VPGState,
    estimate,
    policy_loss,
    separate_networks,
    split,
    value_loss,
    vpg,
)
from backflip.core import losses, returns
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole

SMALL = VPGConfig(
    env_steps=5 * 32, num_envs=4, rollout_length=8, value_gradient_steps=3, hidden=(16, 16)
)
SCALED = replace(SMALL, normalize_obs=True, normalize_rewards=True)
by_spec = pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS, PIXELS], ids=lambda spec: spec.id)


def actor_of(config: VPGConfig, spec: EnvSpec) -> Actor:
    return Actor(spec, separate_networks(spec, config.hidden), config.normalize_obs)


def some_rows(state: VPGState, spec: EnvSpec) -> Rows:
    """Twelve rows; every third is invalid."""
    rng = np.random.default_rng(3)
    obs = jnp.asarray(rng.normal(size=(12, 5)), jnp.float32)
    action, extra = vpg(SMALL, spec).act(state, obs, KEY)
    advantage, target = (jnp.asarray(rng.normal(1, 2, 12), jnp.float32) for _ in range(2))
    return Rows(obs, action, extra.log_prob, advantage, target, jnp.arange(12) % 3 != 2)


# The pieces, by hand


@pytest.mark.medium
@pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS], ids=lambda spec: spec.id)
def test_losses_equal_the_definition_row_by_row(spec: EnvSpec) -> None:
    state, actor = start(vpg(SMALL, spec)), actor_of(SMALL, spec)
    rows, (of_policy, of_value) = some_rows(state, spec), split(state.params)
    found, metrics = jax.jit(partial(policy_loss, actor))(of_policy, of_value, rows)
    head, value = (np.asarray(x, np.float64) for x in actor.net.apply(state.params, rows.inputs))
    kept = np.flatnonzero(rows.valid)
    advantage = np.asarray(rows.advantage, np.float64)[kept]
    advantage = (advantage - advantage.mean()) / advantage.std()
    ones, squares = [], []
    for a, i in zip(advantage, kept, strict=True):
        if isinstance(spec.action, Discrete):
            p = np.exp(head[i]) / np.exp(head[i]).sum()
            log_prob = np.log(p[int(rows.action[i])])
        else:
            z = (np.asarray(rows.action[i], np.float64) - head[i]) / math.exp(-0.5)
            log_prob = (-0.5 * z**2 + 0.5 - 0.5 * math.log(2 * math.pi)).sum()
        ones.append(-log_prob * a)
        squares.append(0.5 * (value[i] - float(rows.target[i])) ** 2)
    np.testing.assert_allclose(found, np.mean(ones), rtol=1e-4, atol=1e-5)
    found = jax.jit(partial(value_loss, actor))(of_value, of_policy, rows)
    np.testing.assert_allclose(found, np.mean(squares), rtol=1e-4)
    assert float(metrics["first_ratio_error"]) < 1e-5


@pytest.mark.medium
@pytest.mark.parametrize("advantage", ["gae", "reward_to_go"])
def test_estimates_equal_slow_loops_with_all_kinds_of_ends(advantage: Any) -> None:
    """A termination, a time limit and the end of the rollout, one after the other."""
    config = replace(SMALL, advantage=advantage)
    rng = np.random.default_rng(0)
    rewards, values, following = (rng.normal(size=8).astype(np.float32) for _ in range(3))
    terminated, truncated = np.zeros(8, bool), np.zeros(8, bool)
    terminated[2] = truncated[5] = True
    going_on = ~(terminated | truncated)
    going_on[-1] = False
    following = np.where(going_on, np.roll(values, -1), following)
    gae, to_go = [], []
    for t in range(8):
        estimated, trace, total, weight = 0.0, 1.0, 0.0, 1.0
        for k in range(t, 8):
            after = 0.0 if terminated[k] else config.discount * following[k]
            estimated += trace * (rewards[k] + after - values[k])
            total += weight * rewards[k]
            if not going_on[k]:
                total += weight * after
                break
            trace, weight = trace * config.discount * config.gae_lambda, weight * config.discount
        gae.append(estimated)
        to_go.append(total)
    stream = (rewards, values, following, terminated, truncated)
    psi, target = estimate(config, *map(jnp.asarray, stream))
    expected = gae if advantage == "gae" else to_go
    np.testing.assert_allclose(psi, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(target, to_go, rtol=1e-4)


@pytest.mark.slow
@by_spec
def test_policy_and_value_networks_are_independent(spec: EnvSpec) -> None:
    """For images too, where policy and value often share a torso."""
    state = start(vpg(SMALL, spec))
    batch = make_batch(vpg(SMALL, spec), spec, state)
    after, metrics = jax.jit(vpg(SMALL, spec).update)(state, batch, KEY)
    for resting in ("learning_rate", "value_learning_rate"):
        config = replace(SMALL, **{resting: 0.0})
        there, _ = jax.jit(vpg(config, spec).update)(state, batch, KEY)
        still = int(resting == "value_learning_rate")
        assert_same_bits(split(there.params)[still], split(state.params)[still])
        pair = (split(x.params)[1 - still] for x in (there, after))
        for one, other in zip(*map(jax.tree.leaves, pair), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    assert float(metrics["update_ratio"]) > 0


@pytest.mark.slow
def test_an_update_is_a_step_of_adam_for_the_policy_and_three_for_the_value() -> None:
    """Two routes to one number: optax's own Adam on the losses, step by step."""
    algorithm, actor = vpg(SMALL, DISCRETE), actor_of(SMALL, DISCRETE)
    state = start(algorithm)
    batch = make_batch(algorithm, DISCRETE, state)
    after, metrics = jax.jit(algorithm.update)(state, batch, KEY)
    rows = prepare(actor, state, batch, partial(estimate, SMALL))
    of_policy, of_value = split(state.params)

    def descend(loss: Any, params: Any, rate: float, steps: int) -> tuple[Any, list[float]]:
        adam = optax.adam(rate)
        moments, found = adam.init(params), []
        for _ in range(steps):
            value, gradient = jax.value_and_grad(loss)(params)
            found.append(float(value))
            with jax.numpy_dtype_promotion("standard"):
                step, moments = adam.update(gradient, moments)
            params = optax.apply_updates(params, step)
        return params, found

    policy, one = descend(lambda p: policy_loss(actor, p, of_value, rows)[0], of_policy, 3e-4, 1)
    value, three = descend(lambda p: value_loss(actor, p, of_policy, rows), of_value, 1e-3, 3)
    for x, expected in zip(*map(jax.tree.leaves, (after.params, policy | value)), strict=True):
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(metrics["policy_loss"], one[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(metrics["value_loss"], np.mean(three), rtol=1e-4)


@pytest.mark.slow
def test_policy_and_value_losses_share_no_gradient() -> None:
    """Not even through Ψ and G, which depend on V."""
    actor, state = actor_of(SMALL, DISCRETE), start(vpg(SMALL, DISCRETE))
    batch = make_batch(vpg(SMALL, DISCRETE), DISCRETE, state)

    def whole(loss: Any, of_policy: Any, of_value: Any) -> Any:
        there = state._replace(params=of_policy | of_value)
        look = jax.vmap(partial(vpg(SMALL, DISCRETE).act, there))
        value = look(batch.obs, jax.random.split(KEY, 8))[1].value
        seen = batch._replace(extra=batch.extra._replace(value=value))
        rows = prepare(actor, there, seen, partial(estimate, SMALL))
        if loss is policy_loss:
            return policy_loss(actor, of_policy, of_value, rows)[0]
        return value_loss(actor, of_value, of_policy, rows)

    for loss, own in ((policy_loss, 0), (value_loss, 1)):
        gradient = jax.jit(jax.grad(partial(whole, loss), argnums=(0, 1)))(*split(state.params))
        sizes = [sum(float(jnp.abs(g).sum()) for g in jax.tree.leaves(side)) for side in gradient]
        assert sizes[own] > 0.01
        assert sizes[1 - own] == 0


@pytest.mark.parametrize(("env_steps", "updates"), [(1, 1), (32, 1), (33, 2), (160, 5)])
def test_updates_cover_the_env_steps(env_steps: int, updates: int) -> None:
    assert replace(SMALL, env_steps=env_steps).updates == updates


# Rows that did not happen


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [DISCRETE, *(pytest.param(spec, marks=pytest.mark.slow) for spec in (CONTINUOUS, PIXELS))],
    ids=lambda spec: spec.id,
)
def test_contents_of_invalid_rows_change_no_bit(spec: EnvSpec) -> None:
    algorithm = vpg(SCALED, spec)
    state = start(algorithm)
    batch, update = make_batch(algorithm, spec, state), jax.jit(algorithm.update)
    right = update(state, batch, KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    for number in (1e6, np.nan):
        assert_same_bits(right, update(state, spoil(batch, number), KEY))
    assert_same_bits(right, update(state, batch, jax.random.key(1)))  # nothing is drawn


# Probes


PROBE = VPGConfig(
    env_steps=64 * 100,
    num_envs=8,
    rollout_length=8,
    learning_rate=3e-2,
    value_learning_rate=1e-2,
    value_gradient_steps=10,
    discount=0.9,
    hidden=(16, 16),
)
CONFIGS = {
    "endless": replace(PROBE, env_steps=64 * 150),
    "continuous": replace(
        PROBE, env_steps=64 * 200, learning_rate=1e-2, num_envs=32, initial_log_std=-1.0
    ),
}


def miss(probe: str, advantage: Any = "gae") -> float:
    config = replace(CONFIGS.get(probe, PROBE), advantage=advantage)
    algorithm = vpg(config, PROBES[probe].env.spec)
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
def test_reward_to_go_learns() -> None:
    assert miss("matched", "reward_to_go") < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "name", "broken"), BROKEN, ids=[f"{p}-{b.__name__}" for p, _, b in BROKEN]
)
def test_probe_is_missed_when_vpg_is_broken(
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
    config = CONFIGS["endless"]
    algorithm = vpg(config, PROBES["endless"].env.spec)
    wrong = error(endless_on_the_host(algorithm), PROBES["endless"], config.updates)
    assert wrong < 0.1 if right else wrong > 0.2


@pytest.mark.slow
def test_cartpole_gets_better_on_every_seed() -> None:
    """A random policy gets 22."""
    config = VPGConfig(
        env_steps=60_000, rollout_length=128, learning_rate=1e-2, value_learning_rate=3e-3
    )
    env, seeds = CartPole(), [0, 1, 2]
    driver = NativeDriver(env, vpg(config, env.spec))
    learners, _ = driver.phase(config.updates)(driver.start(seeds), np.zeros(3))
    assert driver.evaluate(learners, seeds, episodes=50).returns.mean(1).min() > 150
