"""Angles of joints that turn without limit are wrapped before networks see them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.parts.normalization import wrap_angles
from backflip.algorithms.ppo import ppo
from backflip.core.types import Transition
from backflip.envs.registry import make_host
from backflip.training.spec_json import spec_from_json, spec_to_json

HOPPER = "fixed:Hopper-v5"


@pytest.mark.medium
def test_a_turn_more_is_the_same_and_others_are_unchanged() -> None:
    obs = np.array([[1.0, 0.5, -7.0], [2.0, 0.5 + 4 * np.pi, 9.0], [3.0, -3.0 - 2 * np.pi, 0.0]])
    seen = np.asarray(wrap_angles((1,), jnp.asarray(obs, jnp.float32)))
    np.testing.assert_allclose(seen[:, 1], [0.5, 0.5, -3.0], atol=1e-5)
    np.testing.assert_array_equal(seen[:, [0, 2]], obs[:, [0, 2]].astype(np.float32))


@pytest.mark.medium
def test_angles_within_half_a_turn_keep_their_bits() -> None:
    obs = np.linspace(-3.14, 3.14, 64, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(np.asarray(wrap_angles((0,), jnp.asarray(obs))), obs)


@pytest.mark.parametrize(
    ("env_id", "angles"),
    [
        (HOPPER, (1,)),
        ("Walker2d-v5", (1,)),
        ("HalfCheetah-v5", (1,)),
        ("Swimmer-v5", (0,)),
        ("Ant-v5", ()),
        ("Reacher-v5", ()),
        ("InvertedPendulum-v5", ()),
        ("gymnasium:Pendulum-v1", ()),
    ],
)
def test_environments_name_their_unlimited_angles(env_id: str, angles: tuple[int, ...]) -> None:
    env = make_host(env_id, {}, 1)
    assert env.spec.angles == angles
    env.close()


def values(config: PPOConfig) -> tuple[Any, Any]:
    """V of Hopper's first state, and of the same with one turn more; updated state statistics."""
    env = make_host(HOPPER, {}, 1)
    algorithm = ppo(config, env.spec)
    obs = np.repeat(env.reset([3]), 2, 0)
    obs[1, 1] += 2 * np.pi
    assert algorithm.assess is not None
    state = algorithm.init(0)
    found = algorithm.assess(state, jnp.asarray(obs))["value"]
    env.close()
    return np.asarray(found), state


@pytest.mark.medium
@pytest.mark.parametrize(("wrap", "same"), [(True, True), (False, False)])
def test_value_is_that_of_the_state_only_if_angles_are_wrapped(wrap: bool, same: bool) -> None:
    found, _ = values(PPOConfig(num_envs=2, rollout_length=4, wrap_angles=wrap, normalize_obs=True))
    assert np.allclose(found[0], found[1], atol=1e-5) is same


@pytest.mark.slow
def test_statistics_are_those_of_wrapped_angles() -> None:
    env = make_host(HOPPER, {}, 1)
    config = PPOConfig(
        num_envs=1, rollout_length=4, epochs=1, wrap_angles=True, normalize_obs=True, hidden=(4,)
    )
    algorithm = ppo(config, env.spec)
    state, first = algorithm.init(0), env.reset([3])
    obs = np.repeat(first[None], 4, 0)
    obs[:, 0, 1] = [0.1, 0.1 + 2 * np.pi, 0.1 - 6 * np.pi, 0.1]
    key = jax.random.key(0)
    action, extra = algorithm.act(state, jnp.asarray(obs[:, 0]), key)
    no, zero = np.zeros((4, 1), bool), np.zeros((4, 1), np.float32)
    rows = [jnp.asarray(x)[:, None] for x in (action, *extra)]
    steps = Transition(obs, rows[0], zero, no, no, obs, ~no, type(extra)(*rows[1:]), ())
    batch = jax.tree.map(jnp.asarray, steps)
    updated, _ = jax.jit(algorithm.update)(state, batch, key)
    env.close()
    assert updated.obs_statistics.mean[1] == pytest.approx(0.1, abs=1e-4)


@pytest.mark.medium
def test_saved_spec_keeps_angles_and_refuses_others() -> None:
    env = make_host(HOPPER, {}, 1)
    facts = spec_to_json(env.spec)
    assert spec_from_json(facts).angles == (1,)
    old = {name: value for name, value in facts.items() if name != "angles"}
    assert spec_from_json(old).angles == ()
    with pytest.raises(ValueError, match="not indices"):
        spec_from_json(facts | {"angles": [11]})
    env.close()
