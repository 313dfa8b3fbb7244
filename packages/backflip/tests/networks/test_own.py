"""A user's own network: what is wrong with one is named, and every algorithm can use one."""

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.interface import Algorithm
from backflip.algorithms.registry import algorithms, entry_of
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import flatten, unflatten
from backflip.networks.own import own_network
from backflip.training.algorithm_config import configure
from runshelf.errors import UsageError

CODE = """
import jax, jax.numpy as jnp, numpy as np

CALLS = [0]

class Net:
    width = 6

    def __init__(self, spec, hidden):
        self.size = int(np.prod(spec.observation.shape))

    def init(self, rng):
        return {"w": rng.normal(size=(self.size, self.width)).astype(np.float32)}

    def apply(self, params, obs):
        x = obs.reshape(obs.shape[0], -1).astype(jnp.float32)
        return jnp.tanh(x @ params["w"] / self.size)

def net(spec, hidden):
    return Net(spec, hidden)

def changed(**methods):
    kind = type("Changed", (Net,), methods)
    return lambda spec, hidden: kind(spec, hidden)

def _unseeded(self, rng):
    return {"w": np.random.default_rng().normal(size=(self.size, 6)).astype(np.float32)}

def _counting(self, params, obs):
    CALLS[0] += 1
    return Net.apply(self, params, obs) + CALLS[0]

def _mixing(self, params, obs):
    x = Net.apply(self, params, obs)
    return x - x.mean(0, keepdims=True)

def _rooted(self, params, obs):
    return jnp.sqrt(jnp.abs(Net.apply(self, params, obs) * 0))

double = changed(init=lambda self, rng: {"w": np.zeros((self.size, 6))})
number = changed(init=lambda self, rng: {"a": {"w": 3}})
endless = changed(init=lambda self, rng: {"w": np.full((self.size, 6), np.inf, np.float32)})
unseeded = changed(init=_unseeded)
raising = changed(init=lambda self, rng: 1 / 0)
counting = changed(apply=_counting)
mixing = changed(apply=_mixing)
rooted = changed(apply=_rooted)
flat = changed(apply=lambda self, p, o: Net.apply(self, p, o).reshape(-1))
transposed = changed(apply=lambda self, p, o: Net.apply(self, p, o).T)
whole = changed(apply=lambda self, p, o: Net.apply(self, p, o).astype(jnp.int32))
pair = changed(apply=lambda self, p, o: (o, o))
nan = changed(apply=lambda self, p, o: Net.apply(self, p, o) / 0)
numpy_only = changed(apply=lambda self, p, o: np.tanh(np.asarray(o, np.float32)))

def nothing(spec, hidden):
    pass

def torn(spec, hidden):
    raise SystemExit(2)

def one_argument(spec):
    return Net(spec, ())

value = 3
"""
VECTOR = Box(np.full(3, -np.inf, np.float32), np.full(3, np.inf, np.float32), np.dtype(np.float32))
IMAGE = Box(
    np.zeros((20, 20, 2), np.uint8), np.full((20, 20, 2), 255, np.uint8), np.dtype(np.uint8)
)
PUSH = Box(-np.ones(2, np.float32), np.ones(2, np.float32), np.dtype(np.float32))
SPEC = EnvSpec("mine", VECTOR, Discrete(4), 100)


@pytest.fixture(autouse=True)
def _own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_nets.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_nets", raising=False)


@pytest.mark.medium
def test_features_are_counted_for_vectors_and_images() -> None:
    assert own_network("own_nets:net", SPEC, ()).features == 6
    assert own_network("own_nets:net", EnvSpec("mine", IMAGE, Discrete(4), 100), ()).features == 6


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("double", "parameter `w` is float64, expected a float32 array"),
        ("number", "parameter `a.w` is int, expected a float32 array"),
        ("endless", "parameter `w` is not finite"),
        ("unseeded", "`init` is not pure: draw all random numbers from its argument `rng`"),
        ("raising", "`init` raised ZeroDivisionError"),
        ("counting", "`apply` is not pure: the same arguments gave different features"),
        ("mixing", "`apply` mixes rows"),
        ("rooted", "the gradient of `apply` is not finite"),
        ("flat", r"`apply` returned shape \(18,\) for 3 observations, expected \(3, F\)"),
        ("transposed", r"returned shape \(6, 3\) for 3 observations"),
        ("whole", "`apply` returned int32, expected float32"),
        ("pair", "`apply` returned tuple, expected one array"),
        ("nan", "`apply` returned a number that is not finite"),
        ("numpy_only", "`apply` raised TracerArrayConversionError"),
        ("nothing", "must return an object with `init` and `apply`.* got NoneType"),
        ("torn", "the function raised SystemExit: 2"),
        ("one_argument", "the function raised TypeError"),
        ("value", r"must be a function of \(spec, hidden\)"),
        ("nett", "module `own_nets` has no `nett`, did you mean `net`"),
    ],
)
def test_what_is_wrong_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        own_network(f"own_nets:{name}", SPEC, ())
    assert "\n" not in str(caught.value)


def built(algorithm: str, spec: EnvSpec, name: str = "own_nets:net") -> Algorithm:
    """The algorithm with a user's network."""
    entry = entry_of(algorithm)
    return entry.build(configure(entry, {"network": name, "num_envs": 2}), spec)


USERS = [name for name, entry in algorithms().items() if "network" in entry.settings]


@pytest.mark.medium
@pytest.mark.parametrize("observation", [VECTOR, IMAGE], ids=["vector", "image"])
@pytest.mark.parametrize("algorithm", USERS)
def test_every_algorithm_with_the_setting_acts_with_it(algorithm: str, observation: Box) -> None:
    spec = EnvSpec("mine", observation, Discrete(4), 100)
    learner = built(algorithm, spec)
    state = jax.tree.map(jnp.asarray, learner.init(0))
    names = list(flatten(learner.policy(state)))
    assert any("network.w" in name for name in names), names
    obs = jnp.zeros((2, *observation.shape), observation.dtype)
    action, _ = learner.act(state, obs, jax.random.key(0))
    assert np.shape(action) == (2,)
    kept = flatten(learner.policy(state))
    other = learner.init(1)
    restored = learner.with_policy(other, unflatten(learner.policy(other), kept))
    np.testing.assert_array_equal(flatten(learner.policy(restored))[names[0]], kept[names[0]])


@pytest.mark.medium
@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "vpg"])
def test_continuous_actions(algorithm: str) -> None:
    learner = built(algorithm, EnvSpec("mine", VECTOR, PUSH, 100))
    state = jax.tree.map(jnp.asarray, learner.init(0))
    action, _ = learner.act(state, jnp.zeros((2, 3)), jax.random.key(0))
    assert np.shape(action) == (2, 2)


@pytest.mark.medium
def test_policy_and_value_have_a_torso_each_for_vectors_and_share_that_of_images() -> None:
    def torsos(observation: Box) -> int:
        state: Any = built("ppo", EnvSpec("mine", observation, Discrete(4), 100)).init(0)
        return sum("network.w" in name for name in flatten(state.params))

    assert torsos(VECTOR) == 2
    assert torsos(IMAGE) == 1


def test_continuous_sac_refuses_a_network_that_it_would_ignore() -> None:
    with pytest.raises(UsageError, match="`sac` with continuous actions has no place for the netw"):
        built("sac", EnvSpec("mine", VECTOR, PUSH, 100))


def test_an_unknown_name_suggests_what_can_be_typed() -> None:
    with pytest.raises(UsageError, match=r"`network` must be auto or .* or module:function, got"):
        built("ppo", SPEC, "residual")
