"""Runs and their policies are opened from Python by every name that the command line takes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import backflip
from backflip.core.spaces import Discrete
from backflip.envs.registry import make_host, make_native
from backflip.training.result import Result
from runshelf.errors import UsageError
from runshelf.store.run import create_run

SMALL = {"hidden": (8,), "num_envs": 2}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def trained(home: Path) -> Result:
    return backflip.train(
        "ppo", "CartPole-v1", seeds=2, first_seed=3, env_steps=512, settings=SMALL, home=home
    )


@pytest.mark.slow
def test_a_run_is_found_by_all_its_names(
    home: Path, trained: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    obs = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    expected = trained.policy(4).act(obs)
    names = [trained.run, trained.run[:24].lower(), str(trained.folder), trained.folder]
    for name in names:
        assert backflip.load_run(name, home=home).folder == trained.folder
        np.testing.assert_array_equal(backflip.load_policy(name, 4, home=home).act(obs), expected)
    monkeypatch.chdir(home)
    assert backflip.load_run("latest").run == trained.run
    with pytest.raises(UsageError, match="no run"):
        backflip.load_run("nothing")
    with pytest.raises(UsageError, match="a run must be its id, name or folder, got None"):
        backflip.load_run(None)
    with pytest.raises(UsageError, match="has no seed 9; it has 3, 4"):
        backflip.load_policy("latest", 9)


@pytest.mark.medium
def test_a_loaded_run_has_its_settings_and_numbers(home: Path, trained: Result) -> None:
    run = backflip.load_run(trained.run, home=home)
    assert (run.command, run.env, run.algorithm, run.seeds, run.state) == (
        "train",
        "CartPole-v1",
        "ppo",
        (3, 4),
        "finished",
    )
    assert run.settings["hidden"] == [8]
    assert run.settings["env_steps"] == 512
    np.testing.assert_allclose(run.returns(), trained.returns)
    of_seed = run.metrics["entropy"][3]
    assert of_seed.x[-1] == 512
    assert 0 < of_seed.y[-1] <= np.log(2)
    with pytest.raises(UsageError, match="has no `labels"):
        run.labels()
    assert run.manifest["versions"]


@pytest.mark.slow
def test_a_taught_run_has_labels_and_a_policy(tmp_path: Path) -> None:
    settings = {**SMALL, "clip_length": 10}
    result = backflip.teach(
        "CartPole-v1", labels=4, env_steps=512, settings=settings, home=tmp_path
    )
    run = backflip.load_run("latest", home=tmp_path)
    assert run.settings["clip_length"] == 10
    labels = run.labels()
    assert len(labels) == 4
    assert labels[0].left["obs"].shape == (10, 4)
    assert run.policy().act(np.zeros(4)) == result.policy().act(np.zeros(4))


OFF_POLICY = {"hidden": (8,), "learning_starts": 64, "batch_size": 16}
ALGORITHMS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "vpg": ("gymnasium:Pendulum-v1", {**SMALL, "rollout_length": 32}, True),
    "a2c": ("gymnasium:CartPole-v1", SMALL, True),
    "dqn": ("CartPole-v1", OFF_POLICY, False),
    "ddpg": ("Pendulum-v1", OFF_POLICY, False),
    "td3": ("gymnasium:Pendulum-v1", OFF_POLICY, False),
    "sac": ("Pendulum-v1", OFF_POLICY, True),
    "cem": ("CartPole-v1", {"hidden": (), "num_envs": 4, "rollout_length": 64}, False),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=() if name == "dqn" else pytest.mark.slow) for name in ALGORITHMS],
)
def test_policies_of_every_algorithm_act_in_both_drivers(algorithm: str, tmp_path: Path) -> None:
    env_id, settings, samples = ALGORITHMS[algorithm]
    short = {"max_episode_steps": 20}  # so that the evaluation is
    result = backflip.train(
        algorithm, env_id, env_args=short, env_steps=512, settings=settings, home=tmp_path
    )
    policy = backflip.load_policy(result.run, home=tmp_path)
    env = make_native(env_id) or make_host(env_id)
    size = env.spec.observation.shape[0]
    obs = np.random.default_rng(0).normal(size=(50, size)).astype(np.float32)
    actions = policy.act(obs)
    np.testing.assert_array_equal(actions, policy.act(obs))
    discrete = isinstance(env.spec.action, Discrete)
    assert actions.shape == ((50,) if discrete else (50, *env.spec.action.shape))
    if not samples:
        with pytest.raises(UsageError, match="deterministic policy, which has no distribution"):
            policy.act(obs, sample=True)
        return
    drawn = [policy.act(obs, sample=True) for _ in range(2)]
    assert drawn[0].shape == actions.shape
    assert (drawn[0] != drawn[1]).any()
    again = backflip.load_policy(result.run, home=tmp_path)
    again.act(obs), again.act(obs)
    np.testing.assert_array_equal(again.act(obs, sample=True), drawn[0])


def test_a_run_without_a_policy_is_refused(tmp_path: Path) -> None:
    with create_run(tmp_path, command="run", config={}, argv=["sh"]):
        pass
    run = backflip.load_run("latest", home=tmp_path)
    assert (run.env, run.algorithm, run.settings, run.metrics) == (None, None, {}, {})
    with pytest.raises(UsageError, match="of kind `run` has no policy"):
        backflip.load_policy("latest", home=tmp_path)
    with pytest.raises(UsageError, match="of kind `run` has no policy"):
        run.policy()


@pytest.mark.medium
def test_opening_a_run_imports_no_jax(tmp_path: Path) -> None:
    with create_run(tmp_path, command="run", config={}, argv=["sh"]):
        pass
    program = (
        "import sys, backflip\n"
        f"run = backflip.load_run('latest', home={str(tmp_path)!r})\n"
        "assert run.metrics == {} and not {'jax', 'gymnasium'} & set(sys.modules)\n"
        "assert set(backflip.__all__) >= {'load_policy', 'load_run'}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
