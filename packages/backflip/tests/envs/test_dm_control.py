"""Tasks of the DeepMind Control Suite."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

if sys.version_info >= (3, 13):
    pytest.skip("labmaze, which dm_control requires, has no wheel", allow_module_level=True)

from packages.backflip.tests.conformance.host_env import check_host_env

from backflip.cli.main import main
from backflip.envs.dm_control import ControlTask
from backflip.envs.registry import is_native, make_host, make_native
from backflip.envs.views.mujoco import MujocoView
from backflip.training.train import train
from runshelf.errors import UsageError


def test_missing_dm_control_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.delitem(sys.modules, "backflip.envs.dm_control", raising=False)
    with pytest.raises(
        UsageError, match=r"needs dm_control, .* try: pip install 'backflip\[dm_control\]"
    ):
        make_host("dm_control:cheetah-run")


def test_unsuitable_mujoco_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import mujoco  # noqa: PLC0415

    from backflip.envs import dm_control  # noqa: PLC0415

    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    monkeypatch.setattr(dm_control._suite, "load", lambda *_, **__: model.flex_of_a_later_release)
    with pytest.raises(
        UsageError, match=r"dm_control \S+ does not work with MuJoCo \S+; try: pip install"
    ):
        make_host("dm_control:cheetah-run")


def test_is_a_host_environment() -> None:
    assert not is_native("dm_control:cheetah-run")
    assert make_native("dm_control:cheetah-run") is None


@pytest.mark.medium
@pytest.mark.parametrize(
    "autoreset", ["next_step", pytest.param("same_step", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name",
    [
        "cheetah-run",
        pytest.param("ball_in_cup-catch", marks=pytest.mark.slow),
        pytest.param("cartpole-swingup_sparse", marks=pytest.mark.slow),
        pytest.param("reacher-easy", marks=pytest.mark.slow),
    ],
)
def test_conforms_to_the_interface(name: str, autoreset: str) -> None:
    check_host_env(
        lambda rows: make_host(f"dm_control:{name}", {"max_episode_steps": 12}, rows, autoreset),
        ends_by={"truncated"},
        env_steps=40,
        reset_rows=autoreset == "next_step",
    )


@pytest.mark.medium
def test_goal_of_lqr_terminates_with_reward_zero() -> None:
    task = ControlTask("lqr-lqr_2_1")
    task.reset(seed=0)
    with task.physics.reset_context():
        task.physics.data.qpos[:] = task.physics.data.qvel[:] = 0
    _, _, terminated, truncated, _ = task.step(np.zeros(1))
    assert (terminated, truncated) == (True, False)
    assert make_host("dm_control:lqr-lqr_2_1").spec.terminates


@pytest.mark.medium
def test_spec_and_rewards() -> None:
    env = make_host("dm_control:walker-walk", {}, 2)
    assert (env.spec.max_episode_steps, env.spec.terminates) == (1_000, False)
    assert env.spec.observation.shape == (24,)
    assert np.isinf(env.spec.observation.low).all()
    env.reset([0, 1])
    rewards = np.stack([env.step(np.zeros((2, 6), np.float32)).reward for _ in range(50)])
    assert ((rewards >= 0) & (rewards <= 1)).all()
    env.close()


@pytest.mark.medium
def test_observation_is_the_suites_arrays_in_order() -> None:
    task = ControlTask("fish-swim")
    obs, _ = task.reset(seed=3)
    parts = task._env.task.get_observation(task.physics)
    assert list(parts) == ["joint_angles", "upright", "target", "velocity"]
    assert np.array_equal(obs[:7], parts["joint_angles"])
    assert obs[7] == parts["upright"]
    assert np.array_equal(obs[8:11], parts["target"])
    assert np.array_equal(obs[11:], parts["velocity"])


@pytest.mark.medium
def test_time_limit_equals_the_suites() -> None:
    import dm_control.suite  # noqa: PLC0415

    theirs = dm_control.suite.load("cartpole", "swingup")
    ours = ControlTask("cartpole-swingup")
    theirs.reset()
    ours.reset(seed=0)
    for count in range(1, 1_001):
        assert theirs.step(np.zeros(1)).last() == ours.step(np.zeros(1))[3] == (count == 1_000)


@pytest.mark.parametrize(
    ("typed", "meant"), [("cheetah-rum", "cheetah-run"), ("cheeta-run", "cheetah-run")]
)
def test_unknown_task_is_refused(typed: str, meant: str) -> None:
    with pytest.raises(
        UsageError, match=f"unknown dm_control task `{typed}`, did you mean `{meant}`"
    ):
        make_host(f"dm_control:{typed}")


@pytest.mark.slow
def test_picture_shows_the_target_of_its_episode() -> None:
    env = make_host("dm_control:reacher-easy", {}, 2)
    env.reset([0, 1])
    scenes = env.scenes()
    view = MujocoView(env.spec, "dm_control:reacher-easy", {})
    moved = scenes.copy()
    moved[:, 4:6] = scenes[::-1, 4:6]  # each with the other's target
    own, other = view.draw(scenes), view.draw(moved)
    assert own.shape == (2, 240, 320, 3)
    assert (own[0] != own[1]).any()
    assert (own != other).any(axis=(1, 2, 3)).all()
    assert np.array_equal(own, view.draw(scenes))
    assert view.step_seconds() == pytest.approx(0.02)
    view.close()
    env.close()


@pytest.mark.slow
def test_look_accepts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clip = tmp_path / "clip.png"
    args = ["--episodes", "2", "--env-arg", "max_episode_steps=10", "--out", str(clip)]
    assert main(["look", "dm_control:cartpole-swingup", *args]) == 0
    assert "dm_control:cartpole-swingup" in capsys.readouterr().out
    with Image.open(clip) as strip:
        assert strip.height >= 240


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("ppo", {"num_envs": 4, "rollout_length": 16, "epochs": 1, "hidden": (8,)}),
        pytest.param(
            "sac",
            {
                "num_envs": 4,
                "rollout_length": 8,
                "batch_size": 8,
                "learning_starts": 32,
                "hidden": (8,),
            },
            marks=pytest.mark.slow,
        ),
    ],
)
def test_algorithms_train_on_it(tmp_path: Path, algorithm: str, settings: dict[str, Any]) -> None:
    result = train(
        algorithm,
        env="dm_control:cartpole-swingup",
        env_args={"max_episode_steps": 20},
        seeds=1,
        env_steps=256,
        settings=settings,
        home=tmp_path,
    )
    assert all(0 <= x <= 20 for x in np.ravel(result.returns))
