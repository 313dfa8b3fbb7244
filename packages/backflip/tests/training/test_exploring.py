"""Tests of `teaching.exploring`: who explores, and what is initialised again after it."""

from typing import Any

import jax
import numpy as np
import pytest
from packages.backflip.tests.training.test_teach_algorithms import TINY, tiny

from backflip.core.trees import flatten, row_of
from backflip.drivers.driver import Driver, Learner
from backflip.rewards.interface import LabelledComparison
from backflip.training.build import build
from backflip.training.teaching.exploring import Exploring

SEEDS = [3, 4, 5]


def label(left_preferred: float) -> LabelledComparison:
    def clips() -> Any:
        raise AssertionError("answers alone decide")

    return LabelledComparison(1, clips, left_preferred, 0)


def exploring_of(driver: Driver, *, before_labels: bool = True) -> Exploring:
    learned: Any = None  # is not asked
    return Exploring(driver, learned, SEEDS, before_labels=before_labels)


def started(algorithm: str) -> tuple[Driver, Learner]:
    """Return a driver, and learners with other parameters than they began with."""
    settings = TINY[algorithm] | {"env_steps": 384}
    driver = build(algorithm, "CartPole-v1", env_args={}, settings=settings).driver
    learners = driver.start(SEEDS)

    def moved(x: Any) -> Any:
        found = np.asarray(x)
        return found + 1 if found.dtype.kind == "f" else found

    return driver, learners._replace(algorithm=jax.tree.map(moved, learners.algorithm))


def same(one: Any, other: Any) -> bool:
    one, other = flatten(one), flatten(other)
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.medium
def test_seeds_explore_while_their_labels_say_nothing() -> None:
    driver, _ = started("a2c")
    assert exploring_of(driver, before_labels=False).now == [False] * 3
    exploring = exploring_of(driver)
    assert exploring.now == [True] * 3
    exploring.follow([[], [label(0.5)] * 2, [label(0.5), label(1.0)]])
    assert exploring.now == [True, True, False]
    assert exploring.parameters("reward").explores.tolist() == [True, True, False]
    exploring.follow([[label(0.0)], [label(0.5)], [label(0.5)]])  # the third undid its answer
    assert exploring.now == [False, True, True]


@pytest.mark.medium
def test_networks_of_seeds_that_have_ended_exploring_begin_again_and_the_replay_stays() -> None:
    driver, learners = started("dqn")
    exploring = exploring_of(driver)
    exploring.now = [False, True, False]
    found = exploring.restarted(learners, [True, True, False])
    for row, seed in enumerate(SEEDS):
        now = row_of(found.algorithm, row)
        assert same(now, driver.algorithm.init(seed)) == (seed == 3)
        assert same(now, row_of(learners.algorithm, row)) == (seed != 3)
    for name, part in found._asdict().items():
        assert name == "algorithm" or part is getattr(learners, name)
    for now, before in ([True] * 3, [True] * 3), ([True] * 3, [False] * 3):
        exploring.now = now
        assert exploring.restarted(learners, before) is learners


@pytest.mark.medium
def test_schedules_go_on_when_exploring_ends() -> None:
    """Random actions of DQN are over when its labels arrive."""
    driver, learners = started("dqn")
    later = learners.algorithm._replace(updates=np.full(3, 60, np.int32))
    exploring = exploring_of(driver)
    exploring.now = [False, True, False]
    found = exploring.restarted(learners._replace(algorithm=later), [True, True, False])
    np.testing.assert_array_equal(found.algorithm.updates, 60)
    assert same(row_of(found.algorithm, 0)._replace(updates=0), driver.algorithm.init(3))


@pytest.mark.medium
def test_on_policy_networks_go_on() -> None:
    driver, learners = started("a2c")
    exploring = exploring_of(driver)
    exploring.now = [False] * 3
    assert exploring.restarted(learners, [True] * 3) is learners


@pytest.mark.slow
def test_a_run_restarts_once_when_the_first_labels_arrive(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, restarts = Exploring.restarted, []

    def spy(self: Exploring, learners: Learner, before: Any) -> Learner:
        found = original(self, learners, before)
        restarts.append((found is not learners, list(before), self.now))
        return found

    monkeypatch.setattr(Exploring, "restarted", spy)
    tiny(tmp_path, "dqn", "CartPole-v1", settings={"pretrain_env_steps": 96})
    yes, no = [True, True], [False, False]
    assert restarts[:2] == [(False, yes, yes), (True, yes, no)]
    assert len(restarts) > 2
    assert all(later == (False, no, no) for later in restarts[2:])
