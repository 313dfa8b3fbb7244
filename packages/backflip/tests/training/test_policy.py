"""Tests of saved policies in the environment's own spaces."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

from backflip.algorithms.interface import Algorithm
from backflip.algorithms.registry import entry_of
from backflip.core.checkpoint import load_arrays, save_arrays
from backflip.core.spaces import Box, InvalidValue, learned
from backflip.core.spec import EnvSpec
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.registry import make_native
from backflip.training.algorithm_config import configure
from backflip.training.policy import Policy, load_policy
from backflip.training.spec_json import spec_from_json, spec_to_json
from backflip.training.train import train
from runshelf.errors import UsageError
from runshelf.store.records import to_json

VECTOR = spaces.Box(-1, 1, (3,), np.float32)
SPACES = {
    "vectors and two actions": (VECTOR, spaces.Discrete(2)),
    "actions from -1": (VECTOR, spaces.Discrete(3, start=-1)),
    "actions of two axes": (VECTOR, spaces.Box(-1, 1, (2, 3), np.float32)),
    "one number as action": (VECTOR, spaces.Box(-1, 1, (), np.float32)),
    "float64 bounds": (VECTOR, spaces.Box(0.0999, 0.1, (2,), np.float64)),
    "float16": (VECTOR, spaces.Box(-1, 1, (2,), np.float16)),
    "numbers from 5": (spaces.Discrete(4, start=5), spaces.Discrete(2)),
    "one number": (spaces.Box(-1, 1, (), np.float32), spaces.Discrete(2)),
    "two axes": (spaces.Box(-1, 1, (2, 4), np.float32), spaces.Discrete(2)),
    "grey pictures": (spaces.Box(0, 255, (18, 20), np.uint8), spaces.Discrete(2)),
    "coloured pictures": (spaces.Box(0, 255, (18, 20, 3), np.uint8), spaces.Discrete(2)),
}


class _Takes(gymnasium.Env[Any, Any]):
    """Returns random observations of its space and records actions."""

    def __init__(self, observation: Any, action: Any) -> None:
        self.observation_space, self.action_space = deepcopy((observation, action))
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken.append(action)
        return self.observation_space.sample(), 0.0, False, False, {}


def learner(spec: EnvSpec) -> tuple[Algorithm, Any]:
    """Return an untrained PPO policy."""
    entry = entry_of("ppo")
    algorithm = entry.build(configure(entry, {"hidden": (4,)}), spec)
    return algorithm, jax.tree.map(jax.numpy.asarray, algorithm.init(0))


def saved(spec: EnvSpec) -> EnvSpec:
    """Return a spec after a round trip through JSON."""
    return spec_from_json(json.loads(json.dumps(to_json(spec_to_json(spec)))))


@pytest.mark.medium
@pytest.mark.parametrize("kind", SPACES)
def test_the_environment_receives_the_same_actions_as_in_training(kind: str) -> None:
    env, own = _Takes(*SPACES[kind]), _Takes(*SPACES[kind])
    trained = GymnasiumEnv.of("mine", lambda: env, 1)
    algorithm, state = learner(trained.spec)
    policy, key = Policy(saved(trained.spec), algorithm, state), jax.random.key(0)
    seen, (obs, _) = trained.reset([7]), own.reset(seed=7)
    for _ in range(8):
        key, now = jax.random.split(key)
        now = jax.random.fold_in(now, 0)  # row 0
        seen = trained.step(np.asarray(jax.jit(algorithm.evaluation_action)(state, seen, now))).obs
        action = policy.act(obs)
        obs, *_ = own.step(action)
        assert action.dtype == SPACES[kind][1].dtype
        assert np.shape(action) == SPACES[kind][1].shape
    np.testing.assert_array_equal(np.stack(env.taken), np.stack(own.taken))


@pytest.mark.medium
@pytest.mark.parametrize("kind", [kind for kind in SPACES if "pictures" not in kind])
def test_a_batch_gives_the_actions_of_its_members(kind: str) -> None:
    observation, action = SPACES[kind]
    spec = GymnasiumEnv.of("mine", lambda: _Takes(observation, action), 1).spec
    policy = Policy(saved(spec), *learner(spec))
    batch = np.stack([observation.sample() for _ in range(5)])
    alone = np.stack([policy.act(obs) for obs in batch])
    np.testing.assert_allclose(policy.act(batch), alone, rtol=1e-6, atol=1e-6)
    assert policy.act(batch).shape == (5, *action.shape)


def test_no_numbers_and_no_observations_are_refused() -> None:
    spec = GymnasiumEnv.of("mine", lambda: gymnasium.make("CartPole-v1"), 1).spec
    policy = Policy(saved(spec), *learner(spec))
    with pytest.raises(UsageError, match="`obs` has numbers that are not finite"):
        policy.act(np.full(4, np.nan))
    with pytest.raises(UsageError, match="`obs` is empty: give one observation, or a batch"):
        policy.act(np.zeros((0, 4)))


@pytest.mark.parametrize(
    ("obs", "said"),
    [
        (np.full((2, 2), 0.9), "`obs` has dtype float64, expected uint8"),
        (np.full((2, 2), np.nan), "`obs` has dtype float64, expected uint8"),
        ([[0, 1], [300, 3]], "`obs` has values from 0 to 300, expected from 0 to 255"),
        (np.full((2, 2), "7"), "`obs` has dtype <U1, expected uint8"),
        (np.full((2, 2), 1j), "`obs` has dtype complex128, expected uint8"),
    ],
)
def test_observations_that_a_cast_would_change_are_refused(obs: Any, said: str) -> None:
    low = np.zeros((2, 2), np.uint8)
    box = Box(low, low + 255, low.dtype)
    with pytest.raises(InvalidValue, match=re.escape(said)):
        learned(box, obs, box)
    found, single = learned(box, [[0, 1], [2, 255]], box)
    assert (found.dtype, found.tolist(), single) == (np.uint8, [[[0, 1], [2, 255]]], True)


@pytest.mark.medium
@pytest.mark.parametrize(("env_id", "cells"), [("Taxi-v4", 500), ("FrozenLake-v1", 16)])
def test_policies_act_on_discrete_observations_of_gymnasium(env_id: str, cells: int) -> None:
    """The second trains in JAX. Both look actions up in a table, so actions must be hashable."""
    native = make_native(env_id)
    env = gymnasium.make(env_id)
    spec = (
        native.spec if native else GymnasiumEnv.of(env_id, lambda: gymnasium.make(env_id), 1).spec
    )
    algorithm, state = learner(spec)
    policy = Policy(saved(spec), algorithm, state)
    obs, _ = env.reset(seed=3)
    for _ in range(20):
        obs, *_ = env.step(policy.act(obs))
    one_hot = np.eye(cells, dtype=np.float32)
    assert policy.act(np.arange(cells)).tolist() == policy.act(one_hot).tolist()
    assert policy.act(one_hot[3]) == policy.act(3)
    with pytest.raises(UsageError, match=f"must be a number from 0 to {cells - 1}, got {cells}"):
        policy.act(cells)
    with pytest.raises(UsageError, match=r"must be a whole number.* got \(3, 3\)"):
        policy.act(np.zeros((3, 3)))


@pytest.mark.slow
def test_an_old_policy_file_can_be_used(tmp_path: Path) -> None:
    """It does not say where the environment's own actions start."""
    settings = {"num_envs": 2, "rollout_length": 8, "epochs": 1, "minibatches": 1, "hidden": (4,)}
    result = train(
        "ppo", "gymnasium:Taxi-v4", env_args={"max_episode_steps": 8}, env_steps=16,
        settings=settings, home=tmp_path,
    )  # fmt: skip
    assert 0 <= result.policy().act(3) < 6
    path = result.folder / "policy.safetensors"
    loaded = load_arrays(path)
    about = json.loads(loaded.metadata["about"])
    del about["spec"]["own"]
    save_arrays(path, loaded.arrays, {"about": json.dumps(about)})
    old, one_hot = load_policy(result.folder), np.eye(500)
    assert old.act(one_hot).tolist() == result.policy().act(one_hot).tolist()
    with pytest.raises(UsageError, match=r"must have shape \(500,\).* got \(\)"):
        old.act(3)
