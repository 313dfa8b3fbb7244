"""Tests of runs that carry another run on: `train --more` and `teach --more`."""

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backflip.cli.main import main
from backflip.cli.more import _naming
from backflip.core.checkpoint import CHECKPOINT, load_arrays, save_arrays
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import resume_teach, teach, teach_more
from backflip.training import build
from backflip.training.progress import Progress
from backflip.training.result import Result
from backflip.training.session import Session
from backflip.training.train import resume_train, train, train_more
from runshelf.errors import DamagedFile, Interrupted, UsageError
from runshelf.store.finding import find_run, list_runs
from runshelf.store.metrics import read_metrics
from runshelf.store.run import Run, open_run

PPO = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2, "hidden": (8,)}
DQN = {
    "num_envs": 2,
    "rollout_length": 8,
    "updates_per_step": 0.125,
    "batch_size": 8,
    "buffer_size": 128,
    "learning_starts": 32,
    "prioritized": True,
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
SHORT = {"max_episode_steps": 8}  # so that a few phases of host environments fit
CASES = [
    pytest.param("ppo", "CartPole-v1", PPO, {}, marks=pytest.mark.slow),
    pytest.param("dqn", "CartPole-v1", DQN, {}, marks=pytest.mark.slow),
    ("dqn", "gymnasium:CartPole-v1", DQN, SHORT),
]


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a run's checkpoint."""
    return load_arrays(folder / CHECKPOINT).arrays


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Return whether two checkpoints have the same bits."""
    return one.keys() == other.keys() and all(
        np.array_equal(array, other[name], equal_nan=array.dtype.kind == "f")
        for name, array in one.items()
    )


def newest(home: Path) -> Run:
    """Return the newest run."""
    return find_run(home, "latest")


def axis_of(folder: Path, seed: int = 0) -> list[float]:
    """Return the env steps of a seed's metrics."""
    records = read_metrics(folder, "train").records
    return [record["env_steps"] for record in records if record["seed"] == seed]


class StopAfter:
    """A progress callback that presses Ctrl-C after a phase."""

    def __init__(self, phase: int) -> None:
        self.phase = phase

    def __call__(self, progress: Progress) -> None:
        """Press Ctrl-C after the phase."""
        if progress.phase == self.phase and not progress.doing and not progress.share:
            raise KeyboardInterrupt


@contextmanager
def stopped_before_the_first_phase() -> Generator[None]:
    """Press Ctrl-C before a run saves its first phase."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "log_phase", stop)
        with pytest.raises(Interrupted):
            yield


# Train.


@pytest.mark.medium
@pytest.mark.parametrize(("algorithm", "env", "settings", "env_args"), CASES)
def test_a_child_goes_on_from_the_whole_state_of_its_parent(
    tmp_path: Path, algorithm: str, env: str, settings: dict[str, Any], env_args: dict[str, Any]
) -> None:
    parent = train(
        algorithm, env, seeds=2, first_seed=3, env_steps=512, settings=settings,
        env_args=env_args, home=tmp_path,
    )  # fmt: skip
    before = arrays(parent.folder)
    with stopped_before_the_first_phase():
        train_more(parent.run, env_steps=256, home=tmp_path)
    assert same(arrays(newest(tmp_path).folder), before)
    child = resume_train(newest(tmp_path))
    again = train_more(parent.folder, env_steps=256, home=tmp_path)
    assert same(arrays(child.folder), arrays(again.folder))
    assert not same(arrays(child.folder), before)
    assert same(arrays(parent.folder), before), "the parent is unchanged"
    assert (child.seeds, child.parent) == ([3, 4], parent.run)
    assert child.own_env_steps == 256
    assert child.env_steps == parent.env_steps + 256
    assert open_run(child.folder).manifest["parent"] == parent.run
    counted = axis_of(child.folder, 3)
    assert counted[0] > parent.env_steps
    assert counted[-1] == child.env_steps
    assert counted == sorted(set(counted))


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "env", "settings", "env_args"), CASES)
def test_an_interrupted_child_ends_with_the_same_bits_without_its_parent(
    tmp_path: Path, algorithm: str, env: str, settings: dict[str, Any], env_args: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"settings": settings, "env_args": env_args, "home": tmp_path}
    parent = train(algorithm, env, env_steps=512, **options)
    through = train_more(parent.run, env_steps=512, home=tmp_path)
    with pytest.raises(Interrupted):
        train_more(parent.run, env_steps=512, home=tmp_path, report=StopAfter(2))
    shutil.rmtree(parent.folder)
    resumed = resume_train(newest(tmp_path))
    assert resumed.env_steps == through.env_steps
    assert same(arrays(resumed.folder), arrays(through.folder))


@pytest.mark.slow
@pytest.mark.parametrize("env", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_a_replay_that_grows_with_the_run_has_the_bits_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str
) -> None:
    settings = {**DQN, "prioritized": False, "buffer_size": 4_096}
    host = env.startswith("gymnasium:")

    def child(home: Path) -> dict[str, np.ndarray]:
        options: dict[str, Any] = {"settings": settings, "env_args": SHORT if host else {}}
        parent = train("dqn", env, env_steps=256, home=home, **options)
        return arrays(train_more(parent.run, env_steps=256, home=home).folder)

    grown = child(tmp_path / "grown")
    monkeypatch.setattr(build, "_with_replay_of_the_run", lambda learner, updates: learner)
    assert same(grown, child(tmp_path / "large"))


@pytest.mark.slow
def test_a_schedule_goes_on_as_that_of_one_run_with_both_budgets(tmp_path: Path) -> None:
    parent = train("ppo", "CartPole-v1", env_steps=256, settings=PPO, home=tmp_path)
    child = train_more(parent.run, env_steps=256, home=tmp_path)
    grandchild = train_more(child.run, env_steps=512, home=tmp_path)
    rates = [
        [record["learning_rate"] for record in read_metrics(run.folder, "train").records]
        for run in (parent, child, grandchild)
    ]
    of_one = 1e-3 * (1 - np.arange(16) / 16)  # from the default to 0 in 16 updates
    np.testing.assert_allclose(rates[0], 1e-3 * (1 - np.arange(4) / 4), rtol=1e-4)
    np.testing.assert_allclose(rates[1], 1e-3 * (1 - np.arange(4, 8) / 8), rtol=1e-4)
    np.testing.assert_allclose(rates[2], of_one[8:], rtol=1e-4)
    assert (grandchild.env_steps, grandchild.own_env_steps) == (1_024, 512)
    assert grandchild.parent == child.run


@pytest.mark.slow
def test_a_stopped_run_is_carried_on_from_its_last_phase(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train("ppo", "CartPole-v1", env_steps=640, settings=PPO, home=tmp_path, report=StopAfter(4))
    stopped = newest(tmp_path)
    child = train_more(stopped, env_steps=128)
    assert (child.env_steps, child.own_env_steps) == (4 * 64 + 128, 128)
    assert child.folder.parent == stopped.folder.parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env", "env_steps"),
    [("ppo", "CartPole-v1", 40_000), ("dqn", "CartPole-v1", 30_000)],
)
def test_a_child_has_not_forgotten_what_its_parent_learned(
    tmp_path: Path, algorithm: str, env: str, env_steps: int
) -> None:
    parent = train(algorithm, env, seeds=2, env_steps=env_steps, home=tmp_path)
    child = train_more(parent.run, env_steps=env_steps // 4, home=tmp_path)

    def returns(run: Result) -> list[float]:
        records = read_metrics(run.folder, "train").records
        found = [record["episode_return_mean"] for record in records]
        return [value for value in found if isinstance(value, float) and np.isfinite(value)]

    random_policy, last = np.mean(returns(parent)[:4]), np.mean(returns(parent)[-8:])
    assert last > 3 * random_policy
    assert np.mean(returns(child)[:8]) > 0.6 * last


# Teach.


def taught(home: Path, algorithm: str = "ppo", **changes: Any) -> Result:
    """Teach a little."""
    settings = (PPO if algorithm == "ppo" else DQN) | TEACHING
    options: dict[str, Any] = {"labels": 8, "seeds": 2, "env_steps": 256, "teacher": "oracle"}
    options |= changes
    return teach("CartPole-v1", algorithm=algorithm, settings=settings, home=home, **options)


@pytest.fixture(scope="module")
def of_one_seed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A finished run of `teach`, which no test changes."""
    return taught(tmp_path_factory.mktemp("taught"), seeds=1)


def home_of(result: Result) -> Path:
    """Return the home of a run."""
    return result.folder.parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_teaching_goes_on_with_all_labels_and_the_reward_model(
    tmp_path: Path, algorithm: str
) -> None:
    parent = taught(tmp_path, algorithm)
    child = teach_more(parent.run, labels=6, env_steps=384, home=tmp_path)
    again = teach_more(parent.run, labels=6, env_steps=384, home=tmp_path)
    assert same(arrays(child.folder), arrays(again.folder))
    assert (child.labels, child.own_labels) == (14, 6)
    assert (child.env_steps, child.own_env_steps) == (parent.env_steps + 384, 384)
    assert (child.teacher, child.parent) == ("oracle", parent.run)
    with (
        LabelStore.open(parent.folder / "labels.sqlite") as earlier,
        LabelStore.open(child.folder / "labels.sqlite") as labels,
    ):
        for seed in (0, 1):
            old, every = earlier.labelled(seed), labels.labelled(seed)
            assert [(p.query, p.answer) for p in every[: len(old)]] == [
                (p.query, p.answer) for p in old
            ]
            for one, other in zip(old, every, strict=False):
                np.testing.assert_array_equal(one.left["obs"], other.left["obs"])
            assert all(pair.env_steps > parent.env_steps for pair in every[len(old) :])
            assert labels.counts(seed).labels == 14


@pytest.mark.slow
def test_without_more_labels_there_are_no_queries_and_the_reward_stays(tmp_path: Path) -> None:
    parent = taught(tmp_path)
    notes: list[str] = []
    child = teach_more(
        parent.run,
        env_steps=128,
        home=tmp_path,
        report=lambda progress: notes.append(progress.note or ""),
    )
    rewards = [
        {name: x for name, x in arrays(run.folder).items() if name.startswith("reward.")}
        for run in (parent, child)
    ]
    assert same(*rewards)
    assert (child.labels, child.own_labels) == (8, 0)
    assert any("no queries: 8 earlier labels of each seed (oracle) teach" in x for x in notes)


@pytest.mark.slow
def test_an_interrupted_child_of_teach_ends_with_the_same_bits(tmp_path: Path) -> None:
    parent = taught(tmp_path)
    through = teach_more(parent.run, labels=6, env_steps=384, home=tmp_path)
    with stopped_before_the_first_phase():
        teach_more(parent.run, labels=6, env_steps=384, home=tmp_path)
    with pytest.raises(Interrupted):
        teach_more(parent.run, labels=6, env_steps=384, home=tmp_path, report=StopAfter(3))
    shutil.rmtree(parent.folder)
    for cut in list_runs(tmp_path)[-2:]:
        resumed = resume_teach(find_run(tmp_path, cut))
        assert (resumed.labels, resumed.own_labels) == (14, 6)
        assert same(arrays(resumed.folder), arrays(through.folder))


@pytest.mark.slow
def test_open_queries_of_a_stopped_parent_count_towards_the_labels_of_its_child(
    tmp_path: Path,
) -> None:
    with pytest.raises(Interrupted):
        taught(tmp_path, report=StopAfter(1))
    stopped = newest(tmp_path)
    with LabelStore.open(stopped.folder / "labels.sqlite") as store:
        counts = store.counts()
    assert counts.pending
    child = teach_more(stopped, labels=6, env_steps=256)
    assert child.labels == counts.labels // 2 + 6
    silent = teach_more(stopped, env_steps=128)
    with LabelStore.open(silent.folder / "labels.sqlite") as store:
        assert store.counts() == counts, "without --labels nobody answers them"


@pytest.mark.slow
def test_without_env_steps_each_label_gets_as_many_as_so_far(of_one_seed: Result) -> None:
    child = teach_more(of_one_seed.run, labels=4, home=home_of(of_one_seed))
    assert child.own_env_steps == of_one_seed.env_steps // 2


# Refusals.


def refused(tmp_path: Path, run: Run | Path | str, message: str, **more: Any) -> None:
    """Check that a parent is refused in one line and no run is created."""
    before = list_runs(tmp_path)
    carry_on = teach_more if more.pop("teach", False) else train_more
    budget: dict[str, Any] = {"env_steps": 64} | more
    with pytest.raises((UsageError, DamagedFile), match=message) as error:
        carry_on(run, home=tmp_path, **budget)
    assert "\n" not in str(error.value)
    assert list_runs(tmp_path) == before


@pytest.mark.slow
def test_runs_that_cannot_be_carried_on_are_refused(tmp_path: Path) -> None:
    done = train("ppo", "CartPole-v1", env_steps=128, settings=PPO, home=tmp_path)
    refused(tmp_path, done.run, "is a run of `train`; try backflip train --more", teach=True)
    refused(tmp_path, done.run, "`env_steps` must lie between 1 and", env_steps=0)
    refused(tmp_path, done.run, "`env_steps` must lie between 1 and", env_steps=2_000_000_000)
    refused(tmp_path, "01NOSUCHRUN", "there is no run `01NOSUCHRUN`")
    with stopped_before_the_first_phase():
        train("ppo", "CartPole-v1", env_steps=128, settings=PPO, home=tmp_path)
    refused(tmp_path, newest(tmp_path), "ended before its first phase was over")

    whole = (done.folder / CHECKPOINT).read_bytes()
    for path in done.folder.glob("checkpoint*"):
        path.write_bytes(whole[: len(whole) // 2])
    refused(tmp_path, done.run, "no usable checkpoint")

    (done.folder / CHECKPOINT).write_bytes(whole)
    loaded = load_arrays(done.folder / CHECKPOINT)
    some = dict(list(loaded.arrays.items())[1:])
    save_arrays(done.folder / CHECKPOINT, some, loaded.metadata)
    refused(tmp_path, done.run, r"was written by backflip .*cannot be carried on by this version")

    (done.folder / CHECKPOINT).write_bytes(whole)
    manifest = json.loads((done.folder / "run.json").read_text())
    manifest["config"]["settings"]["epochs"] = 2
    (done.folder / "run.json").write_text(json.dumps(manifest))
    refused(tmp_path, done.run, "`config.settings.epochs` was 1, is 2")


@pytest.mark.slow
def test_a_running_run_is_not_carried_on(tmp_path: Path) -> None:
    asked: list[str] = []

    def carry_on(progress: Progress) -> None:
        if progress.phase == 1 and not asked:
            asked.append("")
            refused(tmp_path, newest(tmp_path), "is running: wait for its end")

    train("ppo", "CartPole-v1", env_steps=128, settings=PPO, home=tmp_path, report=carry_on)
    assert asked


@pytest.mark.slow
def test_labels_need_a_teacher_and_a_budget(of_one_seed: Result) -> None:
    parent, home = of_one_seed, home_of(of_one_seed)
    refused(home, parent.run, "how much more", teach=True, env_steps=None)
    refused(home, parent.run, "`labels` must be at least 1", teach=True, labels=0)
    refused(home, parent.run, "labels need 2 updates or more", teach=True, labels=2)
    borrowed = taught(home, seeds=1, labels=None, reward_from=parent.run)
    assert borrowed.teacher is not None
    assert borrowed.teacher.startswith("no queries: the reward model of")
    refused(home, borrowed.run, "has no teacher who could answer", teach=True, labels=2)
    assert teach_more(borrowed.run, env_steps=64, home=home).own_labels == 0
    refused(
        home, parent.run, "not for the teacher `oracle`", teach=True, labels=2, env_steps=512,
        goal="stand",
    )  # fmt: skip


# The command line, and runs that have finished.


def test_only_the_value_of_more_is_recorded_as_an_id() -> None:
    words = ["backflip", "train", "--more", "a", "--name", "a", "--group=a", "--tag", "--more=a"]
    named = ["backflip", "train", "--more", "01X", "--name", "a", "--group=a", "--tag"]
    assert list(_naming("01X", words)) == [*named, "--more=01X"]


@pytest.mark.slow
def test_the_command_line_carries_a_run_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = train("ppo", "CartPole-v1", env_steps=128, settings=PPO, home=tmp_path)
    home = ["--home", str(tmp_path)]
    assert main(["train", "--more", "latest", "--env-steps", "64", "--json", *home]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["parent"], said["own_env_steps"], said["env_steps"]) == (parent.run, 64, 192)
    assert said["more"] == f"backflip train --more {tmp_path / 'runs' / said['run']} --env-steps 64"
    child = find_run(tmp_path, said["run"])
    assert child.manifest["argv"][:4] == ["backflip", "train", "--more", parent.run]
    assert main(["train", "--more", parent.run, "--env-steps", "64", *home]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"carries on {parent.run[-8:]}: 64 env steps of each seed are its own" in printed
    assert "to train it more: backflip train --more" in printed
    for options, message in (
        ("train --more latest", "how much more? Add --env-steps 50000"),
        ("train ppo --more latest --env-steps 9", "leave out ALGORITHM"),
        ("train --more latest --env-steps 9 --seeds 1 --set epochs=1", "leave out --seeds and --s"),
        ("teach dot --more latest --labels 9", "leave out ENV"),
        ("teach --more latest --labels 9 --teacher oracle", "leave out --teacher"),
        ("teach --more latest --labels 9", "is a run of `train`; try backflip train --more"),
        ("train ppo", "missing: ENV; try backflip train --help"),
        ("teach", "missing: ENV; try backflip teach --help"),
    ):
        assert main([*options.split(), *home]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "teach"])
def test_resume_of_a_finished_run_says_so_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, of_one_seed: Result
) -> None:
    if command == "teach":
        done = of_one_seed
    else:
        done = train("ppo", "CartPole-v1", env_steps=128, settings=PPO, home=tmp_path)
    home = home_of(done)
    before = {path: path.read_bytes() for path in done.folder.iterdir() if path.is_file()}
    run = find_run(home, done.run)
    resumed = resume_teach(run) if command == "teach" else resume_train(run)
    assert resumed == done
    assert main(["resume", done.run, "--json", "--home", str(home)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["returns"] == list(done.returns)
    assert "finished at 20" in said.err
    assert f"so there is nothing to resume; to {command} it more: backflip {command} --more" in (
        said.err
    )
    assert {path: path.read_bytes() for path in before} == before
