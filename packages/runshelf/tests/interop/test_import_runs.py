"""Imported training runs: one run for each, told apart, grouped, and with no claims."""

import json
from pathlib import Path

import numpy as np
import pytest
from packages.runshelf.tests.interop.test_import_logs import (
    logdir,
    progress,
    text_event,
)

from runshelf.cli.main import main
from runshelf.index.run_index import open_index
from runshelf.interop.event_files import scalar_event, version_event
from runshelf.interop.import_logs import import_path
from runshelf.interop.protobuf import field
from runshelf.interop.tfrecord import frame
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics
from runshelf.store.run import RunInfo, open_run
from runshelf.store.state import state_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def imported(home, path, **info):
    done = import_path(home, path, info=RunInfo(**info), argv=["runshelf"], say=lambda line: None)
    return [open_run(one.folder) for one in done.runs]


class Training:
    """What SB3 logs about one training run of CartPole: monitors, `progress.csv`, event files."""

    def __init__(self, seed: int, iterations: int = 20, envs: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.episodes: list[list[tuple[float, int, float]]] = [[] for _ in range(envs)]
        self.rows: list[dict[str, float]] = []
        ended: list[float] = []
        for n in range(1, iterations + 1):
            for env in range(envs):
                for _ in range(8):
                    length = int(rng.integers(9, 30 + 10 * n))
                    time = (n - 1) * 2.0 + rng.uniform(0.1, 1.9)
                    self.episodes[env].append((float(length), length, time))
            ended = [r for _, r in sorted((t, r) for of in self.episodes for r, _, t in of)]
            self.rows.append(
                {
                    "time/total_timesteps": 2048 * n,
                    "time/iterations": n,
                    "rollout/ep_rew_mean": float(np.mean(ended[-100:])),
                    "time/fps": 900,
                    "train/learning_rate": 3e-4,
                    "train/loss": float(rng.normal()),
                }
            )

    def monitors(self, folder: Path, names=("monitor.csv",)) -> Path:
        """Write one monitor file per environment."""
        folder.mkdir(parents=True, exist_ok=True)
        head = json.dumps({"t_start": 1.6e9, "env_id": "CartPole-v1"})
        for name, episodes in zip(names, self.episodes, strict=True):
            rows = "".join(
                f"{r},{length},{t:.6f}\n" for r, length, t in sorted(episodes, key=lambda e: e[2])
            )
            (folder / name).write_text(f"#{head}\nr,l,t\n{rows}")
        return folder

    def progress(self, folder: Path) -> Path:
        """Write `progress.csv`."""
        return progress(folder, self.rows)

    def events(self, folder: Path) -> Path:
        """Write an event file, without the env steps as a tag."""
        folder.mkdir(parents=True, exist_ok=True)
        data = [version_event(1.6e9)]
        for row in self.rows:
            step = int(row["time/total_timesteps"])
            pairs = [(tag, float(x)) for tag, x in row.items() if tag != "time/total_timesteps"]
            data.append(scalar_event(1.6e9 + step / 1000, step, pairs))
        (folder / "events.out.tfevents.1600000000.host.1.0").write_bytes(b"".join(data))
        return folder


# --- one run per training run -----------------------------------------------------------------


@pytest.mark.medium
@pytest.mark.parametrize("envs", [1, 4])
def test_neighbouring_folders_of_one_training_are_one_run(tmp_path: Path, envs: int) -> None:
    names = ["monitor.csv"] if envs == 1 else [f"{n}.monitor.csv" for n in range(envs)]
    for seed in (1, 2):
        training = Training(seed, envs=envs)
        training.events(tmp_path / "logs" / "tb" / f"PPO_{seed}")
        training.progress(tmp_path / "logs" / "csv" / f"run{seed}")
        training.monitors(tmp_path / "logs" / "monitor" / f"env{3 - seed}", names)
    runs = imported(tmp_path / "home", tmp_path / "logs")
    assert sorted(run.manifest["name"] for run in runs) == ["logs/tb/PPO_1", "logs/tb/PPO_2"]
    for run in runs:
        assert len(run.manifest["imported"]["files"]) == 2 + envs
        assert (run.manifest["algorithm"], run.manifest["env"]) == ("ppo", "CartPole-v1")
        found = [name for record in read_metrics(run.folder).records for name in record]
        assert found.count("train/loss") == 20, "event files and progress.csv have the same values"
        assert found.count("episode_return") == 160 * envs
    # A second import finds them again.
    again = imported(tmp_path / "home", tmp_path / "logs")
    assert {run.ulid for run in again} == {run.ulid for run in runs}


def test_monitors_below_the_folder_of_a_progress_csv_belong_to_it(tmp_path: Path) -> None:
    training = Training(1)
    training.progress(tmp_path / "a")
    training.monitors(tmp_path / "a" / "monitors")
    (run,) = imported(tmp_path / "home", tmp_path / "a")
    assert run.manifest["name"] == "a"
    assert run.manifest["imported"]["files"] == ["monitors/monitor.csv", "progress.csv"]


@pytest.mark.medium
def test_neighbouring_folders_of_different_trainings_are_different_runs(tmp_path: Path) -> None:
    Training(1).progress(tmp_path / "logs" / "a")
    Training(2).monitors(tmp_path / "logs" / "b")
    Training(3).events(tmp_path / "logs" / "c" / "PPO_1")
    assert len(imported(tmp_path / "home", tmp_path / "logs")) == 3


def test_equal_schedules_do_not_join_folders(tmp_path: Path) -> None:
    rows = [
        {"time/total_timesteps": 100 * n, "time/iterations": n, "train/learning_rate": 1 - n / 9}
        for n in range(1, 9)
    ]
    progress(tmp_path / "logs" / "a", rows)
    tags = ("time/iterations", "train/learning_rate")
    values = [(100 * n, tag, float(row[tag])) for n, row in enumerate(rows, 1) for tag in tags]
    logdir(tmp_path / "logs" / "b", *values)
    assert len(imported(tmp_path / "home", tmp_path / "logs")) == 2


def test_distant_folders_are_not_joined(tmp_path: Path) -> None:
    Training(1).progress(tmp_path / "logs" / "a" / "b" / "c")
    Training(1).monitors(tmp_path / "logs" / "d")
    assert len(imported(tmp_path / "home", tmp_path / "logs")) == 2


# --- names ------------------------------------------------------------------------------------


def test_runs_are_named_after_their_folders_and_can_be_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for seed in (0, 1):
        logdir(tmp_path / "logs" / f"seed{seed}" / "PPO_1", (0, "time/fps", float(seed)))
    imported(home, tmp_path / "logs")
    with open_index(home) as index:
        index.refresh()
        assert [row.name for row in index.runs(sort="name").rows] == [
            *("logs/seed0/PPO_1", "logs/seed1/PPO_1"),
        ]
        assert index.runs("source~logs/seed1/").total == 1
        assert index.runs("seed0/PPO").total == index.runs(f'"{tmp_path}/logs/seed1"').total == 1
        assert len({row.group for row in index.groups().rows}) == 2
        assert index.groups("name~seed0").rows[0].group.startswith("logs/seed0/PPO_1 ")
    found = find_run(home, "logs/seed1/PPO_1")
    assert found.manifest["imported"]["from"] == str(tmp_path / "logs" / "seed1" / "PPO_1")


def test_equal_names_of_two_imports_get_longer(tmp_path: Path) -> None:
    names = []
    for n in range(3):
        folder = logdir(tmp_path / f"x{n}" / "PPO_1", (0, "time/fps", float(n)))
        names += [run.manifest["name"] for run in imported(tmp_path / "home", folder)]
    assert names == ["PPO_1", "x1/PPO_1", "x2/PPO_1"]


def test_a_given_name_is_the_first_part_of_several_names(tmp_path: Path) -> None:
    for n in range(2):
        logdir(tmp_path / "logs" / f"PPO_{n}", (0, "time/fps", float(n)))
    runs = imported(tmp_path / "home", tmp_path / "logs", name="old")
    assert [run.manifest["name"] for run in runs] == ["old/PPO_0", "old/PPO_1"]
    (run,) = imported(tmp_path / "home", logdir(tmp_path / "b", (0, "x", 1.0)), name="mine")
    assert run.manifest["name"] == "mine"


# --- what is unknown --------------------------------------------------------------------------


def test_packages_and_machine_are_unknown(tmp_path: Path, capsys) -> None:
    home = tmp_path / "home"
    (run,) = imported(home, logdir(tmp_path / "a", (0, "loss", 1.0)))
    assert (run.manifest["versions"], run.manifest["hardware"]) == ({}, {})
    assert main(["show", run.ulid, "--home", str(home)]) == 0
    shown = capsys.readouterr().out
    for part in ("code", "packages", "hardware"):
        assert f"{part:<12}unknown" in shown
    assert f"{'source':<12}{tmp_path / 'a'}" in shown


TABLE = "|param|value|\n|-|-|\n|total_timesteps|{total}|\n|seed|{seed}|\n|learning_rate|{rate}|"


def trained(folder: Path, last: int, *, total: int, seed: int = 1, rate: float = 0.1) -> Path:
    """Write an event file of CleanRL with iterations of 2048 env steps, up to `last`."""
    ends = [(step, "charts/SPS", 900.0) for step in range(2048, last + 1, 2048)]
    episodes = [(step, "charts/episodic_return", seed + 0.5) for step in range(90, last, 90)]
    logdir(folder, *ends, *episodes)
    (path,) = folder.iterdir()
    table = TABLE.format(total=total, seed=seed, rate=rate)
    path.write_bytes(path.read_bytes() + text_event("hyperparameters/text_summary", table))
    return folder


@pytest.mark.medium
@pytest.mark.parametrize(
    ("last", "total", "state", "note"),
    [
        # CleanRL stops after the last whole iteration.
        (49152, 50_000, "finished", "49,152 of 50,000"),
        (47104, 50_000, "stopped", "47,104 of 50,000"),
        (2048, 50_000, "stopped", "2,048 of 50,000"),
    ],
)
def test_a_log_that_ends_before_its_total_is_stopped(
    tmp_path: Path, last: int, total: int, state: str, note: str
) -> None:
    (run,) = imported(tmp_path / "home", trained(tmp_path / "a", last, total=total))
    found = state_of(run)
    assert found.name == state
    assert note in found.note


def test_the_end_of_a_log_without_a_total_is_unknown(tmp_path: Path) -> None:
    for n, folder in enumerate(
        [Training(1).progress(tmp_path / "a"), Training(2).monitors(tmp_path / "b")]
    ):
        (run,) = imported(tmp_path / f"home{n}", folder)
        found = state_of(run)
        assert (found.name, found.note) == (
            "imported",
            "its log does not tell whether it had ended",
        )


def test_monitors_with_a_known_total_tell_the_end(tmp_path: Path) -> None:
    training = Training(1)
    training.monitors(tmp_path / "a")
    training.events(tmp_path / "a")
    path = next((tmp_path / "a").glob("events*"))
    path.write_bytes(path.read_bytes() + hparams({"total_timesteps": 100_000.0, "seed": 3.0}))
    (run,) = imported(tmp_path / "home", tmp_path / "a")
    assert state_of(run).name == "stopped"
    assert (run.config["total_timesteps"], run.seeds) == (100_000, [3])


def hparams(values: dict[str, float]) -> bytes:
    """Return a record of the plugin `hparams`, whose numbers are all floats."""
    pairs = [
        field(1, field(1, name) + field(2, field_of_double(value)))
        for name, value in values.items()
    ]
    content = field(3, b"".join(pairs))
    about = field(9, field(1, field(1, "hparams") + field(2, content)))
    return frame(field(1, 1.6e9) + field(5, field(1, field(1, "_hparams_") + about)))


def field_of_double(value: float) -> bytes:
    return field(2, value)


# --- groups -----------------------------------------------------------------------------------


def groups_of(home: Path, *columns: str):
    with open_index(home) as index:
        index.refresh()
        return {row.group: row for row in index.groups(columns=columns).rows}


@pytest.mark.medium
def test_trainings_group_by_the_settings_in_their_files(tmp_path: Path) -> None:
    for seed, rate in ((1, 0.1), (2, 0.1), (3, 0.2)):
        name = f"CartPole-v1__ppo__{seed}__160000000{seed}"
        trained(tmp_path / "logs" / name, 4096, total=4096, seed=seed, rate=rate)
    trained(tmp_path / "logs" / "CartPole-v1__ppo__2__1600000009", 2048, total=4096, seed=2)
    imported(tmp_path / "home", tmp_path / "logs")
    groups = groups_of(tmp_path / "home", "charts/episodic_return")
    found = sorted(groups.values(), key=lambda row: row.n)
    assert [(row.n, row.seeds, row.runs) for row in found] == [(1, [3], 1), (2, [1, 2], 3)]
    assert found[1].values["charts/episodic_return"] == 2.0


@pytest.mark.medium
def test_trainings_without_settings_are_groups_of_their_own(tmp_path: Path) -> None:
    for n in (1, 2):
        Training(n).events(tmp_path / "logs" / f"PPO_{n}")
        name = f"CartPole-v1__ppo__{n}__1600000000"
        logdir(tmp_path / "logs" / name, (0, "charts/SPS", float(n)))
    imported(tmp_path / "home", tmp_path / "logs")
    assert [row.n for row in groups_of(tmp_path / "home").values()] == [1, 1, 1, 1]


@pytest.mark.medium
def test_a_given_group_pools(tmp_path: Path) -> None:
    for n in (1, 2):
        Training(n).events(tmp_path / "logs" / f"PPO_{n}")
    imported(tmp_path / "home", tmp_path / "logs", group="ours")
    assert [(name, row.n) for name, row in groups_of(tmp_path / "home").items()] == [("ours", 2)]


@pytest.mark.medium
def test_a_folder_that_is_imported_from_above_is_the_same_sample(tmp_path: Path) -> None:
    training = Training(1)
    training.events(tmp_path / "logs" / "tb" / "PPO_1")
    imported(tmp_path / "home", tmp_path / "logs" / "tb" / "PPO_1")
    training.monitors(tmp_path / "logs" / "monitor")
    imported(tmp_path / "home", tmp_path / "logs")
    (row,) = groups_of(tmp_path / "home").values()
    assert (row.runs, row.n) == (2, 1)


def test_a_log_that_grew_is_the_same_sample(tmp_path: Path) -> None:
    for iterations in (10, 20):
        Training(1, iterations).events(tmp_path / "PPO_1")
        imported(tmp_path / "home", tmp_path / "PPO_1")
    (row,) = groups_of(tmp_path / "home").values()
    assert (row.runs, row.n, row.repeats[0].why) == (2, 1, "source")
