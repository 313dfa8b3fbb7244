"""Fresh pairs and measures in runs of `teach`: budget, forecasts, old runs, alarm, files."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backflip.cli.progress_display import print_result
from backflip.preferences.exchange import export_labels
from backflip.preferences.fresh_pairs import BOTH, FRESH, LEFT, Forecast, fresh_answers
from backflip.preferences.fresh_pairs import forecast_array as as_array
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.preferences.reward_alarm import Alarm
from backflip.teaching_api import resume_teach, teach
from backflip.training.queries.fresh_checks import (
    CHECK_METRICS,
    FreshChecks,
    fresh_until,
    health_of_checks,
    in_words,
    metrics_of,
)
from backflip.training.queries.query_maker import QueryMaker
from backflip.training.result import Result
from backflip.training.reward_learning.reward_measures import read_measures
from backflip.training.teaching.config import TeachConfig, saved_teaching
from runshelf.errors import Interrupted
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics
from runshelf.store.run import create_run, open_run, resume_run

TINY = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 2,
    "hidden": (8,),
    "phases": 6,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
    "fresh_share": 0.5,
}
LABELS, FRESH_LABELS = 24, 12


def tiny(home: Path, **changes: Any) -> Result:
    settings = TINY | changes.pop("settings", {})
    options = {"labels": LABELS, "seeds": 2, "env_steps": 4 * 16 * 6, "argv": ["backflip"]}
    return teach("Pendulum-v1", settings=settings, home=home, **(options | changes))


def test_a_share_of_few_pairs_is_a_number():
    """A percentage of one pair says nothing."""
    few = Alarm("no alarm", 1, 0.5, 0.7, 4, 0.75, 1.0, None)
    said = in_words(few)
    assert "0.5 of 1 fresh pair (a tie counts half)" in said
    assert "new to old behaviour in 3 of 4 pairs" in said
    assert "75% of 20 fresh pairs" in in_words(few._replace(checks=20, agreement=0.75))


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return tiny(tmp_path_factory.mktemp("home"))


def fresh_of(folder: Path, seed: int) -> list[Any]:
    with LabelStore.open(folder / "labels.sqlite") as store:
        return fresh_answers(store, seed)


@pytest.mark.slow
def test_the_reserve_is_asked_in_every_round_after_the_first_and_within_the_budget(
    taught: Result,
) -> None:
    with LabelStore.open(taught.folder / "labels.sqlite") as store:
        for seed in (0, 1):
            assert store.counts(seed).labels == LABELS
            every = [at for *_, at in store.in_force(seed, 10**9)]
            fresh = [one.env_steps for one in fresh_answers(store, seed)]
            assert len(fresh) == FRESH_LABELS
            assert sorted(set(fresh)) == [64, 128, 192, 256, 320]
            assert [at for at in every if at == 320] == [320] * fresh.count(320)


@pytest.mark.slow
def test_the_kinds_of_fresh_pairs_take_turns(taught: Result) -> None:
    forecasts = [one.forecast for one in fresh_of(taught.folder, 0)]
    assert [one.newest == BOTH for one in forecasts] == [False, True, False, False] * 3
    assert [one.against_random for one in forecasts] == [1.0, 0.0, 1.0, 0.0] * 3


@pytest.mark.slow
def test_the_result_the_metrics_and_the_files_have_what_was_found(
    taught: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    found = taught.to_json()
    assert json.loads(json.dumps(found)) == found
    alarm, measures = found["reward_alarm"], found["reward_measures"]
    assert (alarm["checks"], len(alarm["seeds"])) == (2 * FRESH_LABELS, 2)
    assert alarm["seeds"][1]["checks"] == FRESH_LABELS
    assert 0 <= measures["epic"] <= 1
    assert 0 <= measures["dard"] <= 1
    assert measures["fresh_calibration_error"] is not None
    last = read_metrics(taught.folder, "train").records[-1]
    assert set(CHECK_METRICS) <= set(last)
    assert last["fresh_checks"] > 0
    seeds = (read_measures(taught.folder) or {})["seeds"]
    assert [one["fresh"]["answers"] for one in seeds] == [FRESH_LABELS] * 2
    assert [one["labels"]["answers"] for one in seeds] == [LABELS] * 2
    assert "Spearman" in (taught.folder / "learned-reward.svg").read_text()
    print_result(taught)
    printed = capsys.readouterr().out
    assert alarm["in_words"] in printed
    assert measures["in_words"] in printed


@pytest.mark.slow
def test_a_run_killed_between_fresh_pairs_keeps_their_forecasts(
    taught: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = QueryMaker.add_queries, 0

    def stopped(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 8:  # of the second seed, in the fourth round
            raise KeyboardInterrupt
        original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(QueryMaker, "add_queries", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path)
    result = resume_teach(find_run(tmp_path, "latest"))
    for seed in (0, 1):
        said = [(one.env_steps, one.forecast, one.answer) for one in fresh_of(taught.folder, seed)]
        again = fresh_of(result.folder, seed)
        assert [(one.env_steps, one.forecast, one.answer) for one in again] == said
    assert result.to_json()["reward_alarm"] == taught.to_json()["reward_alarm"]


@pytest.mark.slow
def test_a_run_without_fresh_pairs_asks_as_before_and_has_no_alarm(tmp_path: Path) -> None:
    result = tiny(tmp_path, settings={"fresh_share": 0.0}, seeds=1)
    assert fresh_of(result.folder, 0) == []
    assert "reward_alarm" not in result.to_json()
    assert "fresh_checks" not in read_metrics(result.folder, "train").records[-1]
    assert result.to_json()["reward_measures"]["fresh_calibration_error"] is None


@pytest.mark.slow
def test_a_run_with_labels_that_asks_nobody_has_no_alarm(taught: Result, tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    with LabelStore.open(taught.folder / "labels.sqlite") as store:
        export_labels(store, file)
    result = tiny(tmp_path, labels=None, labels_from=str(file))
    assert result.labels == 2 * LABELS
    assert "reward_alarm" not in result.to_json()
    assert "fresh_checks" not in read_metrics(result.folder, "train").records[-1]


def test_runs_saved_before_there_were_fresh_pairs_have_none() -> None:
    assert TeachConfig(labels=100).fresh_share == 0.12
    saved = dataclasses.asdict(TeachConfig(labels=100))
    del saved["fresh_share"]
    assert saved_teaching(saved).fresh_share == 0.0


# A store with fresh pairs made by hand.


def stored(path: Path, answers: list[tuple[Forecast, str]]) -> LabelStore:
    store = LabelStore.open(path / "labels.sqlite")
    clip = {"reward": np.zeros(2, np.float32)}
    for place, (forecast, answer) in enumerate(answers):
        opinion = {"left": np.zeros((2, 2)), FRESH: as_array(forecast)}
        query = NewQuery(0, clip, clip, 100 * place, opinion=opinion)
        store.add_label(*store.add_queries([query]), answer, "oracle", 0.0)
    return store


SURE = Forecast(LEFT, 0.95, 0.9, 1.0, 1.0)


@pytest.mark.medium
def test_an_alarm_is_said_and_recorded_once(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        stored(tmp_path, [(SURE, "right")] * 8) as store,
        create_run(tmp_path, command="teach", env="e", algorithm="ppo", config={}, seeds=[0],
                   argv=["x"]) as writer,
    ):  # fmt: skip
        checks = FreshChecks(store, [0], 8)
        for _ in range(2):
            alarm = checks.announce(said.append, writer.record_alarm)
        writer.record("interrupted")
    assert alarm.state == "alarm"
    assert len(said) == 1
    assert said[0].startswith("REWARD ALARM at ")
    assert "prefers new to old behaviour in 0 of 8 pairs" in said[0]
    assert health_of_checks(metrics_of(alarm))["fresh_evidence"] >= 20
    run = open_run(writer.folder)
    assert run.alarms() == said
    with LabelStore.open(tmp_path / "labels.sqlite") as store, resume_run(run) as again:
        store.undo(1, "oracle")  # one check less, so that the words are other ones
        resumed = FreshChecks(store, [0], 8, run.alarms())
        assert resumed.announce(said.append, again.record_alarm).state == "alarm"
    assert open_run(writer.folder).alarms() == said
    assert len(said) == 1


def test_a_child_plans_with_the_fresh_pairs_of_its_parents(tmp_path: Path) -> None:
    with stored(tmp_path, [(SURE, "right")] * 8) as store:
        assert fresh_until(store, [0], 350) == fresh_until(store, [1, 0], 350) == 4
        assert fresh_until(store, [1], 350) == 0


def test_an_undone_answer_does_not_count(tmp_path: Path) -> None:
    with stored(tmp_path, [(SURE, "right")] * 8) as store:
        store.undo(1, "oracle")
        assert FreshChecks(store, [0], 8).alarm().checks == 7


def test_opinions_without_a_readable_forecast_are_no_checks(tmp_path: Path) -> None:
    with stored(tmp_path, [(SURE, "left")]) as store:
        clip = {"reward": np.zeros(2, np.float32)}
        for forecast in (np.zeros(3, np.float32), np.full(5, np.nan, np.float32), np.zeros(5, int)):
            store.add_queries([NewQuery(0, clip, clip, 0, opinion={FRESH: forecast})])
        store.add_queries([NewQuery(0, clip, clip, 0, opinion={"left": np.zeros(2)})])
        assert [one.forecast for one in fresh_answers(store, 0)] == [pytest.approx(SURE)]
