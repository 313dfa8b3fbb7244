"""A finished run is never evaluated again, whatever resumes it."""

import time
from pathlib import Path
from typing import Any

import pytest

from backflip import teaching_api
from backflip.teaching_api import resume_teach, teach, teach_more
from backflip.training import train as training
from backflip.training.progress import Progress
from backflip.training.result import Result
from backflip.training.train import resume_train, train, train_more
from runshelf.errors import Interrupted, UsageError
from runshelf.index.entry import read_status
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics
from runshelf.store.run import RunWriter

PPO = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2, "hidden": (8,)}
DQN = {
    "num_envs": 2,
    "rollout_length": 8,
    "updates_per_step": 0.125,
    "batch_size": 8,
    "buffer_size": 128,
    "learning_starts": 32,
    "hidden": (8,),
}
TEACHING = {
    "phases": 4,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}
SHORT = {"max_episode_steps": 8}


def trained(home: Path, algorithm: str, env: str) -> Result:
    settings = {"ppo": PPO, "dqn": DQN}[algorithm]
    env_args = SHORT if env.startswith("gymnasium") else {}
    return train(algorithm, env, env_steps=256, settings=settings, env_args=env_args, home=home)


def taught(home: Path) -> Result:
    settings = PPO | TEACHING
    return teach("CartPole-v1", env_steps=256, labels=4, settings=settings, home=home)


RUNS: dict[str, Any] = {
    "ppo compiled": lambda home: trained(home, "ppo", "CartPole-v1"),
    "ppo on the host": lambda home: trained(home, "ppo", "gymnasium:CartPole-v1"),
    "dqn compiled": lambda home: trained(home, "dqn", "CartPole-v1"),
    "dqn on the host": lambda home: trained(home, "dqn", "gymnasium:CartPole-v1"),
    "child of train": lambda home: train_more(
        trained(home, "ppo", "CartPole-v1").folder, env_steps=128
    ),
    "teach": taught,
    "child of teach": lambda home: teach_more(taught(home).folder, labels=2, env_steps=128),
}


def content_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


QUICK = ("ppo compiled",)  # test_teach.py resumes a finished run of `teach`


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.slow]) for kind in RUNS],
)
def test_resuming_a_finished_run_changes_nothing(tmp_path, kind, monkeypatch, tried):
    done = RUNS[kind](tmp_path)
    run = find_run(tmp_path, done.run)
    resume = resume_teach if run.manifest["command"] == "teach" else resume_train
    before = content_of(done.folder)
    for _ in range(2):
        assert resume(run) == done
    # Another process finishes it between the first look and the lock.
    for module in (teaching_api, training):
        monkeypatch.setattr(module, "result_of", lambda _: None)
    with pytest.raises(UsageError, match="has finished: there is nothing left to resume"):
        resume(run)
    after = content_of(done.folder)
    assert {path for path in after if path not in before} <= {
        done.folder / f"labels.sqlite-{end}" for end in ("wal", "shm")
    }
    assert {path: after[path] for path in before} == before
    assert len(read_metrics(done.folder, "evaluation").records) == 1
    tried(3, "times a finished run was resumed")


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize("kind", ["ppo compiled", pytest.param("teach", marks=pytest.mark.slow)])
def test_a_kill_between_evaluation_and_end_doubles_no_evaluation(
    tmp_path, kind, monkeypatch, tried
):
    record = RunWriter.record

    def killed(self, status, **details):
        if status == "finished":
            raise KeyboardInterrupt
        record(self, status, **details)

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "record", killed)
        with pytest.raises(Interrupted):
            RUNS[kind](tmp_path)
    run = find_run(tmp_path, "latest")
    assert len(read_metrics(run.folder, "evaluation").records) == 1
    resume = resume_teach if run.manifest["command"] == "teach" else resume_train
    result = resume(run)
    (record_,) = read_metrics(run.folder, "evaluation").records
    assert record_["evaluation_return"] == result.returns[0]
    assert [event["status"] for event in run.events()][-2:] == ["resumed", "finished"]
    tried(1, "kills between the evaluation and the end of a run")


@pytest.mark.slow
def test_sessions_count_once_in_the_duration_of_a_run(tmp_path: Path) -> None:
    began = time.monotonic()

    def interrupt(progress: Progress) -> None:
        if progress.env_steps:
            time.sleep(1.0)
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train("ppo", "CartPole-v1", env_steps=512, settings=PPO, home=tmp_path, report=interrupt)
    run = find_run(tmp_path, "latest")
    result = resume_train(run)
    elapsed = time.monotonic() - began
    seconds = [event["seconds"] for event in run.events() if "seconds" in event]
    assert len(seconds) == 2
    rounding = 0.01  # recorded seconds are rounded
    assert result.seconds["total"] - seconds[0] <= seconds[1] + rounding
    assert sum(seconds) <= elapsed + rounding
    assert sum(seconds) == pytest.approx(read_status(run).seconds)
