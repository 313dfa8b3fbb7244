"""Tests of replays in checkpoints, and of interrupted runs with a replay."""

import numpy as np
import pytest

from backflip.algorithms.dqn import dqn
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.core.checkpoint import load_arrays
from backflip.core.trees import flatten, unflatten
from backflip.drivers.native import NativeDriver
from backflip.envs.registry import make_native
from backflip.training.replay_rows import trimmed, whole
from backflip.training.train import resume_train, train
from runshelf.store.finding import find_run

SETTINGS = {
    "env_steps": 1_024,
    "num_envs": 4,
    "rollout_length": 16,
    "learning_starts": 128,
    "batch_size": 16,
    "buffer_size": 4_096,
    "epsilon_steps": 500,
    "hidden": (8,),
}


def driver() -> NativeDriver:
    env = make_native("CartPole-v1")
    assert env is not None
    return NativeDriver(env, dqn(DQNConfig(**SETTINGS), env.spec))


@pytest.mark.slow
def test_only_filled_rows_are_saved_and_all_are_restored() -> None:
    made = driver()
    learners, _ = made.phase(2)(made.fill_replay(made.start([0, 1])), None)
    full = flatten({"learners": learners})
    kept = trimmed(full)
    rows = (128 + 2 * 64) // 4
    assert kept["learners.replay.obs"].shape == (2, rows, 4, 4)
    assert full["learners.replay.obs"].shape == (2, 1_024, 4, 4)
    like = {"learners": made.start([0, 1])}
    again = unflatten(like, whole(kept, flatten(like)))
    for name, array in flatten(again).items():
        np.testing.assert_array_equal(array, full[name], err_msg=name)


def test_checkpoints_without_a_replay_are_unchanged() -> None:
    arrays = {"learners.key": np.zeros(3)}
    assert trimmed(arrays) == arrays
    assert whole(arrays, arrays) == arrays


@pytest.mark.slow
@pytest.mark.parametrize("env", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_a_run_interrupted_after_any_phase_has_the_same_bits(env, tmp_path) -> None:
    """After Ctrl-C in the report of a phase, the replay is restored bit for bit."""
    host = env.startswith("gymnasium:")  # its phases last at least three episodes
    asked = {"settings": SETTINGS, "env_args": {"max_episode_steps": 8} if host else {}}
    through = train("dqn", env, seeds=2, home=tmp_path, **asked)
    seen = []

    def stop(progress) -> None:
        seen.append(progress)
        if progress.phase == 2:
            raise RuntimeError("the power fails")

    with pytest.raises(RuntimeError):
        train("dqn", env, seeds=2, home=tmp_path, report=stop, **asked)
    assert seen[-1].phases > 3
    cut = max((tmp_path / "runs").iterdir(), key=lambda folder: folder.name)
    resumed = resume_train(find_run(tmp_path, cut.name))
    assert list(resumed.returns) == list(through.returns)
    policies = [load_arrays(r.folder / "policy.safetensors").arrays for r in (resumed, through)]
    for name, array in policies[0].items():
        np.testing.assert_array_equal(array, policies[1][name], err_msg=name)
