"""TD3: its formulas by hand, its update schedule, and its steps against an explicit loop."""

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
from packages.backflip.tests.algorithms.test_ddpg import adam_step, follow, mean, mu, q

from backflip.algorithms.entries.td3 import TD3Config
from backflip.algorithms.parts.critics import critic_loss
from backflip.algorithms.parts.deterministic_policy import actor_loss
from backflip.algorithms.td3 import TD3State, smoothing_noise, targets, td3
from backflip.core import trees
from backflip.core.types import Transition
from runshelf.errors import UsageError

U, B = 4, 8
SETTINGS: dict[str, Any] = {
    "env_steps": 2_000,
    "num_envs": 4,
    "rollout_length": 4,
    "updates_per_step": 0.25,
    "batch_size": B,
    "buffer_size": 1_000,
    "learning_starts": 64,
    "tau": 0.1,
    "hidden": (16, 8),
}
SMALL = TD3Config(**SETTINGS)
HALFWAY = straight(0.0, bias=float(np.arctanh(0.5)))  # μ(s) = ½ for any s
HIGH = straight(2.0, 3.0, bias=1.0)  # 2 s + 3 u + 1
LOW = straight(2.0, 5.0, bias=-1.0)  # 2 s + 5 u - 1, the lower for u < 1


def start(seed: int = 0) -> TD3State:
    """A state whose target networks differ from the others."""
    algorithm = td3(SMALL, LOPSIDED)
    state, other = (jax.tree.map(jnp.asarray, algorithm.init(s)) for s in (seed, seed + 9))
    return state._replace(target_actor=other.actor, target_critics=other.critics)


@pytest.mark.medium
@pytest.mark.parametrize("order", [1, -1])
def test_targets_take_the_lower_critic(order: int) -> None:
    """At s' = 1, u = ½ the critics return 4.5 and 3.5."""
    goal = targets(HALFWAY, [HIGH, LOW][::order], three_rows(), jnp.zeros((3, 1)))
    np.testing.assert_allclose(goal, [1 + 3.5 / 2, 1, 1 + 3.5 / 2], rtol=1e-6)


@pytest.mark.medium
def test_targets_are_smoothed_within_the_bounds() -> None:
    """½ + ¼ is ¾; ½ + 2 is 1, the bound; ½ - ¼ is ¼: of the lower critic."""
    rows = three_rows()._replace(terminated=jnp.zeros(3, bool))
    goal = targets(HALFWAY, [HIGH, LOW], rows, jnp.array([[0.25], [2.0], [-0.25]]))
    np.testing.assert_allclose(goal, [1 + 4.75 / 2, 1 + 6 / 2, 1 + 2.25 / 2], rtol=1e-6)


@pytest.mark.medium
def test_smoothing_is_normal_noise_clipped() -> None:
    noise = np.asarray(smoothing_noise(SMALL, KEY, (10, 2_000, 2)))
    assert np.abs(noise).max() == 0.5
    np.testing.assert_allclose((np.abs(noise) == 0.5).mean(), 0.0124, atol=0.003)  # 2 Φ(-2.5)
    inside = noise[np.abs(noise) < 0.2]
    np.testing.assert_allclose(inside.size / noise.size, 0.6827, atol=0.01)
    assert abs(noise.mean()) < 0.005


@pytest.mark.medium
def test_the_policy_loss_uses_the_first_critic_only() -> None:
    """Its slope is -3 (1 - ½²), though the second critic says less."""
    rows = three_rows()
    (loss, _), slope = jax.value_and_grad(actor_loss, has_aux=True)(
        HALFWAY, [HIGH, LOW], rows.obs, rows.valid
    )
    np.testing.assert_allclose(loss, -4.5, rtol=1e-6)
    np.testing.assert_allclose(slope[0]["b"], [-3 * 0.75], rtol=1e-5)
    grade = jax.grad(actor_loss, argnums=1, has_aux=True)
    unheard = grade(HALFWAY, [HIGH, LOW], rows.obs, rows.valid)[0][1]
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(unheard))


@pytest.mark.medium
def test_both_critics_learn_from_the_same_target() -> None:
    """4.5 and 3.5 against 4: an eighth each, and slopes apart."""
    loss = critic_loss([HIGH, LOW], three_rows(), jnp.full(3, 4.0))[0]
    np.testing.assert_allclose(loss, 0.25, rtol=1e-6)
    grade = jax.grad(critic_loss, has_aux=True)
    slopes, _ = grade([HIGH, LOW], three_rows(), jnp.full(3, 4.0))
    np.testing.assert_allclose([s[0]["b"][0] for s in slopes], [0.5, -0.5], rtol=1e-6)


@pytest.mark.slow
def test_critics_do_not_learn_through_their_targets() -> None:
    state, rows = start(), trees.row_of(drawn(LOPSIDED, U, B), 0)
    noise = jnp.zeros((B, 2))

    def loss(critics: Any, target_actor: Any, target_critics: Any) -> Any:
        return critic_loss(critics, rows, targets(target_actor, target_critics, rows, noise))[0]

    gradients = jax.grad(loss, argnums=(0, 1, 2))(
        state.critics, state.target_actor, state.target_critics
    )
    biggest = [max(float(jnp.abs(x).max()) for x in jax.tree.leaves(g)) for g in gradients]
    assert biggest[0] > 0
    assert biggest[1:] == [0, 0]


@pytest.mark.medium
def test_policy_and_targets_are_updated_every_second_critic_step() -> None:
    state = start()
    after, _ = jax.jit(td3(SMALL, LOPSIDED).update)(state, drawn(LOPSIDED, U, B), KEY)
    assert int(after.critic_moments.count) == U
    assert int(after.actor_moments.count) == U // 2


@pytest.mark.parametrize(
    "settings", [{"policy_delay": 3}, {"policy_delay": 0}, {"updates_per_step": 5 / 16}]
)
def test_a_delay_that_does_not_divide_the_gradient_steps_is_refused(settings: Any) -> None:
    with pytest.raises(UsageError, match=r"`policy_delay` must divide .* = [45], got [023]; try"):
        td3(TD3Config(**(SETTINGS | settings)), LOPSIDED)


@pytest.mark.slow
def test_u_minibatches_equal_u_iterations_of_the_papers_loop() -> None:
    """Algorithm 1 as printed, with optax's own optimiser and the same noise."""
    state, batch = start(), drawn(LOPSIDED, U, B)
    after, metrics = jax.jit(td3(SMALL, LOPSIDED).update)(state, batch, KEY)
    expected = jax.jit(loop)(state, batch)
    for a, b in zip(jax.tree.leaves(after[:4]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert all(np.isfinite(x) for x in metrics.values())


def loop(state: TD3State, batch: Transition) -> Any:
    actor, critics, old_actor, old_critics = state[:4]
    adam = optax.adam(1e-3)
    actor_moments, critic_moments = adam.init(actor), [adam.init(c) for c in critics]
    center, half = jnp.asarray(CENTER, jnp.float32)[None], jnp.asarray(HALF, jnp.float32)[None]
    noise = jnp.clip(0.2 * jax.random.normal(KEY, (U, B, 2)), -0.5, 0.5)
    for u in range(U):
        rows = trees.row_of(batch, u)
        unit = (rows.action - center) / half
        smooth = jnp.clip(mu(old_actor, rows.next_obs) + noise[u], -1, 1)
        both = [q(old, rows.next_obs, smooth) for old in old_critics]
        following = jnp.minimum(*both)
        goal = rows.reward + rows.extra.discount * jnp.where(rows.terminated, 0, following)

        def judge(critic: Any, rows: Any = rows, unit: Any = unit, goal: Any = goal) -> Any:
            return mean(0.5 * (q(critic, rows.obs, unit) - goal) ** 2, rows.valid)

        learned = [
            adam_step(critic, jax.grad(judge)(critic), moments, 1e-3)
            for critic, moments in zip(critics, critic_moments, strict=True)
        ]
        critics, critic_moments = [x for x, _ in learned], [m for _, m in learned]
        if u % 2 == 0:
            continue

        def climb(actor: Any, rows: Any = rows, critic: Any = critics[0]) -> Any:
            return -mean(q(critic, rows.obs, mu(actor, rows.obs)), rows.valid)

        actor, actor_moments = adam_step(actor, jax.grad(climb)(actor), actor_moments, 1e-3)
        old_actor, old_critics = follow(old_actor, actor, 0.1), follow(old_critics, critics, 0.1)
    return actor, critics, old_actor, old_critics
