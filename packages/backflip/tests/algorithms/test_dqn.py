"""DQN: its formulas by hand, what reaches which network, and probes with known answers."""

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
from packages.backflip.tests.algorithms.probing import SEEDS, endless_on_the_host

from backflip.algorithms import dqn as module
from backflip.algorithms.dqn import DQNState, dqn, targets
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.parts.epsilon_greedy import epsilon
from backflip.core import trees
from backflip.core.replay.layout import Sampled
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.learning import layout_of
from backflip.drivers.native import NativeDriver
from backflip.envs.native import probes
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import make_host
from backflip.networks.q_network import q_network
from runshelf.errors import UsageError

SMALL = DQNConfig(
    env_steps=2_000,
    num_envs=4,
    rollout_length=4,
    updates_per_step=0.25,
    batch_size=12,
    buffer_size=1_000,
    learning_starts=64,
    target_update_interval=16,
    epsilon_steps=640,
    learning_rate=2e-3,
    n_step=1,
    hidden=(16, 16),
)
U, B = 4, 12


def changed(config: DQNConfig = SMALL, **settings: Any) -> DQNConfig:
    return DQNConfig(**(vars(config) | settings))


def start(config: DQNConfig, spec: EnvSpec, seed: int = 0) -> DQNState:
    """A state whose two networks differ."""
    state = jax.tree.map(jnp.asarray, dqn(config, spec).init(seed))
    return state._replace(
        target=jax.tree.map(jnp.asarray, dqn(config, spec).init(seed + 99).params)
    )


def drawn(spec: EnvSpec, seed: int = 0, rows: tuple[int, int] = (U, B)) -> Transition:
    """Random minibatches with ends and invalid rows."""
    rng = np.random.default_rng(seed)
    shape = (*rows, *spec.observation.shape)

    def observations() -> Any:
        if spec.is_image:
            return rng.integers(0, 256, shape, np.uint8)
        return rng.normal(size=shape).astype(np.float32)

    terminated = rng.random(rows) < 0.3
    extra = Sampled(
        discount=rng.choice([0.99, 0.9], rows).astype(np.float32),
        place=np.arange(np.prod(rows), dtype=np.int32).reshape(rows),
        weight=rng.uniform(0.1, 1, rows).astype(np.float32),
    )
    batch = Transition(
        obs=observations(),
        action=rng.integers(0, 3, rows).astype(np.int32),
        reward=rng.normal(1, 2, rows).astype(np.float32),
        terminated=terminated,
        truncated=~terminated & (rng.random(rows) < 0.3),
        next_obs=observations(),
        valid=rng.random(rows) < 0.8,
        extra=extra,
    )
    return jax.tree.map(jnp.asarray, batch)


def updated(config: DQNConfig, spec: EnvSpec, state: DQNState, batch: Transition) -> Any:
    return jax.jit(dqn(config, spec).update)(state, batch, KEY)


# Formulas by hand


@pytest.mark.medium
@pytest.mark.parametrize(
    ("loss", "double", "dueling"),
    [
        pytest.param("huber", False, False, marks=pytest.mark.slow),
        ("huber", True, True),
        pytest.param("squared", True, False, marks=pytest.mark.slow),
    ],
)
def test_loss_equals_the_definition_row_by_row(loss: Any, double: bool, dueling: bool) -> None:
    config = changed(loss=loss, double=double, dueling=dueling, max_grad_norm=1e9)
    config = changed(config, target_update_interval=10**9, learning_rate=0.0, learning_rate_end=0.0)
    net = q_network(DISCRETE, 3, config.hidden, dueling=dueling)
    state, batch = start(config, DISCRETE), drawn(DISCRETE)
    _, metrics = updated(config, DISCRETE, state, batch)
    b = jax.tree.map(np.asarray, batch)
    losses, sizes, goals, values = [], [], [], []
    for place in np.argwhere(b.valid):
        u, i = place
        now = np.asarray(net.apply(state.params, batch.obs[u, i][None]))[0]
        chooser = state.params if double else state.target
        action = np.argmax(net.apply(chooser, batch.next_obs[u, i][None])[0])
        after = float(net.apply(state.target, batch.next_obs[u, i][None])[0, action])
        goal = b.reward[u, i] + (0 if b.terminated[u, i] else b.extra.discount[u, i] * after)
        size = abs(goal - now[b.action[u, i]])
        each = size - 0.5 if loss == "huber" and size > 1 else 0.5 * size**2
        losses.append((u, b.extra.weight[u, i] * each))
        sizes.append(size)
        goals.append(goal)
        values.append(now[b.action[u, i]])
    expected = {
        "q_loss": np.mean([each for _, each in losses]),
        "td_error_abs_mean": np.mean(sizes),
        "target_mean": np.mean(goals),
        "q_mean": np.mean(values),
        "q_max": np.max(values),
        "reward_mean": b.reward[b.valid].mean(),
        "reward_min": b.reward[b.valid].min(),
        "reward_max": b.reward[b.valid].max(),
        "reward_std": b.reward[b.valid].std(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)


@pytest.mark.medium
def test_u_minibatches_are_u_steps_of_adam_one_after_the_other() -> None:
    """Against a loop with optax's own optimiser, the targets moving with the online network."""
    config = changed(max_grad_norm=1e9, target_update_interval=10**9)
    net = q_network(DISCRETE, 3, config.hidden)
    state, batch = start(config, DISCRETE), drawn(DISCRETE)
    after, _ = updated(config, DISCRETE, state, batch)

    def mean_loss(params: Any, rows: Transition, goal: Any) -> Any:
        value = jnp.take_along_axis(net.apply(params, rows.obs), rows.action[:, None], 1)[:, 0]
        each = rows.extra.weight * optax.huber_loss(value, goal)
        return jnp.where(rows.valid, each, 0).sum() / rows.valid.sum().astype(jnp.float32)

    @jax.jit
    def loop(params: Any) -> Any:
        adam = optax.adam(config.learning_rate)
        moments = adam.init(params)
        for u in range(U):
            rows = trees.row_of(batch, u)
            best = jnp.argmax(net.apply(params, rows.next_obs), -1)
            rated = net.apply(state.target, rows.next_obs)[jnp.arange(B), best]
            goal = rows.reward + rows.extra.discount * jnp.where(rows.terminated, 0, rated)
            gradient = jax.grad(mean_loss)(params, rows, goal)
            with jax.numpy_dtype_promotion("standard"):
                step, moments = adam.update(gradient, moments)
            params = optax.apply_updates(params, step)
        return params

    for a, b in zip(
        jax.tree.leaves(after.params), jax.tree.leaves(loop(state.params)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.medium
def test_gradients_reach_the_online_network_through_its_value_and_nothing_else() -> None:
    state, rows = start(SMALL, DISCRETE), trees.row_of(drawn(DISCRETE), 0)
    net = q_network(DISCRETE, 3, SMALL.hidden)

    @jax.jit
    def both(params: Any, target: Any) -> Any:
        def whole(params: Any, target: Any) -> Any:
            goal = targets(SMALL, net, params, target, rows)
            return module.loss(SMALL, net, params, rows, goal)[0]

        goal = targets(SMALL, net, params, target, rows)
        alone = jax.grad(lambda p: module.loss(SMALL, net, p, rows, goal)[0])(params)
        return *jax.grad(whole, argnums=(0, 1))(params, target), alone

    online, older, alone = both(state.params, state.target)
    assert_same_bits(online, alone)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(older))
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(online)) > 0


@pytest.mark.slow
def test_gradients_are_clipped_by_their_global_norm() -> None:
    state, batch = start(SMALL, DISCRETE), drawn(DISCRETE, rows=(1, B))
    config = changed(updates_per_step=1 / 16, max_grad_norm=1e-3)
    after, metrics = updated(config, DISCRETE, state, batch)
    assert float(metrics["grad_norm"]) > 0.1
    moment = optax.tree.norm(after.optimizer.mu)
    np.testing.assert_allclose(moment, 0.1 * 1e-3, rtol=1e-3)


@pytest.mark.parametrize("clips", [False, True])
def test_rewards_are_clipped_by_setting(clips: bool) -> None:
    """By the replay, which a driver lays out as the algorithm says."""
    algorithm = dqn(changed(clip_rewards=clips), DISCRETE)
    assert layout_of(DISCRETE, algorithm).clip_rewards == clips


# Schedules


@pytest.mark.medium
def test_the_target_network_is_copied_every_target_update_interval() -> None:
    """Rollouts are 16 env steps: of 40, every third or second passes a multiple."""
    config = changed(target_update_interval=40)
    state, batch = start(config, DISCRETE), drawn(DISCRETE)
    update, copied = jax.jit(dqn(config, DISCRETE).update), []
    for _ in range(10):
        before = state
        state, _ = update(state, batch, KEY)
        followed = jax.tree.leaves(state.target)[0] == jax.tree.leaves(before.params)[0]
        stayed = jax.tree.leaves(state.target)[0] == jax.tree.leaves(before.target)[0]
        assert followed.all() or stayed.all()
        copied.append(bool(followed.all()))
    passed = [(16 * (n + 1)) // 40 > (16 * n) // 40 for n in range(10)]
    assert copied == passed
    assert sum(copied) == 4


@pytest.mark.medium
def test_a_target_network_with_tau_by_hand() -> None:
    state = start(SMALL, DISCRETE)
    moved = module.move_target(changed(tau=0.25), state)
    for old, new, found in zip(
        *(jax.tree.leaves(x) for x in (state.target, state.params, moved)), strict=True
    ):
        np.testing.assert_allclose(found, 0.75 * old + 0.25 * new, rtol=1e-5, atol=1e-7)


def test_schedules_count_the_random_env_steps() -> None:
    """The warm-up is 4 rollouts of 16; ε ends at 640 env steps, the learning rate at 2000."""
    config = changed(learning_rate=1e-2, learning_rate_end=0.0)
    state = start(config, DISCRETE)
    assert config.updates == 125 - 4
    for updates, share in ((0, 0.1), (18, 0.55), (36, 1.0), (100, 1.0)):
        state = state._replace(updates=jnp.asarray(updates, jnp.int32))
        np.testing.assert_allclose(epsilon(config, state.updates), 1 - 0.96 * share, rtol=1e-5)
        rate = 1e-2 * (1 - updates / 121)
        np.testing.assert_allclose(module.learning_rate(config, state), rate, rtol=1e-5)


@pytest.mark.medium
def test_the_share_of_random_actions_is_epsilon() -> None:
    config = changed(epsilon_start=0.3, epsilon_end=0.3)
    algorithm, state = dqn(config, DISCRETE), start(config, DISCRETE)
    obs = jnp.broadcast_to(jnp.arange(5.0), (30_000, 5))
    action, _ = jax.jit(algorithm.act)(state, obs, KEY)
    best = int(algorithm.evaluation_action(state, obs[:1], KEY)[0])
    shares = np.bincount(action, minlength=3) / len(obs)
    expected = np.full(3, 0.1)
    expected[best] += 0.7
    np.testing.assert_allclose(shares, expected, atol=0.01)


@pytest.mark.slow
def test_evaluation_is_greedy_and_from_pixels_almost_greedy() -> None:
    for spec, least in ((DISCRETE, 1.0), (PIXELS, 0.98)):
        algorithm, state = dqn(SMALL, spec), start(SMALL, spec)
        obs = jnp.broadcast_to(drawn(spec).obs[0, 0], (4_000, *spec.observation.shape))
        action = jax.jit(algorithm.evaluation_action)(state, obs, KEY)
        net = q_network(spec, 3, SMALL.hidden)
        best = int(module.action_values(net, state, obs[:1]).argmax())
        same = float((action == best).mean())
        assert least <= same <= (1.0 if least == 1 else 0.9999)


@pytest.mark.medium
def test_assess_returns_the_value_of_the_best_action() -> None:
    algorithm, state = dqn(SMALL, DISCRETE), start(SMALL, DISCRETE)
    obs = drawn(DISCRETE).obs[0]
    assert algorithm.assess is not None
    net = q_network(DISCRETE, DISCRETE.action.n, SMALL.hidden)
    each = [max(net.apply(state.params, one[None])[0].tolist()) for one in obs]
    np.testing.assert_allclose(algorithm.assess(state, obs)["value"], each, rtol=1e-5)


# Rows, bits and states


@pytest.mark.medium
@pytest.mark.parametrize("number", [1e6, np.nan])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(DISCRETE, id="discrete"),
        pytest.param(PIXELS, id="pixels", marks=pytest.mark.slow),
    ],
)
def test_contents_of_invalid_rows_change_no_bit(spec: EnvSpec, number: float) -> None:
    config = changed(prioritized=True)
    state, batch = start(config, spec), drawn(spec)
    right = updated(config, spec, state, batch)
    spoiled = updated(config, spec, state, spoil(batch, number))
    hidden = right[0]._replace(errors=()), spoiled[0]._replace(errors=())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(right))
    assert_same_bits((hidden[0], right[1]), (hidden[1], spoiled[1]))
    errors = [jnp.where(batch.valid, done[0].errors, 0) for done in (right, spoiled)]
    assert_same_bits(*errors)


@pytest.mark.medium
def test_weight_0_without_blanking_lets_nan_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "blank_vectors", lambda obs, valid: obs)
    state, batch = start(SMALL, DISCRETE), spoil(drawn(DISCRETE), np.nan)
    after, _ = updated(SMALL, DISCRETE, state, batch)
    assert not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after.params))


@pytest.mark.medium
def test_errors_of_the_last_minibatches_are_kept_for_the_priorities() -> None:
    config = changed(prioritized=True)
    state, batch = start(config, DISCRETE), drawn(DISCRETE)
    after, metrics = updated(config, DISCRETE, state, batch)
    plan: Any = dqn(config, DISCRETE).replay
    errors = plan.priority.errors(after)
    assert errors.shape == (U, B)
    size = np.abs(errors)[np.asarray(batch.valid)].mean()
    np.testing.assert_allclose(size, metrics["td_error_abs_mean"], rtol=1e-5)
    uniform: Any = dqn(SMALL, DISCRETE).replay
    assert uniform.priority is None


def learners_after(updates: int, *, seeds: Any = (3, 4), config: DQNConfig = SMALL) -> Any:
    driver = NativeDriver(CartPole(), dqn(config, CartPole().spec))
    learners = driver.fill_replay(driver.start(list(seeds)))
    return driver.phase(updates)(learners, np.zeros(len(seeds)))[0]


@pytest.mark.slow
def test_a_seed_gives_the_same_bits_with_any_other_seeds() -> None:
    one, again = (learners_after(6, seeds=seeds) for seeds in ((3, 4), (3, 5)))
    assert_same_bits(trees.row_of(one, 0), trees.row_of(again, 0))
    assert not np.array_equal(one.replay.obs[1], again.replay.obs[1])


@pytest.mark.slow
def test_a_seed_outside_jax_learns_the_same_with_any_other_seeds() -> None:
    config = changed(prioritized=True)

    def after(seeds: list[int]) -> Any:
        host = HostDriver(
            lambda rows: make_host("gymnasium:CartPole-v1", {}, rows), dqn(config, CartPole().spec)
        )
        learners = host.phase(4)(host.fill_replay(host.start(seeds)), np.zeros(len(seeds)))[0]
        host.close()
        return learners

    one, again = after([3, 4]), after([3, 5])
    assert_same_bits(trees.row_of(one.algorithm, 0), trees.row_of(again.algorithm, 0))
    np.testing.assert_array_equal(one.replay.tree[0], again.replay.tree[0])
    assert not np.array_equal(one.replay.tree[1], again.replay.tree[1])
    leaves = np.split(one.replay.tree, 2, 1)[1]
    assert set(leaves.reshape(-1)) > {0.0, 1.0}  # rows that were drawn have errors by now


@pytest.mark.slow
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_resumed_learner_equals_an_uninterrupted_one(prioritized: bool) -> None:
    config = changed(prioritized=prioritized, n_step=3)
    driver = NativeDriver(CartPole(), dqn(config, CartPole().spec))
    phase, reward = driver.phase(4), np.zeros(2)
    half, _ = phase(driver.fill_replay(driver.start([3, 4])), reward)
    saved = {name: array.copy() for name, array in trees.flatten(half).items()}
    whole, _ = phase(half, reward)
    resumed = trees.unflatten(driver.start([3, 4]), saved)
    assert_same_bits(whole, phase(resumed, reward)[0])


def test_a_saved_policy_has_only_the_acting_network() -> None:
    algorithm, state = dqn(SMALL, DISCRETE), start(SMALL, DISCRETE)
    other = start(SMALL, DISCRETE, seed=7)
    acting = algorithm.with_policy(other, algorithm.policy(state))
    assert_same_bits(acting.params, state.params)
    assert_same_bits(acting.target, other.target)


# Bad settings

BAD = {
    "would ever": {"learning_starts": 2_000},
    "whole number": {"updates_per_step": 0.3},
    "at least 1, got": {"updates_per_step": 0.01},
    "epsilon ends": {"epsilon_steps": 64},
    "`buffer_size`": {"buffer_size": 8},
    "`learning_starts` and the first rollout": {"learning_starts": 0, "batch_size": 32},
}


@pytest.mark.parametrize("says", BAD)
def test_invalid_settings_are_refused_in_one_line(says: str) -> None:
    with pytest.raises(UsageError) as caught:
        dqn(changed(**BAD[says]), DISCRETE)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert dqn(SMALL, DISCRETE).name == "dqn"


def test_the_nearest_valid_ratios_are_suggested() -> None:
    with pytest.raises(UsageError, match=r"try updates_per_step=0\.25 or 0\.3125"):
        dqn(changed(updates_per_step=0.3), DISCRETE)


@pytest.mark.medium
def test_a_replay_too_short_for_n_steps_is_refused() -> None:
    pixels = EnvSpec("long", PIXELS.observation, Discrete(3), None, frame_stack=2)
    with pytest.raises(
        UsageError, match="12 env steps of each of 4 environments in whole rollouts: at least 48"
    ):
        dqn(changed(buffer_size=47, n_step=10), pixels)


@pytest.mark.medium
def test_continuous_actions_are_refused() -> None:
    with pytest.raises(UsageError, match="discrete actions, and those of `Pendulum-v1` are cont"):
        dqn(SMALL, Pendulum().spec)


# Probes: tasks whose answers are known beforehand, and broken variants that miss them

PROBE = DQNConfig(
    env_steps=8_192,
    num_envs=4,
    rollout_length=16,
    updates_per_step=0.5,
    batch_size=32,
    buffer_size=2_048,
    learning_starts=256,
    learning_rate=5e-3,
    learning_rate_end=5e-4,
    discount=0.9,
    target_update_interval=64,
    epsilon_end=0.1,
    epsilon_steps=2_048,
    n_step=1,
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
TOLERANCE = 0.05


def values(driver: Driver, spec: EnvSpec, config: DQNConfig, shown: list[float]) -> np.ndarray:
    """Action values (seeds, shown, A) after learning."""
    learners = driver.fill_replay(driver.start(SEEDS))
    learners, _ = driver.phase(config.updates)(learners, np.zeros(len(SEEDS)))
    actions: Any = spec.action
    net = q_network(spec, actions.n, config.hidden, dueling=config.dueling)
    params = jax.tree.map(np.asarray, learners.algorithm.params)
    return np.asarray(jax.vmap(net.apply, (0, None))(params, jnp.asarray(shown)[:, None]))


def error(probe: str, config: DQNConfig = PROBE) -> float:
    """The error of the worst value of the worst seed, relative to the largest."""
    env, shown, wanted = NATIVE[probe]
    driver = NativeDriver(env, dqn(config, env.spec))
    off = np.abs(values(driver, env.spec, config, shown) - np.array(wanted)[None])
    return float(off.max() / np.abs(wanted).max())


def error_on_the_host() -> float:
    config = changed(PROBE, env_steps=4_096, learning_rate=1e-2)
    spec = probes.EndlessReward().spec
    driver = endless_on_the_host(dqn(config, spec))
    try:
        return float(np.abs(values(driver, spec, config, [0.0]) / 10 - 1).max())
    finally:
        driver.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "probe", ["constant", *(pytest.param(p, marks=pytest.mark.slow) for p in list(NATIVE)[1:])]
)
def test_probe_is_learned_on_every_seed(probe: str) -> None:
    assert error(probe) < TOLERANCE


@pytest.mark.slow
def test_a_time_limit_is_not_a_termination_on_the_host_driver() -> None:
    assert error_on_the_host() < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"double": False},
        {"dueling": True},
        {"n_step": 3},
        {"prioritized": True},
        {"loss": "squared", "tau": 0.5},
    ],
    ids=str,
)
def test_probes_are_learned_with_every_option(settings: dict[str, Any]) -> None:
    assert error("delayed", changed(PROBE, **settings)) < TOLERANCE


original = (module.bellman_target, module.loss, module.move_target)


def bootstraps_at_death(reward: Any, discount: Any, terminated: Any, best: Any) -> Any:
    return original[0](reward, discount, terminated & False, best)


def without_discount(reward: Any, discount: Any, terminated: Any, best: Any) -> Any:
    return original[0](reward, jnp.ones_like(discount), terminated, best)


def truncation_as_termination(
    config: Any, net: Any, params: Any, target: Any, rows: Transition
) -> Any:
    return targets(config, net, params, target, rows._replace(terminated=rows.truncated))


def target_never_follows(config: Any, state: DQNState) -> Any:
    return state.target


def actions_shifted(config: Any, net: Any, params: Any, rows: Transition, goal: Any) -> Any:
    rows = rows._replace(action=jnp.roll(rows.action, 1))
    return original[1](config, net, params, rows, goal)


def observations_shifted(config: Any, net: Any, params: Any, rows: Transition, goal: Any) -> Any:
    return original[1](config, net, params, rows._replace(obs=jnp.roll(rows.obs, 1, 0)), goal)


BROKEN = [
    ("constant", "bellman_target", bootstraps_at_death),
    ("observed", "loss", observations_shifted),
    ("delayed", "bellman_target", without_discount),
    ("chosen", "loss", actions_shifted),
    ("matched", "loss", actions_shifted),
    ("endless", "targets", truncation_as_termination),
    ("endless", "move_target", target_never_follows),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("probe", "name", "broken"),
    [BROKEN[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in BROKEN[1:])],
    ids=[f"{p}-{b.__name__}" for p, _, b in BROKEN],
)
def test_probe_is_missed_when_dqn_is_broken(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str, broken: Any
) -> None:
    monkeypatch.setattr(module, name, broken)
    assert not error(probe) < 1.5 * TOLERANCE  # NaN is missed too


@pytest.mark.slow
def test_truncation_as_termination_is_detected_on_the_host_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "targets", truncation_as_termination)
    assert not error_on_the_host() < 1.5 * TOLERANCE


# Environments


@pytest.mark.slow
def test_values_stay_within_the_bound_from_rewards() -> None:
    """CartPole pays 1 a step: in the end Q <= 1/(1 - γ), with a small margin for overshooting."""
    config = changed(PROBE, env_steps=16_384, hidden=(32, 32), learning_rate=1e-3, batch_size=64)
    driver = NativeDriver(CartPole(), dqn(config, CartPole().spec))
    _, phase = driver.phase(config.updates)(
        driver.fill_replay(driver.start(SEEDS)), np.zeros(len(SEEDS))
    )
    highest = np.asarray(phase.metrics["q_max"])[:, -10:]
    assert highest.min() > 0.8 * 10
    assert highest.max() < 1.1 * 10


@pytest.mark.slow
def test_dqn_learns_from_pixels() -> None:
    config = changed(PROBE, env_steps=768, rollout_length=8, learning_starts=256, epsilon_steps=512)
    driver = NativeDriver(Dot(), dqn(config, Dot().spec))
    learners = driver.fill_replay(driver.start([0]))
    learners, phase = driver.phase(config.updates)(learners, np.zeros(1))
    assert int(learners.replay.filled[0]) == 768 // 4
    assert np.isfinite(np.asarray(phase.metrics["q_loss"])).all()
    assert learners.replay.obs.shape[-1] == 1


@pytest.mark.slow
def test_both_drivers_give_returns_of_the_same_distribution_on_cartpole() -> None:
    """Means over seeds of the returns while learning, as far apart as chance allows."""
    config = DQNConfig(
        env_steps=16_384,
        num_envs=16,
        updates_per_step=0.5,
        batch_size=64,
        buffer_size=16_384,
        learning_starts=1_024,
        learning_rate=1e-3,
        target_update_interval=16,
        epsilon_steps=4_096,
        n_step=1,
        hidden=(64, 64),
    )
    seeds, spec = list(range(10)), CartPole().spec
    native: Driver = NativeDriver(CartPole(), dqn(config, spec))
    host: Driver = HostDriver(
        lambda rows: make_host("gymnasium:CartPole-v1", {}, rows), dqn(config, spec)
    )
    means = []
    for driver in (native, host):
        learners = driver.fill_replay(driver.start(seeds))
        _, phase = driver.phase(config.updates)(learners, np.zeros(len(seeds)))
        episodes = np.asarray(phase.metrics["episodes"])
        total = np.nan_to_num(np.asarray(phase.metrics["episode_return_mean"])) * episodes
        means.append(total.sum(1) / episodes.sum(1))
        driver.close()
    one, other = means
    apart = abs(one.mean() - other.mean())
    spread = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    assert apart < 4 * spread
    assert min(one.mean(), other.mean()) > 70  # a random policy gets 22
