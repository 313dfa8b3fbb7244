"""Attacks on the labels of a run: each loss is noticed, and nothing goes on without them."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from backflip.cli.main import main
from backflip.core.checkpoint import load_arrays, save_arrays
from backflip.preferences.kept_labels import kept_with_checkpoint
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import resume_teach, teach, teach_more
from backflip.training.continuation import found_run
from backflip.training.progress import Progress
from runshelf.errors import DamagedFile, Interrupted, UsageError
from runshelf.store.finding import find_run, list_runs

SETTINGS = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 2,
    "hidden": (8,),
    "phases": 4,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}
PHASES, LABELS = 4, 12


def taught(home: Path, stop_after: int, **options) -> Path:
    """Teach, and stop after a phase; return the folder."""

    def stop(progress: Progress) -> None:
        if progress.phase == stop_after and not progress.doing and not progress.share:
            raise KeyboardInterrupt

    options = {"labels": LABELS, "env_steps": 4 * 16 * PHASES, "argv": ["backflip"]} | options
    with pytest.raises(Interrupted):
        teach("CartPole-v1", settings=SETTINGS, home=home, report=stop, **options)
    return find_run(home, "latest").folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """The folder of a run that was stopped after the third of four phases."""
    return taught(tmp_path_factory.mktemp("home"), 3)


@pytest.fixture(scope="module")
def early(tmp_path_factory) -> Path:
    """The same run, stopped after the first phase."""
    return taught(tmp_path_factory.mktemp("home"), 1)


@pytest.fixture
def run(stopped, tmp_path) -> Path:
    """A copy of the run that each attack may damage."""
    return copied(stopped, tmp_path)


def copied(folder: Path, home: Path) -> Path:
    return Path(shutil.copytree(folder, home / "runs" / folder.name))


def labels(folder: Path) -> int:
    with LabelStore.open(folder / "labels.sqlite") as store:
        return store.counts().labels


def rewrite(path: Path, *statements: str) -> None:
    """Change a label file behind the back of its triggers, as a file of the same form."""
    connection = sqlite3.connect(path, isolation_level=None)
    for table in ("labels", "queries", "clips"):
        for kind in ("update", "delete"):
            connection.execute(f"DROP TRIGGER {table}_no_{kind}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def drop_answers(after: int) -> Callable[[Path], None]:
    return lambda path: rewrite(path, f"DELETE FROM labels WHERE id > {after}")


def clip_swapped(path: Path) -> None:
    rewrite(path, "UPDATE clips SET arrays = (SELECT arrays FROM clips WHERE id = 2) WHERE id = 1")


def without_wal(path: Path) -> None:
    """Put everything in the log, as SQLite does by itself, and lose the log."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    path.write_bytes(path.read_bytes()[:4096])


LOSSES: dict[str, Callable[[Path], None]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "cut to its header": without_wal,
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut by a page": lambda path: os.truncate(path, path.stat().st_size - 4096),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "not SQLite": lambda path: path.write_bytes(b"rubbish" * 1000),
    "another store": lambda path: (path.unlink(), LabelStore.open(path).close()),
    "the last answer": drop_answers(LABELS - 4),
    "half the answers": drop_answers(4),
    "all answers": drop_answers(0),
    "an answer in the middle": lambda p: rewrite(p, "DELETE FROM labels WHERE id = 3"),
    "an answer changed": lambda p: rewrite(p, "UPDATE labels SET answer = 'skip' WHERE id = 3"),
    "a time changed": lambda p: rewrite(p, "UPDATE labels SET at = '2026' WHERE id = 3"),
    "a clip changed": clip_swapped,
}


def state_of_files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.attack
@pytest.mark.medium
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_refused_by_all_that_learn_from_the_labels(
    run, loss, tmp_path, tried, capsys
):
    file = tmp_path / "kept.jsonl"
    assert main(["labels", "export", str(run), str(file)]) == 0
    earlier = file.read_bytes()
    LOSSES[loss](run / "labels.sqlite")
    before = state_of_files(run)
    for act in (
        lambda: resume_teach(find_run(tmp_path, "latest")),
        lambda: teach_more(run, env_steps=256),
        lambda: teach("CartPole-v1", settings=SETTINGS, labels_from=str(run), home=tmp_path),
    ):
        with pytest.raises(DamagedFile) as caught:
            act()
        said = str(caught.value)
        assert "labels.sqlite" in said
        assert any(way in said for way in ("restore", "another folder"))
        assert "\n" not in said
    for action in ("export", "import"):
        assert main(["labels", action, str(run), str(file), "--json"]) != 0
    assert file.read_bytes() == earlier
    assert state_of_files(run) == before, "a refusal changes nothing"
    assert len(list_runs(tmp_path)) == 1
    assert "Traceback" not in capsys.readouterr().err
    tried(5, "commands on a run whose labels were emptied, removed, cut, swapped or changed")


@pytest.mark.attack
@pytest.mark.slow
def test_an_older_or_foreign_label_file_is_refused(run, early, tmp_path, tried):
    other = taught(tmp_path / "other", 3, first_seed=5)
    for source in (early, other):
        shutil.copy(source / "labels.sqlite", run / "labels.sqlite")
        with pytest.raises(DamagedFile, match=r"restore `labels\.sqlite`"):
            resume_teach(find_run(tmp_path, run.name))
    tried(2, "label files of an earlier moment or of another run")


@pytest.mark.attack
@pytest.mark.slow
def test_the_message_counts_what_is_missing_and_the_rest_can_be_taken_on(run, tmp_path, capsys):
    kept = kept_with_checkpoint(run)
    assert kept is not None
    drop_answers(4)(run / "labels.sqlite")
    with pytest.raises(DamagedFile, match=f"lost {kept.answers - 4} of {kept.answers} answers"):
        resume_teach(find_run(tmp_path, "latest"))
    left = tmp_path / "left.jsonl"
    assert main(["labels", "export", str(run), str(left), "--incomplete", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == 4
    result = teach(
        "CartPole-v1",
        settings=SETTINGS,
        labels_from=str(left),
        env_steps=256,
        labels=6,
        home=tmp_path / "new",
        argv=["backflip"],
    )
    assert result.labels == 6


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("loss", ["removed", "emptied", "cut", "copied without"])
def test_a_lost_log_loses_nothing(early, tmp_path, loss, tried):
    """Everything up to the last answer is in the file itself."""
    copy = copied(early, tmp_path)
    path, log = copy / "labels.sqlite", copy / "labels.sqlite-wal"
    with LabelStore.open(path) as store:
        clip = {"obs": np.zeros((5, 4), np.float32)}
        for _ in range(20):
            (query,) = store.add_queries([NewQuery(0, clip, clip, 0)])
            store.add_label(query, "left", "me", 1.0)
        answers = store.counts().labels
        assert log.stat().st_size > 0
        there = tmp_path / "there"
        shutil.copytree(copy, there)
    lost = there / log.name
    if loss in ("removed", "copied without"):
        lost.unlink()
    else:
        os.truncate(lost, 0 if loss == "emptied" else lost.stat().st_size // 2)
    (there / "labels.sqlite-shm").unlink()
    assert labels(there) == answers
    tried(1, "write-ahead logs that were removed, emptied, cut or not copied")


@pytest.mark.slow
def test_labels_after_the_last_checkpoint_are_kept_and_are_no_error(run, early, tmp_path):
    with LabelStore.open(run / "labels.sqlite") as store:
        pending = store.pending()
        for query in pending:
            store.add_label(query.id, "right", "me", 1.0)
        answers = store.counts().labels
    result = resume_teach(find_run(tmp_path, "latest"))
    assert labels(result.folder) >= answers
    assert main(["labels", "export", str(run), str(tmp_path / "x.jsonl")]) == 0
    child = teach_more(run, env_steps=256, argv=["backflip"])
    kept = kept_with_checkpoint(child.folder)
    assert kept.answers >= answers


@pytest.mark.attack
@pytest.mark.slow
def test_a_child_notices_lost_labels_before_its_first_phase(run, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("backflip.training.session.Session.log_phase", stop)
        with pytest.raises(Interrupted):
            teach_more(run, env_steps=256, argv=["backflip"])
    child = find_run(tmp_path, "latest")
    assert child.folder != run
    drop_answers(4)(child.folder / "labels.sqlite")
    with pytest.raises(DamagedFile, match="lost"):
        resume_teach(child)


@pytest.mark.slow
def test_a_checkpoint_from_before_labels_were_counted_still_resumes(run, tmp_path):
    path = run / "checkpoint.safetensors"
    loaded = load_arrays(path)
    metadata = {key: text for key, text in loaded.metadata.items() if key != "labels"}
    for _ in range(2):  # also in place of the previous one
        save_arrays(path, loaded.arrays, metadata)
    assert kept_with_checkpoint(run) is None
    assert resume_teach(find_run(tmp_path, "latest")).labels == LABELS


@pytest.mark.medium
def test_a_new_run_has_a_label_file_before_it_is_a_run(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("backflip.training.session.Session.restore", killed)
    with pytest.raises(Interrupted):
        teach("CartPole-v1", settings=SETTINGS, labels=4, home=tmp_path, argv=["backflip"])
    run = found_run("latest", tmp_path)
    (run.folder / "labels.sqlite").unlink()
    with pytest.raises(UsageError, match=r"restore `labels\.sqlite`"):
        resume_teach(run)
