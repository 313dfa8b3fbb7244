"""DDPG: its formulas by hand, and Adam's steps against a loop written out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from packages.backflip.tests.algorithms.batches import KEY, assert_same_bits
from packages.backflip.tests.algorithms.minibatches import (
    CENTER,
    HALF,
    LOPSIDED,
    drawn,
    straight,
    three_rows,
)

from backflip.algorithms.ddpg import DDPGState, ddpg, targets
from backflip.algorithms.entries.ddpg import DDPGConfig
from backflip.algorithms.parts.critics import critic_loss
from backflip.algorithms.parts.deterministic_policy import actor_loss
from backflip.core import trees
from backflip.core.types import Transition

U, B = 3, 8
SMALL = DDPGConfig(
    env_steps=2_000,
    num_envs=4,
    rollout_length=3,
    updates_per_step=0.25,
    batch_size=B,
    buffer_size=1_000,
    learning_starts=60,
    tau=0.1,
    hidden=(16, 8),
)
HALFWAY = straight(0.0, bias=float(np.arctanh(0.5)))  # μ(s) = ½ for any s
CRITIC = straight(2.0, 3.0, bias=1.0)  # Q(s, u) = 2 s + 3 u + 1


def start(seed: int = 0) -> DDPGState:
    """A state whose target networks differ from the others."""
    algorithm = ddpg(SMALL, LOPSIDED)
    state, other = (jax.tree.map(jnp.asarray, algorithm.init(s)) for s in (seed, seed + 9))
    return state._replace(target_actor=other.actor, target_critics=other.critics)


@pytest.mark.medium
def test_targets_by_hand() -> None:
    """Q(1, ½) = 4.5: half of it is added, but not after the end."""
    goal = targets(HALFWAY, [CRITIC], three_rows())
    np.testing.assert_allclose(goal, [1 + 4.5 / 2, 1, 1 + 4.5 / 2], rtol=1e-6)


@pytest.mark.medium
def test_losses_by_hand() -> None:
    """Q(1, ½) = 4.5 against 4, 4.5 and 3.5; the policy's slope is -3 (1 - ½²)."""
    rows = three_rows()
    loss, values = critic_loss([CRITIC], rows, jnp.array([4.0, 4.5, 3.5]))
    np.testing.assert_allclose(values, [[4.5] * 3], rtol=1e-6)
    np.testing.assert_allclose(loss, (0.125 + 0 + 0.5) / 3, rtol=1e-6)
    valid = jnp.array([True, False, True])
    loss, _ = critic_loss([CRITIC], rows._replace(valid=valid), jnp.array([4.0, 99.0, 3.5]))
    np.testing.assert_allclose(loss, (0.125 + 0.5) / 2, rtol=1e-6)
    (loss, saturation), slope = jax.value_and_grad(actor_loss, has_aux=True)(
        HALFWAY, [CRITIC], rows.obs, rows.valid
    )
    np.testing.assert_allclose(loss, -4.5, rtol=1e-6)
    assert float(saturation) == 0
    np.testing.assert_allclose(slope[0]["b"], [-3 * 0.75], rtol=1e-5)


@pytest.mark.medium
def test_the_share_of_actions_at_a_bound() -> None:
    rows = three_rows()._replace(obs=jnp.array([[0.0], [9.0], [9.0]]))
    valid = jnp.array([True, True, False])
    assert float(actor_loss(straight(1.0, bias=0.0), [CRITIC], rows.obs, valid)[1]) == 0.5


@pytest.mark.medium
def test_critics_do_not_learn_through_their_targets() -> None:
    state, rows = start(), trees.row_of(drawn(LOPSIDED, U, B), 0)

    def loss(critics: Any, target_actor: Any, target_critics: Any) -> Any:
        return critic_loss(critics, rows, targets(target_actor, target_critics, rows))[0]

    gradients = jax.grad(loss, argnums=(0, 1, 2))(
        state.critics, state.target_actor, state.target_critics
    )
    biggest = [max(float(jnp.abs(x).max()) for x in jax.tree.leaves(g)) for g in gradients]
    assert biggest[0] > 0
    assert biggest[1:] == [0, 0]


@pytest.mark.medium
def test_noise_is_normal_in_half_widths() -> None:
    algorithm, state = ddpg(SMALL, LOPSIDED), start()
    state = state._replace(actor=jax.tree.map(jnp.zeros_like, state.actor))
    action = np.asarray(jax.jit(algorithm.act)(state, jnp.zeros((20_000, 2)), KEY)[0])
    np.testing.assert_allclose(action.mean(0), CENTER, atol=0.01)
    np.testing.assert_allclose(action.std(0), 0.1 * HALF, rtol=0.03)


@pytest.mark.slow
def test_u_minibatches_equal_u_iterations_of_the_papers_loop() -> None:
    """Algorithm 1 as printed, with optax's own optimiser."""
    state, batch = start(), drawn(LOPSIDED, U, B)
    after, metrics = jax.jit(ddpg(SMALL, LOPSIDED).update)(state, batch, KEY)
    expected = jax.jit(loop)(state, batch)
    for a, b in zip(jax.tree.leaves(after[:4]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert all(np.isfinite(x) for x in metrics.values())


def net(layers: Any, x: Any) -> Any:
    for layer in layers[:-1]:
        x = jnp.maximum(x @ layer["w"] + layer["b"][None], 0)
    return x @ layers[-1]["w"] + layers[-1]["b"][None]


def mu(actor: Any, obs: Any) -> Any:
    return jnp.tanh(net(actor, obs))


def q(critic: Any, obs: Any, unit: Any) -> Any:
    return net(critic, jnp.concatenate([obs, unit], 1))[:, 0]


def mean(x: Any, valid: Any) -> Any:
    return x.mean(where=valid)


def adam_step(params: Any, gradient: Any, moments: Any, rate: float) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        step, moments = optax.adam(rate).update(gradient, moments)
    return optax.apply_updates(params, step), moments


def follow(target: Any, online: Any, rate: float) -> Any:
    def nearer(target: Any, online: Any) -> Any:
        return (1 - rate) * target + rate * online

    return jax.tree.map(nearer, target, online)


def loop(state: DDPGState, batch: Transition) -> Any:
    actor, (critic,), old_actor, (old_critic,) = state[:4]
    adam = optax.adam(1e-3)
    actor_moments, critic_moments = adam.init(actor), adam.init(critic)
    center, half = jnp.asarray(CENTER, jnp.float32)[None], jnp.asarray(HALF, jnp.float32)[None]
    for u in range(U):
        rows = trees.row_of(batch, u)
        unit = (rows.action - center) / half
        following = q(old_critic, rows.next_obs, mu(old_actor, rows.next_obs))
        goal = rows.reward + rows.extra.discount * jnp.where(rows.terminated, 0, following)

        def judge(critic: Any, rows: Any = rows, unit: Any = unit, goal: Any = goal) -> Any:
            return mean(0.5 * (q(critic, rows.obs, unit) - goal) ** 2, rows.valid)

        critic, critic_moments = adam_step(critic, jax.grad(judge)(critic), critic_moments, 1e-3)

        def climb(actor: Any, rows: Any = rows, critic: Any = critic) -> Any:
            return -mean(q(critic, rows.obs, mu(actor, rows.obs)), rows.valid)

        actor, actor_moments = adam_step(actor, jax.grad(climb)(actor), actor_moments, 1e-3)
        old_actor = follow(old_actor, actor, 0.1)
        old_critic = follow(old_critic, critic, 0.1)
    return actor, [critic], old_actor, [old_critic]


@pytest.mark.medium
def test_the_same_seed_draws_the_same_networks() -> None:
    algorithm = ddpg(SMALL, LOPSIDED)
    assert_same_bits(algorithm.init(3), algorithm.init(3))
    first = algorithm.init(3)
    assert_same_bits((first.actor, first.critics), (first.target_actor, first.target_critics))
