"""Networks are initialised again in the middle of teaching."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

import backflip
from backflip.algorithms.interface import Settings
from backflip.algorithms.registry import entry_of
from backflip.core.trees import row_of
from backflip.drivers.driver import Learner
from backflip.envs.registry import make_host
from backflip.training.algorithm_config import configure, with_schedules_of
from backflip.training.build import build
from backflip.training.continuation import open_parent
from backflip.training.parents import NO_PARENT, Before
from backflip.training.planning import plan
from backflip.training.restart import restart_phase, restarted
from backflip.training.teach_config import TeachConfig, saved_teaching, teach_settings
from backflip.training.teach_schedules import schedule_updates, updates_before_restart
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
    starts = {name: teach_settings(name, spec)[1].get("restart_at") for name in ("ppo", "sac")}
    assert starts == {"ppo": 0.3, "sac": None}


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
def test_a_run_starts_again_once_and_its_policies_show_it(tmp_path: Path) -> None:
    settings = SMALL | {"restart_at": 0.4, "learning_rate": 1e-6, "learning_rate_end": 1e-6}
    result = backflip.teach(
        "Pendulum-v1", teacher="oracle", labels=10, env_steps=640, settings=settings, home=tmp_path
    )
    moved = np.array(policy_moved(result.folder))
    assert (moved > 0.1).sum() == 1  # without a new start the policy hardly moves
