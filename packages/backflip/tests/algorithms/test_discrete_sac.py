"""Discrete SAC: its formulas by hand, its steps against a loop, and probes with known answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from packages.backflip.tests.algorithms.batches import (
    DISCRETE,
    KEY,
    PIXELS,
    assert_same_bits,
    spoil,
)
from packages.backflip.tests.algorithms.minibatches import LOPSIDED, drawn, three_rows
from packages.backflip.tests.algorithms.probing import SEEDS, endless_on_the_host
from packages.backflip.tests.algorithms.test_ddpg import adam_step, follow, mean

from backflip.algorithms import discrete_sac as module
from backflip.algorithms.discrete_sac import actor_loss, discrete_sac
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.parts.sac_step import SACState
from backflip.core import targets, trees
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.drivers.native import NativeDriver
from backflip.envs.native import probes
from backflip.envs.native.cartpole import CartPole
from backflip.networks.q_network import QNetwork, q_network
from runshelf.errors import UsageError

U, B = 3, 8
SMALL = SACConfig(
    env_steps=2_000,
    num_envs=4,
    rollout_length=3,
    updates_per_step=0.25,
    batch_size=B,
    buffer_size=1_000,
    learning_starts=60,
    tau=0.1,
    initial_temperature=0.3,
    temperature_learning_rate=1e-2,
    hidden=(16, 8),
)


def start(spec: EnvSpec = DISCRETE, seed: int = 0) -> SACState:
    """A state whose target networks differ from the others."""
    algorithm = discrete_sac(SMALL, spec)
    state, other = (jax.tree.map(jnp.asarray, algorithm.init(s)) for s in (seed, seed + 9))
    return state._replace(target_critics=other.critics)


def seen_by_table() -> QNetwork:
    """A network whose outputs are its parameters, for any observation."""

    def apply(params: Any, seen: Any) -> Any:
        return jnp.broadcast_to(params["of"][None], (seen.shape[0], 2))

    def nothing(rng: np.random.Generator) -> Any:
        del rng
        return {}

    return QNetwork(nothing, jnp.asarray, apply)


NET = seen_by_table()
POLICY = {"of": jnp.log(jnp.array([0.25, 0.75]))}
CRITICS = [{"of": jnp.array([4.0, 8.0])}, {"of": jnp.array([6.0, 2.0])}]  # the lower: 4, 2
ENTROPY = -0.25 * np.log(0.25) - 0.75 * np.log(0.75)


@pytest.mark.medium
def test_targets_by_hand() -> None:
    """¼ 4 + ¾ 2 = 2.5, and α = 0.2; nothing after the end."""
    goal = module.targets(NET, POLICY, CRITICS, jnp.array(0.2), three_rows())
    going_on = 1 + (2.5 + 0.2 * ENTROPY) / 2
    np.testing.assert_allclose(goal, [going_on, 1, going_on], rtol=1e-6)


@pytest.mark.medium
def test_assess_returns_the_expected_action_value() -> None:
    """¼ 4 + ¾ 2 = 2.5 of every observation."""
    state = start()._replace(actor=POLICY, critics=CRITICS)
    said = module.assess(module.Networks(NET, 2, False), state, jnp.zeros((3, 1)))
    np.testing.assert_allclose(said["value"], [2.5] * 3, rtol=1e-6)
    np.testing.assert_allclose(said["entropy"], [ENTROPY] * 3, rtol=1e-6)


@pytest.mark.medium
def test_losses_by_hand() -> None:
    rows = three_rows()._replace(action=jnp.array([0, 1, 1]))
    loss, values = module.critic_loss(NET, CRITICS, rows, jnp.array([5.0, 5.0, 8.0]))
    assert values.tolist() == [[4, 8, 8], [6, 2, 2]]
    np.testing.assert_allclose(loss, (0.5 + 4.5 + 0 + 0.5 + 4.5 + 18) / 3, rtol=1e-6)
    loss, entropy = actor_loss(NET, POLICY, CRITICS, jnp.array(0.2), rows)
    np.testing.assert_allclose(entropy, ENTROPY, rtol=1e-5)
    np.testing.assert_allclose(loss, -0.2 * ENTROPY - 2.5, rtol=1e-5)


@pytest.mark.medium
def test_gradients_reach_only_the_right_parameters() -> None:
    rows = three_rows()._replace(action=jnp.array([0, 1, 1]))

    def judge(critics: Any, actor: Any, old: Any) -> Any:
        goal = module.targets(NET, actor, old, jnp.array(0.2), rows)
        return module.critic_loss(NET, critics, rows, goal)[0]

    gradients = jax.grad(judge, argnums=(0, 1, 2))(CRITICS, POLICY, CRITICS)
    biggest = [max(float(jnp.abs(x).max()) for x in jax.tree.leaves(g)) for g in gradients]
    assert biggest[0] > 0
    assert biggest[1:] == [0, 0]
    slope = jax.grad(actor_loss, argnums=1, has_aux=True)(
        NET, POLICY, CRITICS, jnp.array(0.2), rows
    )[0]["of"]
    p, f = np.array([0.25, 0.75]), np.array([4.0, 2.0]) - 0.2 * np.log([0.25, 0.75])
    np.testing.assert_allclose(slope, -p * (f - (p * f).sum()), rtol=1e-4)


@pytest.mark.slow
def test_contents_of_invalid_rows_change_no_bit() -> None:
    update, batch = jax.jit(discrete_sac(SMALL, DISCRETE).update), drawn(DISCRETE, U, B)
    right = update(start(), batch, KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    for number in (1e6, np.nan, np.inf):
        assert_same_bits(right, update(start(), spoil(batch, number), KEY))


@pytest.mark.slow
def test_evaluation_is_greedy_on_vectors_and_samples_from_pixels() -> None:
    rng = np.random.default_rng(0)
    for spec, same in ((DISCRETE, True), (PIXELS, False)):
        algorithm = discrete_sac(SMALL, spec)
        obs = jnp.asarray(rng.integers(0, 9, (500, *spec.observation.shape)))
        obs = obs.astype(spec.observation.dtype)
        state = start(spec)
        net = q_network(spec, 3, SMALL.hidden)
        best = net.apply(state.actor, net.preprocess(obs)).argmax(-1)
        chosen = algorithm.evaluation_action(state, obs, KEY) == best
        assert bool(chosen.all()) == same


@pytest.mark.slow
def test_the_target_entropy_is_a_share_of_the_largest() -> None:
    batch = drawn(DISCRETE, U, B)
    for share, rises in ((0.0, False), (2.0, True)):
        config = replace(SMALL, target_entropy_scale=share)
        after, metrics = jax.jit(discrete_sac(config, DISCRETE).update)(start(), batch, KEY)
        assert (after.log_temperature > start().log_temperature) == rises
        np.testing.assert_allclose(metrics["entropy_max"], np.log(3), rtol=1e-6)


def test_continuous_actions_are_refused() -> None:
    with pytest.raises(UsageError, match="not discrete"):
        discrete_sac(SMALL, LOPSIDED)


@pytest.mark.slow
def test_u_minibatches_equal_u_iterations_of_the_papers_loop() -> None:
    """Algorithm 1 as printed but for the departures named, with optax's own optimiser."""
    state, batch = start(), drawn(DISCRETE, U, B)
    after, metrics = jax.jit(discrete_sac(SMALL, DISCRETE).update)(state, batch, KEY)
    expected = jax.jit(loop)(state, batch)
    for a, b in zip(jax.tree.leaves(after[:4]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert all(np.isfinite(x) for x in metrics.values())


def loop(state: SACState, batch: Transition) -> Any:
    actor, critics, old_critics, log_alpha = state[:4]
    net = q_network(DISCRETE, 3, SMALL.hidden).apply
    adam = optax.adam(1e-3)
    actor_moments, alpha_moments = adam.init(actor), adam.init(log_alpha)
    critic_moments = [adam.init(c) for c in critics]
    for u in range(U):
        rows, alpha = trees.row_of(batch, u), jnp.exp(log_alpha)
        pi = jax.nn.softmax(net(actor, rows.next_obs))
        lower = jnp.minimum(*[net(c, rows.next_obs) for c in old_critics])
        soft = (pi * (lower - alpha * jnp.log(pi))).sum(1)
        goal = rows.reward + rows.extra.discount * jnp.where(rows.terminated, 0, soft)

        def judge(critic: Any, rows: Any = rows, goal: Any = goal) -> Any:
            chosen = jnp.take_along_axis(net(critic, rows.obs), rows.action[:, None], 1)[:, 0]
            return mean(0.5 * (chosen - goal) ** 2, rows.valid)

        learned = [
            adam_step(critic, jax.grad(judge)(critic), moments, 3e-4)
            for critic, moments in zip(critics, critic_moments, strict=True)
        ]
        critics, critic_moments = [x for x, _ in learned], [m for _, m in learned]

        def climb(actor: Any, rows: Any = rows, both: Any = critics, alpha: Any = alpha) -> Any:
            pi = jax.nn.softmax(net(actor, rows.obs))
            lower = jnp.minimum(*[net(c, rows.obs) for c in both])
            loss = (pi * (alpha * jnp.log(pi) - lower)).sum(1)
            return mean(loss, rows.valid), mean(-(pi * jnp.log(pi)).sum(1), rows.valid)

        slope, entropy = jax.grad(climb, has_aux=True)(actor)
        actor, actor_moments = adam_step(actor, slope, actor_moments, 3e-4)
        price = entropy - 0.98 * float(np.log(3))
        log_alpha, alpha_moments = adam_step(log_alpha, price, alpha_moments, 1e-2)
        old_critics = follow(old_critics, critics, 0.1)
    return actor, critics, old_critics, log_alpha


# Probes: tasks whose answers are known beforehand, and broken variants that miss them

PROBE = SACConfig(
    env_steps=4_096,
    num_envs=4,
    rollout_length=16,
    updates_per_step=0.5,
    batch_size=32,
    buffer_size=2_048,
    learning_starts=256,
    actor_learning_rate=3e-3,
    critic_learning_rate=3e-3,
    temperature_learning_rate=3e-3,
    initial_temperature=0.02,
    target_entropy_scale=0.1,
    discount=0.9,
    tau=0.05,
    hidden=(16, 16),
)
NATIVE: dict[str, tuple[Any, list[float], list[list[float]]]] = {
    "constant": (probes.ConstantReward(), [0.0], [[1.0]]),
    "observed": (probes.ObservedReward(), [-1.0, 1.0], [[-1.0], [1.0]]),
    "delayed": (probes.DelayedReward(), [0.0, 1.0], [[0.9], [1.0]]),
    "chosen": (probes.ChosenReward(), [0.0], [[-1.0, 1.0]]),
    "matched": (probes.MatchedReward(), [-1.0, 1.0], [[1.0, -1.0], [-1.0, 1.0]]),
    "endless": (probes.EndlessReward(), [0.0], [[10.0]]),
}
TOLERANCE = 0.06


def answers(driver: Driver, spec: EnvSpec, shown: list[float]) -> tuple[Any, Any]:
    """Values (seeds, shown, K, A) and probabilities (seeds, shown, A) after learning."""
    learners = driver.fill_replay(driver.start(SEEDS))
    learners, _ = driver.phase(PROBE.updates)(learners, np.zeros(len(SEEDS)))
    actions: Any = spec.action
    net, obs = q_network(spec, actions.n, PROBE.hidden), jnp.asarray(shown)[:, None]

    def ask(state: Any) -> tuple[Any, Any]:
        values = jnp.stack([net.apply(critic, obs) for critic in state.critics], 1)
        return values, jax.nn.softmax(net.apply(state.actor, obs))

    return jax.tree.map(np.asarray, jax.vmap(ask)(jax.tree.map(np.asarray, learners.algorithm)))


def error(probe: str) -> float:
    """The error of the worst value, relative to the largest, or the probability of an error."""
    env, shown, wanted = NATIVE[probe]
    driver = NativeDriver(env, discrete_sac(PROBE, env.spec))
    values, policy = answers(driver, env.spec, shown)
    off = np.abs(values - np.array(wanted)[None, :, None]).max() / np.abs(wanted).max()
    best = np.argmax(wanted, -1)
    chance = np.take_along_axis(policy, best[None, :, None], 2)
    return float(max(off, 1 - chance.min()))


def error_on_the_host() -> float:
    spec = probes.EndlessReward().spec
    driver = endless_on_the_host(discrete_sac(PROBE, spec))
    try:
        return float(np.abs(answers(driver, spec, [0.0])[0] / 10 - 1).max())
    finally:
        driver.close()


@pytest.mark.slow
@pytest.mark.parametrize("probe", NATIVE)
def test_probe_is_learned_on_every_seed(probe: str) -> None:
    assert error(probe) < TOLERANCE


@pytest.mark.slow
def test_a_time_limit_is_not_a_termination_on_the_host_driver() -> None:
    assert error_on_the_host() < TOLERANCE


def bootstrapped_at_termination(reward: Any, discount: Any, terminated: Any, following: Any) -> Any:
    return targets.bellman_target(reward, discount, terminated & False, following)


def undiscounted(reward: Any, discount: Any, terminated: Any, following: Any) -> Any:
    return targets.bellman_target(reward, jnp.ones_like(discount), terminated, following)


def changed(change: Callable[[Transition], Transition]) -> Any:
    """A gradient step that first changes its rows."""
    step = module.step

    def broken(config: Any, networks: Any, state: Any, rows: Transition) -> Any:
        return step(config, networks, state, change(rows))

    return broken


def observations_shifted(rows: Transition) -> Transition:
    return rows._replace(obs=jnp.roll(rows.obs, 1, axis=0))


def actions_shifted(rows: Transition) -> Transition:
    return rows._replace(action=jnp.roll(rows.action, 1, axis=0))


def truncation_as_termination(rows: Transition) -> Transition:
    return rows._replace(terminated=rows.terminated | rows.truncated)


def downhill(*arguments: Any) -> Any:
    loss, entropy = actor_loss(*arguments)
    return -loss, entropy


BROKEN: list[tuple[str, str, Any]] = [
    ("constant", "bellman_target", bootstrapped_at_termination),
    ("observed", "step", changed(observations_shifted)),
    ("delayed", "bellman_target", undiscounted),
    ("chosen", "actor_loss", downhill),
    ("matched", "step", changed(actions_shifted)),
    ("endless", "step", changed(truncation_as_termination)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("probe", "part", "broken"), BROKEN, ids=[x[0] for x in BROKEN])
def test_probe_is_missed_by_a_broken_variant(
    probe: str, part: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, part, broken)
    assert error(probe) > 1.25 * TOLERANCE


@pytest.mark.slow
def test_truncation_as_termination_is_detected_on_the_host_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "step", changed(truncation_as_termination))
    assert error_on_the_host() > 1.25 * TOLERANCE


def largest_value() -> tuple[float, float]:
    """The largest Q of any seed on CartPole at the end, and its bound from rewards of 1."""
    config = replace(PROBE, env_steps=8_192, hidden=(32, 32), critic_learning_rate=1e-3)
    driver = NativeDriver(CartPole(), discrete_sac(config, CartPole().spec))
    learners = driver.fill_replay(driver.start(SEEDS))
    _, phase = driver.phase(config.updates)(learners, np.zeros(len(SEEDS)))
    paid = 0.9 * float(np.max(phase.metrics["temperature"])) * np.log(2)
    return float(np.max(phase.metrics["q_max"][:, -10:])), (1 + paid) / (1 - 0.9)


@pytest.mark.slow
def test_values_stay_within_the_bound_from_rewards() -> None:
    """Q ≤ (1 + γ α log 2) / (1 - γ), with a small margin for overshooting."""
    found, allowed = largest_value()
    assert 8 < found < 1.1 * allowed


@pytest.mark.slow
def test_values_without_a_discount_exceed_the_bound_from_rewards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "bellman_target", undiscounted)
    found, allowed = largest_value()
    assert found > 1.5 * allowed
