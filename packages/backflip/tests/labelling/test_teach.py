"""Tests of `teach` by people: the real page's process, real SQLite, a scripted person."""

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import pytest
from PIL import Image

from backflip.core.checkpoint import load_arrays
from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.people_source import LabellingSettings
from backflip.labelling.status import read_status
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import resume_teach, teach
from runshelf.errors import UsageError
from runshelf.store.finding import list_runs
from runshelf.store.run import open_run
from runshelf.web.serving.address import saved_port

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
}
OPTIONS = {"teacher": "human", "labels": 16, "env_steps": 4 * 16 * 6, "argv": ["backflip"]}
QUICK = {"labels": 8, "env_steps": 4 * 16 * 3, "settings": TINY | {"phases": 3}}


def folder_of(home):
    """Return the folder of the only run, once its page can be asked."""
    for _ in range(2400):
        if list_runs(home):
            folder = home / "runs" / list_runs(home)[0]
            if saved_port(folder):
                return folder
        time.sleep(0.05)
    raise AssertionError("no run began")


def over(folder):
    return lambda: read_status(folder).doing == "finished"


@pytest.fixture
def answering(person):
    """Start a labeller who answers a run in `home` as soon as it is there; yields the threads."""
    threads, people = [], []

    def work(home, who, stop):
        labeller = person(folder_of(home), who)
        people.append(labeller)
        labeller.answer_until(lambda: stop.is_set() or over(labeller.folder)())

    stop = threading.Event()

    def start(home, who="me"):
        threads.append(threading.Thread(target=work, args=(home, who, stop)))
        threads[-1].start()
        return people

    yield start
    stop.set()
    for thread in threads:
        thread.join(30)


@pytest.mark.medium
def test_person_teaches_through_the_page(tmp_path, answering):
    people, said = answering(tmp_path), []
    result = teach(
        "Pendulum-v1",
        home=tmp_path,
        labelling=LabellingSettings(goal="stand still"),
        report=said.append,
        **OPTIONS | QUICK,
    )
    assert result.labels == 8
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        counts = store.counts()
        assert (counts.queries, counts.labels, counts.pending) == (8, 8, 0)
        assert {pair.who for pair in store.labelled(0)} == {"me"}
        assert LabelQueue(store).goal() == "stand still"
        # A hidden repeat, which a chance of one in twenty puts among them, has no opinion.
        asked = store.file.rows("SELECT id FROM queries WHERE repeats IS NULL ORDER BY id")
        first, later = store.opinion(*asked[0]), store.opinion(*asked[-1])
        assert first is None, "nothing had been learned"
        assert later["left"].shape == (2, 5)
        assert (later["left"][1] >= 0).all()
    (me,) = people
    assert len(me.acknowledged) >= 8
    status = read_status(result.folder)
    assert status.doing == "finished"
    assert "8 labels" in status.result
    assert status.episode is not None
    assert (result.folder / "films" / status.episode.file).exists()
    assert any("compare clips at http://127.0.0.1:" in (p.note or "") for p in said)
    assert result.seconds["answers"] > 0


def labels_in(folder):
    """Return how many labels a run has; the eleventh answer may be one to a hidden repeat."""
    with LabelStore.open(folder / "labels.sqlite") as store:
        return store.counts().labels


@pytest.mark.slow
def test_training_does_not_wait_for_the_last_answer_of_a_round(tmp_path, person):
    """With a quarter of the first round open, at most four pairs, the first phase begins."""
    said = []
    options = dict(OPTIONS, labels=64, report=said.append)  # sixteen in the first round
    settings = TINY | {"fresh_share": 0.0}
    run = threading.Thread(
        target=teach,
        args=("Pendulum-v1",),
        kwargs={"settings": settings, "home": tmp_path, **options},
    )
    run.start()
    labeller = person(folder_of(tmp_path))
    labeller.answer_until(lambda: labels_in(labeller.folder) == 11)
    assert comes_true(lambda: read_status(labeller.folder).doing == "waiting")
    assert not comes_true(lambda: read_status(labeller.folder).phase > 0, seconds=1.0)
    labeller.answer_until(lambda: labels_in(labeller.folder) == 12)
    assert comes_true(lambda: read_status(labeller.folder).phase == 1)
    assert not comes_true(lambda: read_status(labeller.folder).phase > 1, seconds=1.0), (
        "no second phase: four of the first round are open"
    )
    assert any("waiting for answers at http" in p.waiting_for for p in said)
    labeller.post("enough", enough=True)
    run.join(120)
    assert read_status(labeller.folder).doing == "finished"
    with LabelStore.open(labeller.folder / "labels.sqlite") as store:
        assert store.counts().labels == 12
    with Image.open(labeller.folder / "clips.png") as picture:
        assert "after 12 labels" in picture.info["Description"], "not those that were budgeted"


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["rank", "rate"])
def test_people_rank_and_rate_sets(tmp_path, answering, ask):
    """The reward model learns from the labels of the sets, as from those of a program."""
    answering(tmp_path)
    settings = TINY | {"ask": ask, "clips_at_once": 3, "phases": 3}
    result = teach("Pendulum-v1", settings=settings, home=tmp_path, **dict(OPTIONS, labels=12))
    assert result.labels == 12
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        assert not store.counts().pending
        assert store.file.rows("SELECT count(*) FROM queries WHERE clip_set IS NULL") == [(0,)]
        assert max(store.file.rows("SELECT count(*) FROM queries GROUP BY clip_set")) == (3,)
        for pair in store.labelled(0):
            left, right = (clip["reward"].sum() for clip in (pair.left, pair.right))
            assert pair.answer == ("left" if left > right else "right")
            assert pair.who == "me"
        assert not store.file.rows("SELECT 1 FROM queries q JOIN clip_sets s ON s.ask <> ?", (ask,))
    assert f"{ask}s" in (result.folder / "output.log").read_text()


def comes_true(condition, seconds=60.0):
    """Return whether a condition comes true within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


PROGRAM = """
import sys
from pathlib import Path
from runshelf.store.finding import find_run, list_runs
from backflip.teaching_api import resume_teach, teach

home = Path(sys.argv[1])
if list_runs(home):
    resume_teach(find_run(home, "latest"))
else:
    teach("Pendulum-v1", settings=%r, home=home, **%r)
"""


@pytest.mark.slow
def test_killed_run_continues_at_the_same_address(tmp_path, answering):
    command = [sys.executable, "-c", PROGRAM % (TINY, OPTIONS), str(tmp_path)]
    trainer = subprocess.Popen(command)
    people = answering(tmp_path)
    folder = folder_of(tmp_path)
    while not people or len(people[0].acknowledged) < 8:
        time.sleep(0.05)
    port = saved_port(folder)
    trainer.kill()
    trainer.wait()
    assert read_status(folder).doing == "stopped"
    assert subprocess.run(command, check=False, timeout=120).returncode == 0
    assert saved_port(folder) == port
    with LabelStore.open(folder / "labels.sqlite") as store:
        assert store.counts().labels == 16
        kept = {row[0] for row in store.file.rows("SELECT id FROM labels")}
        assert set(people[0].acknowledged) <= kept


@pytest.mark.slow
def test_a_person_who_stops_without_an_answer_is_told_that_nothing_was_learned(tmp_path, person):
    run = threading.Thread(
        target=teach,
        args=("Pendulum-v1",),
        kwargs={"settings": TINY | {"phases": 1}, "home": tmp_path, **OPTIONS},
    )
    run.start()
    labeller = person(folder_of(tmp_path))
    assert labeller.post("enough", enough=True)[0] == 200
    run.join(300)
    assert read_status(labeller.folder).doing == "finished"
    said = (labeller.folder / "output.log").read_text()
    assert "there are no answers: no reward was learned" in said
    assert "chosen by evidence" not in said


@pytest.mark.slow
@pytest.mark.parametrize("change", ["undo", "correct"])
def test_undone_or_corrected_answer_is_not_learned_from(tmp_path, person, change):
    """The same run, with an answer given and changed, or given so from the start."""

    def taught(home, changes_mind):
        labels = dict(OPTIONS, labels=4)
        run = threading.Thread(
            target=teach,
            args=("Pendulum-v1",),
            kwargs={"settings": TINY | {"phases": 1}, "home": home, **labels},
        )
        run.start()
        labeller = person(folder_of(home))
        pairs = []
        while not pairs:
            pairs = labeller.post("take")[1]["pairs"]
        first = pairs[0]["query"]
        if changes_mind:
            labeller.answer(first, "left")
            (label,) = labeller.acknowledged
            fields = {"label": label, "answer": "right"} if change == "correct" else {}
            assert labeller.post(change, attempt="a" * 16, **fields)[0] == 200
        if not changes_mind or change == "undo":
            labeller.answer(first, "right")
        labeller.answer_until(over(labeller.folder))
        run.join(60)
        return load_arrays(labeller.folder / "checkpoint.safetensors").arrays

    steady, changed = (taught(tmp_path / str(x), x) for x in (False, True))
    for name, array in steady.items():
        np.testing.assert_array_equal(array, changed[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("phases", [1, 2])
def test_all_answers_are_waited_for_with_few_phases(tmp_path, answering, phases):
    answering(tmp_path)
    options = dict(OPTIONS, labels=8)
    result = teach("Pendulum-v1", settings=TINY | {"phases": phases}, home=tmp_path, **options)
    assert result.labels == 8


@pytest.mark.slow
def test_dead_page_restarts_on_the_same_port(tmp_path, answering, person):
    run = threading.Thread(
        target=teach, args=("Pendulum-v1",), kwargs={"home": tmp_path, **OPTIONS, **QUICK}
    )
    run.start()
    folder = folder_of(tmp_path)
    labeller = person(folder)
    labeller.answer_until(lambda: len(labeller.acknowledged) >= 2)
    (pid,) = pages_of(folder)
    os.kill(pid, signal.SIGKILL)
    labeller.answer_until(over(folder))
    run.join(60)
    with LabelStore.open(folder / "labels.sqlite") as store:
        assert store.counts().labels == 8
    assert not pages_of(folder), "the page ends with the run"


def pages_of(folder):
    """Return the process ids of the pages of a run."""
    found = subprocess.run(
        ["pgrep", "-f", f"backflip.labelling.page {folder}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(line) for line in found.stdout.split()]


# Makes the terminal its own, then becomes the program.
AT_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
program = "import sys; from backflip.cli.main import main; sys.exit(main())"
os.execv(sys.executable, [sys.executable, "-c", program, *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "status"), [(b"\x1b[D", 0), pytest.param(b"q", 130, marks=pytest.mark.slow)]
)
def test_person_teaches_in_the_terminal(tmp_path, key, status):
    """Arrows answer to the end; after a quit the command to resume is printed."""
    settings = QUICK["settings"] | {"hidden": 8}
    options = [f"--set={name}={value}" for name, value in settings.items()]
    numbers = ["--labels", "4", "--env-steps", str(QUICK["env_steps"]), *options]
    command = ["teach", "Pendulum-v1", "--teacher", "terminal", "--json", "--home", str(tmp_path)]
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", AT_THE_TERMINAL, *command, *numbers],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    shown, pressed, until = b"", 0.0, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if select.select([ours], [], [], 0.1)[0]:
            shown += os.read(ours, 65536)
        if b"of 4 answers" in shown and time.monotonic() > pressed + 0.3:
            pressed = time.monotonic()
            os.write(ours, key)
    while select.select([ours], [], [], 0.1)[0]:
        shown += os.read(ours, 65536)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status, shown[-2000:]
    if status == 0:
        assert json.loads(output)["labels"] == 4
    else:
        assert b"resume with: backflip resume" in shown
        assert output == b""
    assert b"\x1b[?1049l" in shown, "the screen is given back"
    os.close(ours)
    os.close(theirs)


@pytest.mark.slow
def test_a_terminal_that_goes_away_stops_the_run_at_once(tmp_path):
    """Without a controlling terminal there is no SIGHUP; the terminal only ends."""
    command = ["teach", "CartPole-v1", "--teacher", "terminal", "--home", str(tmp_path)]
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "backflip", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    shown, until = b"", time.monotonic() + 120
    while b"of 150 answers" not in shown:
        assert time.monotonic() < until, shown[-2000:]
        shown += os.read(ours, 65536)
    os.close(ours)
    assert process.wait(60) == 130
    (run,) = list_runs(tmp_path)
    assert open_run(tmp_path / "runs" / run).events()[-1]["status"] == "interrupted"


@pytest.mark.slow
def test_lost_film_is_rendered_again(tmp_path, person):
    run = threading.Thread(
        target=teach, args=("Pendulum-v1",), kwargs={"settings": TINY, "home": tmp_path, **OPTIONS}
    )
    run.start()
    folder = folder_of(tmp_path)
    labeller = person(folder)
    pairs = []
    while len(pairs) < 4:
        pairs = labeller.post("take")[1]["pairs"]
    names = sorted(path.name for path in (folder / "films").iterdir())
    for path in (folder / "films").iterdir():
        path.unlink()
    end = time.monotonic() + 120
    while sorted(path.name for path in (folder / "films").iterdir()) != names:
        assert time.monotonic() < end, "it is not drawn again"
        time.sleep(0.1)
    labeller.answer_until(over(folder))
    run.join(60)


@pytest.mark.medium
def test_taken_port_is_reported_before_training(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)):
            teach(
                "Pendulum-v1",
                settings=TINY,
                home=tmp_path,
                labelling=LabellingSettings(port=port),
                **OPTIONS,
            )


@pytest.mark.parametrize("ask", ["rank", "rate"])
def test_sets_are_not_shown_to_a_second_person(tmp_path, ask):
    labelling = LabellingSettings(overlap=0.3)
    options = OPTIONS | {"labels": 18, "settings": TINY | {"ask": ask}, "labelling": labelling}
    with pytest.raises(UsageError, match="--overlap` is for pairs of clips"):
        teach("dot", home=tmp_path, **options)
    assert not list_runs(tmp_path)


@pytest.mark.parametrize("teacher", ["oracle", "noisy:mistake=0.1", "module:function"])
def test_a_goal_is_for_people(tmp_path, teacher):
    with pytest.raises(UsageError, match=f"not for the teacher `{teacher}`"):
        teach("dot", teacher=teacher, goal="stand still", home=tmp_path)
    with pytest.raises(UsageError, match="not for the teacher"):
        teach("dot", teacher=teacher, labelling=LabellingSettings(), home=tmp_path)
    assert not list_runs(tmp_path)


def test_a_goal_means_that_people_answer(tmp_path, monkeypatch):
    chosen = []

    def source(where, settings, film_of):
        chosen.append((where, settings.goal))
        raise UsageError("enough")

    monkeypatch.setattr("backflip.teaching_api.PeopleSource", source)
    with pytest.raises(UsageError, match="enough"):
        teach("dot", goal="stand still", home=tmp_path)
    assert chosen == [("human", "stand still")]


@pytest.mark.slow
def test_labels_of_another_run_replace_people(tmp_path):
    options = dict(OPTIONS, teacher="oracle", settings=TINY, home=tmp_path)
    source = teach("Pendulum-v1", **options)
    options |= {"teacher": "human", "labels": None}
    again = teach("Pendulum-v1", labels_from=source.run, **options)
    assert again.labels == 16
    assert saved_port(again.folder) is None
    with LabelStore.open(again.folder / "labels.sqlite") as store:
        assert store.counts().queries == 16
        assert {pair.env_steps for pair in store.labelled(0)} == {0}
    arrays = load_arrays(again.folder / "checkpoint.safetensors").arrays
    assert np.abs(arrays["reward.weights"]).max() > 0
    assert resume_is_the_same(again, arrays)


def resume_is_the_same(result, arrays):
    resume_teach(open_run(result.folder))
    again = load_arrays(result.folder / "checkpoint.safetensors").arrays
    return all((array == again[name]).all() for name, array in arrays.items())


@pytest.mark.slow
def test_source_run_may_be_deleted_after_the_start(tmp_path):
    options = dict(OPTIONS, teacher="oracle", settings=TINY, home=tmp_path)
    source = teach("Pendulum-v1", **options)
    again = teach("Pendulum-v1", labels_from=source.run, **options | {"labels": None})
    rewarded = teach("Pendulum-v1", reward_from=source.run, **options | {"labels": None})
    shutil.rmtree(source.folder)
    for result in (again, rewarded):
        assert resume_teach(open_run(result.folder)).returns == result.returns
    (again.folder / "checkpoint.safetensors").unlink()  # as if killed before the first phase
    assert resume_teach(open_run(again.folder)).returns == again.returns


@pytest.mark.slow
def test_ctrl_c_swallowed_by_a_callback_still_stops_the_run(tmp_path):
    """What is raised in a callback from C, as JAX has some, is dropped."""
    program = (
        "import os, signal, sys, threading\n"
        "from pathlib import Path\n"
        "import backflip.teaching_api, backflip.training.teaching.loop as teaching\n"
        "def swallowed(self, *rest):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "teaching.TeachRun._compile_ahead = swallowed\n"
        "teach = backflip.teaching_api.teach\n"
        f"teach('Pendulum-v1', settings={TINY!r}, home=Path(sys.argv[1]), **{OPTIONS!r})\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "resume with: backflip resume" in done.stderr


@pytest.mark.slow
def test_reward_of_another_run_replaces_labels(tmp_path):
    options = dict(OPTIONS, teacher="oracle", settings=TINY, home=tmp_path)
    source = teach("Pendulum-v1", **options)
    options |= {"labels": None, "seeds": 2}
    again = teach("Pendulum-v1", reward_from=str(source.folder), **options)
    assert again.labels == 0
    theirs, ours = (
        load_arrays(run.folder / "checkpoint.safetensors").arrays for run in (source, again)
    )
    for row in range(2):
        np.testing.assert_array_equal(theirs["reward.weights"][0], ours["reward.weights"][row])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels_from": "nothing"}, "there is no run `nothing`"),
        ({"labels_from": "absent.csv"}, "absent.csv"),
        ({"reward_from": "nothing"}, "there is no run `nothing`"),
        ({"labels_from": "a", "reward_from": "b"}, "not both"),
        ({"labels": 1}, "`labels` must be at least 2, got 1"),
    ],
)
def test_invalid_sources_are_reported_before_training(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message):
        teach("Pendulum-v1", home=tmp_path, settings=TINY, **(OPTIONS | {"labels": None} | changes))
    assert not list_runs(tmp_path)


@pytest.mark.slow
def test_labels_of_another_environment_or_clip_length_are_refused(tmp_path):
    options = OPTIONS | QUICK | {"teacher": "oracle", "home": tmp_path}
    source = teach("Pendulum-v1", **options)
    options["labels"] = None
    with pytest.raises(UsageError, match=r"have 5 env steps, those of this run 6; try --set clip"):
        teach(
            "Pendulum-v1",
            labels_from=source.run,
            **options | {"settings": QUICK["settings"] | {"clip_length": 6}},
        )
    with pytest.raises(UsageError, match="another environment"):
        teach("Acrobot-v1", labels_from=source.run, **options)
    with pytest.raises(UsageError, match=r"is for another environment than `Acrobot-v1`"):
        teach("Acrobot-v1", reward_from=source.run, **options)
