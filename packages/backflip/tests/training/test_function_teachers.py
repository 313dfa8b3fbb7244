"""Tests of `teach` by a function of the user: found by name, stopped by its errors, resumed."""

import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from packages.backflip.tests.conformance.teacher import check_teacher

from backflip.core.checkpoint import load_arrays
from backflip.envs.registry import make_native
from backflip.preferences import program_source
from backflip.preferences.answer_source import QueriedRun
from backflip.preferences.clips import cut, windows
from backflip.preferences.drawer import Drawer
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.preferences.teacher_query import TeacherQuery, shown_clip
from backflip.preferences.teachers import SimulatedTeacher, TeacherFailed, parse_teacher
from backflip.teaching_api import resume_teach, teach
from backflip.training.build import build
from runshelf.errors import UsageError
from runshelf.store.finding import find_run

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
LABELS = 8
TINY = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 2,
    "hidden": (8,),
    "phases": 3,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}
# What the oracle does, and a bug that can be switched on.
OWN = """
fails_at = None
calls = 0


def prefer(left, right):
    global calls
    calls += 1
    if calls == fails_at:
        raise ValueError("no idea")
    d = float(left.rewards.astype("f8").sum() - right.rewards.astype("f8").sum())
    return "tie" if abs(d) <= 1e-6 else "left" if d > 0 else "right"
"""


def tiny(home, teacher):
    return teach(
        "CartPole-v1",
        teacher=teacher,
        labels=LABELS,
        env_steps=4 * 16 * 3,
        settings=TINY,
        home=home,
        argv=["backflip"],
    )


def saved(folder):
    return load_arrays(folder / "checkpoint.safetensors").arrays


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.fixture
def own(tmp_path, monkeypatch, request):
    """A module with a teacher in the current folder."""
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.slow
def test_a_function_that_answers_as_the_oracle_teaches_the_same(tmp_path, own):
    oracle = tiny(tmp_path / "oracle", "oracle")
    function = tiny(tmp_path / "function", f"{own}:prefer")
    assert_same(saved(oracle.folder), saved(function.folder))
    with LabelStore.open(function.folder / "labels.sqlite") as store:
        assert {pair.who for pair in store.labelled(0)} == {f"{own}:prefer"}


def test_the_time_of_a_slow_teacher_is_that_of_answers(tmp_path):
    clip = {"reward": np.ones(4, np.float32), "obs": np.zeros((4, 2), np.float32)}
    booked, clock = [], [0.0]

    class Slow(SimulatedTeacher):
        def answer(self, query, rng):
            clock[0] += 2.0
            return "left"

    with LabelStore.open(tmp_path / "labels.sqlite") as store, pytest.MonkeyPatch.context() as m:
        store.add_queries([NewQuery(0, clip, clip, 100) for _ in range(3)])
        m.setattr(program_source, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        m.setattr(program_source.ProgramAnswers, "_shown", lambda *_: None)
        drawer = Drawer(tmp_path, "CartPole-v1", {}, make_native("CartPole-v1").spec)
        run = QueriedRun(
            tmp_path, "CartPole-v1", [0], store, drawer, 1, [3], 3, print, print,
            lambda name: booked.append((name, clock[0])),
        )  # fmt: skip
        answers = program_source.ProgramAnswers(Slow(), run)
        assert answers.remaining_seconds(5) == 0
        answers.wait_for_labels(0)
        assert booked == [("train", 0.0), ("answers", 6.0)]
        assert answers.remaining_seconds(5) == 10


@pytest.fixture
def stopped_and_resumed(tmp_path, own):
    """The folder of a run whose teacher raised an exception at its second query."""
    parse_teacher(f"{own}:prefer")
    module = sys.modules[own]
    module.fails_at = 2  # of the first round
    with pytest.raises(TeacherFailed, match=rf"`{own}:prefer` raised ValueError: no idea"):
        tiny(tmp_path / "stopped", f"{own}:prefer")
    run = find_run(tmp_path / "stopped", "latest")
    said = (run.folder / "output.log").read_text()
    assert f"once the error below is fixed, continue with: backflip resume {run.folder}" in said
    with LabelStore.open(run.folder / "labels.sqlite") as store:
        assert store.counts().labels == 1
    module.fails_at = None
    resume_teach(run)
    assert module.calls == 1 + LABELS, "no query is answered twice but the one that failed"
    return run.folder


@pytest.mark.slow
def test_an_exception_loses_no_label_and_the_run_can_be_resumed(stopped_and_resumed):
    with LabelStore.open(stopped_and_resumed / "labels.sqlite") as store:
        assert store.counts().labels == LABELS


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits_as_one_without_an_exception(stopped_and_resumed, tmp_path):
    never = tiny(tmp_path / "never", "oracle")
    assert_same(saved(never.folder), saved(stopped_and_resumed))


@pytest.mark.slow
def test_a_function_that_always_says_left_is_noticed(tmp_path, own):
    parse_teacher(f"{own}:prefer")
    sys.modules[own].prefer = lambda left, right: "left"
    health = []
    result = teach(
        "CartPole-v1",
        teacher=f"{own}:prefer",
        labels=24,
        env_steps=4 * 16 * 3,
        settings=TINY,
        home=tmp_path,
        report=lambda progress: health.append(progress.health),
    )
    said = "`left` is 24 of the last 24 answers"
    assert result.careless is not None
    assert result.careless[f"{own}:prefer"].startswith(said)
    assert result.to_json()["careless"] == result.careless
    assert any(one.get("careless_people") == 1.0 for one in health if one)
    (alarm,) = [one for one in find_run(tmp_path, "latest").alarms() if "CARELESS" in one]
    assert alarm.startswith(f"CARELESS ANSWERS of `{own}:prefer`: `left` is ")
    assert tiny(tmp_path / "oracle", "oracle").careless is None


@pytest.mark.slow
def test_progress_says_that_it_waits_for_the_teacher(tmp_path, own):
    """Before the first call, so that a slow function is not taken for a hang."""
    parse_teacher(f"{own}:prefer")
    said = []

    def report(progress):
        if progress.waiting_for:
            said.append((sys.modules[own].calls, progress.waiting_for))

    given = {"labels": LABELS, "env_steps": 4 * 16 * 3, "settings": TINY, "report": report}
    teach("CartPole-v1", teacher=f"{own}:prefer", home=tmp_path / "own", **given)
    assert said[0] == (0, f"waiting for the teacher `{own}:prefer`: 0 of {LABELS} labels")
    said.clear()
    teach("CartPole-v1", teacher="oracle", home=tmp_path / "oracle", **given)
    assert not said


@pytest.mark.medium
def test_a_resumed_run_names_a_missing_function(tmp_path, own, monkeypatch):
    parse_teacher(f"{own}:prefer")
    sys.modules[own].fails_at = 2
    with pytest.raises(TeacherFailed):
        tiny(tmp_path, f"{own}:prefer")
    monkeypatch.chdir("/")
    monkeypatch.delitem(sys.modules, own)
    monkeypatch.setattr(sys, "path", [x for x in sys.path if x != str(tmp_path)])
    with pytest.raises(UsageError, match=f"unknown teacher `{own}:prefer`.*no module `{own}`"):
        resume_teach(find_run(tmp_path, "latest"))


@pytest.mark.slow
def test_a_slow_teachers_answers_are_saved_while_it_works(tmp_path, own, monkeypatch):
    """One by one if every answer takes longer than the time between two writes."""
    monkeypatch.setattr("backflip.preferences.program_source.SECONDS_BETWEEN_WRITES", -1.0)
    written = []
    original = LabelStore.add_labels

    def counted(self, labels):
        labels = list(labels)
        written.append(len(labels))
        return original(self, labels)

    monkeypatch.setattr(LabelStore, "add_labels", counted)
    tiny(tmp_path, f"{own}:prefer")
    assert max(written) == 1
    assert sum(written) == LABELS


@pytest.fixture
def examples(monkeypatch):
    """The functions of the example in docs, by name."""
    monkeypatch.chdir(EXAMPLES)
    yield lambda name: parse_teacher(f"teacher:{name}")
    sys.modules.pop("teacher", None)
    sys.path.remove(str(EXAMPLES))


def pendulum_clips(folder):
    """Clips of a random policy, as a teacher sees them."""
    spec = make_native("Pendulum-v1").spec
    driver = build("ppo", "Pendulum-v1", env_args={}, settings={}).driver
    record = driver.random_record([0], envs=4, env_steps=40, repeat=0.9)
    seeds_record = type(record)(*(x[0] if isinstance(x, np.ndarray) else x for x in record))
    drawer = Drawer(folder, "Pendulum-v1", {}, spec)
    for window in windows(seeds_record, 10)[::12]:
        yield shown_clip(cut(seeds_record, window, 10), "Pendulum-v1", drawer)


@pytest.mark.medium
def test_the_examples_agree_with_the_height_of_the_pendulum(examples, tmp_path):
    clips = list(pendulum_clips(tmp_path))
    agreed = []
    for left, right in itertools.pairwise(clips):
        query = TeacherQuery(left, right)
        difference = left.observations[:, 0].mean() - right.observations[:, 0].mean()
        if abs(difference) < 0.2:
            continue
        rng = np.random.default_rng(0)
        assert examples("upright").answer(query, rng) == ("left" if difference > 0 else "right")
        agreed.append(
            examples("looks_upright").answer(query, rng) == ("left" if difference > 0 else "right")
        )
    assert len(agreed) >= 5
    assert np.mean(agreed) > 0.9


def test_the_example_passes_the_conformance_checks(examples):
    check_teacher(examples("upright"))


@pytest.mark.medium
def test_frames_are_one_picture_for_each_env_step(tmp_path):
    first, *_ = pendulum_clips(tmp_path)
    frames = first.frames()
    assert (frames.shape[0], frames.shape[3], frames.dtype) == (10, 3, np.uint8)
    assert (frames[0] != frames[-1]).any()


@pytest.mark.slow
def test_the_commands_of_the_example_work(tmp_path):
    shutil.copy(EXAMPLES / "teacher.py", tmp_path)
    command = [sys.executable, "-m", "backflip", "teach", "Pendulum-v1", "--labels", "4"]
    settings = [f"--set={name}={value}" for name, value in (TINY | {"hidden": 8}).items()]
    done = subprocess.run(
        [*command, "--teacher", "teacher:upright", "--env-steps", "192", *settings],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ppo learns `Pendulum-v1`; teacher:upright answers 4 queries" in done.stderr
