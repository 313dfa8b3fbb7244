"""Environments that are reset together begin their episodes at different times."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import ppo
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.episodes import episode_metrics
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.drivers.training_episodes import staggered, whole_episodes
from backflip.envs.registry import make_host, make_native
from backflip.preferences.clips import Windows, episode_steps

LIMIT, ENVS, LENGTH = 12, 4, 10
SMALL = PPOConfig(env_steps=1_000, num_envs=ENVS, rollout_length=LENGTH, epochs=1, hidden=(4,))
IDS = {  # by what holds the environments; the last one has states that terminate
    "batch of ours": "fixed:Hopper-v5",
    "Gymnasium's": "gymnasium:Pendulum-v1",
    "terminating": "gymnasium:CartPole-v1",
}


def learning_nothing(config: PPOConfig, spec: EnvSpec) -> Algorithm:
    """Return PPO without its update, which takes most of the time of compilation."""
    return ppo(config, spec)._replace(update=lambda state, batch, key: (state, {}))


def lengths_of(env_id: str, config: PPOConfig = SMALL) -> tuple[list[list[int]], Any]:
    """The env steps at which each environment's episodes end in 4 rollouts, and the metrics."""
    args: dict[str, Any] = {"max_episode_steps": LIMIT}
    seen: list[Transition] = []
    algorithm = ppo(config, make_host(env_id, args, 1).spec)

    def update(state: Any, batch: Transition, key: Any) -> Any:
        jax.debug.callback(lambda b: seen.append(jax.tree.map(np.asarray, b)), batch)
        return state, {}

    spying: Algorithm = algorithm._replace(update=update)
    driver = HostDriver(lambda rows: make_host(env_id, args, rows), spying)
    _, phase = driver.phase(4)(driver.start([5]), None)
    jax.effects_barrier()
    driver.close()
    ended = np.concatenate([batch.terminated | batch.truncated for batch in seen])
    ended[-1] = False  # the cut at the end of a phase
    valid = np.cumsum(np.concatenate([batch.valid for batch in seen]), 0)
    return [valid[ended[:, row], row].tolist() for row in range(ended.shape[1])], phase.metrics


@pytest.mark.medium
@pytest.mark.parametrize("env_id", [IDS["batch of ours"], IDS["Gymnasium's"]])
def test_first_episodes_end_at_equal_distances_and_later_ones_at_the_limit(env_id: str) -> None:
    ends, metrics = lengths_of(env_id)
    assert [row[0] for row in ends] == [3, 6, 9, 12]
    for row in ends:
        assert np.diff(row).tolist() == [LIMIT] * (len(row) - 1)
    # 3 shortened episodes are left out of the statistics, and the cut ones at the end
    counted = sum(map(len, ends)) - 3
    assert np.nansum(metrics["episodes"]) == counted
    whole = np.asarray(metrics["episode_length_mean"])
    assert set(whole[~np.isnan(whole)].tolist()) == {LIMIT}


@pytest.mark.medium
def test_terminating_states_keep_whole_first_episodes() -> None:
    ends, _ = lengths_of(IDS["terminating"])
    assert all(row[0] in range(8, LIMIT + 1) for row in ends)


@pytest.mark.medium
def test_rollouts_of_whole_episodes_are_not_shortened() -> None:
    long = PPOConfig(env_steps=1_000, num_envs=ENVS, rollout_length=LIMIT, hidden=(4,))
    ends, _ = lengths_of(IDS["Gymnasium's"], long)
    assert {row[0] for row in ends} == {LIMIT}


def test_lengths_are_spread_evenly_up_to_the_limit() -> None:
    assert staggered(4, 1000).tolist() == [250, 500, 750, 1000]
    assert staggered(3, 10).tolist() == [4, 7, 10]
    assert staggered(16, 5).min() == 1


@pytest.mark.medium
def test_parts_of_episodes_are_left_out() -> None:
    returns, lengths = np.array([[2.0, 4.0, 9.0]]), np.array([[np.nan, 3.0, 7.0]])
    ended = np.array([[True, True, False]])
    metrics = episode_metrics(*map(jax.numpy.asarray, (returns, lengths, ended)))
    assert metrics["episodes"] == 1
    assert metrics["episode_return_mean"] == 4.0
    assert metrics["episode_length_max"] == 3.0


@pytest.mark.medium
@pytest.mark.parametrize("env_id", [*IDS.values()])
def test_algorithms_own_limit_shortens_all_episodes(env_id: str) -> None:
    ends, metrics = lengths_of(env_id, replace(SMALL, episode_steps=5))
    for row in ends:
        assert np.diff(row).tolist() == [5] * (len(row) - 1)
        assert row[0] <= 5
    lengths = np.asarray(metrics["episode_length_max"])
    assert set(lengths[~np.isnan(lengths)].tolist()) == {5}


@pytest.mark.medium
@pytest.mark.parametrize("env_id", [IDS["batch of ours"], IDS["Gymnasium's"]])
def test_a_share_of_the_environments_keeps_whole_episodes(env_id: str) -> None:
    ends, metrics = lengths_of(env_id, replace(SMALL, episode_steps=5, whole_share=0.5))
    assert [row[0] for row in ends] == [
        6,
        5,
        12,
        5,
    ]  # rollouts have 10 env steps, so only 12 is staggered
    for row, limit in zip(ends, [LIMIT, 5, LIMIT, 5], strict=True):
        assert np.diff(row).tolist() == [limit] * (len(row) - 1)
    lengths = np.asarray(metrics["episode_length_max"])
    assert set(lengths[~np.isnan(lengths)].tolist()) == {5, LIMIT}


def test_whole_episodes_are_spread_evenly() -> None:
    assert whole_episodes(4, 0.5).tolist() == [True, False, True, False]
    assert np.flatnonzero(whole_episodes(8, 0.25)).tolist() == [0, 4]
    assert whole_episodes(3, 0.0).sum() == 0
    assert whole_episodes(3, 1.0).all()


@pytest.mark.medium
def test_evaluations_have_whole_episodes() -> None:
    args: dict[str, Any] = {"max_episode_steps": LIMIT}
    spec = make_host("fixed:Hopper-v5", args, 1).spec
    algorithm = learning_nothing(replace(SMALL, episode_steps=5), spec)
    driver = HostDriver(lambda rows: make_host("fixed:Hopper-v5", args, rows), algorithm)
    learners, _ = driver.phase(1)(driver.start([5]), None)
    evaluation = driver.evaluate(learners, [5], episodes=10)
    driver.close()
    assert np.asarray(evaluation.lengths).tolist() == [[LIMIT] * 10]


@pytest.mark.medium
def test_compiled_environments_are_shortened_too() -> None:
    env = make_native("Pendulum-v1", {"max_episode_steps": LIMIT})
    algorithm = learning_nothing(replace(SMALL, episode_steps=5), env.spec)
    driver = NativeDriver(env, algorithm)
    _, phase = driver.phase(4)(driver.start([5]), None)
    assert set(np.asarray(phase.metrics["episode_length_max"]).ravel().tolist()) == {5}
    assert np.asarray(phase.metrics["episodes"]).sum() == ENVS * 4 * LENGTH // 5


@pytest.mark.medium
def test_a_share_of_compiled_environments_keeps_whole_episodes() -> None:
    env = make_native("Pendulum-v1", {"max_episode_steps": LIMIT})
    algorithm = learning_nothing(replace(SMALL, episode_steps=5, whole_share=0.5), env.spec)
    driver = NativeDriver(env, algorithm)
    _, phase = driver.phase(4)(driver.start([5]), None)
    rows = 4 * LENGTH
    expected = 2 * (rows // 5) + 2 * (rows // LIMIT)
    assert np.asarray(phase.metrics["episodes"]).sum() == expected


@pytest.mark.medium
@pytest.mark.parametrize("env_id", [IDS["batch of ours"], IDS["Gymnasium's"], "Pendulum-v1"])
def test_clips_know_the_env_step_of_their_training_episode(env_id: str) -> None:
    """Queries of one stage compare parts of training episodes, which are shorter here."""
    args: dict[str, Any] = {"max_episode_steps": LIMIT}
    config = replace(SMALL, episode_steps=5, rollout_length=4)
    if env_id == "Pendulum-v1":
        env, first = make_native(env_id, args), [5] * ENVS
        driver: Any = NativeDriver(env, learning_nothing(config, env.spec))
    else:
        spec, first = make_host(env_id, args, 1).spec, staggered(ENVS, 5)
        algorithm = learning_nothing(config, spec)
        driver = HostDriver(lambda rows: make_host(env_id, args, rows), algorithm)
    phase = driver.phase(7, record_rollouts=7, record_envs=ENVS)
    record = row_of(jax.tree.map(np.asarray, phase(driver.start([5]), None)[1].record), 0)
    driver.close()
    known = 0
    for env, begins in enumerate(first):
        done = np.cumsum(record.valid[:, env]) - 1 - begins  # env steps since the second episode
        for row in np.flatnonzero(record.valid[:, env]):
            expected = done[row] % 5 if done[row] >= 0 else -1
            place = Windows(np.array([row]), np.array([env]))
            assert episode_steps(record, place) == expected
            known += expected >= 0
    assert known > ENVS * 15
