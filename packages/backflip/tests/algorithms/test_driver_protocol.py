"""What callers may ask of both drivers, and what is left of one that is closed."""

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.cem import cem
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import ppo
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.clip_material import clip_material
from backflip.drivers.driver import Driver
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.registry import make_host
from backflip.preferences.clips import cut, windows

PPO = PPOConfig(env_steps=1_000, num_envs=2, rollout_length=8, epochs=1, minibatches=2, hidden=(4,))
host_quickly = pytest.mark.parametrize(
    "where", [pytest.param("native", marks=pytest.mark.slow), "host"]
)


def driver_of(where: str, algorithm: Algorithm) -> Driver:
    if where == "native":
        return NativeDriver(CartPole(), algorithm)
    return HostDriver(lambda rows: make_host("gymnasium:CartPole-v1", {}, rows), algorithm)


def learner() -> Algorithm:
    return ppo(PPO, CartPole().spec)


def test_properties_of_drivers() -> None:
    native, host = (driver_of(where, learner()) for where in ("native", "host"))
    assert isinstance(native, Driver)
    assert isinstance(host, Driver)
    facts = ("runs_compiled", "episodes_survive_phases", "checks_env_steps")
    assert [getattr(native, fact) for fact in facts] == [True, True, False]
    assert [getattr(host, fact) for fact in facts] == [False, False, True]
    assert [native.copies_of_learners(seeds) for seeds in (1, 2)] == [2, 4]
    assert host.copies_of_learners(2) == 2


@pytest.mark.slow
@host_quickly
def test_episodes_survive_phases_if_the_driver_says_so(where: str) -> None:
    """Eight env steps of CartPole end no episode: sixteen are its length, or eight again."""
    driver = driver_of(where, learner())
    run, zeros = driver.phase(1), np.zeros(1)
    learners, _ = run(driver.start([0]), zeros)
    learners, _ = run(learners, zeros)
    longest = np.asarray(learners.episode_length).max()
    assert longest > 8 if driver.episodes_survive_phases else longest <= 8
    driver.close()


@pytest.mark.medium
@host_quickly
def test_no_clip_goes_on_from_one_rollout_into_the_next_if_all_episodes_start_again(
    where: str,
) -> None:
    """No episode of CartPole ends within six env steps."""
    sizes = {"env_steps": 2 * 4 * 6, "num_envs": 4, "rollout_length": 6}
    driver = driver_of(where, cem(CEMConfig(**sizes), CartPole().spec))
    _, phase = driver.phase(2, record_rollouts=2, record_envs=3)(driver.start([0]), None)
    record = row_of(jax.tree.map(np.asarray, phase.record), 0)
    last = np.arange(12) % 6 == 5
    np.testing.assert_array_equal(record.truncated, np.tile(last[:, None], 3))
    clips = [cut(record, window, 4) for window in windows(record, 4)]
    assert len(clips) == 2 * 3 * 3
    for clip in clips:
        np.testing.assert_array_equal(clip.next_obs[:-1], clip.obs[1:])
    assert not np.asarray(phase.metrics["finished_share"]).any(), "CEM sees no truncation"
    driver.close()


@pytest.mark.medium
@host_quickly
def test_a_closed_driver_leaves_no_compiled_program(where: str) -> None:
    """Programs hold the functions they were compiled from: when those are gone, so are these."""
    algorithm = learner()

    def update(state: Any, batch: Transition, key: Any) -> Any:
        return algorithm.update(state, batch, key)

    def play(state: Any, obs: Any, key: Any) -> Any:
        return algorithm.evaluation_action(state, obs, key)

    left = [weakref.ref(update), weakref.ref(play)]
    driver = driver_of(where, algorithm._replace(update=update, evaluation_action=play))
    learners, _ = driver.phase(1)(driver.start([0]), np.zeros(1))
    driver.evaluate(learners, [0], episodes=1)
    driver.close()
    del update, play, driver
    gc.collect()
    assert [reference() for reference in left] == [None, None]


# What clips are cut from


@pytest.mark.medium
@pytest.mark.parametrize("axes", [(3,), (2, 3), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
def test_clips_are_cut_from_the_newest_frames_of_the_first_environments(
    axes: tuple[int, ...], library: Any
) -> None:
    """Environments are the last axis of any number of axes."""
    shape = (5, 5, 4)
    seen = Box(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), np.dtype(np.uint8))
    spec = EnvSpec("stacked", seen, Discrete(2), None, frame_stack=4)
    rng = np.random.default_rng(0)

    def numbers(*more: int) -> Any:
        return library.asarray(rng.integers(0, 255, (*axes, *more)).astype(np.uint8))

    batch = Transition(
        numbers(*shape),
        numbers(),
        numbers(),
        numbers(),
        numbers(),
        numbers(*shape),
        numbers() > 9,
        extra={"value": numbers()},
        scene=numbers(7),
    )
    found = clip_material(spec, batch, 2)
    assert found.extra == ()
    np.testing.assert_array_equal(found.obs, batch.obs[..., :2, :, :, -1:])
    np.testing.assert_array_equal(found.next_obs[..., 0], batch.next_obs[..., :2, :, :, -1])
    np.testing.assert_array_equal(found.scene, batch.scene[..., :2, :])
    rest = [found.action, found.reward, found.terminated, found.truncated, found.valid]
    assert all(x.shape == (*axes[:-1], 2) for x in rest)
    np.testing.assert_array_equal(found.valid, batch.valid[..., :2])
    assert {type(x) for x in jax.tree.leaves(found)} == {type(batch.obs)}
