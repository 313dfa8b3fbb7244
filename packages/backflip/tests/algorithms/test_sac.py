"""SAC: its formulas by hand, the density it uses, and its steps against an explicit loop."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from packages.backflip.tests.algorithms.batches import KEY
from packages.backflip.tests.algorithms.minibatches import (
    CENTER,
    HALF,
    LOPSIDED,
    drawn,
    straight,
    three_rows,
)
from packages.backflip.tests.algorithms.test_ddpg import adam_step, follow, mean, net, q

from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.parts.critics import critic_loss
from backflip.algorithms.parts.sac_step import SACState, temperature_loss
from backflip.algorithms.sac import actor_loss, policy, sac, targets
from backflip.core import trees
from backflip.core.distributions import TanhNormal
from backflip.core.types import Transition
from backflip.envs.native.cartpole import CartPole

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
HALFWAY: Any = [{"w": jnp.zeros((1, 2)), "b": jnp.array([math.atanh(0.5), 0.0])}]  # μ, log σ
HIGH = straight(2.0, 3.0, bias=1.0)  # 2 s + 3 u + 1
LOW = straight(2.0, 5.0, bias=-1.0)  # 2 s + 5 u - 1, the lower for u < 1
LOG_P = -0.5 * math.log(2 * math.pi) - math.log(0.75)  # of u = ½, the median


def start(seed: int = 0) -> SACState:
    """A state whose target networks differ from the others."""
    algorithm = sac(SMALL, LOPSIDED)
    state, other = (jax.tree.map(jnp.asarray, algorithm.init(s)) for s in (seed, seed + 9))
    return state._replace(target_critics=other.critics)


@pytest.mark.medium
@pytest.mark.parametrize("order", [1, -1])
def test_targets_by_hand(order: int) -> None:
    """At s' = 1, u = ½ the critics return 4.5 and 3.5; α is 0.2."""
    critics = [HIGH, LOW][::order]
    goal = targets(HALFWAY, critics, jnp.array(0.2), three_rows(), jnp.zeros((3, 1)))
    going_on = 1 + (3.5 - 0.2 * LOG_P) / 2
    np.testing.assert_allclose(goal, [going_on, 1, going_on], rtol=1e-6)


@pytest.mark.medium
def test_the_policy_loss_by_hand() -> None:
    """α log π - min Q; its slope by μ is α 2 tanh μ - 5 (1 - ½²), of the lower critic."""
    arguments = [HIGH, LOW], jnp.array(0.2), three_rows(), jnp.zeros((3, 1))
    (loss, entropy), slope = jax.value_and_grad(actor_loss, has_aux=True)(HALFWAY, *arguments)
    np.testing.assert_allclose(loss, 0.2 * LOG_P - 3.5, rtol=1e-5)
    np.testing.assert_allclose(entropy, -LOG_P, rtol=1e-5)
    np.testing.assert_allclose(slope[0]["b"][0], 0.2 * 2 * 0.5 - 5 * 0.75, rtol=1e-5)
    np.testing.assert_allclose(slope[0]["b"][1], -0.2, rtol=1e-5)  # wider is -log σ likelier


def test_entropy_above_the_target_decreases_the_temperature() -> None:
    """With log α = 0.3 and H - H̄ = ½: the slope is ½, and Adam goes down."""
    price, slope = jax.value_and_grad(temperature_loss)(jnp.array(0.3), jnp.array(-0.5), -1.0)
    np.testing.assert_allclose([price, slope], [0.15, 0.5], rtol=1e-6)
    assert float(jax.grad(temperature_loss, argnums=1)(jnp.array(0.3), jnp.array(0.0), -1.0)) == 0


@pytest.mark.slow
def test_the_temperature_moves_entropy_to_its_target() -> None:
    batch = drawn(LOPSIDED, U, B)
    for wanted, falls in ((-9.0, True), (9.0, False)):
        config = replace(SMALL, target_entropy_per_dimension=wanted)
        after, _ = jax.jit(sac(config, LOPSIDED).update)(start(), batch, KEY)
        moved = float(after.log_temperature - start().log_temperature)
        np.testing.assert_allclose(moved, -0.03 if falls else 0.03, rtol=0.01)


@pytest.mark.medium
def test_density_is_that_of_a_change_of_variables() -> None:
    """The density of y is that of x over dy/dx, a difference quotient in double precision."""
    rng = np.random.default_rng(0)
    mean, log_std, noise = (rng.normal(0, scale, (50, 3)) for scale in (1, 0.5, 1))
    made: Any = [jnp.asarray(x, jnp.float32) for x in (mean, log_std, noise)]
    y, found = TanhNormal(*made[:2]).transform(made[2])
    mean, log_std, noise = (np.asarray(x, np.float64) for x in made)
    x = mean + np.exp(log_std) * noise
    derivative = (np.tanh(x + 1e-4) - np.tanh(x - 1e-4)) / 2e-4
    normal = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(y, np.tanh(x), atol=1e-5)
    np.testing.assert_allclose(found, (normal - np.log(derivative)).sum(1), rtol=1e-3, atol=1e-3)


@pytest.mark.medium
def test_density_integrates_to_1() -> None:
    """Over actions in [-1, 1], not over those of the environment."""
    y = jnp.linspace(-0.9999, 0.9999, 20_001)[:, None]
    density = jnp.exp(TanhNormal(jnp.full((1, 1), 0.4), jnp.full((1, 1), -0.5)).log_prob(y))
    np.testing.assert_allclose(np.trapezoid(density, y[:, 0]), 1.0, atol=1e-3)


def test_log_std_is_clipped() -> None:
    wide: Any = [{"w": jnp.zeros((1, 2)), "b": jnp.array([0.0, 50.0])}]
    narrow: Any = [{"w": jnp.zeros((1, 2)), "b": jnp.array([0.0, -50.0])}]
    assert policy(wide, jnp.ones((1, 1))).log_std.tolist() == [[2]]
    assert policy(narrow, jnp.ones((1, 1))).log_std.tolist() == [[-20]]


@pytest.mark.slow
def test_gradients_reach_only_the_right_parameters() -> None:
    """Critics learn from their own output alone; their targets' networks and policy do not."""
    state, rows, noise = start(), trees.row_of(drawn(LOPSIDED, U, B), 0), jnp.ones((B, 2))

    def loss(critics: Any, actor: Any, target_critics: Any, log_temperature: Any) -> Any:
        temperature = jnp.exp(log_temperature)
        goal = targets(actor, target_critics, temperature, rows, noise)
        return critic_loss(critics, rows, goal)[0]

    gradients = jax.grad(loss, argnums=(0, 1, 2, 3))(
        state.critics, state.actor, state.target_critics, state.log_temperature
    )
    biggest = [max(float(jnp.abs(x).max()) for x in jax.tree.leaves(g)) for g in gradients]
    assert biggest[0] > 0
    assert biggest[1:] == [0, 0, 0]


@pytest.mark.medium
def test_discrete_actions_use_discrete_sac() -> None:
    algorithm = sac(SMALL, CartPole().spec)
    action, _ = algorithm.act(algorithm.init(0), jnp.zeros((7, 4)), KEY)
    assert algorithm.name == "sac"
    assert action.shape == (7,)
    assert action.dtype == jnp.int32


@pytest.mark.slow
def test_u_minibatches_equal_u_iterations_of_the_papers_loop() -> None:
    """Algorithm 1 of arXiv:1812.05905 as printed, with optax's own optimiser, the same noise."""
    state, batch = start(), drawn(LOPSIDED, U, B)
    after, metrics = jax.jit(sac(SMALL, LOPSIDED).update)(state, batch, KEY)
    expected = jax.jit(loop)(state, batch)
    for a, b in zip(jax.tree.leaves(after[:4]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert all(np.isfinite(x) for x in metrics.values())


def draw(actor: Any, obs: Any, noise: Any) -> tuple[Any, Any]:
    """Actions, and their log-density by the formula of arXiv:1801.01290, appendix C."""
    mu, log_std = jnp.split(net(actor, obs), 2, 1)
    x = mu + jnp.exp(log_std) * noise
    normal = jax.scipy.stats.norm.logpdf(x, mu, jnp.exp(log_std))
    return jnp.tanh(x), (normal - jnp.log(1 - jnp.tanh(x) ** 2)).sum(1)


def loop(state: SACState, batch: Transition) -> Any:
    actor, critics, old_critics, log_alpha = state[:4]
    adam = optax.adam(1e-3)
    actor_moments, alpha_moments = adam.init(actor), adam.init(log_alpha)
    critic_moments = [adam.init(c) for c in critics]
    center, half = jnp.asarray(CENTER, jnp.float32)[None], jnp.asarray(HALF, jnp.float32)[None]
    noise = jax.random.normal(KEY, (U, 2, B, 2))
    for u in range(U):
        rows, alpha = trees.row_of(batch, u), jnp.exp(log_alpha)
        unit = (rows.action - center) / half
        after, log_p = draw(actor, rows.next_obs, noise[u, 0])
        soft = jnp.minimum(*[q(c, rows.next_obs, after) for c in old_critics]) - alpha * log_p
        goal = rows.reward + rows.extra.discount * jnp.where(rows.terminated, 0, soft)

        def judge(critic: Any, rows: Any = rows, unit: Any = unit, goal: Any = goal) -> Any:
            return mean(0.5 * (q(critic, rows.obs, unit) - goal) ** 2, rows.valid)

        learned = [
            adam_step(critic, jax.grad(judge)(critic), moments, 3e-4)
            for critic, moments in zip(critics, critic_moments, strict=True)
        ]
        critics, critic_moments = [x for x, _ in learned], [m for _, m in learned]

        def climb(actor: Any, u: int = u, rows: Any = rows, both: Any = critics) -> Any:
            here, log_p = draw(actor, rows.obs, noise[u, 1])
            lower = jnp.minimum(*[q(c, rows.obs, here) for c in both])
            return mean(jnp.exp(log_alpha) * log_p - lower, rows.valid), mean(log_p, rows.valid)  # noqa: B023

        slope, log_p = jax.grad(climb, has_aux=True)(actor)
        actor, actor_moments = adam_step(actor, slope, actor_moments, 3e-4)
        log_alpha, alpha_moments = adam_step(log_alpha, -(log_p - 2.0), alpha_moments, 1e-2)
        old_critics = follow(old_critics, critics, 0.1)
    return actor, critics, old_critics, log_alpha
