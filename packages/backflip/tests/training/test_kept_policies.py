"""Ten policies of a run are kept, on every driver and for every number of phases."""

from pathlib import Path

import numpy as np
import pytest

from backflip.inspect.watch import checkpoints
from backflip.training.policy import load_saved_policy, policy_file, policy_files
from backflip.training.session import Session
from backflip.training.train import train
from runshelf.store.run import open_run

ROLLOUT = 2 * 16
SETTINGS = {"num_envs": 2, "rollout_length": 16, "epochs": 1, "hidden": (4,)}


def trained(env: str, updates: int, home: Path) -> Path:
    return train("ppo", env, env_steps=updates * ROLLOUT, settings=SETTINGS, home=home).folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "updates", "after"),
    [
        pytest.param("CartPole-v1", 17, [2, 4, 6, 7, 9, 11, 12, 14, 16, 17], id="17 phases"),
        # 18 phases of two updates and one of one.
        pytest.param("CartPole-v1", 37, [4, 8, 12, 16, 20, 24, 26, 30, 34, 37], id="19 phases"),
        pytest.param("gymnasium:CartPole-v1", 23, [3, 5, 7, 10, 12, 14, 17, 19, 21, 23], id="host"),
        pytest.param("gymnasium:CartPole-v1", 4, [1, 2, 3, 4], id="fewer updates than policies"),
    ],
)
def test_a_policy_is_kept_after_each_tenth(
    env: str, updates: int, after: list[int], tmp_path: Path
) -> None:
    folder = trained(env, updates, tmp_path)
    kept = [load_saved_policy(path) for path in policy_files(folder)]
    assert [one.env_steps for one in kept] == [number * ROLLOUT for number in after]
    last = load_saved_policy(folder / "policy.safetensors")
    np.testing.assert_array_equal(weights(kept[-1].state), weights(last.state))
    assert (weights(kept[0].state) != weights(last.state)).all()
    assert [one.env_steps for one in checkpoints(open_run(folder), None)] == [
        number * ROLLOUT for number in after
    ]


def weights(state: object) -> np.ndarray:
    return np.asarray(state.params["policy"]["w"])  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
def test_large_policies_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{Session.__module__}.LARGEST_KEPT_POLICY", 100)
    folder = trained("CartPole-v1", 10, tmp_path)
    assert not policy_files(folder)
    assert (folder / "policy.safetensors").exists()
    assert policy_file(3) == "policy-0003.safetensors"
