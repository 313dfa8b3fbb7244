"""Logs of other libraries are read in our names, and bad ones give a sentence."""

import gzip
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from packages.backflip.tests.doctor.log_writers import cleanrl, rows_of, sb3, write_csv
from packages.runshelf.tests.index.homes import make_run
from packages.runshelf.tests.interop.test_import_logs import text_event
from packages.runshelf.tests.interop.wandb_writer import wandb_file

from backflip.cli.diagnosing import CANNOT_READ
from backflip.cli.main import main
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.diagnosis import FEWEST, diagnose
from backflip.doctor.log import Log, Signal
from backflip.doctor.reading import log_files
from backflip.doctor.reading.about import checked_facts
from backflip.doctor.reading.actions import number_of_actions
from backflip.doctor.reading.find import find_logs, with_facts
from backflip.doctor.reading.from_settings import NAMES, with_settings
from backflip.doctor.reading.guessing import algorithm_of, with_action_values
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.own_labels import signals_of_labels
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.doctor.reading.suggesting import closest
from backflip.doctor.reading.tables import over_env_steps
from backflip.doctor.report import in_words, to_json
from backflip.doctor.summary import doctors_word
from backflip.preferences.label_file import LABELS
from backflip.preferences.label_records import NewLabel, NewQuery
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import teach
from backflip.training.train import train
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop import csv_files
from runshelf.interop.event_files import scalar_event, version_event
from runshelf.store.finding import find_run
from runshelf.store.run import create_run, open_run


def _steps(share):
    return round(share * 60_000)


def _rises(share):
    return 100 * share


def only(path, mapping=None):
    (log,) = logs_in(path, mapping or {})
    return log


def test_stable_baselines_logs_minus_the_entropy_and_the_loss_without_a_half(tmp_path):
    log = only(sb3(tmp_path / "PPO_1", **{"train/entropy_loss": -0.6, "train/value_loss": 8.0}))
    assert log.library == "sb3"
    assert set(log.signals["entropy"].y) == {0.6}
    assert set(log.signals["value_loss"].y) == {4.0}
    assert log.signals["entropy"].x[-1] == 1_000_000
    assert log.algorithm == "ppo"
    assert log.signals["entropy"].logged_as == "train/entropy_loss"
    assert "100 episodes" in log.signals["episode_return_mean"].how


def test_the_speed_of_other_libraries_is_an_average_that_is_not_used(tmp_path):
    log = only(sb3(tmp_path / "PPO_1", **{"time/time_elapsed": lambda share: 1000 * share}))
    assert "env_steps_per_second" not in log.signals
    assert log.signals["seconds"].y[-1] == 1000


def test_speed_that_decays_is_seen_in_windows_though_the_average_hides_it(tmp_path):
    slow = {"time/time_elapsed": lambda share: 100 * (share + 4 * max(0.0, share - 0.6))}
    found = diagnose(only(sb3(tmp_path / "PPO_1", **slow)))
    assert "SYS-SPEED" in [one.check.id for one in found.warnings]


@pytest.mark.parametrize(("late", "is_found"), [(1.0, False), (5.0, True)])
def test_speed_that_decays_is_seen_in_the_times_of_events(tmp_path, late, is_found):
    folder = tmp_path / "CartPole-v1__ppo__1__1700000000"
    folder.mkdir()
    data, time = version_event(1.6e9), 1.6e9
    for at in range(1, 61):
        time += 1.0 if at <= 36 else late
        data += scalar_event(time, at * 10_000, [("charts/SPS", 1000.0)])
    (folder / "events.out.tfevents.1.host").write_bytes(data)
    log = only(folder)
    assert log.signals["seconds"].y[-1] == 35 + 24 * late
    assert ("SYS-SPEED" in [one.check.id for one in diagnose(log).warnings]) == is_found


def test_cleanrl_logs_single_episodes_and_the_last_minibatch(tmp_path):
    folder = tmp_path / "CartPole-v1__ppo__3__1700000000"
    columns = {"losses/entropy": 0.5, "charts/episodic_return": 9.0, "losses/old_approx_kl": -0.1}
    log = only(cleanrl(folder, **columns))
    assert (log.library, log.algorithm, log.env) == ("cleanrl", "ppo", "CartPole-v1")
    assert log.signals["entropy"].how == "of the last minibatch only"
    assert log.signals["episode_return_mean"].how == "of single episodes"
    assert "approx_kl" not in log.signals, "the estimate k1 may be negative without a mistake"


def test_cleanrl_without_episodes_is_a_finding(tmp_path):
    found = diagnose(only(cleanrl(tmp_path / "run", **{"losses/value_loss": 0.5})))
    assert [one.check.id for one in found.findings] == ["ENV-NOEP"]
    assert found.causes[0].cause.id == "logging"


def test_a_log_that_cannot_be_read_has_another_exit_status_than_findings(tmp_path, capsys):
    (tmp_path / "events.out.tfevents.1").write_bytes(b"no event")
    assert main(["doctor", str(tmp_path)]) == CANNOT_READ == 2
    assert "no complete record" in capsys.readouterr().err
    assert main(["doctor", str(cleanrl(tmp_path / "run", **{"losses/value_loss": 0.5}))]) == 1


def test_of_several_logs_those_that_cannot_be_read_are_left_out(tmp_path, capsys):
    good = write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: 9 * s, entropy=0.5))
    (tmp_path / "empty").mkdir()
    assert main(["doctor", str(tmp_path / "empty"), str(good), "--json"]) == CANNOT_READ
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["diagnoses"]] == [str(good)]
    assert len(told["unread"]) == 1
    broken = cleanrl(tmp_path / "run", **{"losses/value_loss": 0.5})
    assert main(["doctor", str(broken), str(tmp_path / "none")]) == 1
    assert f"left out: `{tmp_path / 'none'}`" in capsys.readouterr().err


def test_rllib(tmp_path):
    stats = "info/learner/default_policy/learner_stats/"
    rows = rows_of(
        **{
            "timesteps_total": lambda share: round(share * 5000),
            "episode_reward_mean": 3.0,
            f"{stats}entropy": 0.7,
            f"{stats}vf_loss": 4.0,
            f"{stats}kl": 0.02,
        }
    )
    log = only(write_csv(tmp_path / "progress.csv", rows))
    assert log.library == "rllib"
    assert (log.signals["entropy"].y[0], log.signals["value_loss"].y[0]) == (0.7, 2.0)
    assert log.signals["episode_return_mean"].x[-1] == 5000


def test_a_csv_with_a_mapping(tmp_path):
    path = write_csv(
        tmp_path / "mine.csv",
        rows_of(step=lambda share: 100 * share, ent=0.5, kl=0.3, approx_kl_mean=0.1),
    )
    log = only(path, {"ent": "entropy", "kl": "approx_kl"})
    assert set(log.signals) == {"entropy", "approx_kl"}
    assert closest(log.unknown) == {"approx_kl_mean": "approx_kl"}
    with pytest.raises(UsageError, match="nothing is logged as `entt`, did you mean `ent`"):
        only(path, {"entt": "entropy"})
    with pytest.raises(UsageError, match="there is no signal `entrpy`, did you mean `entropy`"):
        only(path, {"ent": "entrpy"})


def test_a_mapping_of_a_name_of_ray_in_an_event_file(tmp_path):
    folder = cleanrl(tmp_path / "run", **{"ray/tune/own_entropy": 0.5})
    log = only(folder, {"ray/tune/own_entropy": "entropy"})
    assert log.signals["entropy"].y[0] == 0.5


def test_our_names_need_no_mapping_in_a_csv(tmp_path):
    log = only(write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: 9 * s, q_mean=2.0)))
    assert log.signals["q_mean"].y[0] == 2.0


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n \n", "# my run\n\n# lr=3\n"])
def test_a_csv_of_any_separator_after_a_bom_comments_or_empty_lines(tmp_path, separator, before):
    lines = [separator.join(("entropy ", " env_steps", "q_mean"))]
    lines += [separator.join(("0.5", f" {at}", " 2.0 ")) for at in range(1, 20)]
    lines.insert(9, "# a comment between rows")
    (tmp_path / "a.csv").write_text(before + "\n".join(lines) + "\n")
    log = only(tmp_path / "a.csv")
    assert (set(log.signals), log.unknown, log.notes) == (
        {"entropy", "q_mean", "env_steps"},
        (),
        (),
    )
    assert list(log.signals["entropy"].x) == [*range(1, 20)]


def test_names_in_a_comment_before_numbers_as_numpy_writes_them(tmp_path):
    table = np.asarray([[1.0, 0.5], [2.0, 0.4]])
    np.savetxt(tmp_path / "a.csv", table, delimiter=",", header="env_steps,entropy")
    assert list(only(tmp_path / "a.csv").signals["entropy"].y) == [0.5, 0.4]
    np.savetxt(tmp_path / "b.csv", table, delimiter=",", header="no names")
    with pytest.raises(UserFacingError, match="its first line has only numbers"):
        only(tmp_path / "b.csv")


def test_where_semicolons_separate_a_comma_is_the_decimal_point(tmp_path):
    (tmp_path / "a.csv").write_text("env_steps;entropy\n1;0,5\n2;-1,5e-1\n")
    assert list(only(tmp_path / "a.csv").signals["entropy"].y) == [0.5, -0.15]


@pytest.mark.parametrize("ending", [".tsv", ".txt", ".csv.gz", ".txt.gz"])
def test_other_endings_of_csv_files(tmp_path, ending):
    text = b"env_steps\tentropy\n1\t0.5\n"
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    assert only(path).signals["entropy"].y == 0.5


def test_a_packed_file_is_read_up_to_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"env_steps,entropy\n" + b"1,0.5\n" * 1000))
    monkeypatch.setattr(csv_files, "MOST_UNPACKED", 2**10)
    with pytest.raises(UserFacingError, match="holds more than 0 MiB: unpack it"):
        only(path)
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(UserFacingError, match="cannot be unpacked"):
        only(path)


def test_two_damaged_files_of_a_folder_are_both_named(tmp_path):
    for name in ("progress.csv", "0.monitor.csv"):
        (tmp_path / name).write_text("")
    with pytest.raises(UserFacingError, match=r"progress\.csv.*monitor\.csv|monitor.*progress"):
        only(tmp_path)


@pytest.mark.parametrize("beside", ["a/progress.csv", "a.csv", "a.wandb"])
def test_damaged_and_unreadable_files_beside_logs_are_noted(tmp_path, monkeypatch, beside):
    (tmp_path / beside).parent.mkdir(exist_ok=True)
    if beside.endswith(".wandb"):
        wandb_file(tmp_path / beside, [{"_step": 1, "loss": 0.5}])
    else:
        (tmp_path / beside).write_text("time/total_timesteps,train/loss\n1,0.5\n")
    (tmp_path / "comment.csv").write_text("# nothing\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"env_steps,entropy\n1,0.5\n")[:-9])
    (tmp_path / "large.csv.gz").write_bytes(gzip.compress(b"env_steps,entropy\n" * 99))
    (tmp_path / "bad.wandb").write_bytes(b"no file of W&B")
    monkeypatch.setattr(csv_files, "MOST_UNPACKED", 2**10)
    notes = only(tmp_path).notes
    for name in ("comment.csv", "cut.csv.gz", "large.csv.gz", "bad.wandb"):
        assert sum(name in note for note in notes) == 1, notes


def test_a_folder_of_csv_files_has_a_log_for_each(tmp_path):
    for name in ("a.csv", "b.tsv", "c/d.csv.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = b"env_steps,entropy\n1,0.5\n"
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "empty.csv").write_text("")
    assert len(logs_in(tmp_path, {})) == 3
    sb3(tmp_path / "PPO_1")
    (tmp_path / "plot.csv").write_text("width,height\n1,2\n")  # no name has a meaning
    assert Counter(one.library for one in logs_in(tmp_path, {})) == {"sb3": 1, "unknown": 3}


def test_a_file_of_the_callback_replaces_what_is_logged_beside_it(tmp_path):
    for name in ("one", "two"):
        sb3(tmp_path / name)
    rows = "".join(f"{at},0.5,1.0\n" for at in range(1, 30))
    (tmp_path / "two" / "doctor.csv").write_text(f"env_steps,action_effect_p,entropy\n{rows}")
    other, found = sorted(logs_in(tmp_path, {}), key=lambda one: one.name)
    assert other.library == "sb3"
    assert other.name == str(tmp_path / "one")
    assert found.has("action_effect_p")
    assert "it has more than what the library logs beside it" in found.notes[-1]


def test_many_tables_do_not_hide_the_logs_of_a_library(tmp_path, monkeypatch):
    sb3(tmp_path / "one")
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("env_steps,entropy\n1,0.5\n")
    monkeypatch.setattr(log_files, "_MOST_TABLES", 2)
    log = only(tmp_path)
    assert log.library == "sb3"
    assert "more than 2 CSV files" in log.notes[-1]


def test_usual_names_of_returns_are_taken_in_logs_of_ones_own(tmp_path):
    (tmp_path / "log.csv").write_text("step,ep_rew_mean,ep_len\n1,2.0,9\n2,3.0,8\n")
    log = only(tmp_path)
    assert log.signals["episode_return_mean"].y.tolist() == [2.0, 3.0]
    assert "taken by its name" in log.signals["episode_return_mean"].how
    assert log.signals["episode_length_mean"].y.tolist() == [9.0, 8.0]


@pytest.mark.parametrize("name", ["log.json", "folder"])
def test_what_cannot_be_read_gives_a_sentence_with_all_that_can(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "log.json").write_text("{}")
    with pytest.raises(
        UsageError, match=r"there is no log in .* readable are event files .*`.tsv`"
    ):
        only(tmp_path / name)


def test_monitor_files(tmp_path):
    lines = ['#{"t_start": 1.0, "env_id": "CartPole-v1"}', "r,l,t"]
    lines += [f"{at},10,{at}.5" for at in range(1, 40)]
    (tmp_path / "monitor.csv").write_text("\n".join(lines) + "\n")
    log = only(tmp_path)
    assert log.signals["episode_return_mean"].y[-1] == 39
    assert log.signals["episode_return_mean"].x[-1] == 390


def test_the_environment_of_monitor_files(tmp_path):
    text = '#{"t_start": 1.0, "env_id": "CartPole-v1"}\nr,l,t\n1,10,1.5\n'
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.monitor.csv").write_text(text)
    (tmp_path / "my_monitor.csv").write_text(text)
    sb3(tmp_path / "a")
    assert only(tmp_path / "a").env == "CartPole-v1"
    log = only(tmp_path / "my_monitor.csv")
    assert (log.env, log.library) == ("CartPole-v1", "monitor")
    (tmp_path / "monitor.csv").write_text(text.replace('"CartPole-v1"', '"None"'))
    assert only(tmp_path / "monitor.csv").env is None


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["nan,nan,nan"], "no row has env steps: `env_steps` holds `nan`"),
        (["1,nan,high", "2,inf,low"], "`entropy` holds `nan`, `loss` holds `high`"),
        (['"1,000",0.5,1', '"2,000",0.4,1'], "no row has env steps: `env_steps` holds `1,000`"),
        (["1,,", "2,,"], "no column has a finite number to check: all cells are empty"),
    ],
)
def test_a_csv_without_numbers_says_what_was_read(tmp_path, rows, says):
    (tmp_path / "a.csv").write_text("\n".join(["env_steps,entropy,loss", *rows, ""]))
    assert any(says in note for note in only(tmp_path / "a.csv").notes)


def test_a_column_without_numbers_beside_others_is_no_note(tmp_path):
    (tmp_path / "a.csv").write_text("env_steps,entropy,loss\n1,nan,high\n2,0.5,high\n")
    assert only(tmp_path / "a.csv").notes == ()


def _seeds(**columns):
    """Return rows of three seeds, of which only the last learns."""
    rows = []
    for seed in range(3):
        returns = (lambda s: 100 * s) if seed == 2 else (lambda s: 100 - 95 * s)
        rows += rows_of(seed=seed, episode_return_mean=returns, **columns)
    return rows


def test_a_table_of_several_seeds_holds_as_many_trainings(tmp_path):
    rows = _seeds(env_steps=lambda share: round(1000 * share))
    mixed = sorted(rows, key=lambda row: (row["env_steps"], row["seed"]))
    for number, some in enumerate((rows, mixed)):
        logs = logs_in(write_csv(tmp_path / f"{number}.csv", some), {})
        assert [log.name[-6:] for log in logs] == ["seed=0", "seed=1", "seed=2"]
        ends = [log.signals["episode_return_mean"].y[-1] for log in logs]
        assert ends == [5, 5, 100]
        assert not any(log.notes for log in logs)


def test_a_table_of_several_seeds_may_have_no_env_steps(tmp_path):
    assert len(logs_in(write_csv(tmp_path / "a.csv", _seeds()), {})) == 3


@pytest.mark.parametrize("name", ["trial", "seed"])
def test_a_column_that_counts_rows_tells_no_trainings_apart(tmp_path, name):
    rows = rows_of(env_steps=lambda share: round(1000 * share), entropy=0.5)
    for number, row in enumerate(rows):
        row[name] = number
    assert len(only(write_csv(tmp_path / "a.csv", rows)).signals["entropy"].x) == len(rows)


@pytest.mark.slow
def test_our_own_export_of_several_seeds_is_read_by_seed(tmp_path):
    train("ppo", "CartPole-v1", env_steps=8_192, seeds=2, home=tmp_path)
    assert main(["export", "latest", str(tmp_path / "a.csv"), "--home", str(tmp_path)]) == 0
    logs = logs_in(tmp_path / "a.csv", {})
    assert len(logs) == 2
    assert all("seed=" in log.name for log in logs)


def test_values_of_equal_steps_that_are_left_out_are_counted(tmp_path):
    rows = _seeds(env_steps=lambda share: round(1000 * share))
    for row in rows:
        del row["seed"]
    mixed = sorted(rows, key=lambda row: row["env_steps"])
    (note,) = only(write_csv(tmp_path / "a.csv", mixed)).notes
    assert f"{2 * len(rows) // 3:,} of {len(rows):,} values are left out" in note
    assert "a column `seed`" in note


@pytest.mark.parametrize("column", ["num_timesteps", "Step", "Global_Step", "total_steps"])
def test_the_column_of_env_steps_has_many_names(tmp_path, column):
    rows = rows_of(**{column: lambda share: round(5000 * share)}, entropy=0.5)
    assert only(write_csv(tmp_path / "a.csv", rows)).end == 5000


def test_the_column_of_env_steps_can_be_named(tmp_path):
    rows = rows_of(samples=lambda share: round(5000 * share), step=1, entropy=0.5)
    path = write_csv(tmp_path / "a.csv", rows)
    assert only(path, {"samples": "env_steps"}).end == 5000
    unnamed = rows_of(samples=lambda share: round(5000 * share), entropy=0.5)
    (note,) = only(write_csv(tmp_path / "c.csv", unnamed)).notes
    assert "--map samples=env_steps" in note


def test_a_monitor_file_of_two_sittings_keeps_their_order(tmp_path):
    path = tmp_path / "monitor.csv"
    sittings = [(sitting, episode) for sitting in (0, 1) for episode in range(50)]
    rows = [f"{100 * sitting + episode},10,{episode}.5" for sitting, episode in sittings]
    path.write_text("\n".join(["r,l,t", *rows, ""]))
    log = only(tmp_path)
    returns = log.signals["episode_return_mean"].y
    np.testing.assert_array_equal(returns, [100 * one + two for one, two in sittings])
    assert (np.diff(log.signals["seconds"].y) > 0).all()
    assert "times begin again 1 time" in log.notes[0]


def test_a_table_of_action_values_is_not_a_network(tmp_path):
    columns = {"env_steps": lambda share: round(share * 1000), "epsilon": 0.1, "learning_rate": 0.1}
    assert only(write_csv(tmp_path / "a.csv", rows_of(**columns))).algorithm is None
    assert only(write_csv(tmp_path / "b.csv", rows_of(q_loss=1.0, **columns))).algorithm == "dqn"


def test_a_logged_deviation_says_that_actions_are_continuous(tmp_path):
    columns = {"train/entropy_loss": -math.log(4), "train/std": 0.97}
    assert only(sb3(tmp_path / "a", **columns)).settings["actions"] == "continuous"
    del columns["train/std"]
    assert only(sb3(tmp_path / "b", **columns)).settings["actions"] == 4


def test_steps_of_all_columns_that_go_back_are_one_note(tmp_path):
    one, two = (rows_of(step=lambda s: round(s * 60), entropy=0.5, q_mean=y) for y in (1, 2))
    both = [row for pair in zip(one[1:], two, strict=False) for row in pair]
    note, left_out = only(write_csv(tmp_path / "a.csv", both)).notes
    assert left_out.startswith("`entropy` and 1 more: ")
    assert "are left out, because of equal steps the last value counts" in left_out
    assert note.startswith("`entropy` and 1 more: steps go back 59 times")
    assert "may be two runs" in note


def test_names_that_are_used_or_have_a_meaning_are_not_unknown(tmp_path):
    log = only(sb3(tmp_path / "PPO_1", **{"train/std": 1.0, "time/odd": 3}))
    assert log.unknown == ("time/odd",)
    log = only(write_csv(tmp_path / "a.csv", rows_of(global_step=lambda s: s * 60, entropy=1.0)))
    assert log.unknown == ()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("entrpy", "entropy"),
        ("approx_kl_mean", "approx_kl"),
        ("episode_return", "episode_return_mean"),
        ("train/policy-loss", "policy_loss"),
        ("train/loss", None),
        ("entropy_MIN", None),
        ("std_reward", None),
        ("critic_loss", None),
        ("q_value_mean", "q_mean"),
        ("reward_st", "reward_std"),
        ("reward", "episode_return_mean"),
        ("ep_rew_mean", "episode_return_mean"),
        ("AverageEpRet", "episode_return_mean"),
        ("returned_episode_returns", "episode_return_mean"),
        ("returned_episode_lengths", "episode_length_mean"),
        ("Train/EpLen", "episode_length_mean"),
        ("actor_loss", "policy_loss"),
        ("vf_loss", "value_loss"),
        ("kl_divergence", "approx_kl"),
        ("LR", "learning_rate"),
        ("Mean Reward (100 ep)", "episode_return_mean"),
        ("Policy Entropy", "entropy"),
        ("loss_v", "value_loss"),
        ("td_loss", "q_loss"),
        ("lr_now", "learning_rate"),
        ("v", "value_mean"),
        ("π loss [last 10]", "policy_loss"),
        ("reward/mean", "episode_return_mean"),
        ("train/mean", None),
        ("H", "entropy"),
        ("adv", "advantage_mean"),
        ("adv_sd", "advantage_std"),
        ("gnorm", "grad_norm"),
        ("frames", "env_steps"),
        ("SAC/Q1", "q_mean"),
    ],
)
def test_a_name_resembles_only_what_is_of_its_kind(name, ours):
    assert closest([name]).get(name) == ours


def test_of_several_names_for_a_signal_the_longest_is_suggested():
    assert closest(["reward", "episode_reward", "score"]) == {
        "episode_reward": "episode_return_mean"
    }


@pytest.mark.parametrize(
    ("steps", "rate"),
    [
        ("timesteps_total", "info/learner/default_policy/learner_stats/cur_lr"),
        (
            "num_env_steps_sampled_lifetime",
            "learners/default_policy/default_optimizer_learning_rate",
        ),
    ],
)
def test_the_learning_rate_of_rllib(tmp_path, steps, rate):
    rows = rows_of(**{steps: lambda share: round(share * 5000), rate: 3e-4})
    assert only(write_csv(tmp_path / "progress.csv", rows)).signals["learning_rate"].y[0] == 3e-4


def test_steps_that_go_back_are_ordered_and_noted(tmp_path):
    rows = rows_of(step=lambda share: round(share * 60) % 30, entropy=0.5)
    log = only(write_csv(tmp_path / "a.csv", rows))
    assert (np.diff(log.signals["entropy"].x) > 0).all()
    assert "steps go back 2 times" in log.notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("step,entropy\n", "has no rows"),
        ("step,entropy\n1,0.5\n2,0.4", "left out: its last line (3), which has no newline"),
        ("a,b\n1,2\n", "--map COLUMN=env_steps if there is one"),
        ("Frames,b\n1,2\n", "--map Frames=env_steps if that is it"),
        (
            "step,entropy,entropy,\n1,0.5,0.1,\n",
            "several columns of one name, the last counts: `ent",
        ),
    ],
)
def test_a_bad_csv_gives_a_sentence(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    log = only(tmp_path / "a.csv")
    assert any(says in note for note in log.notes), log.notes
    assert not diagnose(log).can_tell


@pytest.mark.parametrize(("text", "why"), [("", "it is not"), ("1,2\n3,4\n", "its first line")])
def test_a_csv_without_names_gives_a_sentence(tmp_path, text, why):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UserFacingError, match=f"no line of column names: {why}"):
        only(tmp_path / "a.csv")


def test_a_log_that_was_just_created_does_not_hide_the_others(tmp_path):
    for name in ("a", "c"):
        write_csv(tmp_path / name / "progress.csv", rows_of(30, **{"time/total_timesteps": 100.0}))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "progress.csv").write_text("")
    logs = logs_in(tmp_path, {})
    assert [Path(log.name).name for log in logs] == ["a", "c"]
    assert all(sum("no line of column names" in note for note in log.notes) == 1 for log in logs)
    with pytest.raises(DamagedFile, match=r"^`[^`]*progress\.csv` has no line of column names"):
        logs_in(tmp_path / "b", {})


def test_event_files_that_are_cut_off_are_read_up_to_there(tmp_path):
    folder = cleanrl(tmp_path / "run", **{"losses/entropy": 0.5})
    path = folder / "events.out.tfevents.1.host"
    path.write_bytes(path.read_bytes()[:-30])
    log = only(folder)
    assert len(log.signals["entropy"].x) == 59
    assert any("damaged" in note for note in log.notes)
    path.write_bytes(b"\x00" * 5)
    with pytest.raises(UserFacingError):
        only(folder)


def test_two_runs_in_one_folder_are_two_logs(tmp_path):
    cleanrl(tmp_path / "one", **{"losses/entropy": 0.5})
    cleanrl(tmp_path / "two", **{"losses/entropy": 0.4})
    assert [log.signals["entropy"].y[0] for log in logs_in(tmp_path, {})] == pytest.approx(
        [0.5, 0.4]
    )


def test_nan_everywhere_is_a_finding(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", rows_of(step=lambda s: s * 60, policy_loss=math.nan, entropy=math.nan)
    )
    found = diagnose(only(path))
    assert found.findings[0].check.id == "NN-NAN"
    assert in_words(found)


def test_rewards_that_are_nan_give_words(tmp_path):
    columns = dict.fromkeys(("reward_min", "reward_max", "reward_mean"), math.nan)
    path = write_csv(tmp_path / "a.csv", rows_of(step=lambda s: s * 60, **columns))
    assert "reward scale" in in_words(diagnose(only(path)))


def test_facts_that_a_log_does_not_hold(tmp_path):
    path = write_csv(tmp_path / "a.csv", rows_of(step=lambda s: s * 60, entropy=1.3))
    log = with_facts(only(path), {"algorithm": "ppo", "actions": 4, "env_steps": 1000})
    assert (log.algorithm, log.budget, log.setting("actions")) == ("ppo", 1000, 4)
    with pytest.raises(UsageError, match="must be a number"):
        with_facts(log, {"env_steps": "many"})


@pytest.mark.parametrize(
    ("fact", "says"),
    [
        ("foo=bar", "the doctor knows no `foo`"),
        ("lr=0.5", "knows no `lr`, did you mean `learning_rate`?"),
        ("discont=0.9", "knows no `discont`, did you mean `discount`?"),
        ("actions=two", "`actions` must be a whole number above 0 or continuous, got `two`"),
        ("actions=-3", "`actions` must be a whole number above 0 or continuous, got `-3`"),
        ("actions=1e400", "`actions` must be a whole number above 0 or continuous, got `inf`"),
        ("actions=nan", "`actions` must be a whole number above 0 or continuous, got `nan`"),
        ("env_steps=-5", "`env_steps` must be a number above 0"),
        ("env_steps=nan", "`env_steps` must be a number above 0"),
        ("discount=2", "`discount` must be a number from 0 to 1, got `2`"),
        ("gamma=nan", "`gamma` must be a number from 0 to 1"),
        ("learning_rate=abc", "`learning_rate` must be a number of at least 0, got `abc`"),
        ("normalize_obs=3", "`normalize_obs` must be true or false, got `3`"),
        ("max_grad_norm=big", "`max_grad_norm` must be a number, got `big`"),
    ],
)
def test_a_fact_that_cannot_be_is_refused(tmp_path, capsys, fact, says):
    path = write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: s * 60, entropy=1.3))
    assert run(path, "--about", fact) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("theirs", [*NAMES, "q_lr", "anneal_lr", "exploration_fraction"])
def test_settings_of_other_libraries_may_be_told(theirs):
    value = True if theirs == "anneal_lr" else 1
    assert checked_facts({theirs: value}) == {theirs: value}


def test_placeholders_of_a_command_may_be_told(tmp_path, capsys):
    path = write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: s * 60, entropy=1.3))
    given = ("--prove", "--about", "own=3", "--command", "python x.py {seed} {own}")
    run(path, *given)
    assert "knows no `own`" not in capsys.readouterr().err


def test_the_algorithm_is_told_in_any_case_and_an_unknown_one_is_noted(tmp_path):
    path = write_csv(tmp_path / "a.csv", rows_of(step=lambda s: s * 60, entropy=1.3))
    log = with_facts(only(path), {"algorithm": "PPO"})
    assert (log.algorithm, log.notes) == ("ppo", ())
    other = with_facts(only(path), {"algorithm": "Rainbow"})
    assert "does not know the algorithm `rainbow`" in other.notes[0]
    assert "it knows a2c, cem, ddpg, dqn, ppo, sac" in other.notes[0]


@pytest.mark.parametrize(
    ("entropy", "actions"),
    [
        *((math.log(4), 4), (0.98 * math.log(4), 4), (math.log(2) - 1e-3, 2), (0.685, 2)),
        *((math.log(4) + 1e-6, 4), (math.log(18), 18), (0.99 * math.log(18), None)),
        *((1.4189, None), (2.8379, None), (-0.5, None), (0.0, None), (0.9 * math.log(4), None)),
    ],
)
def test_the_number_of_actions_from_the_first_entropy(tmp_path, entropy, actions):
    log = only(write_csv(tmp_path / "a.csv", rows_of(step=lambda s: s * 60, entropy=entropy)))
    assert number_of_actions(log.signals) == actions


@pytest.mark.parametrize("later", [1.5, -0.1])
def test_an_entropy_that_discrete_actions_cannot_have_tells_no_number(tmp_path, later):
    columns = {"step": lambda s: s * 60, "entropy": lambda s: math.log(4) if s < 0.5 else later}
    log = only(write_csv(tmp_path / "a.csv", rows_of(**columns)))
    assert "actions" not in log.settings


def test_the_first_entropy_of_sac_tells_no_number_of_actions(tmp_path):
    """Nearly uniform in (-1, 1)²: 2 log 2, as of four discrete actions."""
    columns = {"step": lambda s: s * 60, "entropy": 2 * math.log(2)}
    plain = only(write_csv(tmp_path / "a.csv", rows_of(**columns)))
    assert "actions=4 (guessed)" in in_words(diagnose(plain))
    assert "actions" not in with_facts(plain, {"algorithm": "sac"}).settings
    tuned = only(write_csv(tmp_path / "b.csv", rows_of(temperature=0.2, **columns)))
    assert "actions" not in tuned.settings
    told = with_facts(plain, {"actions": "continuous"})
    assert (told.settings["actions"], told.setting("actions")) == ("continuous", None)
    assert "actions=continuous" in in_words(diagnose(told))


def test_what_only_settings_say_is_not_fine_as_measured(tmp_path):
    """ε is computed from the settings: the program may act otherwise."""
    facts = {"epsilon_start": 1.0, "epsilon_end": 0.05, "exploration_fraction": 0.5}
    facts |= {"algorithm": "dqn", "env_steps": 60, "target_update_interval": 10}
    path = write_csv(tmp_path / "a.csv", rows_of(step=lambda s: s * 60, q_mean=1.0))
    found = diagnose(with_facts(only(path), facts))
    measured, as_set = in_words(found).split("fine as set; the program may do otherwise (")
    assert "target_update_interval=10, epsilon_start=1" in measured
    assert "Q-TARGET-NEVER" in as_set.splitlines()[0]
    assert "Q-EPS-HIGH" in as_set.splitlines()[0]
    assert "Q-NAN" not in as_set.splitlines()[0]
    fine = measured.splitlines()[-1]
    assert fine.startswith("fine as measured (")
    assert "Q-TARGET-NEVER" not in fine
    (word,) = to_json([found])["diagnoses"]
    assert {"Q-TARGET-NEVER", "Q-EPS-HIGH"} <= set(word["fine_as_set"]) < set(word["fine"])


def test_known_environments_tell_the_number_of_actions(tmp_path):
    columns = {"step": lambda s: s * 60, "entropy": lambda s: 0.3 * (1 - s)}
    log = only(write_csv(tmp_path / "a.csv", rows_of(**columns)))
    assert "actions" not in log.settings
    assert with_facts(log, {"env": "LunarLander-v3"}).setting("actions") == 4
    assert with_facts(log, {"env": "Pendulum-v1"}).setting("actions") is None
    wide = only(write_csv(tmp_path / "b.csv", rows_of(step=lambda s: s * 60, entropy=1.42)))
    assert with_facts(wide, {"env": "LunarLander-v3"}).setting("actions") is None


def test_a_mapping_the_wrong_way_round_or_with_a_name_twice_is_refused(tmp_path, capsys):
    path = write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: s * 60, H=1.3, other=1.0))
    assert run(path, "--map", "entropy=H") == 2
    assert "the logged name comes first, as --map H=entropy" in capsys.readouterr().err
    for second in ("H=value_mean", "other=entropy"):
        assert run(path, "--map", "H=entropy", "--map", second) == 2
        assert "is in two --map" in capsys.readouterr().err
    assert run(path, "--map", "H=entropy", "--map", "H=entropy") != 2


def test_names_without_a_meaning_are_all_in_json(tmp_path):
    names = {f"x{at}": 1.0 for at in range(30)} | {"reward/mean": 1.0}
    log = only(write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: s * 60, **names)))
    said = in_words(diagnose(log))
    assert "x19, and 11 more (--json has all)" in said
    (word,) = to_json([diagnose(log)])["diagnoses"]
    assert set(word["unknown_names"]) == set(names)
    assert word["suggested"] == {"reward/mean": "episode_return_mean"}


def test_steps_of_event_files_of_an_unknown_program_may_be_other_steps(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    events = (scalar_event(1.6e9 + at, at, [("entropy", 1.0)]) for at in range(1, 30))
    (folder / "events.out.tfevents.1.host").write_bytes(version_event(1.6e9) + b"".join(events))
    assert "are taken for env steps" in only(folder).notes[-1]
    assert only(cleanrl(tmp_path / "known", **{"losses/entropy": 1.0})).notes == ()


def test_the_reward_scale_needs_no_mean(tmp_path):
    rewards = {"reward_min": -1.0, "reward_max": 2.0}
    path = write_csv(tmp_path / "a.csv", rows_of(env_steps=lambda s: s * 60, **rewards))
    assert "rewards from −1 to 2" in in_words(diagnose(only(path)))


def test_the_loss_of_the_policy_in_continuous_cleanrl(tmp_path):
    losses = {"losses/actor_loss": -2.0, "losses/qf1_loss": 1.0, "losses/qf2_loss": 1.0}
    log = only(cleanrl(tmp_path / "td3", **losses, **{"losses/qf2_values": 2.0}))
    assert log.signals["policy_loss"].y[0] == -2.0
    assert log.unknown == ()


def test_the_algorithm_from_what_is_logged():
    names = {"sac": ("temperature", "q_loss"), "dqn": ("epsilon",), "ppo": ("clip_fraction",)}
    for algorithm, signals in names.items():
        found = {name: Signal(np.ones(1), np.ones(1), name) for name in signals}
        assert algorithm_of("sb3", found) == algorithm
    assert algorithm_of("sb3", {}) is None


def test_the_action_values_of_stable_baselines3_are_in_the_loss_of_the_policy(tmp_path):
    """And values of another sign than returns are a finding, from `progress.csv` alone."""
    rows = {
        "time/total_timesteps": lambda s: round(100_000 * s),
        "rollout/ep_rew_mean": -100.0,
        "rollout/ep_len_mean": 200.0,
        "train/actor_loss": lambda s: -40.0 - s / 100,
        "train/critic_loss": 1.0,
    }
    log = only(write_csv(tmp_path / "TD3_1" / "progress.csv", rows_of(**rows)))
    assert (log.algorithm, log.library) == ("td3", "sb3")
    assert log.signals["q_mean"].y[-1] == pytest.approx(40.01)
    assert "Q-SIGN" in {one.check.id for one in diagnose(log).findings}
    ppo = {"policy_loss": Signal(np.ones(1), np.ones(1), "train/policy_gradient_loss")}
    assert with_action_values("sb3", ppo) == ppo


def test_the_loss_of_stable_baselines3_is_that_of_its_algorithm(tmp_path):
    """DQN has one loss; PPO one of several terms. The clip range is a setting."""
    rows = {"time/total_timesteps": lambda s: round(1e5 * s), "train/loss": 2.0}
    dqn = only(sb3(tmp_path / "DQN_1", **rows, **{"rollout/exploration_rate": 0.05}))
    assert dqn.signals["q_loss"].y[-1] == 2.0
    assert "total_loss" not in dqn.signals
    ppo = only(sb3(tmp_path / "PPO_1", **rows, **{"train/clip_range": 0.3}))
    assert ppo.signals["total_loss"].y[-1] == 2.0
    assert (ppo.setting("clip_range"), dqn.setting("clip_range")) == (0.3, None)
    falls = only(sb3(tmp_path / "PPO_2", **rows, **{"train/clip_range": lambda s: 0.3 - 0.1 * s}))
    assert falls.setting("clip_range") is None


def test_evaluations_that_fall_late_are_dated_so(tmp_path):
    """They follow training for 60 % of it."""
    rows = {"rollout/ep_rew_mean": lambda s: 20 + 100 * s}
    rows["eval/mean_reward"] = lambda s: 20 + 100 * s * (s < 0.6)
    (found,) = diagnose(only(sb3(tmp_path / "PPO_1", **rows))).findings
    assert found.check.id == "ENV-EVALGAP"
    assert 0.6e6 < found.since < 0.8e6  # half of what it looks at is below then


def test_evaluations_that_become_nan_are_found_and_empty_cells_are_not(tmp_path):
    rows = {"rollout/ep_rew_mean": lambda s: 20 + 100 * s}
    for name, other, found in (("1", math.nan, True), ("2", "", False)):
        rows["eval/mean_reward"] = lambda s, other=other: 20 + 100 * s if s < 0.5 else other
        ids = [m.check.id for m in diagnose(only(sb3(tmp_path / name, **rows))).findings]
        assert ("NN-NAN" in ids) == found


def test_a_learning_rate_that_stays_is_a_setting(tmp_path):
    assert (
        only(sb3(tmp_path / "1", **{"train/learning_rate": 1e-3})).setting("learning_rate") == 1e-3
    )
    falls = only(sb3(tmp_path / "2", **{"train/learning_rate": lambda s: 1e-3 * (1 - s)}))
    assert falls.setting("learning_rate") is None


@pytest.mark.parametrize(("share", "found"), [(0.0, True), (0.6, False), (1.1, False)])
def test_evaluations_that_do_not_follow_the_training_are_found(tmp_path, share, found):
    rows = {"rollout/ep_rew_mean": lambda s: 20 + 100 * s}
    rows["eval/mean_reward"] = lambda s: 20 + 100 * s * share + (3 if round(50 * s) % 2 else -3)
    diagnosis = diagnose(only(sb3(tmp_path / "PPO_1", **rows)))
    ids = [measured.check.id for measured in diagnosis.findings]
    assert ("ENV-EVALGAP" in ids) == found
    assert [ranked.cause.id for ranked in diagnosis.causes[:1]] == ["evaluation"] * found


@pytest.mark.slow
def test_a_run_of_ours_has_a_log_for_each_seed(tmp_path):
    settings = {"num_envs": 4, "rollout_length": 16, "hidden": (8,)}
    train("ppo", "CartPole-v1", seeds=2, env_steps=1280, settings=settings, home=tmp_path)
    one, two = find_logs(tmp_path, "latest", {})
    assert (one.seed, two.seed) == (0, 1)
    assert (one.library, one.algorithm, one.env) == ("backflip", "ppo", "CartPole-v1")
    assert one.signals["first_ratio_error"].x[-1] == 1280 == one.planned
    found = diagnose(one)
    assert "PI-RATIO1" in [fine.check.id for fine in found.fine]
    folder = find_run(tmp_path, "latest").folder
    word = doctors_word(folder)
    assert word is not None
    assert word["in_words"].startswith("doctor: ")
    assert set(word["findings"]) <= {check.id for check in CHECKS}
    assert [log.seed for log in find_logs(tmp_path, str(folder), {})] == [0, 1]


@pytest.mark.parametrize(
    ("teacher", "has_return"),
    [
        (None, True),
        ("oracle", True),
        ("noisy:mistake=0.1", True),
        ("mine:wants", False),
        ("human", False),
    ],
)
def test_the_true_return_says_nothing_where_a_teacher_may_want_something_else(
    tmp_path, teacher, has_return
):
    falls = [
        {"seed": 0, "env_steps": 1_000 * n, "episodes": 1, "episode_return_mean": -10.0 * n + n % 2}
        for n in range(1, 61)
    ]
    config = {"settings": {"env_steps": 60_000}} | ({} if teacher is None else {"teacher": teacher})
    folder = make_run(tmp_path, 1, records=falls, config=config, algorithm="ppo", seeds=[0])
    (log,) = logs_of_run(open_run(folder))
    assert log.has("episode_return_mean") == has_return
    found = {one.check.id for one in diagnose(log).findings}
    assert found == ({"ENV-WORSE"} if has_return else set())


def test_a_run_with_other_arguments_is_in_another_environment(tmp_path):
    about = {"command": "train", "env": "Pendulum-v1", "algorithm": "ppo", "argv": ["train"]}
    config = {"env_args": {"gravity": 5.0}, "settings": {}}
    with create_run(tmp_path, config=config, seeds=[0], **about) as writer:
        (log,) = logs_of_run(writer.run)
    assert (log.env, log.env_args) == ("Pendulum-v1", {"gravity": 5.0})


def run(*argv):
    return main(["doctor", *map(str, argv)])


def test_the_command_prints_findings_and_its_status(tmp_path, capsys):
    broken = sb3(tmp_path / "PPO_1", **{"train/approx_kl": 33.0, "train/clip_fraction": 0.999})
    assert run(broken) == 1
    text = capsys.readouterr().out
    assert "finding PI-KL-HIGH" in text
    assert "Steps of the optimiser are too large" in text
    assert "next experiment" in text
    assert run(broken, "--json") == 1
    (document,) = json.loads(capsys.readouterr().out)["diagnoses"]
    assert document["findings"][0]["check"].startswith("PI-")
    assert document["causes"][0]["probability"] > document["causes"][1]["probability"]


def test_the_command_says_when_it_cannot_tell(tmp_path, capsys):
    path = write_csv(tmp_path / "a.csv", rows_of(3, step=1, loss=2.0))
    assert run(path) == 3
    assert "Too little is logged" in capsys.readouterr().out
    healthy = sb3(tmp_path / "PPO_1")
    assert run(healthy) == 0
    assert run(healthy, path) == 3, "a script must not take it for a healthy log"
    capsys.readouterr()
    for name in (tmp_path / ("x" * 300), tmp_path / "none"):
        assert run(name) == 2
        assert "there is no file or folder" in capsys.readouterr().err
    assert run() == 2
    assert run(path, "--map", "x") == 2


def test_one_html_file(tmp_path, capsys):
    broken = sb3(tmp_path / "PPO_<b>", **{"train/approx_kl": lambda share: 33.0 * share})
    assert run(broken, "--html", tmp_path / "d.html") == 1
    text = (tmp_path / "d.html").read_text()
    assert "<svg" in text
    assert "PPO_<b>" not in text
    assert run(broken, "--html", tmp_path / "d.txt") == 2
    capsys.readouterr()


def test_the_list_names_all_checks_and_signals(capsys):
    assert run("--list") == 0
    text = capsys.readouterr().out
    assert "PI-RATIO1" in text
    assert "first_ratio_error" in text


# What users asked, with the numbers of their threads (docs/doctor.md has the addresses).


def findings_of(folder):
    found = diagnose(only(folder))
    return [one.check.id for one in (*found.findings, *found.warnings, *found.remarks)], found


def test_is_my_ppo_converged(tmp_path):
    """Stable-Baselines3 issue 2240: entropy 1.33 of log 4, explained variance 6e-8."""
    names, found = findings_of(
        sb3(
            tmp_path / "PPO_1",
            **{
                "train/entropy_loss": lambda share: -1.386 if share < 0.05 else -1.33,
                "train/explained_variance": 6e-8,
                "train/value_loss": 738_000.0,
                "train/approx_kl": 0.004,
                "train/clip_fraction": 0.02,
            },
        )
    )
    assert {"PI-ENT-HIGH", "PV-CONSTANT", "PV-LOSS"} <= set(names)
    first = [one.cause.id for one in found.causes[:3]]
    assert {"reward-scale", "entropy-bonus"} & set(first)


def test_nan_with_state_dependent_noise(tmp_path):
    """Stable-Baselines3 issue 1593: a divergence of 33 and .999 of all rows clipped, before NaN."""
    names, found = findings_of(
        sb3(tmp_path / "PPO_1", **{"train/approx_kl": 33.0, "train/clip_fraction": 0.999})
    )
    assert {"PI-KL-HIGH", "PI-CLIP-HIGH"} <= set(names)
    assert found.causes[0].cause.id == "steps-too-large"


def test_explained_variance_of_zero_from_the_start(tmp_path):
    """Stable-Baselines3 issue 1897: policy loss and explained variance near 0 from the start."""
    names, _ = findings_of(
        sb3(
            tmp_path / "PPO_1",
            **{"train/explained_variance": lambda share: 1e-4 * share, "train/approx_kl": 0.01},
        )
    )
    assert "PV-EV-ZERO" in names


def test_negative_losses_are_no_findings(tmp_path):
    """Stable-Baselines3 issue 602: negative entropy loss and policy loss are as they should be."""
    names, found = findings_of(
        sb3(
            tmp_path / "PPO_1",
            **{
                "train/entropy_loss": lambda share: -0.69 + 0.5 * share,
                "train/policy_gradient_loss": -0.02,
                "train/explained_variance": lambda share: min(0.9, 2 * share),
                "train/approx_kl": 0.01,
                "train/clip_fraction": 0.1,
                "train/value_loss": 3.0,
            },
        )
    )
    assert names == []
    assert found.verdict == "Nothing wrong was seen."


def test_the_use_of_the_machine_is_read_over_env_steps(tmp_path):
    trained = [
        {"env_steps": 1000 * at, "seconds": 2.0 * at, "seed": 0, "entropy": 0.5}
        for at in range(1, 41)
    ]
    use = {"gpu0/utilisation_percent": 1.0, "load_per_core": 2.5}
    machine = [{"seconds": 2.0 * at, **use} for at in range(1, 41)]
    folder = make_run(tmp_path, 1, records=[*trained, *machine], seeds=[0], algorithm="ppo")
    (log,) = logs_of_run(open_run(folder))
    assert all(log.signals[name].x[-1] == 40_000 for name in use)
    assert {"SYS-GPU-IDLE", "SYS-CPUS"} <= {one.check.id for one in diagnose(log).warnings}


@pytest.mark.slow
def test_answers_that_all_name_one_side_are_a_finding(tmp_path, monkeypatch):
    (tmp_path / "one_key.py").write_text("def prefer(left, right):\n    return 'left'\n")
    monkeypatch.syspath_prepend(tmp_path)
    tiny = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2, "hidden": (8,)}
    tiny |= {
        "phases": 3,
        "clip_length": 5,
        "clip_envs": 8,
        "random_envs": 8,
        "random_env_steps": 30,
    }
    budget = {"labels": 70, "env_steps": 64 * 12, "home": tmp_path, "settings": tiny}
    result = teach("dot", teacher="one_key:prefer", **budget)
    (log,) = logs_of_run(find_run(tmp_path, result.run))
    assert "RM-ONE-KEY" in [one.check.id for one in diagnose(log).findings]
    sound = teach("dot", **budget)
    (log,) = logs_of_run(find_run(tmp_path, sound.run))
    assert log.has("label_left")
    assert "RM-ONE-KEY" in [one.check.id for one in diagnose(log).fine]


def test_answers_are_read_in_the_order_of_the_queries_of_each_seed(tmp_path):
    clip = {"obs": np.zeros((2, 1), np.float32)}
    with LabelStore.open(tmp_path / LABELS) as store:
        new = [NewQuery(seed, clip, clip, 100 * at) for at in range(1, 5) for seed in (3, 4)]
        queries = store.add_queries(new)
        told = ["left", "skip", "right", "left", "tie", "right", "left", "left"]
        store.add_labels(NewLabel(*pair, "me", 1) for pair in zip(queries, told, strict=True))
    found = signals_of_labels(tmp_path)
    assert list(found[3]["label_left"].x) == [100, 200, 300, 400]
    np.testing.assert_array_equal(found[3]["label_left"].y, [1, 0, np.nan, 1])
    np.testing.assert_array_equal(found[4]["label_left"].y, [1, 0, 1])
    (tmp_path / LABELS).write_bytes(b"damaged")
    assert signals_of_labels(tmp_path) == {}


def test_files_of_wandb(tmp_path):
    rows = [
        {"_step": at, "_runtime": at / 10, "global_step": 1000 * at, "losses/approx_kl": 50.0}
        for at in range(60)
    ]
    rows[0]["charts/SPS"] = 1000.0
    rows[30] = {"_step": 30, "losses/value_loss": 0.5}
    config = {"total_timesteps": 60_000, "gamma": 0.9}
    wandb_file(tmp_path / "offline-run-1" / "run-x.wandb", rows, "Hopper-v5__ppo__1__17", **config)
    log = only(tmp_path)
    assert (log.library, log.algorithm, log.env) == ("cleanrl", "ppo", "Hopper-v5")
    assert (log.planned, log.settings["discount"]) == (60_000, 0.9)
    assert log.signals["approx_kl"].x[-1] == 59_000
    assert list(log.signals["value_loss"].x) == [29_000]
    assert log.signals["seconds"].y[-1] == pytest.approx(5.9)
    found = diagnose(log)
    assert [one.check.id for one in found.findings] == ["PI-KL-HIGH", "ENV-NOEP"]
    assert found.causes[0].cause.id == "steps-too-large"


def test_a_damaged_file_of_wandb_beside_a_sound_one_is_a_note(tmp_path):
    rows = [{"_step": at, "approx_kl": 0.01} for at in range(20)]
    wandb_file(tmp_path / "a.wandb", rows)
    (tmp_path / "b.wandb").write_bytes(b"no file of W&B")
    assert only(tmp_path).signals["approx_kl"].x[-1] == 19
    with pytest.raises(UserFacingError, match="does not begin as a file of W&B"):
        logs_in(tmp_path / "b.wandb", {})


def test_points_between_thousands_are_no_decimal_points_beside_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("env_steps;ep_return;kl\n1.000;1.234,5;0,1\n12.000;7;\n")
    found = only(tmp_path / "a.csv").signals["episode_return_mean"]
    assert (found.x.tolist(), found.y.tolist()) == ([1000.0, 12_000.0], [1234.5, 7.0])
    rows = "".join(f"{at};7\n" for at in range(2000))
    (tmp_path / "c.csv").write_text(f"env_steps;ep_return\n{rows}3000;7,5\n")
    assert only(tmp_path / "c.csv").signals["episode_return_mean"].y[-1] == 7.5
    (tmp_path / "b.csv").write_text("env_steps;ep_return\n1;1.000\n2;2.500\n")
    assert only(tmp_path / "b.csv").signals["episode_return_mean"].y.tolist() == [1.0, 2.5]


def test_a_name_without_a_meaning_that_ends_in_nan_is_a_finding(tmp_path):
    late = {"pg_loss": lambda share: 0.1 if share < 0.5 else math.nan}
    path = write_csv(tmp_path / "a.csv", rows_of(env_steps=_steps, ep_return=_rises, **late))
    assert [one.check.id for one in diagnose(only(path)).findings] == ["NN-NAN"]
    assert any("`pg_loss`: NaN or infinity until the end" in one for one in only(path).notes)
    gaps = {"eval": lambda share: math.nan if share * 60 % 10 > 1 else 1.0}
    path = write_csv(tmp_path / "b.csv", rows_of(env_steps=_steps, ep_return=_rises, **gaps))
    assert only(path).broken == ()


def test_a_loss_is_not_suggested_as_a_value():
    assert closest(["loss/v", "loss/pi"]) == {"loss/v": "value_loss", "loss/pi": "policy_loss"}


def test_settings_alone_do_not_tell_that_nothing_is_wrong(tmp_path):
    settings = {"learning_rate": 3e-4, "gamma": 0.99, "ent_coef": 0.01, "clip_coef": 0.2}
    settings |= {"num_envs": 4, "num_steps": 128, "vf_coef": 0.5, "total_timesteps": 30_000}
    rows = [{"_step": 512 * at, "_runtime": at, "my return": 9.0} for at in range(60)]
    named = {"exp_name": "ppo", "env_id": "CartPole-v1"}
    wandb_file(tmp_path / "run-x.wandb", rows, "walk", **settings, **named)
    found = diagnose(only(tmp_path))
    assert len(found.fine) >= FEWEST
    assert not found.can_tell


def test_nested_names_of_wandb_are_those_of_event_files(tmp_path):
    rows = [{"_step": 512 * at, "charts.SPS": 1.0, "losses.entropy": 0.1} for at in range(20)]
    rows = [row | {"charts.episodic_return": 9.0} for row in rows]
    wandb_file(tmp_path / "run-x.wandb", rows, "walk")
    log = only(tmp_path)
    assert log.library == "cleanrl"
    assert log.has("episode_return_mean", "entropy")


def test_rows_and_calls_are_no_env_steps(tmp_path):
    path = write_csv(tmp_path / "a.csv", rows_of(ep_return=_rises))
    assert (only(path).counts, only(path).end) == ("rows", 60)
    wandb_file(tmp_path / "run-x.wandb", [{"_step": at, "ep_return": 1.0} for at in range(20)])
    wandb_file(tmp_path / "run-y.wandb", [{"_step": 9 * at, "ep_return": 1.0} for at in range(20)])
    counts = {log.name[-7:-6]: log.counts for log in logs_in(tmp_path, {})}
    assert (counts["x"], counts["y"]) == ("log calls", "env steps")


def test_a_column_seed_with_a_capital_letter_tells_trainings_apart(tmp_path):
    text = "Seed,env_steps,ep_return\n" + "".join(
        f"{seed},{at},{at}\n" for seed in (1, 2) for at in range(20)
    )
    (tmp_path / "a.csv").write_text(text)
    assert [log.name[-6:] for log in logs_in(tmp_path / "a.csv", {})] == ["Seed=1", "Seed=2"]


def test_episodes_of_two_environments_are_in_the_order_of_their_ends():
    found = over_env_steps(np.array([[3.0, 1.0], [10.0, 20.0], [5.0, 7.0]]))  # t, r, l
    assert found["r"].x.tolist() == [7.0, 12.0]
    assert found["r"].y.tolist() == [20.0, 10.0]
    assert found["t"].y.tolist() == [1.0, 3.0]


def test_metrics_of_the_machine_beside_those_of_seeds_are_no_training(tmp_path):
    machine = [("cpu_percent", 90.0), ("system/memory", 1.0), ("processes", 3.0)]
    data = version_event(1.6e9) + scalar_event(1.6e9, 1, machine)
    (tmp_path / "events.out.tfevents.1.host").write_bytes(data)
    assert only(tmp_path).has("cpu_percent"), "a folder with nothing else is read"
    seeds = [cleanrl(tmp_path / f"seed_{seed}", approx_kl=0.01) for seed in range(2)]
    assert [log.name for log in logs_in(tmp_path, {})] == [str(folder) for folder in seeds]


def test_wandb_and_event_files_of_one_folder_are_two_logs(tmp_path):
    wandb_file(tmp_path / "wandb" / "a.wandb", [{"_step": 1, "losses/td_loss": 1.0}])
    cleanrl(tmp_path / "runs" / "x", **{"losses/value_loss": 0.5})
    assert len(logs_in(tmp_path, {})) == 2


def settings_event(**settings):
    rows = "".join(f"|{name}|{value}|\n" for name, value in settings.items())
    return text_event("hyperparameters/text_summary", "|param|value|\n|-|-|\n" + rows)


def cleanrl_with(folder, **settings):
    """Write an event file of CleanRL with these settings and 60 points of 10,000 env steps each."""
    cleanrl(folder, **{"losses/td_loss": 0.1, "losses/q_values": 1.0})
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes() + settings_event(total_timesteps=600_000, **settings))
    (log,) = logs_in(folder, {})
    return log


def test_rates_and_schedules_that_are_settings_only(tmp_path):
    dqn = {"exp_name": "dqn", "start_e": 1, "end_e": 0.1, "exploration_fraction": 0.5}
    log = cleanrl_with(tmp_path / "one", learning_rate=0.05, **dqn)
    assert log.signals["learning_rate"].y == pytest.approx(0.05)
    at = np.interp([0, 150_000, 300_000, 600_000], *log.signals["epsilon"][:2])
    assert at == pytest.approx([1.0, 0.55, 0.1, 0.1])
    assert log.signals["epsilon"].how
    assert "NN-LR-HIGH" in {one.check.id for one in diagnose(log).findings}
    stays = cleanrl_with(tmp_path / "two", learning_rate=1e-3, **dqn | {"end_e": 1})
    assert "Q-EPS-HIGH" in {one.check.id for one in diagnose(stays).findings}
    annealed = cleanrl_with(tmp_path / "three", exp_name="ppo", learning_rate=0.5, anneal_lr=True)
    assert annealed.signals["learning_rate"].y[-1] == pytest.approx(0.0)
    never = cleanrl_with(tmp_path / "four", exp_name="dqn", target_network_frequency=10**9)
    assert "Q-TARGET-NEVER" in {one.check.id for one in diagnose(never).findings}


@pytest.mark.parametrize("first", [100, 300])
def test_times_of_a_program_before_are_of_no_speed(tmp_path, first):
    """Two event files in one folder, both with 1,000 env steps per second."""
    for number, (begin, last) in enumerate([(0, first), (60, 160)]):
        began = 1.6e9 + 1000 * number
        data = version_event(began)
        for at in range(begin + 1, last + 1):
            data += scalar_event(began + at - begin, at * 1000, [("charts/episodic_return", 1.0)])
        (tmp_path / f"events.out.tfevents.{number}.host").write_bytes(data)
    log = only(tmp_path)
    assert np.all(np.diff(log.signals["seconds"].x) > 0)
    assert log.signals["seconds"].x[[0, -1]].tolist() == [1000, 160_000]
    assert "SYS-SPEED" not in {one.check.id for one in diagnose(log).warnings}


def test_what_a_user_says_replaces_what_the_file_says(tmp_path):
    """Also under another library's name, and in signals that follow from settings."""
    written = {"exp_name": "dqn", "gamma": 0.99, "learning_rate": 3e-4}
    log = cleanrl_with(tmp_path / "one", start_e=1, end_e=0.1, exploration_fraction=0.5, **written)
    told = with_facts(log, {"discount": 0.1, "learning_rate": 1.0, "epsilon_end": 0.9})
    assert (told.settings["discount"], told.settings["gamma"]) == (0.1, 0.1)
    assert told.signals["learning_rate"].y == pytest.approx(1.0)
    assert told.signals["epsilon"].y.min() == pytest.approx(0.9)
    assert told.signals["q_loss"] is log.signals["q_loss"]
    assert with_facts(log, {"gamma": 0.1}).setting("discount") == 0.1


def test_settings_replace_no_logged_value_and_are_no_log(tmp_path):
    dqn = {"exp_name": "dqn", "start_e": 1, "end_e": 1, "exploration_fraction": 0.5}
    cleanrl(tmp_path / "one", **{"charts/epsilon": 0.3})
    (log,) = logs_in(tmp_path / "one", {})
    kept = with_settings(replace(log, settings=dqn, planned=6e5))
    assert kept.signals["epsilon"].y == pytest.approx(0.3)
    empty = Log("empty", "cleanrl", {}, algorithm="dqn", settings=dqn | {"learning_rate": 1.0})
    found = diagnose(with_settings(replace(empty, planned=6e5)))
    assert [one.check.id for one in found.findings] == ["NN-LR-HIGH"]
    usual = replace(empty, settings=dqn | {"learning_rate": 1e-3}, planned=6e5)
    assert not diagnose(with_settings(usual)).can_tell


@pytest.mark.parametrize("bad", ["fast", True, float("nan"), None, [1]])
def test_a_setting_that_is_no_number_gives_no_signal(bad):
    settings = {"learning_rate": bad, "start_e": bad, "end_e": 0.1, "exploration_fraction": 0.5}
    log = with_settings(Log("odd", "cleanrl", {}, settings=settings, planned=1e5))
    assert not log.signals


def test_returns_of_episodes_that_end_together_are_one_mean(tmp_path):
    folder = tmp_path / "CartPole-v1__ppo__1__1700000000"
    folder.mkdir()
    data = version_event(1.6e9)
    for at in range(1, 61):
        for value in (1.0, 2.0, 6.0):
            data += scalar_event(1.6e9 + at, at * 10_000, [("charts/episodic_return", value)])
        data += scalar_event(1.6e9 + at, at * 10_000, [("losses/entropy", 0.5)])
    (folder / "events.out.tfevents.1.host").write_bytes(data)
    log = only(folder)
    assert log.signals["episode_return_mean"].y.tolist() == [3.0] * 60
    assert not [note for note in log.notes if "left out" in note]


@pytest.mark.parametrize(("late", "is_found"), [(1.0, False), (5.0, True)])
def test_episodes_that_get_longer_are_no_slower_training(tmp_path, late, is_found):
    """An episode takes a second for 700 env steps, and an update seven seconds every 2,048."""
    lengths = np.linspace(20, 480, 200).astype(int)
    ends = np.cumsum(lengths)
    times = np.cumsum(np.where(ends > 0.6 * ends[-1], late, 1.0) * lengths / 700)
    times = times + 7 * (ends // 2048)
    lines = ['#{"t_start": 1.6e9, "env_id": "CartPole-v1"}', "r,l,t"]
    lines += [f"{length},{length},{time:.6f}" for length, time in zip(lengths, times, strict=True)]
    (tmp_path / "0.monitor.csv").write_text("\n".join(lines) + "\n")
    found = diagnose(only(tmp_path / "0.monitor.csv"))
    assert ("SYS-SPEED" in [one.check.id for one in found.warnings]) == is_found


def test_event_files_of_rllib_are_over_iterations(tmp_path):
    data = version_event(1.6e9)
    for at in range(1, 61):
        tags = [
            ("ray/tune/num_env_steps_sampled_lifetime", 2048.0 * at),
            ("ray/tune/env_runners/episode_return_mean", 1.0 * at),
        ]
        data += scalar_event(1.6e9 + at, at, tags)
    (tmp_path / "events.out.tfevents.1.host").write_bytes(data)
    log = only(tmp_path)
    assert log.library == "rllib"
    assert log.signals["episode_return_mean"].x.tolist() == [2048.0 * at for at in range(1, 61)]
    assert any("iterations are placed among the env steps" in note for note in log.notes)


def test_steps_that_are_times_are_no_env_steps(tmp_path):
    lines = [f"{1.7e9 + 10 * at:.0f},{at}\n" for at in range(30)]
    (tmp_path / "a.csv").write_text("step,ep_return\n" + "".join(lines))
    log = only(tmp_path / "a.csv")
    assert (log.counts, log.end) == ("seconds", 290.0)
    assert "steps begin at 1,700,000,000, as seconds since 1970 do" in " ".join(log.notes)


@pytest.mark.parametrize("name", ["env_id", "env_name", "ENV_NAME", "gym_id", "env"])
def test_the_settings_of_a_log_name_the_environment(tmp_path, name):
    rows = [{"_step": at, "ep_return": 1.0} for at in range(20)]
    wandb_file(tmp_path / "run-x.wandb", rows, **{"env_kwargs": {"env": 3}, name: "Hopper-v5"})
    assert only(tmp_path).env == "Hopper-v5"
