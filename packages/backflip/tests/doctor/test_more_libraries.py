"""Logs of libraries such as rsl_rl, Spinning Up and Sample Factory are read in our names."""

import json
import math

import numpy as np
import pytest
from packages.backflip.tests.doctor.log_writers import cleanrl, rows_of, sb3, write_csv
from packages.runshelf.tests.interop.wandb_writer import wandb_file

from backflip.cli.main import main
from backflip.doctor.diagnosis import diagnose
from backflip.doctor.reading.find import find_logs, with_facts
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.naming import Logged
from backflip.doctor.reading.step_counts import env_steps_of_an_iteration, placed
from backflip.doctor.report import in_words, to_json
from runshelf.errors import UsageError
from runshelf.interop.event_files import scalar_event, version_event
from runshelf.interop.import_logs import import_path
from runshelf.interop.import_tables import import_tables
from runshelf.store.metrics import read_metrics
from runshelf.store.run import RunInfo

POINTS = 60


def only(path, mapping=None):
    (log,) = logs_in(path, mapping or {})
    return log


def names_of(log):
    """Return the ids of what a diagnosis found, and of what it warns of."""
    found = diagnose(log)
    return {one.check.id for one in (*found.findings, *found.warnings)}


def write_events(folder, rows):
    """Write an event file of rows (seconds, step, values), and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = version_event(1.6e9)
    for seconds, step, values in rows:
        data += scalar_event(1.6e9 + seconds, step, list(values.items()))
    (folder / "events.out.tfevents.1.host").write_bytes(data)
    return folder


def of_rows(step, **columns):
    """Return rows a second apart; `step` maps the number of a row, from 0, to its step."""
    return [(at, step(at), row) for at, row in enumerate(rows_of(POINTS, **columns))]


def rsl_rl(folder, each=24 * 4096, *, old=False, **columns):
    """Write what rsl_rl logs, with one number of env steps in each iteration."""
    rng, rows = np.random.default_rng(0), []
    healthy = {
        "Loss/value_function" if old else "Loss/value": lambda share: 2.0 - share,
        "Loss/surrogate": lambda share: -0.01 - 0.001 * share,
        "Loss/learning_rate": 3e-4,
        "Policy/mean_noise_std" if old else "Policy/mean_std": lambda share: 1.0 - 0.5 * share,
        "Train/mean_reward": lambda share: 100 * share,
        "Train/mean_episode_length": lambda share: 50 + 100 * share,
        **({} if old else {"Loss/entropy": lambda share: math.log(4) - share}),
    }
    for at, row in enumerate(rows_of(POINTS, **(healthy | columns))):
        collection, learning = (float(np.float32(x)) for x in rng.uniform(0.5, 1.5, 2))
        row["Perf/collection time" if old else "Perf/collection_time"] = collection
        row["Perf/learning_time"] = learning
        row["Perf/total_fps"] = int(each / (collection + learning))
        rows += [(at, at, row), (at, at, {"Train/mean_reward/time": 0.5})]
    return write_events(folder, rows)


@pytest.mark.parametrize("old", [False, True])
def test_rsl_rl_logs_over_iterations_of_which_env_steps_are_computed(tmp_path, old):
    log = only(rsl_rl(tmp_path, old=old))
    assert (log.library, log.algorithm, log.counts) == ("rsl_rl", "ppo", "env steps")
    assert log.signals["episode_return_mean"].x[[0, -1]].tolist() == [98_304, 60 * 98_304]
    assert log.end == 60 * 98_304
    assert log.signals["seconds"].x[-1] == log.end
    assert log.signals["value_loss"].y[-1] == pytest.approx(0.5)
    assert log.signals["learning_rate"].y[0] == pytest.approx(3e-4)
    assert log.signals["policy_loss"].y[-1] == pytest.approx(-0.011)
    assert ("entropy" in log.signals) != old
    assert log.settings["actions"] == "continuous", "the deviation says it"
    assert log.unknown == ()
    assert any("98,304 in each iteration" in note for note in log.notes)
    assert names_of(log) == set()


def test_rsl_rl_without_its_speed_is_over_iterations_and_says_so(tmp_path):
    columns = {"Perf/total_fps": 1000.0, "Loss/value": 2.0, "Train/mean_reward": 3.0}
    log = only(write_events(tmp_path, of_rows(lambda at: at, **columns)))
    assert (log.library, log.counts, log.end) == ("rsl_rl", "iterations", 59)
    assert any("steps are iterations" in note for note in log.notes)
    assert "59 iterations" in in_words(diagnose(log))
    (document,) = to_json([diagnose(log)])["diagnoses"]
    assert document["env_steps"] is None
    with pytest.raises(UsageError, match="cannot be compared with a log over iterations"):
        with_facts(log, {"env_steps": 1e8})


def test_the_env_steps_of_an_iteration_must_agree_with_all_iterations():
    x, ones = np.arange(3.0), np.ones(3)
    times = {name: Logged(x, ones / 2) for name in ("Perf/collection_time", "Perf/learning_time")}

    def found(*speeds):
        speed = Logged(x, np.asarray(speeds, np.float64))
        return env_steps_of_an_iteration(times | {"Perf/total_fps": speed})

    assert found(4096, 4096, 4096) == 4096
    assert found(4096, 8192, 4096) is None
    assert found(4096, math.nan, 4096) is None
    assert found(0, 0, 0) is None
    assert env_steps_of_an_iteration({"Perf/total_fps": Logged(x, ones)}) is None


@pytest.mark.parametrize("name", ["Loss/value", "Train/mean_reward"])
def test_rsl_rl_with_nan_is_a_finding(tmp_path, name):
    assert "NN-NAN" in names_of(only(rsl_rl(tmp_path, **{name: nan_late})))


def at_once(share):
    return 0.69 if share < 0.2 else 1e-6


def nan_late(share):
    return 1.0 if share < 0.5 else math.nan


def test_rsl_rl_with_a_return_that_is_lost_again_is_a_finding(tmp_path):
    falls = {"Train/mean_reward": lambda share: 100 * (share if share < 0.5 else 0.0)}
    assert "ENV-DROP" in names_of(only(rsl_rl(tmp_path, **falls)))


def test_rsl_rl_in_files_of_wandb(tmp_path):
    rows = [
        {
            "_step": at,
            "_runtime": 1.0 * at,
            "Perf/total_fps": 2048.0,
            "Perf/collection_time": 0.25,
            "Perf/learning_time": 0.75,
            "Train/mean_reward": float(at),
        }
        for at in range(POINTS)
    ]
    wandb_file(tmp_path / "run-x.wandb", rows, "walk")
    log = only(tmp_path)
    assert (log.library, log.counts) == ("rsl_rl", "env steps")
    assert log.end == log.signals["seconds"].x[-1] == POINTS * 2048


def skrl(folder, **columns):
    healthy = {
        "Reward / Total reward (mean)": lambda share: 100 * share,
        "Reward / Instantaneous reward (mean)": 0.5,
        "Episode / Total timesteps (mean)": lambda share: 50 + 100 * share,
        "Loss / Policy loss": lambda share: -0.01 - 0.001 * share,
        "Loss / Value loss": lambda share: 2.0 - share,
        "Loss / Entropy loss": -0.01,
        "Policy / Standard deviation": lambda share: 1.0 - 0.5 * share,
        "Learning / Learning rate": 3e-4,
    }
    return write_events(folder, of_rows(lambda at: 160 * (at + 1), **(healthy | columns)))


def test_skrl_logs_over_steps_of_each_environment(tmp_path):
    log = only(skrl(tmp_path / "a"))
    assert (log.library, log.counts) == ("skrl", "steps of each environment")
    assert log.end == 160 * POINTS
    assert log.signals["episode_return_mean"].y[-1] == 100
    assert log.signals["value_loss"].y[-1] == 0.5
    assert "entropy" not in log.signals, "its loss has a weight that is not known"
    assert (log.unknown, names_of(log)) == ((), set())
    assert "9600 steps of each environment" in in_words(diagnose(log))
    with pytest.raises(UsageError, match="name num_envs, too"):
        with_facts(log, {"env_steps": 1e8})
    all_envs = with_facts(log, {"num_envs": 512, "env_steps": 1e7})
    assert (all_envs.counts, all_envs.end) == ("env steps", 512 * 9_600)
    assert (all_envs.planned, all_envs.notes) == (1e7, ())
    assert "NN-NAN" in names_of(only(skrl(tmp_path / "b", **{"Loss / Policy loss": nan_late})))


def test_a_return_is_compared_with_healthy_runs_over_env_steps_only(tmp_path):
    low = {"Reward / Total reward (mean)": lambda share: 20 + share}
    rows = of_rows(lambda at: 100_000 * (at + 1), **low)
    log = with_facts(only(write_events(tmp_path, rows)), {"env": "CartPole-v1", "algorithm": "ppo"})
    assert "ENV-BELOW" in {one.check.id for one in diagnose(log).unchecked}
    assert "ENV-BELOW" in names_of(with_facts(log, {"num_envs": 512}))


def test_skrl_with_action_values(tmp_path):
    sac = {
        "Reward / Total reward (mean)": lambda share: 100 * share,
        "Loss / Critic loss": 0.5,
        "Q-network / Q1 (mean)": 20.0,
        "Coefficient / Entropy coefficient": 0.1,
        "Loss / Policy loss": -20.0,
    }
    log = only(write_events(tmp_path / "SAC", of_rows(lambda at: 100 * at, **sac)))
    assert log.algorithm == "sac"
    assert {"q_loss", "q_mean", "temperature"} <= log.signals.keys()
    dqn = {
        "Reward / Total reward (mean)": 1.0,
        "Loss / Q-network loss": 0.5,
        "Exploration / Exploration epsilon": 0.1,
    }
    log = only(write_events(tmp_path / "DQN", of_rows(lambda at: 100 * at, **dqn)))
    assert (log.algorithm, log.signals["q_loss"].y[0]) == ("dqn", 0.5)


def rl_games(folder, **columns):
    """Write what rl_games logs: a return thrice, over env steps, epochs and seconds."""
    healthy = {
        "losses/a_loss": lambda share: -0.01 - 0.001 * share,
        "losses/c_loss": lambda share: 2.0 - share,
        "losses/entropy": lambda share: 5.0 - share,
        "losses/bounds_loss": 0.0,
        "info/kl": 0.008,
        "info/last_lr": 3e-4,
        "info/lr_mul": 1.0,
        "info/e_clip": 0.2,
        "info/epochs": lambda share: POINTS * share,
        "performance/step_inference_rl_update_fps": 30_000.0,
        "performance/step_inference_fps": 50_000.0,
    }
    returns = columns.pop("rewards", lambda share: 100 * share)
    rows = of_rows(lambda at: 65_536 * (at + 1), **(healthy | columns))
    for at in range(POINTS):
        value, length = float(returns((at + 1) / POINTS)), 100.0
        for axis, step in (("step", 65_536 * (at + 1)), ("iter", at + 1), ("time", 2 * at)):
            named = {f"rewards/{axis}": value, f"episode_lengths/{axis}": length}
            rows.append((at, step, named))
    return write_events(folder, rows)


def test_rl_games_logs_one_return_over_three_axes(tmp_path):
    log = only(rl_games(tmp_path))
    assert (log.library, log.algorithm, log.counts) == ("rl_games", "ppo", "env steps")
    assert log.signals["episode_return_mean"].logged_as == "rewards/step"
    assert log.end == 65_536 * POINTS == log.signals["episode_return_mean"].x[-1]
    assert log.signals["seconds"].x[-1] == log.end, "not over epochs"
    assert log.signals["value_loss"].y[-1] == 0.5
    assert log.signals["entropy"].how == "mean over the minibatches of all epochs"
    assert log.signals["approx_kl"].y[0] == pytest.approx(0.008)
    assert log.signals["env_steps_per_second"].y[0] == 30_000
    assert (log.unknown, log.notes, names_of(log)) == ((), (), set())


@pytest.mark.medium
@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"losses/a_loss": nan_late}, "NN-NAN"),
        ({"info/kl": 33.0}, "PI-KL-HIGH"),
        ({"info/last_lr": 0.9}, "NN-LR-HIGH"),
        ({"rewards": nan_late}, "NN-NAN"),
    ],
)
def test_rl_games_with_a_mistake_is_a_finding(tmp_path, columns, check):
    assert check in names_of(only(rl_games(tmp_path, **columns)))


def test_names_that_cleanrl_shares_with_rl_games_stay_those_of_cleanrl(tmp_path):
    log = only(cleanrl(tmp_path, **{"losses/entropy": 0.5}))
    assert (log.library, log.counts, log.notes) == ("cleanrl", "env steps", ())
    assert log.signals["entropy"].how == "of the last minibatch only"
    unknown = only(write_events(tmp_path / "own", of_rows(lambda at: at, **{"losses/entropy": 1})))
    assert (unknown.library, unknown.unknown) == ("unknown", ("losses/entropy",))


CONFIG = {
    "exp_name": "cartpole-ppo",
    "gamma": 0.98,
    "lam": 0.97,
    "clip_ratio": 0.2,
    "pi_lr": 3e-4,
    "epochs": 50,
    "steps_per_epoch": 4000,
    "seed": 3,
    "env_fn": "<function <lambda>>",
}


def spinup(folder, config=CONFIG, *, points=50, **columns):
    """Write what PPO of Spinning Up does: `progress.txt` with tabs, and `config.json`."""
    healthy = {
        "Epoch": lambda share: round(share * points) - 1,
        "AverageEpRet": lambda share: 200 * share,
        "StdEpRet": 9.0,
        "MaxEpRet": 200.0,
        "MinEpRet": 10.0,
        "EpLen": lambda share: 20 + 180 * share,
        "AverageVVals": lambda share: 40 * share,
        "TotalEnvInteracts": lambda share: round(share * points) * 4000,
        "LossPi": lambda share: -1e-8 - 1e-9 * share,
        "LossV": lambda share: 100.0 - 60 * share,
        "Entropy": lambda share: math.log(2) - 0.2 * share,
        "KL": lambda share: 0.005 - 0.02 * share,
        "ClipFrac": 0.08,
        "StopIter": 79.0,
        "Time": lambda share: 100 * share,
    }
    rows = rows_of(points, **(healthy | columns))
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    (folder / "progress.txt").write_text("\n".join([*lines, ""]))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("name", [".", "progress.txt"])
def test_spinning_up_is_read_from_its_folder_and_from_its_file(tmp_path, name):
    log = only(spinup(tmp_path) / name)
    assert (log.library, log.algorithm, log.end, log.planned) == ("spinup", "ppo", 2e5, 2e5)
    assert log.signals["episode_return_mean"].x[0] == 4000
    assert log.signals["value_loss"].y[-1] == 20.0
    assert log.signals["seconds"].y[-1] == 100
    assert "approx_kl" not in log.signals, "its estimate may be negative without a mistake"
    known = {name: log.settings[name] for name in ("discount", "gae_lambda", "clip_range")}
    assert known == {"discount": 0.98, "gae_lambda": 0.97, "clip_range": 0.2}
    assert "epochs" not in log.settings, "theirs are not passes over a rollout"
    assert log.settings["actions"] == 2
    assert "actions=2" in in_words(diagnose(log)), "it is guessed: a person must see it"
    assert (log.unknown, log.notes, names_of(log)) == ((), (), set())


def test_runs_of_spinning_up_below_a_folder_are_as_many_logs(tmp_path):
    for seed in range(3):
        spinup(tmp_path / f"ppo_s{seed}", CONFIG | {"gamma": 0.9 + seed / 100})
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "progress.txt").write_text("day\tdone\n1\tlittle\n")
    logs = logs_in(tmp_path, {})
    assert [log.settings["discount"] for log in logs] == [0.9, 0.91, 0.92]


@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"LossPi": nan_late, "LossV": nan_late}, "NN-NAN"),
        ({"ClipFrac": 0.95}, "PI-CLIP-HIGH"),
        ({"Entropy": at_once, "AverageEpRet": 20.0}, "PI-ENT-EARLY"),
    ],
)
def test_spinning_up_with_a_mistake_is_a_finding(tmp_path, columns, check):
    assert check in names_of(only(spinup(tmp_path, **columns)))


def test_sac_of_spinning_up(tmp_path):
    rows = {
        "TestEpLen": 9.0,
        "AverageTestEpRet": 5.0,
        "AverageQ1Vals": 20.0,
        "AverageLogPi": -1.5,
        "LossQ": 0.4,
        "LossPi": -20.0,
    }
    folder = spinup(tmp_path, {"polyak": 0.995, "lr": 1e-3, "replay_size": 1000}, **rows)
    text = (folder / "progress.txt").read_text().splitlines()
    keep = [at for at, name in enumerate(text[0].split("\t")) if name not in OF_PPO]
    lines = ["\t".join(line.split("\t")[at] for at in keep) for line in text]
    (folder / "progress.txt").write_text("\n".join([*lines, ""]))
    log = only(folder)
    assert (log.algorithm, log.signals["entropy"].y[0]) == (None, 1.5)
    assert log.settings["tau"] == pytest.approx(0.005)
    assert log.settings["buffer_size"] == 1000
    assert log.signals["learning_rate"].y[0] == 1e-3


OF_PPO = ("LossV", "Entropy", "KL", "ClipFrac", "StopIter", "AverageVVals")


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"gamma": [1], "epochs": "x"}', "\udcff"])
def test_a_config_of_spinning_up_that_cannot_be_read_gives_no_settings(tmp_path, text):
    folder = spinup(tmp_path)
    (folder / "config.json").write_text(text, errors="surrogateescape")
    assert only(folder).planned != only(folder).planned
    (folder / "config.json").unlink()
    assert "discount" not in only(folder).settings


def test_a_progress_file_of_spinning_up_that_ends_within_a_line(tmp_path):
    path = spinup(tmp_path) / "progress.txt"
    path.write_text(path.read_text()[:-5])
    log = only(tmp_path)
    assert log.end == 49 * 4000
    assert any("its last line" in note for note in log.notes)


def test_vpg_of_spinning_up_is_not_taken_for_ppo(tmp_path):
    path = spinup(tmp_path, {"exp_name": "first"}) / "progress.txt"
    path.write_text(path.read_text().replace("ClipFrac", "DeltaLossPi"))
    assert only(tmp_path).algorithm is None


def tianshou(folder, **columns):
    """Write what Tianshou 2 does: collections over env steps, and after each ten updates."""
    healthy = {
        "train/returns_stat/mean": lambda share: 100 * share,
        "train/lens_stat/mean": lambda share: 50 + 100 * share,
        "update/actor_loss/mean": lambda share: -0.01 - 0.001 * share,
        "update/vf_loss/mean": lambda share: 2.0 - share,
        "update/ent_loss/mean": lambda share: 5.0 - share,
    }
    rows = []
    for at, row in enumerate(rows_of(POINTS, **(healthy | columns)), 1):
        trained = {name: y for name, y in row.items() if not name.startswith("update/")}
        updated = {name: y for name, y in row.items() if name.startswith("update/")}
        rows.append((at, 2000 * at, trained | {"train/env_step": 2000.0 * at}))
        rows.append((at, 10 * at, updated | {"update/update_step": 10.0 * at}))
        rows.append((at, at, {"info/best_reward": 1.0}))
    return write_events(folder, rows)


@pytest.mark.medium
def test_tianshou_logs_updates_over_updates_which_the_clock_places(tmp_path):
    log = only(tianshou(tmp_path))
    assert (log.library, log.counts) == ("tianshou", "env steps")
    assert log.signals["entropy"].x.tolist() == [2000.0 * at for at in range(1, POINTS + 1)]
    assert log.end == log.signals["seconds"].x[-1] == 2000 * POINTS
    assert log.signals["value_loss"].y[-1] == 0.5
    assert names_of(log) == set()
    for name in ("update/vf_loss/mean", "update/loss/mean"):
        assert "NN-NAN" in names_of(only(tianshou(tmp_path / name, **{name: nan_late})))


def test_tianshou_without_a_clock_says_that_it_counts_updates():
    x = np.arange(3.0)
    logged = {"train/env_step": Logged(x, x), "update/update_step": Logged(x, x)}
    assert placed(logged, {}).counts == "updates"
    assert placed(logged, {"own": "env_steps"}).notes == ()
    moved = logged | {"update/update_step": Logged(1000 * x, x)}
    assert placed(moved, {}).counts == "env steps"


def test_old_tianshou(tmp_path):
    columns = {"train/reward": 3.0, "train/length": 9.0, "update/loss/critic1": 0.5}
    rows = of_rows(lambda at: 1000 * at, **{"train/env_step": 1.0, **columns})
    log = only(write_events(tmp_path, rows))
    assert (log.library, log.signals["q_loss"].y[0]) == ("tianshou", 0.5)
    assert log.signals["episode_length_mean"].y[0] == 9.0


def test_ml_agents(tmp_path):
    columns = {
        "Environment/Cumulative Reward": lambda share: 100 * share,
        "Environment/Episode Length": 50.0,
        "Losses/Value Loss": lambda share: 2.0 - share,
        "Losses/Policy Loss": 0.02,
        "Policy/Entropy": lambda share: 1.4 - share / 2,
        "Policy/Learning Rate": lambda share: 3e-4 * (1.001 - share),
    }
    log = only(write_events(tmp_path / "a", of_rows(lambda at: 10_000 * (at + 1), **columns)))
    assert (log.library, log.end) == ("ml-agents", 600_000)
    assert log.signals["value_loss"].y[-1] == 0.5
    assert "policy_loss" not in log.signals, "only its magnitude is logged"
    assert names_of(log) == set()
    columns["Policy/Entropy"] = nan_late
    log = only(write_events(tmp_path / "b", of_rows(lambda at: 10_000 * (at + 1), **columns)))
    assert "NN-NAN" in names_of(log)


def sample_factory(folder, **columns):
    """Write what Sample Factory does in `.summary/0`: training and returns in events of their own.

    What concerns the last minibatch is in every other event.
    """
    healthy = {
        "reward/reward": lambda share: 100 * share,
        "len/len": lambda share: 200 + 400 * share,
        "perf/_fps": 40_000.0,
        "perf/_sample_throughput": 10_000.0,
        "train/loss": lambda share: 0.2 - 0.1 * share,
        "train/policy_loss": lambda share: -0.001 - 0.001 * share,
        "train/value_loss": lambda share: 0.2 - 0.1 * share,
        "train/entropy": lambda share: math.log(9) - share,
        "train/exploration_loss": -0.006,
        "train/grad_norm": 4.0,
        "train/lr": 1e-4,
        "train/same_policy_fraction": 1.0,
        "train/kl_divergence": 0.004,
        "train/fraction_clipped": 0.06,
        "train/num_sgd_steps": 4.0,
    }
    of_last = ("train/kl_divergence", "train/fraction_clipped", "train/num_sgd_steps")
    rows = []
    for at, row in enumerate(rows_of(POINTS, **(healthy | columns))):
        trained = {name: y for name, y in row.items() if name.startswith("train/")}
        if at % 2:
            trained = {name: y for name, y in trained.items() if name not in of_last}
        rows.append((10 * at, 400_000 * at + 4096, trained))
        others = {name: y for name, y in row.items() if not name.startswith("train/")}
        rows.append((10 * at + 5, 400_000 * at + 8192, others))
    return write_events(folder / ".summary" / "0", rows)


def test_sample_factory_logs_over_env_steps(tmp_path):
    sample_factory(tmp_path)
    log = only(tmp_path)
    assert (log.library, log.algorithm, log.counts) == ("sample_factory", "ppo", "env steps")
    assert log.end == 400_000 * (POINTS - 1) + 8192
    assert log.signals["value_loss"].y[-1] == pytest.approx(0.1), "its weight is the half"
    assert log.signals["approx_kl"].y[0] == pytest.approx(0.004)
    assert log.signals["clip_fraction"].y[0] == pytest.approx(0.06)
    assert log.signals["env_steps_per_second"].y[0] == 40_000
    assert "grad_norm" not in log.signals, "only the clipped gradient is logged"
    assert log.settings["actions"] == 9
    assert (log.unknown, log.notes, names_of(log)) == ((), (), set())


def test_the_only_gradient_step_of_an_update_does_not_show_how_far_it_moves(tmp_path):
    still = {"train/kl_divergence": 0.0, "train/fraction_clipped": 0.0}
    sample_factory(tmp_path / "one", **still, **{"train/num_sgd_steps": 1.0})
    log = only(tmp_path / "one")
    assert log.algorithm == "ppo"
    assert not {"approx_kl", "clip_fraction"} & log.signals.keys()
    (note,) = log.notes
    assert "`train/kl_divergence` and `train/fraction_clipped` left out" in note
    assert names_of(log) == set()
    sample_factory(tmp_path / "four", **still)
    assert {"PI-KL-TINY", "PI-CLIP-NEVER"} & names_of(only(tmp_path / "four"))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"train/loss": nan_late}, "NN-NAN"),
        ({"reward/reward": nan_late}, "NN-NAN"),
        ({"train/kl_divergence": 33.0}, "PI-KL-HIGH"),
        ({"train/fraction_clipped": 0.95}, "PI-CLIP-HIGH"),
        ({"train/lr": 0.9}, "NN-LR-HIGH"),
        ({"train/entropy": at_once, "reward/reward": 20.0}, "PI-ENT-EARLY"),
        ({"reward/reward": lambda share: 100 * (share if share < 0.5 else 0.0)}, "ENV-DROP"),
    ],
)
def test_sample_factory_with_a_mistake_is_a_finding(tmp_path, columns, check):
    sample_factory(tmp_path, **columns)
    assert check in names_of(only(tmp_path))


def test_sample_factory_with_continuous_actions_has_no_number_of_actions(tmp_path):
    sample_factory(tmp_path, **{"train/action_stddev_mean": 1.0})
    assert only(tmp_path).settings["actions"] == "continuous"


def of_torchrl(**columns):
    """Return the rows of TorchRL's PPO: over frames, with a row for each collection."""
    healthy = {
        "train/reward": lambda share: 100 * share,
        "train/episode_length": lambda share: 50 + 100 * share,
        "train/loss_objective": lambda share: -0.01 - 0.001 * share,
        "train/loss_critic": lambda share: 2.0 - share,
        "train/loss_entropy": -0.01,
        "train/lr": lambda share: 3e-4 * (1 - 0.9 * share),
        "train/clip_epsilon": 0.2,
        "time/speed": 3000.0,
        "time/collecting": 0.5,
    }
    return of_rows(lambda at: 2048 * (at + 1), **(healthy | columns))


def test_torchrl_logs_over_frames(tmp_path):
    log = only(write_events(tmp_path, of_torchrl()))
    assert (log.library, log.algorithm, log.counts) == ("torchrl", "ppo", "env steps")
    assert log.end == log.signals["seconds"].x[-1] == 2048 * POINTS
    assert log.signals["episode_return_mean"].logged_as == "train/reward"
    assert log.signals["value_loss"].y[-1] == 0.5
    assert log.settings["clip_range"] == pytest.approx(0.2)
    assert "entropy" not in log.signals, "its loss has a weight that is not known"
    assert "env_steps_per_second" not in log.signals, "what is logged is a moving mean"
    assert (log.unknown, log.notes, names_of(log)) == (("time/collecting",), (), set())


@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"train/loss_objective": nan_late}, "NN-NAN"),
        ({"train/reward": nan_late}, "NN-NAN"),
        ({"train/lr": 0.9}, "NN-LR-HIGH"),
        ({"train/reward": lambda share: 100 * (share if share < 0.5 else 0.0)}, "ENV-DROP"),
    ],
)
def test_torchrl_with_a_mistake_is_a_finding(tmp_path, columns, check):
    assert check in names_of(only(write_events(tmp_path, of_torchrl(**columns))))


def test_torchrl_with_action_values(tmp_path):
    common = {"train/q_loss": 0.5, "time/speed": 900.0}
    sac = {"train/reward": 1.0, "train/actor_loss": -20.0, "train/alpha": 0.1}
    sac |= {"train/alpha_loss": -0.2, "train/entropy": lambda share: 4.0 - share}
    log = only(write_events(tmp_path / "a", of_rows(lambda at: 1000 * at, **common, **sac)))
    assert (log.algorithm, log.signals["temperature"].y[0]) == ("sac", pytest.approx(0.1))
    assert (log.signals["entropy"].y[-1], log.unknown) == (3.0, ())
    dqn = {"train/episode_reward": 1.0, "train/q_values": 9.0, "train/epsilon": 0.1}
    log = only(write_events(tmp_path / "b", of_rows(lambda at: 1000 * at, **common, **dqn)))
    assert (log.algorithm, log.signals["q_mean"].y[0]) == ("dqn", 9.0)
    ddpg = {"train/loss_value": 0.5, "train/loss_actor": -3.0, "time/speed": 900.0}
    log = only(write_events(tmp_path / "c", of_rows(lambda at: 1000 * at, **ddpg)))
    assert (log.library, log.signals["q_loss"].y[0]) == ("torchrl", 0.5)


@pytest.mark.medium
@pytest.mark.parametrize("axis", ["train/step", "trainer/step"])
def test_torchrl_in_files_of_wandb_is_over_the_steps_that_it_logs(tmp_path, axis):
    """Older versions give each name a row of its own."""
    rows, each = [], axis == "trainer/step"
    for at, (_, step, row) in enumerate(of_torchrl()):
        of_row = [{name: y} for name, y in row.items()] if each else [row]
        rows += [
            {"_step": len(rows) + n, "_runtime": 1.0 * at, axis: step, **one}
            for n, one in enumerate(of_row)
        ]
    wandb_file(tmp_path / "logs" / "run-x.wandb", rows, "walk")
    log = only(tmp_path / "logs")
    assert (log.library, log.counts, log.end) == ("torchrl", "env steps", 2048 * POINTS)
    assert log.signals["seconds"].x[-1] == 2048 * POINTS
    assert (log.unknown, names_of(log)) == (("time/collecting",), set())
    (ulid,) = import_tables(tmp_path, tmp_path / "logs", argv=[], say=print)
    records = read_metrics(tmp_path / "runs" / ulid).records
    assert records[-1]["env_steps"] == 2048 * POINTS


def test_steps_that_torchrl_logs_with_videos_alone_are_not_those_of_all(tmp_path):
    rows = [{"_step": step, **row} for _, step, row in of_torchrl()]
    rows.insert(30, {"_step": rows[29]["_step"], "trainer/step": 3})
    wandb_file(tmp_path / "run-x.wandb", rows, "walk")
    log = only(tmp_path)
    assert (log.end, len(log.signals["policy_loss"].x)) == (2048 * POINTS, POINTS)


def write_scalars(folder, rows):
    """Write what TorchRL's CSVLogger does: a file for each name, without a line of names."""
    for _, step, row in rows:
        for name, y in row.items():
            path = folder / "scalars" / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{step},{y}\n")
    return folder


@pytest.mark.medium
def test_files_of_single_names_are_one_log(tmp_path):
    write_scalars(tmp_path / "one", of_torchrl())
    write_scalars(tmp_path / "two", of_torchrl(**{"train/lr": nan_late}))
    with (tmp_path / "one" / "scalars" / "train" / "lr.csv").open("a") as file:
        file.write("124928,1")
    (tmp_path / "scalars").mkdir()
    write_csv(tmp_path / "scalars" / "a.csv", rows_of(env_steps=lambda share: share, entropy=0.5))
    named, one, two = logs_in(tmp_path, {})
    assert (named.library, list(named.signals)) == ("unknown", ["env_steps", "entropy"])
    assert (one.library, one.counts, one.end) == ("torchrl", "env steps", 2048 * POINTS)
    assert one.name.endswith("one/scalars")
    assert (one.unknown, one.notes, names_of(one)) == (("time/collecting",), (), set())
    assert "NN-NAN" in names_of(two)


def dopamine(folder, *, each=1000, losses=True, **columns):
    """Write what Dopamine's DQN does: returns over iterations, and losses over env steps.

    Losses begin with the third iteration, twice in each; evaluation takes as long as training.
    """
    healthy = {
        "Train/NumEpisodes": 20.0,
        "Train/AverageReturns": lambda share: 20 + 180 * share,
        "Train/AverageStepsPerSecond": 500.0,
        "Eval/NumEpisodes": 5.0,
        "Eval/AverageReturns": lambda share: 20 + 180 * share,
    }
    loss = columns.pop("HuberLoss", lambda share: 1.0 - 0.5 * share)
    rows = []
    for at, row in enumerate(rows_of(POINTS, **(healthy | columns))):
        for half in (1, 2) if losses and at > 1 else ():
            step = each * at + half * each // 2
            rows.append((4 * at + half, step, {"HuberLoss": loss(step / each / POINTS)}))
        rows.append((4 * at + 3.9, at, row))
    return write_events(folder, rows)


def test_dopamine_logs_iterations_which_the_clock_places_among_its_losses(tmp_path):
    log = only(dopamine(tmp_path))
    assert (log.library, log.algorithm, log.counts) == ("dopamine", "dqn", "env steps")
    returns = log.signals["episode_return_mean"]
    assert returns.logged_as == "Train/AverageReturns"
    ends = 1000.0 * np.arange(4, POINTS)
    assert np.all(np.abs(returns.x[-len(ends) - 1 : -1] - ends) < 500)
    assert log.end == returns.x[-1] == 1000 * POINTS
    assert log.signals["episodes"].y[-1] == 20
    assert log.signals["q_loss"].y[-1] == pytest.approx(0.5)
    assert log.signals["seconds"].x[-1] == log.end
    assert any("by the times of the events" in note for note in log.notes)
    assert (log.unknown, names_of(log)) == ((), set())


def test_dopamine_without_losses_is_over_iterations_and_says_so(tmp_path):
    log = only(dopamine(tmp_path, losses=False))
    assert (log.library, log.algorithm, log.counts) == ("dopamine", None, "iterations")
    assert log.end == POINTS - 1
    (note,) = log.notes
    assert "steps are iterations" in note
    assert names_of(log) == set()


@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"HuberLoss": nan_late}, "NN-NAN"),
        ({"HuberLoss": lambda share: 1e9 * share}, "Q-LOSS"),
        ({"Train/AverageReturns": nan_late}, "NN-NAN"),
        ({"Train/AverageReturns": lambda share: 200 * (share if share < 0.5 else 0)}, "ENV-DROP"),
    ],
)
def test_dopamine_with_a_mistake_is_a_finding(tmp_path, columns, check):
    assert check in names_of(only(dopamine(tmp_path, **columns)))


def test_a_cross_entropy_is_no_error_of_action_values(tmp_path):
    """Its size says nothing about returns, which are tiny here."""
    columns = {"Train/AverageReturns": 1e-3, "Train/NumEpisodes": 20.0, "CrossEntropyLoss": 4.0}
    log = only(write_events(tmp_path, of_rows(lambda at: 500 * at, **columns)))
    assert "q_loss" not in log.signals
    assert "Q-LOSS" not in names_of(with_facts(log, {"algorithm": "dqn"}))
    columns["CrossEntropyLoss"] = nan_late
    log = only(write_events(tmp_path / "b", of_rows(lambda at: 500 * at, **columns)))
    assert "NN-NAN" in names_of(log)


@pytest.mark.parametrize(
    ("column", "algorithm"), [("Values/Alpha", "sac"), ("Losses/Entropy", "ppo")]
)
def test_algorithms_of_dopamine_are_recognised(tmp_path, column, algorithm):
    columns = {"Train/AverageReturns": 1.0, "Train/NumEpisodes": 9.0, "Losses/Actor": 0.5}
    log = only(write_events(tmp_path, of_rows(lambda at: at, **columns, **{column: 0.5})))
    assert log.algorithm == algorithm


def test_a_table_with_names_of_rsl_rl_is_over_iterations(tmp_path):
    rows = rows_of(Step=lambda share: round(share * 60), **{"Perf/total_fps": 9, "Loss/value": 1})
    path = write_csv(tmp_path / "a.csv", rows)
    assert only(path).counts == "iterations"
    assert only(path, {"Step": "env_steps"}).counts == "env steps"


@pytest.mark.medium
def test_an_imported_run_of_rsl_rl_is_over_env_steps_too(tmp_path):
    import_path(tmp_path, rsl_rl(tmp_path / "logs"), info=RunInfo(), argv=[], say=print)
    (log,) = find_logs(tmp_path, "latest", {})
    assert (log.library, log.counts, log.end) == ("rsl_rl", "env steps", 60 * 98_304)
    assert any("in each iteration" in note for note in log.notes)


def sb3_with_monitors(folder):
    names = {"rollout/ep_rew_mean": 1.0, "rollout/ep_len_mean": 100, "train/value_loss": 0.5}
    steps = {"time/total_timesteps": lambda share: round(share * 6000)}
    folder.mkdir(parents=True)
    sb3(folder, **names, **steps, **{"train/policy_gradient_loss": -0.01})
    for env in range(2):
        rows = "".join(f"{at % 7},100,{2 * at + env}\n" for at in range(1, 31))
        head = '#{"t_start": 1.6e9, "env_id": "CartPole-v1"}\nr,l,t\n'
        (folder / f"{env}.monitor.csv").write_text(head + rows)
    return folder


@pytest.mark.medium
@pytest.mark.parametrize(
    "write",
    [
        *(sb3_with_monitors, cleanrl, rsl_rl, skrl, rl_games, spinup, tianshou, sample_factory),
        dopamine,
    ],
)
def test_an_imported_run_is_read_as_the_files_that_it_comes_from(tmp_path, write):
    folder = write(tmp_path / "logs" / "one")
    import_path(tmp_path, folder, info=RunInfo(), argv=[], say=print)
    (read,) = logs_in(folder, {})
    (log,) = find_logs(tmp_path, "latest", {})
    for fact in ("library", "algorithm", "env", "counts", "unknown"):
        assert getattr(log, fact) == getattr(read, fact), fact
    assert log.planned == pytest.approx(read.planned, nan_ok=True)
    kept = {name: x for name, x in read.settings.items() if name != "env_id"}  # it is `env`
    assert log.settings == {**log.settings, **kept}
    assert log.signals.keys() == read.signals.keys()
    for name, signal in read.signals.items():
        assert log.signals[name][2:] == signal[2:], name
        for ours, theirs in zip(log.signals[name][:2], signal[:2], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True), name


@pytest.mark.medium
def test_the_command_judges_a_folder_of_several_libraries(tmp_path, capsys):
    rsl_rl(tmp_path / "one")
    rl_games(tmp_path / "two", **{"losses/a_loss": nan_late})
    assert main(["doctor", str(tmp_path)]) == 1
    assert "2 training runs, 1 with findings" in capsys.readouterr().out
