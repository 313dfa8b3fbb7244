"""The plan of a run of `teach`: env steps and queries of each phase."""

from dataclasses import replace

from backflip.preferences.schedule import Due
from backflip.training.build import build
from backflip.training.parents import Before
from backflip.training.teaching.plan import TeachPlan

SETTINGS = {"num_envs": 4, "rollout_length": 8, "learning_starts": 100, "env_steps": 1_000}
PLAN = TeachPlan(
    algorithm=build("dqn", "CartPole-v1", env_args={}, settings=SETTINGS).driver.algorithm,
    before=Before(),
    phases=[1, 2, 3],
    due=Due([5, 4, 3], [0, 2, 1]),
    pretrains=False,
    restart_phase=None,
    asks=True,
)
CHILD = replace(PLAN, before=Before(updates=10, env_steps=440, open_queries=2))


def test_the_first_phase_includes_the_env_steps_before_learning() -> None:
    # At least 100 random ones, then 32 for each update.
    first = PLAN.env_steps(1)
    assert first - 32 >= 100
    assert [PLAN.env_steps(phases) - first for phases in (1, 2, 3)] == [0, 2 * 32, 5 * 32]
    assert PLAN.env_steps(0) == 0


def test_a_child_counts_the_updates_of_its_parents() -> None:
    assert [CHILD.updates_before(number) for number in range(4)] == [10, 11, 13, 16]
    assert CHILD.env_steps(0) == PLAN.env_steps(3) + 4 * 32
    assert CHILD.queries == 5 + 4 + 3 + 2


def test_fresh_pairs_are_numbered_over_the_whole_run() -> None:
    assert [PLAN.fresh_after(number) for number in range(3)] == [range(0), range(2), range(2, 3)]
    assert [PLAN.due_after(number) for number in range(5)] == [5, 4, 3, 0, 0]


def test_queries_that_come_sooner() -> None:
    sooner = PLAN.sooner(1, wanted=5, asked=0, unit=1)
    assert sooner.due == Due([5, 5, 2], [0, 2, 1])
    assert sooner.fresh_after(1) == PLAN.fresh_after(1)
    assert sooner.queries == PLAN.queries
    assert PLAN.sooner(3, wanted=9, asked=9, unit=1).due == PLAN.due, "no round follows"
