"""CEM: fitness and elite by hand, members that act independently, and probes."""

from dataclasses import replace
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
    box,
    make_batch,
    spoil,
    start,
)
from packages.backflip.tests.algorithms.probing import PROBES, error, native

from backflip.algorithms import cem as module
from backflip.algorithms.cem import actions, added_variance, cem, fitness, make_policy, refit
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.core.spaces import Box
from backflip.core.spec import EnvSpec
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from runshelf.errors import UsageError

SMALL = CEMConfig(env_steps=5 * 32, num_envs=4, rollout_length=8, elite_fraction=0.5)
by_kind = pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS], ids=lambda spec: spec.id)

# The pieces, by hand


@pytest.mark.medium
@pytest.mark.parametrize("episodes", [1, 2])
def test_fitness_is_the_return_of_the_first_episodes_in_loops(episodes: int) -> None:
    algorithm = cem(SMALL, DISCRETE)
    batch = make_batch(algorithm, DISCRETE, start(algorithm))
    batch = batch._replace(terminated=batch.terminated.at[5, 1].set(True))
    expected = []
    for n in range(4):
        total, over = 0.0, 0
        for t in range(8):
            if batch.valid[t, n] and over < episodes:
                total += float(batch.reward[t, n])
                over += bool(batch.terminated[t, n] or batch.truncated[t, n])
        expected.append(total / episodes)
    found = fitness(blank_invalid(batch), episodes)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    whole = np.where(batch.valid, batch.reward, 0).sum(0) / episodes
    assert (np.abs(found - whole) > 0.01).tolist() == [False, True, episodes == 1, False]


@pytest.mark.medium
def test_the_elite_by_hand() -> None:
    """Members 1 and 3 of four: mean (3, 5), variances 1 and 4, plus noise."""
    members = jnp.array([[9.0, 9.0], [2.0, 3.0], [8.0, 8.0], [4.0, 7.0]])
    mean, std = refit(members, jnp.array([0.0, 5.0, 1.0, 4.0]), 2, 0.0)
    np.testing.assert_allclose(mean, [3, 5])
    np.testing.assert_allclose(std, [1, 2])
    np.testing.assert_allclose(refit(members, jnp.arange(4.0), 2, 5.0)[1], [3, np.sqrt(5.25)])


def test_noise_over_no_share_of_the_updates_is_none() -> None:
    config = replace(SMALL, noise_fraction=0.0)
    assert added_variance(config, start(cem(config, DISCRETE))) == 0


@pytest.mark.medium
def test_noise_follows_its_schedule_and_generations_are_drawn_around_the_elite() -> None:
    """Z_0 = .25 · 2², gone after 2.5 of the 5 updates."""
    config = replace(SMALL, num_envs=4, initial_std=2.0)
    algorithm = cem(config, DISCRETE)
    state, update, found = start(algorithm), jax.jit(algorithm.update), []
    for seed in range(5):
        batch = make_batch(algorithm, DISCRETE, state, seed)
        before, (state, metrics) = state, update(state, batch, KEY)
        found.append(float(metrics["noise"]))
        mean, std = refit(before.members, fitness(blank_invalid(batch), 1), 2, found[-1])
        np.testing.assert_allclose(state.mean, mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state.std, std, rtol=1e-5)
        drawn = mean[None] + std[None] * jax.random.normal(KEY, state.members.shape)
        np.testing.assert_allclose(state.members, drawn, rtol=1e-4, atol=1e-5)
        assert (metrics["update_ratio"] == 1) == (seed == 0)  # the first mean is zero
    np.testing.assert_allclose(found, [1.0, 0.6, 0.2, 0.0, 0.0], atol=1e-6)
    assert int(state.updates) == 5


@pytest.mark.medium
@by_kind
@pytest.mark.parametrize("hidden", [(), (8,)])
def test_row_n_acts_with_the_parameters_of_member_n(spec: EnvSpec, hidden: Any) -> None:
    config = replace(SMALL, hidden=hidden)
    state, policy = start(cem(config, spec)), make_policy(config, spec)
    obs = jnp.asarray(np.random.default_rng(1).normal(size=(4, 5)), jnp.float32)
    found, _ = cem(config, spec).act(state, obs, KEY)
    for n in range(4):
        alone = actions(policy, state.members[n], obs)[n]
        np.testing.assert_allclose(found[n], alone, rtol=1e-5)
    everywhere = state._replace(members=jnp.broadcast_to(state.mean + 1.0, (4, policy.size)))
    greedy = cem(config, spec).evaluation_action(state._replace(mean=state.mean + 1.0), obs, KEY)
    np.testing.assert_allclose(cem(config, spec).act(everywhere, obs, KEY)[0], greedy, rtol=1e-5)
    part = cem(config, spec).policy(state._replace(mean=state.mean + 1.0))
    there = cem(config, spec).with_policy(state, part)
    np.testing.assert_allclose(cem(config, spec).evaluation_action(there, obs, KEY), greedy)


@pytest.mark.medium
def test_a_linear_policy_equals_numpy() -> None:
    policy = make_policy(SMALL, CONTINUOUS)
    assert policy.size == 5 * 2 + 2
    parameters = jnp.asarray(np.random.default_rng(0).normal(size=12), jnp.float32)
    layer = policy.unflatten(parameters)["head"]
    obs = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    outputs = obs @ np.asarray(layer["w"]) + np.asarray(layer["b"])
    found = actions(policy, parameters, jnp.asarray(obs))
    np.testing.assert_allclose(found, (np.tanh(outputs) + 1) / 2, rtol=1e-5)  # bounds 0 and 1


@pytest.mark.medium
def test_actions_keep_their_bounds_if_there_are_any() -> None:
    low, high = np.array([-2, -np.inf], np.float32), np.array([6, np.inf], np.float32)
    spec = EnvSpec("half", box((5,)), Box(low, high, low.dtype), None)
    policy = make_policy(SMALL, spec)
    large = actions(policy, jnp.full(policy.size, 100.0), jnp.ones((1, 5)))
    np.testing.assert_allclose(large, [[6.0, 600.0]], rtol=1e-5)
    np.testing.assert_allclose(actions(policy, jnp.zeros(policy.size), jnp.ones((1, 5))), [[2, 0]])


@pytest.mark.slow
@by_kind
def test_contents_of_invalid_rows_change_no_bit(spec: EnvSpec) -> None:
    algorithm = cem(SMALL, spec)
    state = start(algorithm)
    batch, update = make_batch(algorithm, spec, state), jax.jit(algorithm.update)
    right = update(state, batch, KEY)
    for number in (1e6, np.nan):
        assert_same_bits(right, update(state, spoil(batch, number), KEY))
    other = update(state, batch, jax.random.key(1))[0]
    assert_same_bits(right[0].mean, other.mean)
    assert (right[0].members != other.members).any()


def test_unsupported_settings_and_spaces_are_refused() -> None:
    with pytest.raises(UsageError, match=r"`cem` .* `pixels` shows images of 12x12x2"):
        cem(SMALL, PIXELS)
    for wrong in ({"num_envs": 1}, {"elite_fraction": 0.0}, {"elite_fraction": 1.5}):
        with pytest.raises(UsageError, match="elite_fraction"):
            cem(replace(SMALL, **wrong), DISCRETE)


@pytest.mark.medium
@pytest.mark.parametrize(("share", "elite"), [(0.01, 1), (0.2, 10), (1.0, 50)])
def test_the_elite_is_a_share_of_the_members(share: float, elite: int) -> None:
    assert CEMConfig(elite_fraction=share).elite == elite


# Probes, of choices alone: there are no values


PROBE = CEMConfig(env_steps=20 * 60, num_envs=20, rollout_length=1)
CHOICES = {name: replace(PROBES[name], values=None) for name in ("chosen", "matched", "continuous")}


def miss(probe: str) -> float:
    algorithm = cem(PROBE, PROBES[probe].env.spec)
    return error(native(CHOICES[probe], algorithm), CHOICES[probe], PROBE.updates)


def worst_chosen(members: Any, score: Any, *rest: Any) -> Any:
    return refit(members, -score, *rest)


def fitness_of_the_neighbour(batch: Any, episodes: int) -> Any:
    return jnp.roll(fitness(batch, episodes), 1)


BROKEN = [
    ("chosen", "refit", worst_chosen),
    ("matched", "fitness", fitness_of_the_neighbour),
    ("continuous", "fitness", fitness_of_the_neighbour),
]


@pytest.mark.slow
@pytest.mark.parametrize("probe", CHOICES)
def test_probe_is_learned_on_every_seed(probe: str) -> None:
    assert miss(probe) < PROBES[probe].tolerance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "name", "broken"), BROKEN, ids=[f"{p}-{b.__name__}" for p, _, b in BROKEN]
)
def test_probe_is_missed_when_cem_is_broken(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str, broken: Any
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert miss(probe) > 2 * PROBES[probe].tolerance


@pytest.mark.slow
def test_cartpole_is_learned_on_every_seed() -> None:
    config = CEMConfig(env_steps=250_000)
    env, seeds = CartPole(), [0, 1, 2]
    driver = NativeDriver(env, cem(config, env.spec))
    learners, _ = driver.phase(config.updates)(driver.start(seeds), np.zeros(3))
    assert driver.evaluate(learners, seeds, episodes=50).returns.mean(1).min() > 450
