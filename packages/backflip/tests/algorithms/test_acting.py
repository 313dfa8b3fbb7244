"""Policies outside JAX: the arrays they get, and that results do not change."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms.batches import CONTINUOUS, DISCRETE

from backflip.algorithms.a2c import a2c
from backflip.algorithms.cem import cem
from backflip.algorithms.ddpg import ddpg
from backflip.algorithms.discrete_sac import discrete_sac
from backflip.algorithms.dqn import dqn
from backflip.algorithms.entries.a2c import A2CConfig
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.entries.ddpg import DDPGConfig
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.entries.td3 import TD3Config
from backflip.algorithms.entries.vpg import VPGConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import ppo
from backflip.algorithms.sac import sac
from backflip.algorithms.td3 import td3
from backflip.algorithms.vpg import vpg
from backflip.drivers.host_policy import HostPolicy, arrays_read

SEEDS = (0, 1, 2)
ALGORITHMS = {
    "a2c": a2c(A2CConfig(num_envs=4), CONTINUOUS),
    "cem": cem(CEMConfig(num_envs=4), DISCRETE),
    "ddpg": ddpg(DDPGConfig(num_envs=4), CONTINUOUS),
    "discrete sac": discrete_sac(SACConfig(num_envs=4), DISCRETE),
    "dqn": dqn(DQNConfig(num_envs=4), DISCRETE),
    "ppo": ppo(PPOConfig(num_envs=4, normalize_obs=True), DISCRETE),
    "sac": sac(SACConfig(num_envs=4), CONTINUOUS),
    "td3": td3(TD3Config(num_envs=4), CONTINUOUS),
    "vpg": vpg(VPGConfig(num_envs=4), CONTINUOUS),
}


def learned(algorithm: Algorithm) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *[algorithm.init(seed) for seed in SEEDS])


def seen(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return observations of four environments of each seed, and keys."""
    obs = rng.normal(size=(len(SEEDS), 4, 5)).astype(np.float32)
    return obs, rng.integers(2**32, size=(len(SEEDS), 2), dtype=np.uint32)


@pytest.mark.medium
@pytest.mark.parametrize("does", ["act", "evaluation_action"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=() if x in ("dqn", "ppo", "sac") else pytest.mark.slow)
        for x in ALGORITHMS
    ],
)
def test_a_host_policy_equals_the_algorithm_with_its_whole_state(name: str, does: str) -> None:
    algorithm, rng = ALGORITHMS[name], np.random.default_rng(0)
    states, (obs, keys) = learned(algorithm), seen(rng)
    acts = getattr(algorithm, does)
    act = HostPolicy(acts).of(states, obs, keys)
    for _ in range(2):
        obs, keys = seen(rng)
        found = act(obs, keys)
        for row in range(len(SEEDS)):
            state = jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), states)
            whole = acts(state, jnp.asarray(obs[row]), jax.random.wrap_key_data(keys[row]))
            for one, all_seeds in zip(*map(jax.tree.leaves, (whole, found)), strict=True):
                np.testing.assert_allclose(all_seeds[row], one, rtol=1e-5, atol=1e-6)


@pytest.mark.medium
def test_a_host_policy_uses_the_states_it_was_given() -> None:
    algorithm, rng = ALGORITHMS["ppo"], np.random.default_rng(0)
    obs, keys = seen(rng)
    policy, states = HostPolicy(algorithm.evaluation_action), learned(algorithm)
    negated = jax.tree.map(np.negative, states)
    first, other = (policy.of(each, obs, keys)(obs, keys) for each in (states, negated))
    assert (np.asarray(first) != np.asarray(other)).any()
    np.testing.assert_array_equal(policy.of(states, obs, keys)(obs, keys), first)


def test_acting_gets_only_the_actor() -> None:
    """Of SAC's state: not the critics, their targets, the temperature, or Adam's moments."""
    state, algorithm = ALGORITHMS["sac"].init(0), ALGORITHMS["sac"]
    read = arrays_read(algorithm.act, state, np.zeros((4, 5), np.float32), jax.random.key(0))
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
    given = [name for name, is_read in zip(names, read, strict=True) if is_read]
    assert given == [name for name in names if name.startswith(".actor[")]
    assert len(given) < len(names) / 4


def test_arrays_returned_unchanged_or_used_in_a_loop_are_read() -> None:
    def function(state: dict[str, Any], x: Any) -> Any:
        def step(carry: Any, _: None) -> tuple[Any, None]:
            return carry * state["looped"], None

        return jax.lax.scan(step, x, None, length=2)[0], state["passed"]

    state = {name: jnp.ones(2) for name in ("looped", "passed", "unread")}
    assert arrays_read(function, state, jnp.ones(2)) == [True, True, False]
