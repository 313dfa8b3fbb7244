"""DDPG, TD3 and SAC alike: rows, bits, bad input, and probes with known answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms.batches import KEY, assert_same_bits, spoil
from packages.backflip.tests.algorithms.minibatches import (
    CENTER,
    HALF,
    HIGH,
    LOPSIDED,
    LOW,
    MatchedNumber,
    drawn,
    endless_number_on_the_host,
)
from packages.backflip.tests.algorithms.probing import SEEDS

from backflip.algorithms import ddpg, sac, td3
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.parts import action_scale, critics
from backflip.core import targets, trees
from backflip.core.spaces import Box
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.drivers.native import NativeDriver
from backflip.envs.native import probes
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from runshelf.errors import UsageError


class Subject(NamedTuple):
    """An algorithm, its module, and its settings."""

    build: Callable[[Any, EnvSpec], Algorithm]
    module: Any
    config: Any


SMALL: dict[str, Any] = {
    "env_steps": 2_000,
    "num_envs": 4,
    "rollout_length": 4,
    "updates_per_step": 0.25,
    "batch_size": 12,
    "buffer_size": 1_000,
    "learning_starts": 64,
    "hidden": (16, 16),
}
U, B = 4, 12
ALL = {
    "ddpg": Subject(ddpg.ddpg, ddpg, ddpg.DDPGConfig),
    "td3": Subject(td3.td3, td3, td3.TD3Config),
    "sac": Subject(sac.sac, sac, sac.SACConfig),
}
each = pytest.mark.parametrize("name", ALL)
sac_quickly = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "sac" else pytest.mark.slow) for name in ALL]
)


def small(name: str, spec: EnvSpec = LOPSIDED, **settings: Any) -> Algorithm:
    subject = ALL[name]
    return subject.build(subject.config(**(SMALL | settings)), spec)


def start(algorithm: Algorithm, seed: int = 0) -> Any:
    return jax.tree.map(jnp.asarray, algorithm.init(seed))


# What a state is worth


def judged(name: str) -> tuple[Algorithm, Any, Any]:
    """An algorithm, one of its states and observations."""
    algorithm = small(name)
    obs = np.random.default_rng(0).normal(size=(5, LOPSIDED.observation.shape[0]))
    return algorithm, start(algorithm), jnp.asarray(obs, jnp.float32)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["ddpg", "td3"])
def test_assess_returns_the_minimum_critic_of_the_policys_action(name: str) -> None:
    algorithm, state, obs = judged(name)
    unit = jnp.tanh(critics.apply_mlp(state.actor, obs))
    both = jnp.concatenate([obs, unit], -1)
    by_hand = np.min([critics.apply_mlp(critic, both)[:, 0] for critic in state.critics], 0)
    assert algorithm.assess is not None
    np.testing.assert_allclose(algorithm.assess(state, obs)["value"], by_hand, rtol=1e-5)


@pytest.mark.slow
def test_assess_of_sac_returns_means_over_its_actions() -> None:
    """Within five standard errors of 32 draws from means over many."""
    algorithm, state, obs = judged("sac")
    assert algorithm.assess is not None
    said = algorithm.assess(state, obs)
    many = jnp.repeat(obs, 2_000, 0)
    policy = sac.policy(state.actor, many)
    unit, log_prob = policy.transform(jax.random.normal(KEY, policy.mean.shape))
    value = critics.action_values(state.critics, many, unit).min(0)
    for name, drawn_of in (("value", value), ("entropy", -log_prob)):
        each_of = np.asarray(drawn_of).reshape(5, -1)
        error = each_of.std(1) / np.sqrt(32)
        np.testing.assert_array_less(np.abs(said[name] - each_of.mean(1)), 5 * error)


@pytest.mark.medium
@each
def test_a_saved_policy_is_enough_for_assess(name: str) -> None:
    algorithm, state, obs = judged(name)
    other = algorithm.with_policy(start(algorithm, 7), algorithm.policy(state))
    assert_same_bits(
        algorithm.evaluation_action(other, obs, KEY), algorithm.evaluation_action(state, obs, KEY)
    )
    assert algorithm.assess is not None
    assert_same_bits(algorithm.assess(state, obs), algorithm.assess(other, obs))


# Actions


@pytest.mark.medium
@each
def test_actions_are_in_environment_units_and_within_bounds(name: str) -> None:
    algorithm = small(name)
    obs = jnp.asarray(np.random.default_rng(0).normal(0, 20, (500, 2)), jnp.float32)
    action = np.asarray(jax.jit(algorithm.act)(start(algorithm), obs, KEY)[0])
    assert (action >= LOW - 1e-5).all()
    assert (action <= HIGH + 1e-5).all()
    assert (np.ptp(action, 0) > 0.5 * (HIGH - LOW)).all()


@pytest.mark.medium
@each
def test_evaluation_actions_do_not_explore(name: str) -> None:
    algorithm, obs = small(name), jnp.ones((3, 2))
    state = start(algorithm)
    one, other = (algorithm.evaluation_action(state, obs, jax.random.key(seed)) for seed in (0, 1))
    assert_same_bits(one, other)
    box = LOPSIDED.action
    mean = np.asarray(critics.apply_mlp(state.actor, obs))[:, : box.shape[0]]  # SAC's: log σ too
    wanted = (box.high + box.low) / 2 + (box.high - box.low) / 2 * np.tanh(mean)
    np.testing.assert_allclose(one, wanted, rtol=1e-5)
    assert (algorithm.act(state, obs, KEY)[0] != one).all()


@pytest.mark.medium
def test_action_scale_by_hand() -> None:
    scale = action_scale.action_scale("td3", LOPSIDED)
    assert_same_bits(scale, (CENTER, HALF))
    there = action_scale.to_env(scale, jnp.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 0.5]]))
    assert there.tolist() == [[-1, 0], [1, 0.5], [3, 0.75]]
    batch = drawn(LOPSIDED, 1, 3)._replace(
        action=there[None], valid=jnp.array([[True, True, False]])
    )
    assert action_scale.rows_in_units(scale, batch).action.tolist() == [
        [[-1, -1], [0, 0], [-0.5, -1]]
    ]


# Rows and bits


@pytest.mark.slow
@sac_quickly
def test_contents_of_invalid_rows_change_no_bit(name: str) -> None:
    algorithm = small(name)
    update, batch = jax.jit(algorithm.update), drawn(LOPSIDED, U, B)
    right = update(start(algorithm), batch, KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    for number in (1e6, np.nan, np.inf):
        assert_same_bits(right, update(start(algorithm), spoil(batch, number), KEY))


def as_it_is(x: Any, valid: Any) -> Any:
    del valid
    return x


@pytest.mark.slow
@each
def test_weight_0_without_blanking_lets_nan_through(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_scale, "blank", as_it_is)
    algorithm, batch = small(name), spoil(drawn(LOPSIDED, U, B), np.nan)
    after, _ = jax.jit(algorithm.update)(start(algorithm), batch, KEY)
    assert not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))


@pytest.mark.slow
@sac_quickly
def test_metrics_of_the_critics_equal_slow_loops(name: str) -> None:
    """With no learning at all: every minibatch is judged by the critics of the start."""
    rates: dict[str, Any] = {
        "actor_learning_rate": 0.0,
        "critic_learning_rate": 0.0,
        "tau": 1.0,
    }
    algorithm, batch = small(name, **rates), drawn(LOPSIDED, U, B)
    state = start(algorithm)
    _, metrics = jax.jit(algorithm.update)(state, batch, KEY)
    b, values = jax.tree.map(np.asarray, batch), []
    for u, i in np.argwhere(b.valid):
        x = np.concatenate([b.obs[u, i], (b.action[u, i] - CENTER) / HALF])
        values += [forward(critic, x)[0] for critic in state.critics]
    np.testing.assert_allclose(metrics["q_mean"], np.mean(values), rtol=1e-4)
    np.testing.assert_allclose(metrics["q_max"], np.max(values), rtol=1e-4)
    paid = b.reward[b.valid]
    for kind, wanted in (("mean", paid.mean()), ("std", paid.std()), ("min", paid.min())):
        np.testing.assert_allclose(metrics[f"reward_{kind}"], wanted, rtol=1e-4)
    assert float(metrics["reward_max"]) == paid.max()
    assert float(metrics["update_ratio"]) == 0


def forward(layers: Any, x: np.ndarray) -> np.ndarray:
    for layer in layers[:-1]:
        x = np.maximum(x @ np.asarray(layer["w"]) + np.asarray(layer["b"]), 0)
    return x @ np.asarray(layers[-1]["w"]) + np.asarray(layers[-1]["b"])


@pytest.mark.slow
@each
def test_a_seed_gives_the_same_bits_with_any_other_seeds(name: str) -> None:
    driver = NativeDriver(Pendulum(), small(name, Pendulum().spec))
    phase = driver.phase(3)
    runs = [
        phase(driver.fill_replay(driver.start(seeds)), np.zeros(2))[0] for seeds in ([3, 4], [3, 5])
    ]
    assert_same_bits(*(trees.row_of(run.algorithm, 0) for run in runs))
    assert not np.array_equal(runs[0].replay.obs[1], runs[1].replay.obs[1])


# Bad input


@each
def test_unsupported_spaces_are_refused_with_a_hint(name: str) -> None:
    endless = Box(np.array([-np.inf], np.float32), np.array([np.inf], np.float32), np.dtype("f4"))
    pixels = replace(Dot().spec, action=LOPSIDED.action)
    flat = replace(LOPSIDED, action=Box(LOW, LOW, LOW.dtype))
    refused: dict[str, EnvSpec] = {
        "finite bounds": replace(LOPSIDED, action=endless),
        "low below high": flat,
        "are images": pixels,
    }
    if name != "sac":
        refused["are discrete"] = CartPole().spec
    for says, spec in refused.items():
        with pytest.raises(UsageError) as caught:
            small(name, spec)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


@each
@pytest.mark.parametrize(
    ("says", "settings"),
    [
        ("no update would ever", {"learning_starts": 2_000}),
        ("whole number", {"updates_per_step": 0.3}),
        ("`buffer_size`", {"buffer_size": 8}),
        ("`learning_starts` and the first rollout", {"learning_starts": 0, "batch_size": 32}),
    ],
)
def test_invalid_settings_are_refused(name: str, says: str, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=says):
        small(name, **settings)


@pytest.mark.medium
@each
def test_updates_exclude_the_random_rollouts(name: str) -> None:
    config = ALL[name].config(**(SMALL | {"learning_starts": 65}))
    assert config.updates == 125 - 5


# Probes: tasks whose answers are known beforehand, and broken variants that miss them

PROBE: dict[str, Any] = {
    "env_steps": 4_096,
    "num_envs": 4,
    "rollout_length": 16,
    "updates_per_step": 0.5,
    "batch_size": 32,
    "buffer_size": 2_048,
    "learning_starts": 256,
    "actor_learning_rate": 3e-3,
    "critic_learning_rate": 3e-3,
    "discount": 0.9,
    "tau": 0.05,
    "hidden": (16, 16),
}
COLD: dict[str, Any] = {"initial_temperature": 0.01, "temperature_learning_rate": 3e-3}
VALUES: dict[str, tuple[Any, list[float], list[float]]] = {
    "constant": (probes.IgnoredNumber(probes.ConstantReward()), [0.0], [1.0]),
    "observed": (probes.IgnoredNumber(probes.ObservedReward()), [-1.0, 1.0], [-1.0, 1.0]),
    "delayed": (probes.IgnoredNumber(probes.DelayedReward()), [0.0, 1.0], [0.9, 1.0]),
    "endless": (probes.IgnoredNumber(probes.EndlessReward()), [0.0], [10.0]),
}
ACTIONS: dict[str, tuple[Any, list[float], list[float]]] = {
    "continuous": (probes.QuadraticReward(), [0.0], [0.5]),
    "matched": (MatchedNumber(), [-1.0, 1.0], [-0.5, 0.5]),
}
VALUE_TOLERANCE, ACTION_TOLERANCE = 0.06, 0.12


def learned(driver: Driver) -> Any:
    """The states of all seeds after learning."""
    learners = driver.fill_replay(driver.start(SEEDS))
    updates = PROBE["env_steps"] // 64 - PROBE["learning_starts"] // 64
    learners, _ = driver.phase(updates)(learners, np.zeros(len(SEEDS)))
    return jax.tree.map(np.asarray, learners.algorithm)


def for_probes(name: str, spec: EnvSpec) -> Algorithm:
    return small(name, spec, **PROBE, **(COLD if name == "sac" else {}))


def value_error(driver: Driver, shown: list[float], wanted: list[float]) -> float:
    """The error of the worst critic of the worst seed, relative to the largest value."""
    obs = jnp.asarray(shown)[:, None]

    def ask(state: Any) -> Any:
        return critics.action_values(state.critics, obs, jnp.zeros_like(obs))

    off = np.abs(np.asarray(jax.vmap(ask)(learned(driver))) - np.array(wanted))
    return float(off.max() / np.abs(wanted).max())


def action_error(driver: Driver, shown: list[float], wanted: list[float]) -> float:
    """The error of the worst action of the worst seed."""
    obs = jnp.asarray(shown)[:, None]
    action = jax.vmap(driver.algorithm.evaluation_action, (0, None, None))(
        learned(driver), obs, KEY
    )
    return float(np.abs(np.asarray(action)[..., 0] - np.array(wanted)).max())


def error(name: str, probe: str) -> float:
    """The error of the worst seed, in tolerances."""
    table, of, tolerance = ACTIONS, action_error, ACTION_TOLERANCE
    if probe in VALUES:
        table, of, tolerance = VALUES, value_error, VALUE_TOLERANCE
    env, shown, wanted = table[probe]
    return of(NativeDriver(env, for_probes(name, env.spec)), shown, wanted) / tolerance


def error_on_the_host(name: str) -> float:
    driver = endless_number_on_the_host(for_probes(name, VALUES["endless"][0].spec))
    try:
        return value_error(driver, [0.0], [10.0]) / VALUE_TOLERANCE
    finally:
        driver.close()


@pytest.mark.slow
@each
@pytest.mark.parametrize("probe", [*VALUES, *ACTIONS])
def test_probe_is_learned_on_every_seed(name: str, probe: str) -> None:
    assert error(name, probe) < 1


@pytest.mark.slow
@each
def test_a_time_limit_is_not_a_termination_on_the_host_driver(name: str) -> None:
    assert error_on_the_host(name) < 1


def bootstrapped_at_termination(reward: Any, discount: Any, terminated: Any, following: Any) -> Any:
    return targets.bellman_target(reward, discount, terminated & False, following)


def undiscounted(reward: Any, discount: Any, terminated: Any, following: Any) -> Any:
    return targets.bellman_target(reward, jnp.ones_like(discount), terminated, following)


def observations_shifted(scale: Any, batch: Transition) -> Transition:
    rows = action_scale.rows_in_units(scale, batch)
    return rows._replace(obs=jnp.roll(rows.obs, 1, axis=1))


def actions_shifted(scale: Any, batch: Transition) -> Transition:
    rows = action_scale.rows_in_units(scale, batch)
    return rows._replace(action=jnp.roll(rows.action, 1, axis=1))


def truncation_as_termination(scale: Any, batch: Transition) -> Transition:
    rows = action_scale.rows_in_units(scale, batch)
    return rows._replace(terminated=rows.terminated | rows.truncated)


def downhill(name: str) -> Any:
    climb = ALL[name].module.actor_loss

    def loss(*arguments: Any) -> Any:
        value, measured = climb(*arguments)
        return -value, measured

    return loss


BROKEN: list[tuple[str, str, Any]] = [
    ("constant", "bellman_target", bootstrapped_at_termination),
    ("observed", "rows_in_units", observations_shifted),
    ("delayed", "bellman_target", undiscounted),
    ("endless", "rows_in_units", truncation_as_termination),
    ("continuous", "actor_loss", downhill),
    ("matched", "rows_in_units", actions_shifted),
]


@pytest.mark.slow
@each
@pytest.mark.parametrize(("probe", "part", "broken"), BROKEN, ids=[x[0] for x in BROKEN])
def test_probe_is_missed_by_a_broken_variant(
    name: str, probe: str, part: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = broken(name) if part == "actor_loss" else broken
    monkeypatch.setattr(ALL[name].module, part, variant)
    assert error(name, probe) > 1.25


@pytest.mark.slow
@each
def test_truncation_as_termination_is_detected_on_the_host_driver(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ALL[name].module, "rows_in_units", truncation_as_termination)
    assert error_on_the_host(name) > 1.25


@pytest.mark.slow
@each
def test_values_stay_within_the_bound_from_rewards(name: str) -> None:
    """|Q| ≤ 16.3 / (1 - γ) on Pendulum, and for SAC γ α |H| / (1 - γ) more, |log π| ≤ 20 or so."""
    settings = PROBE | {"env_steps": 6_400}
    algorithm = small(name, Pendulum().spec, **settings, **(COLD if name == "sac" else {}))
    driver = NativeDriver(Pendulum(), algorithm)
    learners, phase = driver.phase(96)(
        driver.fill_replay(driver.start(SEEDS)), np.zeros(len(SEEDS))
    )
    rows = trees.row_of(learners.replay, 0)
    obs, action = (np.asarray(x).reshape(-1, x.shape[-1])[:2_000] for x in (rows.obs, rows.action))
    state = jax.tree.map(np.asarray, trees.row_of(learners.algorithm, 0))
    value = critics.action_values(state.critics, jnp.asarray(obs), jnp.asarray(action / 2))
    temperature = float(np.max(phase.metrics.get("temperature", np.zeros(1))))
    assert float(jnp.abs(value).max()) < (16.3 + 0.9 * temperature * 20) / (1 - 0.9)
    assert float(value.mean()) < -10


@pytest.mark.slow
@each
def test_pendulum_is_swung_up(name: str) -> None:
    """20,000 env steps, five seeds: as good as the zoo's, which say -152 to -157."""
    rates: dict[str, Any] = {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3}
    sizes = {"num_envs": 4, "rollout_length": 16, "updates_per_step": 1.0, "batch_size": 256}
    span = {
        "env_steps": 20_000,
        "buffer_size": 20_000,
        "learning_starts": 1_024,
        "hidden": (64, 64),
    }
    heat = {"temperature_learning_rate": 1e-3} if name == "sac" else {}
    algorithm = small(name, Pendulum().spec, **rates, **sizes, **span, **heat)
    driver, seeds = NativeDriver(Pendulum(), algorithm), list(range(5))
    learners = driver.fill_replay(driver.start(seeds))
    learners, _ = driver.phase(297)(learners, np.zeros(5))
    assert driver.evaluate(learners, seeds, episodes=50).returns.mean() > -175
