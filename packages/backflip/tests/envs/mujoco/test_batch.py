"""The MuJoCo batch equals Gymnasium's environments; fixed horizons do not terminate."""

import functools
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from packages.backflip.tests.conformance.host_env import check_host_env, random_actions

from backflip.envs.mujoco import simulators
from backflip.envs.mujoco.batch import MujocoBatch
from backflip.envs.mujoco.tasks import TASKS
from backflip.envs.registry import BATCHED, ENDLESS, make_host
from runshelf.errors import UsageError

ROWS = 3
ENDING = [name for name, task in TASKS.items() if task.healthy]
FIXED = [f"fixed:{name}" for name in ENDING]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes its warnings about Gymnasium's HalfCheetah into the current folder."""
    monkeypatch.chdir(tmp_path)


def steps_of(batch: Any, actions: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    return [batch.step(action)[:4] for action in actions]


def actions_of(batch: Any, env_steps: int) -> np.ndarray:
    space = batch.single_action_space
    shape = (env_steps, batch.num_envs, *space.shape)
    return np.random.default_rng(2).uniform(space.low, space.high, shape).astype(np.float32)


def assert_equal(name: str, env_steps: int, seeds: list[int]) -> None:
    """Assert that every float64 and every flag equals Gymnasium's, including resets.

    Rewards of one task may differ by rounding: NumPy squares arrays differently from scalars.
    """
    off = 1e-12 if name == "InvertedDoublePendulum-v5" else 0.0
    ours = MujocoBatch(name, len(seeds), AutoresetMode.NEXT_STEP)
    makers = [lambda: gymnasium.make(name, disable_env_checker=True)] * len(seeds)
    theirs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.NEXT_STEP)
    assert np.array_equal(ours.reset(seed=seeds)[0], theirs.reset(seed=seeds)[0])
    actions, ended = actions_of(ours, env_steps), 0
    for mine, expected in zip(steps_of(ours, actions), steps_of(theirs, actions), strict=True):
        for place in (0, 2, 3):
            assert np.array_equal(mine[place], expected[place])
        np.testing.assert_allclose(mine[1], expected[1], rtol=0, atol=off)
        ended += (mine[2] | mine[3]).sum()
    assert ended
    ours.close()
    theirs.close()


def test_tasks_agree_with_the_registry() -> None:
    assert sorted(TASKS) == list(BATCHED)
    endless = {name for name in TASKS if name.rpartition("-v")[0] in ENDLESS}
    assert endless == set(TASKS) - set(ENDING)


@pytest.mark.parametrize("name", ["Reacher-v5", "InvertedPendulum-v5", "Hopper-v5"])
def test_equals_gymnasium_bit_for_bit(name: str) -> None:
    assert_equal(name, 60, [7, 8, 9])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TASKS))
def test_equals_gymnasium_bit_for_bit_over_long_runs(name: str) -> None:
    assert_equal(name, 1_001, [7, 8, 9])


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize(
    ("name", "limit", "ends_by", "env_steps"),
    [
        ("HalfCheetah-v5", 7, {"truncated"}, 20),
        ("InvertedDoublePendulum-v5", 6, {"terminated", "truncated"}, 40),
        ("fixed:InvertedPendulum-v5", 9, {"truncated"}, 25),
    ],
)
def test_conforms_to_the_interface(
    name: str, limit: int, ends_by: set[str], env_steps: int, autoreset: str
) -> None:
    check_host_env(
        lambda num_envs: make_host(name, {"max_episode_steps": limit}, num_envs, autoreset),
        ends_by=ends_by,
        env_steps=env_steps,
        reset_rows=autoreset == "next_step",
    )


@pytest.mark.medium
def test_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    found, before = [], threading.active_count()
    for cores in (1, 3):
        monkeypatch.setattr(simulators, "usable_cores", lambda cores=cores: cores)
        batch = MujocoBatch("Hopper-v5", 13, AutoresetMode.NEXT_STEP)
        batch.reset(seed=list(range(13)))
        found.append(steps_of(batch, actions_of(batch, 40)))
        assert threading.active_count() == before + cores - 1
        batch.close()
        assert threading.active_count() == before
    for one, other in zip(*found, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_exception_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulators, "usable_cores", lambda: 2)
    batch = MujocoBatch("InvertedPendulum-v5", 8, AutoresetMode.NEXT_STEP)
    batch.reset(seed=list(range(8)))

    def only_the_other_thread_fails(rows: Any) -> None:
        del rows
        if threading.current_thread() is not threading.main_thread():
            raise TypeError("no simulator")

    monkeypatch.setattr(batch._simulators, "_advance", only_the_other_thread_fails)
    with pytest.raises(TypeError, match="no simulator"):
        batch.step(np.zeros((8, 1), np.float32))
    batch.close()


# Which environment an id gets


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "gymnasium:HalfCheetah-v5", "fixed:Hopper-v5"])
def test_spec_says_whether_states_terminate(name: str) -> None:
    assert not make_host(name).spec.terminates
    assert make_host("Hopper-v5").spec.terminates


@pytest.mark.medium
def test_arguments_or_the_prefix_select_gymnasiums_own() -> None:
    """All three have equal results, because the argument has its default value."""
    plain = make_host("Hopper-v5", {"max_episode_steps": 9}, ROWS)
    others = [
        make_host("gymnasium:Hopper-v5", {"max_episode_steps": 9}, ROWS),
        make_host("Hopper-v5", {"max_episode_steps": 9, "frame_skip": 4}, ROWS),
    ]
    actions = random_actions(plain.spec, np.random.default_rng(0), (30, ROWS))
    for env in (plain, *others):
        assert (env.spec.max_episode_steps, env.spec.terminates) == (9, True)
        env.reset([1, 2, 3])
    for action in actions:
        expected, *found = (env.step(action) for env in (plain, *others))
        for step in found:
            assert all(np.array_equal(a, b) for a, b in zip(step, expected, strict=True))
    heavier = make_host("Hopper-v5", {"ctrl_cost_weight": 1.0}, ROWS)
    assert np.array_equal(heavier.reset([1, 2, 3]), plain.reset([1, 2, 3]))
    assert (heavier.step(actions[0]).reward < plain.step(actions[0]).reward).all()


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("fixed:Swimmer-v5", {}, "`Swimmer-v5` already has a fixed horizon"),
        (
            "fixed:Hopper-v4",
            {},
            r"known: fixed:Ant-v5, fixed:Hopper-v5, .*, fixed:Walker2d-v5\)",
        ),
        ("fixed:Hopper-v5", {"frame_skip": 2}, "does not take --env-arg `frame_skip`"),
        (
            "fixed:Hopper-v5",
            {"penalty": "soft"},
            "must be `threshold` or `smooth`, got .soft",
        ),
        ("fixed:Hopper-v5", {"penalty": 1}, "must be text, got 1; try penalty=threshold"),
        ("Hopper-v5", {"penalty": "smooth"}, "does not take --env-arg `penalty`"),
        ("Hopper-v5", {"max_episode_steps": 0}, "must be at least 1 and at most .*, got 0"),
        ("Hopper-v5", {"max_episode_steps": 10**11}, "^--env-arg .* 2,000,000,000, got 10000"),
        ("Hopper-v5", {"max_episode_steps": 1.5}, "must be a whole number, got 1.5"),
    ],
)
def test_invalid_settings_are_refused(name: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_host(name, args)


# Fixed horizons


@pytest.mark.parametrize("name", ["fixed:Hopper-v5", "fixed:InvertedDoublePendulum-v5"])
def test_fixed_horizon_ends_only_by_the_time_limit(name: str) -> None:
    env = make_host(name, {"max_episode_steps": 50}, ROWS)
    assert env.spec.max_episode_steps == 50
    env.reset([0, 1, 2])
    actions = random_actions(env.spec, np.random.default_rng(0), (101, ROWS))
    steps = [env.step(action) for action in actions]
    assert not any(step.terminated.any() for step in steps)
    assert [t for t, step in enumerate(steps) if step.truncated.all()] == [49, 100]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "penalty"), [("Hopper-v5", 1), ("Walker2d-v5", 1), ("Ant-v5", 1), ("Humanoid-v5", 5)]
)
def test_unhealthy_state_costs_the_bonus(name: str, penalty: int) -> None:
    """All else equals Gymnasium with `terminate_when_unhealthy=False`."""
    seeds = list(range(ROWS))
    ours = MujocoBatch(name, ROWS, AutoresetMode.NEXT_STEP, fixed_horizon=True)
    made = gymnasium.make_vec(name, ROWS, vectorization_mode="sync", terminate_when_unhealthy=False)
    rows: Any = made
    ours.reset(seed=seeds)
    made.reset(seed=seeds)
    unhealthy = 0
    for action in actions_of(ours, 40) * (3 if name == "Ant-v5" else 1):
        obs, reward, terminated, *_ = ours.step(action)
        wanted, paid, *_ = made.step(action)
        ill = np.array([not env.unwrapped.is_healthy for env in rows.envs])
        assert np.array_equal(obs, wanted)
        assert np.array_equal(reward, paid - penalty * ill)
        assert not terminated.any()
        unhealthy += ill.sum()
    assert unhealthy or name == "Ant-v5"
    made.close()


def test_penalties_by_hand() -> None:
    """A fallen pole has reward -1 instead of 1; two fallen poles have -10 and less."""
    one = MujocoBatch("InvertedPendulum-v5", 1, AutoresetMode.NEXT_STEP, fixed_horizon=True)
    one.reset(seed=[0])
    push = np.full((1, 1), 3.0, np.float32)
    rewards = [one.step(push)[1].item() for _ in range(40)]
    fallen = rewards.index(-1.0)
    assert rewards == [1.0] * fallen + [-1.0] * (40 - fallen)
    two = MujocoBatch("InvertedDoublePendulum-v5", 1, AutoresetMode.NEXT_STEP, fixed_horizon=True)
    two.reset(seed=[0])
    before, after = 0.0, 0.0
    while after > -10:
        before, after = after, two.step(push[:, :1] / 3)[1].item()
    assert before > 8  # the bonus of 10, less what being off balance costs
    two.close()


@pytest.mark.parametrize(
    ("name", "forward", "height", "least"),
    [("Hopper-v5", 1, 1, 1), ("Walker2d-v5", 1, 1, 2), ("Ant-v5", 1, 1, 1.2)],
)
def test_a_smooth_penalty_is_speed_plus_height(
    name: str, forward: float, height: float, least: float
) -> None:
    """No threshold, no cost of torques: from Gymnasium's own speed and the simulator's height."""
    ours = MujocoBatch(name, 1, AutoresetMode.NEXT_STEP, fixed_horizon=True, penalty="smooth")
    made: Any = gymnasium.make(name, terminate_when_unhealthy=False).unwrapped
    ours.reset(seed=[4])
    made.reset(seed=4)
    for action in actions_of(ours, 30):
        _, reward, terminated, *_ = ours.step(action[:1])
        *_, info = made.step(action[0])
        z = made.data.qpos[2 if name == "Ant-v5" else 1]
        wanted = forward * info["x_velocity"] + height * (z - least)
        assert reward.item() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert not terminated.any()
    made.close()


def test_smooth_penalties_of_pendulums_by_hand() -> None:
    make = functools.partial(MujocoBatch, num_envs=1, autoreset_mode=AutoresetMode.NEXT_STEP)
    one = make("InvertedPendulum-v5", fixed_horizon=True, penalty="smooth")
    assert one.max_episode_steps == 25
    obs, _ = one.reset(seed=[0])
    obs, reward, *_ = one.step(np.full((1, 1), 0.3, np.float32))
    assert reward.item() == pytest.approx(-(obs[0, 1] ** 2), rel=1e-9)
    two = make("InvertedDoublePendulum-v5", fixed_horizon=True, penalty="smooth")
    assert two.max_episode_steps == 50
    two.reset(seed=[0])
    _, reward, *_ = two.step(np.zeros((1, 1), np.float32))
    tip = two.data[0].site_xpos[0, 2]
    assert reward.item() == pytest.approx(10 * (tip - 1), rel=1e-9)
    two.close()
    assert make("InvertedPendulum-v5", fixed_horizon=True).max_episode_steps == 1_000
    long = make("InvertedPendulum-v5", fixed_horizon=True, penalty="smooth", max_episode_steps=99)
    assert long.max_episode_steps == 99
