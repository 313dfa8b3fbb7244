"""`teach --ask rank` and `--ask rate`: whole runs, resumed runs, older label files."""

import importlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.training.test_recorded_clips import SETTINGS

import backflip
from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.preferences.clip_sets import scores_of
from backflip.preferences.kept_labels import refuse_lost_labels
from backflip.preferences.label_file import LABELS, LabelFile
from backflip.preferences.labels import LabelStore
from backflip.preferences.rankings import answer_of
from backflip.preferences.teachers import TeacherFailed
from backflip.teaching_api import resume_teach
from backflip.training.result import Result
from backflip.training.teaching.config import saved_teaching
from runshelf.errors import Interrupted, UsageError
from runshelf.store.finding import find_run

TEACHERS = """
calls, fails_at = 0, None

def rank(clips):
    global calls
    calls += 1
    if calls == fails_at:
        raise ValueError("no idea")
    return sorted(range(len(clips)), key=lambda place: -clips[place].rewards.sum())

def rate(clip):
    return 3
"""


def taught(home: Path, ask: str, **given: Any) -> Result:
    usual: dict[str, Any] = {
        "settings": SETTINGS | {"ask": ask, "clips_at_once": 3},
        "labels": 20,
        "env_steps": 512,
        "teacher": "oracle",
    }
    return backflip.teach("CartPole-v1", home=home, **(usual | given))


def sets_of(folder: Path) -> list[list[tuple[float, float, str]]]:
    """Return for each set the returns of both clips and the answer, of every query."""
    found: dict[int, list[tuple[float, float, str]]] = {}
    with LabelStore.open_existing(folder / LABELS) as store:
        for pair in store.labelled(0):
            (number,) = store.file.rows("SELECT clip_set FROM queries WHERE id = ?", (pair.query,))[
                0
            ]
            left, right = (float(x["reward"].sum()) for x in (pair.left, pair.right))
            found.setdefault(number, []).append((left, right, pair.answer))
            if pair.who == "oracle":
                assert len(scores_of(store, number)) >= 2
    return list(found.values())


@pytest.mark.medium
@pytest.mark.parametrize("ask", ["rank", pytest.param("rate", marks=pytest.mark.slow)])
def test_all_labels_come_from_sets(ask: str, tmp_path: Path) -> None:
    result = taught(tmp_path, ask)
    sets = sets_of(result.folder)
    assert result.labels == sum(map(len, sets)) == 20
    assert {len(one) for one in sets} <= {1, 3}
    assert [len(one) for one in sets].count(3) >= 5
    for left, right, answer in (pair for one in sets for pair in one):
        assert answer == answer_of(left, right)
    assert "3" in (result.folder / "output.log").read_text().splitlines()[0]


@pytest.mark.slow
def test_a_resumed_run_ranks_as_one_that_was_not_stopped(tmp_path: Path) -> None:
    def interrupt(progress: Any) -> None:
        if progress.phase == 1:
            raise KeyboardInterrupt

    noisy = {"teacher": "noisy:mistake=0.3"}
    whole = taught(tmp_path / "whole", "rank", **noisy)
    with pytest.raises(Interrupted):
        taught(tmp_path / "cut", "rank", report=interrupt, **noisy)
    result = resume_teach(find_run(tmp_path / "cut", "latest"))
    arrays = load_arrays(result.folder / CHECKPOINT).arrays
    for name, array in load_arrays(whole.folder / CHECKPOINT).arrays.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert sets_of(result.folder) == sets_of(whole.folder)
    child = backflip.teach_more(result.run, labels=6, env_steps=512, home=tmp_path / "cut")
    assert sum(map(len, sets_of(child.folder))) == 26


@pytest.mark.slow
def test_a_function_ranks_and_its_error_loses_no_ranking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ranking_teachers.py").write_text(TEACHERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    own: Any = importlib.import_module("ranking_teachers")

    own.fails_at = 2
    with pytest.raises(TeacherFailed, match="raised ValueError: no idea; all labels so far"):
        taught(tmp_path, "rank", teacher="ranking_teachers:rank")
    run = find_run(tmp_path, "latest")
    assert [len(one) for one in sets_of(run.folder)] == [3]
    own.fails_at = None
    result = resume_teach(run)
    assert result.labels == 20
    tied = taught(tmp_path, "rate", teacher="ranking_teachers:rate")
    assert {pair[2] for one in sets_of(tied.folder) for pair in one} == {"tie"}


def test_wrong_sizes_and_names_of_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`clips_at_once`"):
        taught(tmp_path, "rank", settings=SETTINGS | {"ask": "rank", "clips_at_once": 1})
    with pytest.raises(UsageError, match="`ask`"):
        taught(tmp_path, "order")
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_run_with_a_label_file_of_version_3_resumes(tmp_path: Path) -> None:
    """The label file of a run that a version without sets made: no table and no column of them."""

    def interrupt(progress: Any) -> None:
        if progress.phase == 1:
            raise KeyboardInterrupt

    whole = taught(tmp_path / "whole", "compare")
    with pytest.raises(Interrupted):
        taught(tmp_path / "old", "compare", report=interrupt)
    run = find_run(tmp_path / "old", "latest")
    with sqlite3.connect(run.folder / LABELS) as connection:
        connection.executescript(
            "DROP INDEX queries_of_set; DROP TABLE scores;"
            "ALTER TABLE queries DROP COLUMN clip_set; DROP TABLE clip_sets;"
            "PRAGMA user_version = 3;"
        )
    connection.close()
    with LabelFile.open_to_read(run.folder / LABELS) as file:
        assert file.version() == 3
    refuse_lost_labels(run.folder)
    result = resume_teach(run)
    arrays = load_arrays(result.folder / CHECKPOINT).arrays
    for name, array in load_arrays(whole.folder / CHECKPOINT).arrays.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_an_old_run_keeps_its_network_with_half_ties() -> None:
    old = {"labels": 10, "reward_model": "network", "fresh_share": 0.0}
    assert saved_teaching(old).reward_model == "network-half-ties"
    assert saved_teaching({**old, "ask": "compare"}).reward_model == "network"
    assert saved_teaching({"labels": 10}).reward_model == "linear"
    assert saved_teaching(old).ask == "compare"


def test_an_old_run_keeps_its_additive_model_with_seven_thresholds() -> None:
    old = {"labels": 10, "reward_model": "additive", "ask": "compare"}
    assert saved_teaching(old).reward_model == "additive-7-knots"
    assert saved_teaching({**old, "restart_at": 0.0}).reward_model == "additive"
