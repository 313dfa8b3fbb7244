"""Learning from a learned reward: the newest parameters for the whole past, never the true one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.cem import cem
from backflip.algorithms.dqn import dqn
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.entries.sac import SACConfig
from backflip.algorithms.entries.vpg import VPGConfig
from backflip.algorithms.interface import Algorithm, Recency, for_learned_reward
from backflip.algorithms.ppo import ppo
from backflip.algorithms.sac import sac
from backflip.algorithms.vpg import vpg
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import flatten, row_of
from backflip.core.types import Transition
from backflip.drivers.driver import Driver, Learner
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.registry import make_host
from backflip.envs.spec import HostEnv, HostStep, NativeStep

SEEDS = [3, 4]
DISCOUNT = 0.9
DQN = DQNConfig(
    env_steps=4_000,
    num_envs=2,
    rollout_length=5,
    updates_per_step=0.5,
    batch_size=64,
    buffer_size=400,
    learning_starts=200,
    epsilon_steps=400,
    discount=DISCOUNT,
    hidden=(8,),
)
# The host driver takes a third of the time, and the replay of both is the same.
host_quickly = pytest.mark.parametrize(
    "where", [pytest.param("native", marks=pytest.mark.slow), "host"]
)


def changed(**settings: Any) -> DQNConfig:
    return DQNConfig(**(vars(DQN) | settings))


@dataclass(frozen=True)
class Garbled:
    """A native environment with another reward."""

    env: Any
    reward: float

    @property
    def spec(self) -> EnvSpec:
        """As it is."""
        return self.env.spec

    def reset(self, key: Any) -> Any:
        """As it is."""
        return self.env.reset(key)

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Pay something else."""
        step = self.env.step(state, action, key)
        return step._replace(reward=jnp.full((), self.reward))

    def observe(self, state: Any) -> Any:
        """As it is."""
        return self.env.observe(state)


class GarbledOnHost:
    """A host environment with another reward, after all checks."""

    def __init__(self, env: HostEnv, reward: float) -> None:
        self.env, self.reward = env, reward

    @property
    def spec(self) -> EnvSpec:
        """As it is."""
        return self.env.spec

    @property
    def num_envs(self) -> int:
        """As it is."""
        return self.env.num_envs

    def reset(self, seeds: Any) -> Any:
        """As it is."""
        return self.env.reset(seeds)

    def step(self, action: Any) -> HostStep:
        """Pay something else."""
        step = self.env.step(action)
        return step._replace(reward=np.full_like(step.reward, self.reward))

    def close(self) -> None:
        """As it is."""
        self.env.close()


def driver_of(where: str, env: Any, algorithm: Algorithm, paid: float | None = None) -> Driver:
    """A driver of CartPole or Pendulum, whose true reward may be replaced."""
    if where == "native":
        return NativeDriver(env if paid is None else Garbled(env, paid), algorithm)

    def make(rows: int) -> HostEnv:
        batch = make_host(f"gymnasium:{env.spec.id}", {}, rows)
        return batch if paid is None else GarbledOnHost(batch, paid)

    return HostDriver(make, algorithm)


def learned(parameters: Any, batch: Transition) -> Any:
    """A reward of everything that a reward model may read."""
    action = batch.action.reshape(*batch.reward.shape, -1).astype(jnp.float32).sum(-1)
    before, after = batch.obs[..., 0], batch.next_obs[..., 1]
    return parameters * (before + 2 * after) + 0.1 * action


# No old reward survives a refit


class Seen(NamedTuple):
    """The last batch that `update` got, (U, B)."""

    reward: Any
    valid: Any
    place: Any
    discount: Any


def spying(algorithm: Algorithm) -> Algorithm:
    """An algorithm that learns nothing; its state is (the state, the last batch)."""
    plan = algorithm.replay
    assert plan is not None
    shape = plan.gradient_steps, plan.batch_size

    def init(seed: int) -> Any:
        zeros = np.zeros(shape, np.float32)
        nothing = Seen(zeros, zeros.astype(bool), zeros.astype(np.int32), zeros)
        return algorithm.init(seed), nothing

    def act(state: Any, obs: Any, key: Any) -> Any:
        return algorithm.act(state[0], obs, key)

    def sample(state: Any, obs: Any, key: Any) -> Any:
        return algorithm.act(state[0], obs, key)[0]

    def update(state: Any, batch: Transition, key: Any) -> Any:
        drawn = batch.extra
        return (state[0], Seen(batch.reward, batch.valid, drawn.place, drawn.discount)), {}

    if plan.priority is not None:
        same = plan.priority._replace(errors=lambda state: jnp.ones_like(state[1].reward))
        plan = plan._replace(priority=same)
    return algorithm._replace(init=init, act=act, sample=sample, update=update, replay=plan)


def by_definition(
    n_step: int, replay: Any, columns: int, place: int, parameter: float
) -> tuple[float, float]:
    """R = Σ_{k<m} γ^k r(s_k, a_k, s_{k+1}) and γ^m, by following a row of the replay."""
    time, column = divmod(place, columns)
    total, discount = 0.0, 1.0
    for _ in range(n_step):
        before, after = replay.obs[time, column], replay.next_obs[time, column]
        action = replay.action[time, column]
        total += discount * (parameter * (before[0] + 2 * after[1]) + 0.1 * action)
        discount *= DISCOUNT
        if replay.terminated[time, column] or replay.truncated[time, column]:
            break
        time += 1
    return total, discount


def seen_of(learners: Learner) -> Seen:
    """The last batch of the learners, (S, U, B)."""
    return jax.tree.map(np.array, learners.algorithm[1])


def assert_rewards_are_those_of(
    where: str, n_step: int, learners: Learner, parameters: np.ndarray
) -> None:
    """Every row of the last batch has the reward of the parameters; some rows are cut."""
    shortened = 0
    for seed, parameter in enumerate(parameters):
        replay: Any = learners.replay
        if where == "native":
            replay = row_of(jax.tree.map(np.asarray, replay), seed)
        seen = [x[seed].reshape(-1) for x in seen_of(learners)]
        for reward, valid, place, discount in zip(*seen, strict=True):
            if valid:
                columns = replay.valid.shape[1]
                wanted = by_definition(n_step, replay, columns, int(place), parameter)
                np.testing.assert_allclose((reward, discount), wanted, rtol=1e-4, atol=1e-5)
                shortened += discount > 1.01 * DISCOUNT**n_step
    assert shortened > 0 or n_step == 1


@pytest.mark.medium
@host_quickly
@pytest.mark.parametrize(
    ("n_step", "prioritized"),
    [
        (3, True),
        pytest.param(1, False, marks=pytest.mark.slow),
        pytest.param(1, True, marks=pytest.mark.slow),
        pytest.param(3, False, marks=pytest.mark.slow),
    ],
)
def test_after_a_refit_every_row_has_the_new_reward(
    where: str, n_step: int, prioritized: bool
) -> None:
    """The replay is learned from with one reward, then with another: none of the first is left."""
    config = changed(n_step=n_step, prioritized=prioritized, clip_rewards=True)
    driver = driver_of(where, CartPole(), spying(dqn(config, CartPole().spec)))
    run, learners = driver.phase(1, reward=learned), driver.fill_replay(driver.start(SEEDS))
    places: list[set[int]] = []
    for parameters in (np.float32([1, -2]), np.float32([5, 7])):
        learners, _ = run(learners, parameters)
        assert_rewards_are_those_of(where, n_step, learners, parameters)
        places.append(set(seen_of(learners).place[0].reshape(-1).tolist()))
    assert len(places[0] & places[1]) > 10  # rows that were drawn with either reward
    driver.close()


@pytest.mark.medium
@host_quickly
@pytest.mark.parametrize("n_step", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_true_reward_looked_up_by_step_equals_the_sum_of_the_replay(
    where: str, n_step: int
) -> None:
    seen: list[Seen] = []
    for settings in ({}, {"reward": lambda _, batch: batch.reward}):
        driver = driver_of(where, Pendulum(), spying(sac_of(n_step)))
        learners = driver.fill_replay(driver.start(SEEDS))
        learners, _ = driver.phase(2, **settings)(learners, np.zeros(len(SEEDS), np.float32))
        seen.append(seen_of(learners))
        driver.close()
    one, other = seen
    np.testing.assert_array_equal(one.place, other.place)
    np.testing.assert_allclose(one.reward, other.reward, rtol=1e-5, atol=1e-6)
    assert np.ptp(one.reward) > 0.1


def sac_of(n_step: int) -> Algorithm:
    """SAC with rows of n env steps, which it does not have itself."""
    algorithm = sac(SAC, Pendulum().spec)
    assert algorithm.replay is not None
    return algorithm._replace(replay=algorithm.replay._replace(n_step=n_step))


# The true reward changes nothing

SAC = SACConfig(
    env_steps=2_000,
    num_envs=2,
    rollout_length=5,
    updates_per_step=0.5,
    batch_size=16,
    buffer_size=400,
    learning_starts=100,
    hidden=(8,),
)
PPO = PPOConfig(
    env_steps=2_000,
    num_envs=2,
    rollout_length=20,
    epochs=1,
    minibatches=2,
    hidden=(8,),
    normalize_obs=True,
    normalize_rewards=True,
)
VPG = VPGConfig(
    env_steps=2_000,
    num_envs=2,
    rollout_length=20,
    value_gradient_steps=2,
    hidden=(8,),
    normalize_rewards=True,
)
CEM = CEMConfig(env_steps=2_000, num_envs=5, rollout_length=20)
LEARNERS: dict[str, tuple[Any, Callable[[EnvSpec], Algorithm]]] = {
    "ppo": (CartPole(), partial(ppo, PPO)),
    "vpg": (CartPole(), partial(vpg, VPG)),
    "cem": (CartPole(), partial(cem, CEM)),
    "sac": (Pendulum(), partial(sac, SAC)),
    "dqn": (CartPole(), partial(dqn, changed(n_step=1, clip_rewards=True))),
    "dqn of 3 steps": (CartPole(), partial(dqn, changed(n_step=3, prioritized=True))),
}

# A case of each path: with and without a replay, in both drivers. The others are slow.
QUICK = (("native", "ppo"),)


def slow_unless(case: tuple[str, str], cases: tuple[tuple[str, str], ...]) -> Any:
    """A case that is slow unless it is one of these."""
    return pytest.param(*case, marks=() if case in cases else pytest.mark.slow)


def after_learning(where: str, name: str, paid: float, reward: Any = learned) -> dict[str, Any]:
    """All arrays of learners and metrics after a few updates, by name."""
    env, build = LEARNERS[name]
    driver = driver_of(where, env, build(env.spec), paid)
    learners = driver.fill_replay(driver.start(SEEDS))
    learners, phase = driver.phase(3, reward=reward)(learners, np.float32([1, -1]))
    driver.close()
    return flatten({"learners": learners, "metrics": phase.metrics})


TRUE = ("episode_return", "replay.reward")  # what is true reward and says so


@pytest.mark.medium
@pytest.mark.parametrize(
    ("where", "name"),
    [slow_unless((where, name), QUICK) for where in ("native", "host") for name in LEARNERS],
)
@pytest.mark.parametrize("garbage", [np.nan, pytest.param(1e6, marks=pytest.mark.slow)])
def test_the_true_reward_changes_no_bit_of_what_is_learned(
    where: str, name: str, garbage: float
) -> None:
    right, garbled = (after_learning(where, name, paid) for paid in (1.0, garbage))
    assert right.keys() == garbled.keys()
    changed_ones = {array for array in right if right[array].tobytes() != garbled[array].tobytes()}
    assert changed_ones
    assert all(any(word in array for word in TRUE) for array in changed_ones), changed_ones


@pytest.mark.medium
@pytest.mark.parametrize(
    ("where", "name"),
    [
        pytest.param("native", "vpg", marks=pytest.mark.slow),
        pytest.param("native", "dqn of 3 steps", marks=pytest.mark.slow),
        pytest.param("host", "vpg", marks=pytest.mark.slow),
        ("host", "dqn of 3 steps"),
    ],
)
def test_a_reward_that_reads_the_true_reward_is_detected(where: str, name: str) -> None:
    """The test above can fail: garbage in the reward changes the learners."""

    def cheating(parameters: Any, batch: Transition) -> Any:
        return learned(parameters, batch) + 1e-3 * batch.reward

    right, garbled = (after_learning(where, name, paid, cheating) for paid in (1.0, 1e6))
    assert any(
        right[array].tobytes() != garbled[array].tobytes()
        for array in right
        if "algorithm" in array
    )


# Images


@dataclass(frozen=True)
class Countdown:
    """Shows how many steps are left of three, as an image; the last step terminates."""

    @property
    def spec(self) -> EnvSpec:
        """One pixel."""
        shape = (1, 1, 1)
        seen = Box(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), np.dtype(np.uint8))
        return EnvSpec("countdown", seen, Discrete(2), None)

    def reset(self, key: Any) -> Any:
        """Begin with three."""
        del key
        return jnp.full((), 3, jnp.int32)

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Count down."""
        del action, key
        over = state == 1
        return NativeStep(state - 1, jnp.zeros(()), over, jnp.zeros((), bool))

    def observe(self, state: Any) -> Any:
        """Return what is left."""
        return state.astype(jnp.uint8).reshape(1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("n_step", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_learned_reward_gets_the_image_after_a_terminated_step(n_step: int) -> None:
    """100 where nothing is left: 100, 90 or 81 by how far off that is."""
    env = Countdown()

    def nothing_left(parameters: Any, batch: Transition) -> Any:
        del parameters
        return jnp.where(batch.next_obs[..., 0, 0, 0] == 0, 100.0, 0.0)

    algorithm = dqn(changed(n_step=n_step, network="flat"), env.spec)
    driver = NativeDriver(env, spying(for_learned_reward(algorithm, env.spec, Recency())))
    learners = driver.fill_replay(driver.start(SEEDS))
    learners, _ = driver.phase(1, reward=nothing_left)(learners, np.float32([0, 0]))
    found = set(seen_of(learners).reward.round(3).reshape(-1).tolist())
    assert found == ({0.0, 100.0} if n_step == 1 else {81.0, 90.0, 100.0})


def test_successors_of_images_are_kept_only_where_some_state_terminates() -> None:
    spec = Countdown().spec
    algorithm = dqn(changed(network="flat"), spec)
    endless = EnvSpec("endless", spec.observation, spec.action, 5, terminates=False)
    kept = [
        learner.replay.keeps_successors
        for learner in (
            algorithm,
            for_learned_reward(algorithm, spec, Recency()),
            for_learned_reward(algorithm, endless, Recency()),
        )
        if learner.replay is not None
    ]
    assert kept == [False, True, False]
    on_policy = ppo(PPO, CartPole().spec)
    assert for_learned_reward(on_policy, CartPole().spec, Recency()) is on_policy
