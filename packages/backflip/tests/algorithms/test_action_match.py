"""The match of actions and policy: by hand, the slow way, and in whole rollouts that go wrong."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.ddpg import ddpg
from backflip.algorithms.dqn import dqn
from backflip.algorithms.entries.ddpg import DDPGConfig
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.entries.td3 import TD3Config
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.sac import sac
from backflip.algorithms.td3 import td3
from backflip.core.types import Transition
from backflip.drivers.action_match import KEY, action_match, has_action_match
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import make_host

PENDULUM = Pendulum()
SMALL: dict[str, Any] = {
    "env_steps": 4_096,
    "num_envs": 4,
    "rollout_length": 16,
    "updates_per_step": 0.25,
    "batch_size": 32,
    "buffer_size": 4_096,
    "learning_starts": 64,
    "hidden": (16,),
}
# Large steps: the policy soon differs from one observation to another.
FAST = SMALL | {"actor_learning_rate": 1e-2, "critic_learning_rate": 1e-2}
BUILT: dict[str, Algorithm] = {
    "sac": sac(SACConfig(**FAST, initial_temperature=0.01), PENDULUM.spec),
    "td3": td3(TD3Config(**FAST), PENDULUM.spec),
    "ddpg": ddpg(DDPGConfig(**FAST), PENDULUM.spec),
}


def rollout(obs: Any, action: Any, valid: Any = None) -> Transition:
    """A rollout (T, 1) of observations and actions."""
    rows = len(obs)
    flags, ok = jnp.zeros((rows, 1), bool), jnp.ones((rows, 1), bool)
    obs, action = (jnp.asarray(x, jnp.float32).reshape(rows, 1, -1) for x in (obs, action))
    kept = ok if valid is None else jnp.asarray(valid).reshape(rows, 1)
    return Transition(obs, action, jnp.zeros((rows, 1)), flags, flags, obs, kept, ())


def deterministic(state: Any, obs: Any, key: Any) -> Any:
    """The policy a = s."""
    del state, key
    return obs


def of(policy: Any, batch: Transition, sample: Any = None) -> float:
    """The match of a rollout with a policy."""
    algorithm = BUILT["td3"]._replace(evaluation_action=policy, sample=sample)
    return float(action_match(algorithm, (), batch, jax.random.key(3))["action_match"])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([0.0, 1.0, 2.0, 3.0], 0.5),  # (v - v/2) / v
        ([1.0, 1.0, 1.0, 1.0], -1.0),  # (0 - v/2) / (v/2)
        ([3.0, 2.0, 1.0, 0.0], -1.5),  # (-v - v/2) / v
        ([1.0, 0.0, 3.0, 2.0], 0.1),  # Cov = 0.75, v = 1.25
    ],
)
def test_by_hand(actions: list[float], expected: float) -> None:
    assert of(deterministic, rollout([0.0, 1.0, 2.0, 3.0], actions)) == pytest.approx(expected)


@pytest.mark.medium
def test_invalid_rows_do_not_count_and_nothing_that_varies_is_no_number() -> None:
    obs, nan = [0.0, 1.0, 2.0, 3.0, 9.0], float("nan")
    batch = rollout(obs, [0.0, 1.0, 2.0, 3.0, nan], [True, True, True, True, False])
    assert of(deterministic, batch) == pytest.approx(0.5)
    assert np.isnan(of(deterministic, rollout([2.0, 2.0], [5.0, 5.0])))


@pytest.mark.medium
def test_two_samples_of_a_policy_the_slow_way() -> None:
    rng = np.random.default_rng(0)
    obs, taken = rng.normal(size=(2, 50, 2))

    def sample(state: Any, obs: Any, key: Any) -> Any:
        del state
        return obs + jax.random.normal(key, obs.shape)

    one, two = jax.random.split(jax.random.fold_in(jax.random.key(3), KEY))
    first, second = (np.asarray(sample((), jnp.asarray(obs), key)) for key in (one, two))
    both = (first + second) / 2
    parts = [
        (np.cov(taken[:, d], both[:, d])[0, 1] - np.cov(first[:, d], second[:, d])[0, 1] / 2)
        / ((taken[:, d].var(ddof=1) + both[:, d].var(ddof=1)) / 2)
        for d in range(2)
    ]
    assert of(deterministic, rollout(obs, taken), sample) == pytest.approx(np.mean(parts), abs=1e-5)


def stuck(action: Any) -> Any:
    """One action for all."""
    return jnp.zeros_like(action)


def of_neighbours(action: Any) -> Any:
    """The action of another environment."""
    return jnp.roll(action, 1, axis=0)


def matches(driver: Driver, updates: int = 60) -> np.ndarray:
    """The matches of the updates of a run."""
    learners = driver.fill_replay(driver.start([5]))
    _, done = driver.phase(updates)(learners, np.zeros(1))
    return np.asarray(done.metrics["action_match"])[0]


QUICK = {("sac", stuck)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(*both, marks=() if both in QUICK else pytest.mark.slow)
        for both in itertools.product(BUILT, (stuck, of_neighbours))
    ],
)
def test_rollouts_match_unless_actions_are_replaced(name: str, change: Any) -> None:
    algorithm = BUILT[name]

    def act(state: Any, obs: Any, key: Any) -> Any:
        action, extra = algorithm.act(state, obs, key)
        return change(action), extra

    right = matches(NativeDriver(PENDULUM, algorithm))
    wrong = matches(NativeDriver(PENDULUM, algorithm._replace(act=act)))
    for values, sign in ((right, 1.0), (wrong, -1.0)):
        errors = values.mean() / (values.std() / np.sqrt(len(values)) + 1e-9)
        assert sign * errors > 5, (name, change.__name__, sign, errors)


@pytest.mark.slow
def test_outside_jax_actions_match_too() -> None:
    driver = HostDriver(lambda rows: make_host("gymnasium:Pendulum-v1", {}, rows), BUILT["sac"])
    values = matches(driver)
    driver.close()
    assert values.mean() > 5 * values.std() / np.sqrt(len(values))


@pytest.mark.medium
def test_it_is_not_measured_where_it_says_nothing() -> None:
    assert not has_action_match(CartPole().spec, dqn(DQNConfig(), CartPole().spec))
    assert not has_action_match(Dot().spec, BUILT["sac"])
    assert not has_action_match(PENDULUM.spec, BUILT["sac"]._replace(replay=None))
