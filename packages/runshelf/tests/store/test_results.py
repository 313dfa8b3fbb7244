"""The result of a run: which metric it is, and its value."""

import json
import math
from pathlib import Path

import pytest
from packages.runshelf.tests.index.homes import make_run

from runshelf.errors import UsageError
from runshelf.store.results import (
    Result,
    name_metric,
    named_metric,
    read_result,
    result_metric,
    usual_first,
)
from runshelf.store.series import axes_instead, read_series
from runshelf.store.summary import summarise, write_summary

NAN = "NaN"  # as records store it


@pytest.mark.parametrize(
    ("metrics", "best"),
    [
        (["episode_return_mean", "evaluation_return", "evaluation_score", "q_loss"], 1),
        (["rollout/ep_rew_mean", "eval/mean_reward", "train/loss"], 1),
        (["episode_return_max", "episode_return_mean", "episode_length_mean"], 1),
        (["charts/SPS", "charts/episodic_return", "losses/value_loss"], 1),
        (["train_loss", "val_accuracy", "loss"], 1),
        (["epoch", "loss", "lr"], 1),
        (["cpu_percent", "x", "system/memory"], 1),
        (["learning_rate", "grad_norm"], 1),
    ],
)
def test_the_evaluated_return_comes_first_then_training_then_the_rest(
    metrics: list[str], best: int
) -> None:
    assert result_metric(dict.fromkeys(metrics, 3)) == metrics[best]
    assert usual_first(metrics)[0] == metrics[best]
    assert result_metric(dict.fromkeys(metrics, 3), metrics[0]) == metrics[0]
    assert result_metric(dict.fromkeys(metrics, 3), "unknown") == metrics[best]


def test_metrics_of_the_machine_are_never_the_result() -> None:
    assert result_metric({"cpu_percent": 3, "memory_bytes": 3, "env_steps_per_second": 3}) is None


def test_a_return_without_values_yields_to_other_returns_only() -> None:
    assert result_metric({"episode_return_mean": 0, "loss": 9}) == "episode_return_mean"
    assert result_metric({"rollout/ep_rew_mean": 0, "episode_return": 9}) == "episode_return"
    assert Result("episode_return_mean", None, 0).missing == "no episode ended"
    assert Result("loss", None, 0).missing == "no value"


def episodes(home: Path, returns: list[list[object]], **fields: object) -> Path:
    """Create a run of two seeds from the returns of each update, NaN where no episode ended."""
    records = [
        {"seed": seed, "env_steps": n, "updates": n, "episode_return_mean": value, "q_loss": 1.0}
        | {"episodes": 0 if value == NAN else 2}
        | fields
        for n, row in enumerate(returns, 1)
        for seed, value in enumerate(row)
    ]
    return make_run(home, len(list(home.glob("runs/*"))), seeds=[0, 1], records=records)


def test_updates_in_which_no_episode_ended_have_no_return(tmp_path: Path) -> None:
    folder = episodes(tmp_path, [[NAN, NAN], [10.0, NAN], [NAN, 30.0], [NAN, NAN]])
    series = read_series(folder, ["episode_return_mean"], "env_steps")["episode_return_mean"]
    assert {seed: (of.x.tolist(), of.y.tolist()) for seed, of in series.items()} == (
        {0: ([2.0], [10.0]), 1: ([3.0], [30.0])}
    )
    assert summarise(folder)["episode_return_mean"].last == 20.0
    found = read_result(folder, None)
    assert found is not None
    assert found.result == Result("episode_return_mean", 20.0, 2)
    assert found.spread.startswith("mean of 2 seeds, 95 % interval −107.1 to 147.1, lowest 10 (se")


def test_a_nan_where_something_is_wrong_is_a_value(tmp_path: Path) -> None:
    folder = episodes(tmp_path, [[10.0, 20.0], [NAN, 30.0]], episodes=2, q_loss=NAN)
    assert math.isnan(summarise(folder)["episode_return_mean"].last)
    assert math.isnan(summarise(folder)["q_loss"].last)


def test_without_an_ended_episode_there_is_no_result_yet(tmp_path: Path) -> None:
    folder = episodes(tmp_path, [[NAN, NAN], [NAN, NAN]])
    assert summarise(folder)["episode_return_mean"].count == 0
    found = read_result(folder, None)
    assert found is not None
    assert found.result == Result("episode_return_mean", None, 0)
    assert found.result.missing == "no episode ended"


def test_a_summary_of_an_older_format_is_read_again(tmp_path: Path) -> None:
    folder = episodes(tmp_path, [[10.0, 20.0], [NAN, NAN]])
    write_summary(folder)
    assert summarise(folder)["episode_return_mean"].last == 15.0
    path = folder / "summary.json"
    fields = json.loads(path.read_text())
    fields["metrics"]["episode_return_mean"]["last"] = NAN
    path.write_text(json.dumps(fields))
    assert math.isnan(summarise(folder)["episode_return_mean"].last), "the file is used"
    del fields["format"]
    path.write_text(json.dumps(fields))
    assert summarise(folder)["episode_return_mean"].last == 15.0


def test_a_metric_is_named_once_for_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert named_metric(home) is None
    name_metric(home, "q_loss")
    assert named_metric(home) == "q_loss"
    found = read_result(episodes(home, [[10.0, 20.0]]), named_metric(home))
    assert found is not None
    assert found.result.metric == "q_loss"
    name_metric(home, None)
    assert named_metric(home) is None
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="give another folder"):
        name_metric(tmp_path / "file", "q_loss")


def test_an_axis_that_a_metric_lacks_is_told_from_missing_metrics(tmp_path: Path) -> None:
    records = [{"env_steps": 1, "a": 1.0}, {"time": 5.0, "b": 1.0}, {"c": 1.0}]
    folder = make_run(tmp_path, 0, records=records)
    found = axes_instead(folder, ["a", "b", "c", "d"], "env_steps")
    assert found == {"b": ["step", "seconds", "time"], "c": ["step"]}
