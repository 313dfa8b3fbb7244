"""Targets: by hand, and where their gradients go."""

import jax
import jax.numpy as jnp
import numpy as np

from backflip.core.targets import bellman_target, polyak, value_of_choice


def test_only_a_terminated_step_does_not_bootstrap() -> None:
    reward, following = jnp.array([1.0, 1.0, -2.0]), jnp.array([6.0, 6.0, 8.0])
    discount, terminated = jnp.array([0.5, 0.5, 0.25]), jnp.array([False, True, False])
    target = bellman_target(reward, discount, terminated, following)
    assert target.tolist() == [1 + 3, 1, -2 + 2]


def test_one_network_chooses_the_action_and_another_gives_its_value() -> None:
    rated, chooser = jnp.array([[5.0, 7.0, 6.0]] * 2), jnp.array([[2.0, 1.0, 3.0], [9.0, 0, 0]])
    assert value_of_choice(rated, chooser).tolist() == [6, 5]
    assert value_of_choice(rated, rated).tolist() == [7, 7]


def test_the_value_after_a_terminated_step_may_be_nan() -> None:
    nan = jnp.array([jnp.nan])
    assert bellman_target(jnp.ones(1), jnp.ones(1), jnp.array([True]), nan).tolist() == [1]


def test_no_gradient_flows_through_a_target() -> None:
    def total(*numbers: jax.Array) -> jax.Array:
        reward, discount, following = numbers
        return bellman_target(reward, discount, jnp.array([False]), following).sum()

    for gradient in jax.grad(total, argnums=(0, 1, 2))(*[jnp.ones(1)] * 3):
        assert gradient.tolist() == [0]


def test_polyak_by_hand() -> None:
    """A quarter of the way each time; all the way with rate 1."""
    target, online = {"w": jnp.array([0.0, 4.0])}, {"w": jnp.array([8.0, 4.0])}
    once = polyak(target, online, 0.25)
    assert once["w"].tolist() == [2, 4]
    assert polyak(once, online, 0.25)["w"].tolist() == [3.5, 4]
    assert polyak(target, online, 1.0)["w"].tolist() == [8, 4]


def test_after_n_steps_the_distance_is_multiplied_by_1_minus_tau_to_the_n() -> None:
    target, online = jnp.zeros(()), jnp.ones(())
    for _ in range(100):
        target = polyak(target, online, 0.05)
    np.testing.assert_allclose(target, 1 - 0.95**100, rtol=1e-5)
