"""Networks are initialised again in the middle of teaching."""

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import backflip
from backflip.algorithms.interface import Settings
from backflip.algorithms.registry import entry_of, names
from backflip.core.trees import row_of
from backflip.drivers.driver import Learner
from backflip.envs.registry import make_host
from backflip.training.algorithm_config import configure, with_schedules_of
from backflip.training.build import build
from backflip.training.continuation import open_parent
from backflip.training.parents import NO_PARENT, Before
from backflip.training.planning import plan
from backflip.training.restart import (
    NETWORKS,
    STATISTICS,
    partly_new,
    restart_phase,
    restarted,
)
from backflip.training.teaching.config import TeachConfig, saved_teaching
from backflip.training.teaching.defaults import teach_settings
from backflip.training.teaching.schedules import schedule_updates, updates_before_restart
from runshelf.store.metrics import read_metrics
from runshelf.store.run import open_run

SMALL: dict[str, Any] = {
    "num_envs": 4,
    "rollout_length": 16,
    "phases": 5,
    "clip_length": 10,
    "random_envs": 8,
    "random_env_steps": 60,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (8,),
    "reward_model": "linear",  # the quickest to fit
}


def test_phase_of_the_new_start_by_hand() -> None:
    assert restart_phase(0.4, 20) == 8
    assert restart_phase(0.5, 3) == 2
    assert [restart_phase(share, 20) for share in (0.0, 1.0, 0.01)] == [None, None, None]


def test_only_ppo_starts_again_by_default() -> None:
    spec = make_host("fixed:Hopper-v5", {}, 1).spec
    of_ppo = {"early_share": 0.5, "restart_at": 0.3, "restart_keeps": 0.5}
    assert teach_settings("ppo", spec)[1].items() >= of_ppo.items()
    assert not teach_settings("sac", spec)[1].keys() & of_ppo.keys()


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "sac", "td3", "ddpg"])
def test_networks_are_new_and_schedules_go_on(algorithm: str) -> None:
    assert entry_of(algorithm)
    driver = build(algorithm, "Pendulum-v1", env_args={}, settings={}).driver
    first: Learner = driver.start([3, 4])
    learned = first.algorithm
    if "updates" in learned._fields:
        learned = learned._replace(updates=np.full(2, 7, np.int32))
    again = restarted(driver.algorithm, [3, 4], first._replace(algorithm=learned))
    driver.close()
    if "updates" in learned._fields:
        np.testing.assert_array_equal(again.algorithm.updates, 7)
    parts = (
        driver.algorithm.policy(row_of(first.algorithm, 0)),
        driver.algorithm.policy(row_of(again.algorithm, 0)),
    )
    one, other = (jax.tree.leaves(part) for part in parts)
    assert [np.shape(x) for x in one] == [np.shape(x) for x in other]
    assert any(not np.array_equal(x, y) for x, y in zip(one, other, strict=True))
    np.testing.assert_array_equal(again.key, first.key)


# Parts of states that are new after a new start. CEM has a distribution and no network.
NEW = {
    *("optimizer", "value_optimizer", "actor_moments", "critic_moments", "temperature_moments"),
    *("updates", "running_return", "errors", "log_temperature", "mean", "std", "members"),
}


class State(NamedTuple):
    """A state of an algorithm in numbers."""

    params: dict[str, Any]
    optimizer: Any
    obs_statistics: Any
    updates: Any


def test_a_share_of_the_parameters_is_kept_by_hand() -> None:
    def state(weights: list[float], rest: float) -> State:
        params = {"weights": np.array(weights, np.float32), "log_std": np.full(2, rest, np.float32)}
        return State(params, np.full(2, rest), np.full(3, rest), np.int32(rest))

    found = partly_new(state([1.0, 2.0], 7.0), state([3.0, 6.0], 0.0), 0.25)
    np.testing.assert_array_equal(found.params["weights"], [2.5, 5.0])
    np.testing.assert_array_equal(found.params["log_std"], [0.0, 0.0])  # the noise is new
    np.testing.assert_array_equal(found.optimizer, [0.0, 0.0])
    np.testing.assert_array_equal(found.obs_statistics, [7.0, 7.0, 7.0])
    assert found.updates == 0
    assert found.params["weights"].dtype == np.float32


def raised(x: Any) -> Any:
    """An array whose numbers are larger by 1; other arrays stay."""
    return x + 1 if np.issubdtype(x.dtype, np.floating) else x


@pytest.mark.medium
@pytest.mark.parametrize("algorithm", names())
def test_all_networks_keep_a_share(algorithm: str) -> None:
    env = "CartPole-v1" if entry_of(algorithm).name in ("dqn", "discrete_sac") else "Pendulum-v1"
    driver = build(algorithm, env, env_args={}, settings={}).driver
    first: Learner = driver.start([3, 4])
    learned = jax.tree.map(raised, first)
    kept = restarted(driver.algorithm, [3, 4], learned, keeps=0.5).algorithm
    fresh = restarted(driver.algorithm, [3, 4], learned).algorithm
    driver.close()
    others = set(fresh._fields) - {*NETWORKS, *STATISTICS}
    assert others <= NEW  # add a part of a new algorithm here, or to NETWORKS or STATISTICS
    for name in others:
        jax.tree.map(np.testing.assert_array_equal, getattr(kept, name), getattr(fresh, name))
    for name in set(NETWORKS) & set(fresh._fields):
        parts = [getattr(one, name) for one in (kept, learned.algorithm, fresh)]
        leaves = zip(*(jax.tree.leaves_with_path(part) for part in parts), strict=True)
        for (path, x), (_, old), (_, new) in leaves:
            share = 0.0 if "log_std" in str(path) else 0.5
            np.testing.assert_allclose(x, share * old + (1 - share) * new, atol=1e-6)


def policy_moved(folder: Path) -> list[float]:
    """How far the weights of each kept policy lie from those of the one before."""
    files = sorted(folder.glob("policy-*.safetensors"))
    kept = [
        np.concatenate([x.ravel() for name, x in load_file(file).items() if "params" in name])
        for file in files
    ]
    return [float(np.abs(after - before).max()) for before, after in pairwise(kept)]


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "dqn"])
def test_schedules_start_again_unless_there_is_a_replay(algorithm: str) -> None:
    driver = build(algorithm, "CartPole-v1", env_args={}, settings={}).driver
    first: Learner = driver.start([3, 4])
    learned = first.algorithm._replace(updates=np.full(2, 7, np.int32))
    again = restarted(driver.algorithm, [3, 4], first._replace(algorithm=learned), schedules=True)
    np.testing.assert_array_equal(again.algorithm.updates, 7 if algorithm == "dqn" else 0)


def ppo_of(updates: int) -> Settings:
    sizes = {"num_envs": 4, "rollout_length": 16, "env_steps": updates * 64}
    return configure(entry_of("ppo"), sizes)


def left_after_restart(config: TeachConfig, own: Settings) -> int:
    """Count the updates of a run, phase by phase, from its new start on."""
    first = -(-config.pretrain_env_steps // 64)
    phases = [*([first] if first else []), *plan(own.updates - first, config.phases)]
    at, left = restart_phase(config.restart_at, len(phases)), 0
    for number, updates in enumerate(phases):
        left = updates if number == at else left + updates
    return left


@pytest.mark.parametrize("phases", [2, 3, 5, 14])
@pytest.mark.parametrize("pretrain_env_steps", [0, 300 * 64])
def test_schedules_of_a_new_start_end_with_the_run(phases: int, pretrain_env_steps: int) -> None:
    config = TeachConfig(restart_at=0.3, phases=phases, pretrain_env_steps=pretrain_env_steps)
    own = ppo_of(733)
    found = schedule_updates(config, own, NO_PARENT)
    assert found == left_after_restart(config, own) == 733 - updates_before_restart(config, own)
    assert with_schedules_of(own, found).updates == found
    child = ppo_of(1_000)
    before = Before(updates=733, uncounted=733 - found)
    assert schedule_updates(config, child, before) == found + 267


@pytest.mark.parametrize(("updates", "lasts"), [(733, 513), (200, 140), (10, 7)])
def test_ordinary_runs_have_the_schedules_that_were_measured(updates: int, lasts: int) -> None:
    config = TeachConfig(restart_at=0.3, phases=min(20, updates))
    assert schedule_updates(config, ppo_of(updates), NO_PARENT) == lasts


def test_schedules_go_on_without_a_new_start() -> None:
    own = ppo_of(100)
    for config in (
        TeachConfig(restart_at=0.0),
        TeachConfig(restart_at=1.0),
        TeachConfig(restart_at=0.98),  # no phase begins so late
        TeachConfig(restart_at=0.3, restart_schedules=False),
        saved_teaching({"restart_at": 0.3}),  # a run of before
    ):
        assert schedule_updates(config, own, NO_PARENT) == 100
    assert with_schedules_of(own, 100) is own
    assert schedule_updates(TeachConfig(restart_at=0.3), own, Before(updates=40)) == 100


@pytest.mark.slow
def test_the_learning_rate_of_a_run_rises_at_the_new_start(tmp_path: Path) -> None:
    settings = SMALL | {"restart_at": 0.4, "learning_rate": 1e-2, "learning_rate_end": 0.0}
    result = backflip.teach(
        "Pendulum-v1", teacher="oracle", labels=10, env_steps=640, settings=settings, home=tmp_path
    )
    rates = [row["learning_rate"] for row in read_metrics(result.folder, "train").records]
    slow = np.linspace(1e-2, 0.0, 7)[:6]  # six updates after four
    np.testing.assert_allclose(rates, [*slow[:4], *slow], rtol=1e-5)
    # A child goes on with the six updates that count, of 16.
    child = backflip.teach_more(result.run, env_steps=640, home=tmp_path)
    rates = [row["learning_rate"] for row in read_metrics(child.folder, "train").records]
    np.testing.assert_allclose(rates, np.linspace(1e-2, 0.0, 17)[6:16], rtol=1e-5)
    again = open_parent(open_run(child.folder), "teach")
    assert (again.updates, again.uncounted) == (20, 4)


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [0.0, 0.5])
def test_a_run_starts_again_once_and_its_policies_show_it(tmp_path: Path, keeps: float) -> None:
    settings = SMALL | {"restart_at": 0.4, "learning_rate": 1e-6, "learning_rate_end": 1e-6}
    settings |= {"restart_keeps": keeps}
    result = backflip.teach(
        "Pendulum-v1", teacher="oracle", labels=10, env_steps=640, settings=settings, home=tmp_path
    )
    moved = np.array(policy_moved(result.folder))
    assert (moved > 0.1).sum() == 1  # without a new start the policy hardly moves
