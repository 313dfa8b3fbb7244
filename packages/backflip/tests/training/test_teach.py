"""Tests of `teach`: result, budget, kills, and no use of the true reward."""

import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.checkpoint import load_arrays
from backflip.core.settings import resolve
from backflip.envs.native.cartpole import CartPole
from backflip.envs.registry import make_native
from backflip.loading import load_reward
from backflip.preferences.fresh_pairs import fresh_answers
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import ProgramAnswers, ProgramSource
from backflip.preferences.teachers import SimulatedTeacher
from backflip.rewards.user_model import RewardModelFailed
from backflip.teaching_api import resume_teach, teach
from backflip.training.build import build
from backflip.training.queries.initial_labels import Start, from_elsewhere, with_reward_model
from backflip.training.queries.query_maker import QueryMaker
from backflip.training.session import Session
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.defaults import teach_settings
from runshelf.errors import Interrupted, UsageError
from runshelf.store.finding import find_run, list_runs
from runshelf.store.metrics import read_metrics
from runshelf.store.run import Run, open_run

TINY = {
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
}
ENV_STEPS = 4 * 16 * 4  # four updates
LABELS = 8


def tiny(home, env="CartPole-v1", **changes):
    """Teach a little."""
    settings = TINY | changes.pop("settings", {})
    options = {"labels": LABELS, "seeds": 2, "env_steps": ENV_STEPS, "argv": ["backflip"]}
    return teach(env, settings=settings, home=home, **(options | changes))


def saved(folder):
    """Return the arrays of a checkpoint by name."""
    return load_arrays(folder / "checkpoint.safetensors").arrays


def asked_and_answered(folder, seeds):
    """Return each seed's queries in order: env steps, both clips bit for bit, and the answer."""
    with LabelStore.open(folder / "labels.sqlite") as store:
        return {
            seed: [
                (
                    pair.env_steps,
                    pair.answer,
                    *(clip[k].tobytes() for clip in (pair.left, pair.right) for k in sorted(clip)),
                )
                for pair in store.labelled(seed)
            ]
            for seed in seeds
        }


def same_arrays(one, other, but=()):
    assert one.keys() == other.keys()
    for name, array in one.items():
        if name not in but:
            np.testing.assert_array_equal(array, other[name], err_msg=name)


def same_up_to_rounding(alone, together, row):
    """Compare with a tolerance: XLA sums in another order in a program of another seed count."""
    for name, array in alone.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(
                array[0], together[name][row], rtol=1e-3, atol=1e-5, err_msg=name
            )
        else:
            np.testing.assert_array_equal(array[0], together[name][row], err_msg=name)


def answers_of(folder, seed):
    """Return env steps, actions and answer of each query of a seed."""
    with LabelStore.open(folder / "labels.sqlite") as store:
        return [
            (
                pair.env_steps,
                pair.answer,
                pair.left["action"].tolist(),
                pair.right["action"].tolist(),
            )
            for pair in store.labelled(seed)
        ]


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("home"), first_seed=3)


@pytest.mark.slow
def test_the_status_counts_phases_also_where_no_query_follows(tmp_path, monkeypatch):
    """The page needs it: with a count that lags, it says that the agent learns while it waits."""
    seen = []
    monkeypatch.setattr(
        ProgramAnswers,
        "set_status",
        lambda self, doing, expected_seconds=None, **facts: seen.append((doing, facts)),
    )
    tiny(tmp_path, labels=2, seeds=1)
    drawn = [facts["phase"] for doing, facts in seen if doing == "drawing" and "phase" in facts]
    assert drawn == [0, 1, 2, 3, 4]


@pytest.mark.medium
def test_the_result_keeps_the_output_contract(taught):
    fields = taught.to_json()
    assert json.loads(json.dumps(fields)) == fields
    assert (fields["env"], fields["algorithm"]) == ("CartPole-v1", "ppo")
    assert (fields["seeds"], fields["labels"]) == ([3, 4], LABELS)
    assert fields["env_steps"] == ENV_STEPS
    assert len(fields["returns"]) == 2
    assert taught.policy(4).act(np.zeros(4, np.float32)) in (0, 1)
    for name in ("run.json", "labels.sqlite", "checkpoint.safetensors", "policy.safetensors"):
        assert (taught.folder / name).exists()


@pytest.mark.medium
def test_each_seed_spends_its_budget_and_no_query_is_left_open(taught):
    with LabelStore.open(taught.folder / "labels.sqlite") as store:
        for seed in (3, 4):
            counts = store.counts(seed)
            assert (counts.queries, counts.labels, counts.pending) == (LABELS, LABELS, 0)
            pairs = store.labelled(seed)
            assert {pair.who for pair in pairs} == {"oracle"}
            assert pairs[0].env_steps == 0
            assert pairs[-1].env_steps < ENV_STEPS
            for pair in pairs:
                assert len(pair.left["reward"]) == len(pair.right["reward"]) == 5


@pytest.mark.medium
def test_resuming_a_finished_run_changes_nothing(taught):
    files = {path: path.read_bytes() for path in taught.folder.rglob("*") if path.is_file()}
    assert resume_teach(open_run(taught.folder)) == taught
    assert {p: p.read_bytes() for p in taught.folder.rglob("*") if p.is_file()} == files


@pytest.mark.medium
def test_the_learned_reward_of_each_seed_is_loaded(taught):
    step = (np.zeros(4), 1, np.full(4, 0.1))
    one, other = (load_reward(taught.folder, seed)(*step) for seed in (3, 4))
    assert np.isfinite([one, other]).all()
    assert one != other
    with pytest.raises(UsageError, match="has no seed 9; it has 3, 4"):
        load_reward(taught.folder, 9)


def settings_taught(env):
    settings, _ = teach_settings("ppo", make_native(env).spec)
    return build("ppo", env, env_args={}, settings=settings).config


def test_defaults_of_train_do_not_change_those_of_teach():
    config = settings_taught("dot")
    assert (config.learning_rate, config.rollout_length, config.network) == (1e-3, 32, "patches")


def test_grids_are_taught_with_the_settings_of_train():
    env = "MinAtar/Breakout-v1"
    assert settings_taught(env) == build("ppo", env, env_args={}, settings={}).config
    assert settings_taught(env).learning_rate == 5e-3


@pytest.mark.parametrize(("limit", "clip"), [(None, 50), (51, 50), (50, 50), (49, 49), (2, 2)])
def test_clips_are_no_longer_than_an_episode(limit, clip):
    spec = dataclasses.replace(make_native("Pendulum-v1").spec, max_episode_steps=limit)
    assert teach_settings("ppo", spec)[1]["clip_length"] == clip


@pytest.mark.slow
def test_a_seed_does_not_depend_on_other_seeds(taught, tmp_path):
    alone = tiny(tmp_path, first_seed=4, seeds=1)
    same_up_to_rounding(saved(alone.folder), saved(taught.folder), row=1)
    one, other = (answers_of(result.folder, 4) for result in (alone, taught))
    assert one == other
    assert alone.returns[0] == pytest.approx(taught.returns[1], rel=1e-4)


def test_thousands_of_labels_are_possible():
    TeachConfig(labels=3000).check(CartPole().spec, updates=100, usual_phases=20)


@pytest.mark.parametrize(
    "setting", [f.name for f in dataclasses.fields(TeachConfig) if type(f.default) is not str]
)
def test_settings_of_teaching_out_of_range_are_refused(setting):
    largest = 10.5 if setting == "optimism" else 1.5  # the others are shares
    beyond = [-0.5, largest] if isinstance(getattr(TeachConfig(), setting), float) else [-1]
    for value in beyond:
        with pytest.raises(UsageError, match=f"`{setting}` must (be|lie) .*, got {value}"):
            resolve(TeachConfig, {setting: value}).check(
                CartPole().spec, updates=100, usual_phases=20
            )


def test_a_record_too_short_for_a_clip_is_refused_with_a_suggestion():
    for length, fits, enough in ((25, 3, 50), (300, 37, 600)):
        short = TeachConfig(clip_length=length, random_env_steps=length - 1)
        said = f"try --set clip_length={fits} or --set random_env_steps={enough}$"
        with pytest.raises(UsageError, match=said):
            short.check(CartPole().spec, updates=100, usual_phases=20)
        for change in ({"clip_length": fits}, {"random_env_steps": enough}):
            dataclasses.replace(short, **change).check(
                CartPole().spec, updates=100, usual_phases=20
            )


PROGRAM = """
import json, os, signal, sys, threading
from pathlib import Path
from runshelf.store.finding import find_run, list_runs
from backflip import teaching_api

home, delay = Path(sys.argv[1]), float(sys.argv[2])


def killed_later(_):
    if delay >= 0 and "death" not in {thread.name for thread in threading.enumerate()}:
        timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL))
        timer.daemon, timer.name = True, "death"
        timer.start()


if list_runs(home):
    teaching_api.resume_teach(find_run(home, "latest"), killed_later)
else:
    teaching_api.teach("CartPole-v1", settings=json.loads(sys.argv[3]), home=home,
               argv=["backflip"], report=killed_later, first_seed=3, seeds=2, labels=8,
               env_steps=256)
"""


@pytest.mark.medium
@pytest.mark.parametrize("most_kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_and_resumed_run_has_the_same_bits_and_repeats_no_query(
    taught, tmp_path, most_kills
):
    seed = int(os.environ.get("BACKFLIP_TEST_SEED", random.SystemRandom().randrange(10**6)))
    sys.stdout.write(f"replay with BACKFLIP_TEST_SEED={seed}\n")
    rng = random.Random(seed)
    kills = 0
    for delay in [*(rng.uniform(0.0, 0.2) for _ in range(most_kills)), -1.0]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(delay), json.dumps(TINY)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert result.returncode in (0, -signal.SIGKILL), result.stderr
        kills += result.returncode != 0
        if result.returncode == 0:
            break
    assert kills >= 1
    assert len(list_runs(tmp_path)) == 1
    folder = find_run(tmp_path, "latest").folder
    same_arrays(saved(taught.folder), saved(folder))
    records = read_metrics(folder, "train").records
    assert all(np.isfinite(record["reward_model_std"]) for record in records)  # kept over a resume
    seeds = (3, 4)
    assert asked_and_answered(folder, seeds) == asked_and_answered(taught.folder, seeds)


@pytest.mark.medium
def test_the_agent_gets_the_reward_of_the_fit(taught):
    records = read_metrics(taught.folder, "train").records
    errors = [one["reward_model_path_error"] for one in records]
    assert np.nanmax(errors) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "calls"),
    [("save", 3), ("save", 4), ("add_queries", 4), ("add_queries", 6)],
)
def test_a_stop_between_queries_and_checkpoint_keeps_the_bits(
    taught, tmp_path, monkeypatch, where, calls
):
    """Queries of the next round are saved, of all seeds or of one; the phase is repeated."""
    owner = {"save": Session, "add_queries": QueryMaker}[where]
    original, called = getattr(owner, where), 0

    def stopped(*args, **options):
        nonlocal called
        called += 1
        if called == calls:
            raise KeyboardInterrupt
        return original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path, first_seed=3)
    again = resume_teach(find_run(tmp_path, "latest"))
    folder = find_run(tmp_path, "latest").folder
    assert again.returns == taught.returns
    same_arrays(saved(taught.folder), saved(folder))
    assert asked_and_answered(folder, (3, 4)) == asked_and_answered(taught.folder, (3, 4))


class BlindTeacher(SimulatedTeacher):
    """Answers at random."""

    def answer(self, query, rng):
        """Return left or right."""
        return "left" if rng.random() < 0.5 else "right"


@pytest.mark.slow
def test_learning_never_sees_the_true_reward(tmp_path, monkeypatch):
    """With NaN for the true reward, only the metrics of the true reward change."""
    teacher = ProgramSource(BlindTeacher())
    short = {"phases": 2, "reward_model": "linear"}  # the quickest to fit
    seeing = tiny(tmp_path / "real", teacher=teacher, seeds=1, settings=short)
    monkeypatch.setattr(
        CartPole, "_reward", lambda self, ended: jnp.full_like(ended, jnp.nan, "f4")
    )
    blind = tiny(tmp_path / "nan", teacher=teacher, seeds=1, settings=short)
    real, nan = saved(seeing.folder), saved(blind.folder)
    measured = {name for name in real if name.endswith("episode_return")}
    assert measured
    same_arrays(real, nan, but=measured)
    assert all(np.isnan(nan[name]).any() for name in measured)
    assert np.isfinite(seeing.returns).all()
    assert np.isnan(blind.returns).all()


@pytest.mark.slow
@pytest.mark.parametrize("skip", [4.5, 1e9])
def test_skipped_queries_are_not_trained_on(tmp_path, skip):
    """At 4.5, queries are skipped if both clips contain an end; at 1e9, all are."""
    result = tiny(tmp_path, teacher=f"noisy:mistake=0.2,skip={skip}")
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        for seed in (0, 1):
            counts = store.counts(seed)
            assert (counts.queries, counts.pending) == (LABELS, 0)
            assert len(store.labelled(seed)) == LABELS - counts.skip
            if skip == 1e9:
                assert counts.skip == LABELS
    said = (result.folder / "output.log").read_text()
    assert (f"all {2 * LABELS} answers are `skip`: no reward was learned" in said) == (skip == 1e9)
    assert all(np.isfinite(array).all() for array in saved(result.folder).values())


@pytest.mark.slow
def test_a_teacher_who_prefers_nothing_teaches_nothing(tmp_path):
    result = tiny(tmp_path, teacher="noisy:tie=1e9")
    said = (result.folder / "output.log").read_text()
    assert f"all {2 * LABELS} answers are `tie`: no reward was learned from them" in said


@pytest.mark.slow
def test_seeds_are_independent_with_a_teacher_who_skips(tmp_path):
    options = {"teacher": "noisy:skip=5,mistake=0.1"}
    together = tiny(tmp_path / "two", **options)
    alone = tiny(tmp_path / "one", first_seed=1, seeds=1, **options)
    same_up_to_rounding(saved(alone.folder), saved(together.folder), row=1)
    assert answers_of(alone.folder, 1) == answers_of(together.folder, 1)


COLOUR = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Slider(gymnasium.Env):
    'A red bar on a colour picture that goes left or right; nearer to the right edge is better.'

    observation_space = spaces.Box(0, 255, (30, 40, 3), np.uint8)
    action_space = spaces.Discrete(3)

    def picture(self):
        frame = np.zeros((30, 40, 3), np.uint8)
        frame[:, self.place : self.place + 4, 0] = 255
        return frame

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.age = int(self.np_random.integers(36)), 0
        return self.picture(), {}

    def step(self, action):
        self.place = int(np.clip(self.place + action - 1, 0, 35))
        self.age += 1
        return self.picture(), self.place / 35, False, self.age == 40, {}
"""


@pytest.mark.slow
def test_a_users_colour_environment_is_taught_from_pixels(tmp_path, monkeypatch):
    (tmp_path / "own_slider.py").write_text(COLOUR)
    monkeypatch.chdir(tmp_path)
    settings = {"random_env_steps": 40, "rollout_length": 40}
    result = tiny(tmp_path, env="own_slider:Slider", settings=settings, env_steps=4 * 40 * 6)
    assert np.isfinite(result.returns).all()
    assert (result.folder / "clips.png").read_bytes()[1:4] == b"PNG"
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        assert store.labelled(0)[0].left["obs"].shape == (5, 30, 40, 3)
    policy = result.policy(0)
    assert policy.act(np.zeros((30, 40, 3), np.uint8)) in (0, 1, 2)
    metrics = read_metrics(result.folder, "train").records[-1]
    assert metrics["reward_model_accuracy"] > 0.6


@pytest.mark.slow
def test_the_teachers_random_numbers_differ_from_those_of_clips(tmp_path):
    interruptible: list[float] = []

    class Listening(SimulatedTeacher):
        """Record the random number."""

        def answer(self, query, rng):
            interruptible.append(rng.random())
            return super().answer(query, rng)

    tiny(tmp_path, first_seed=3, seeds=1, teacher=ProgramSource(Listening()))
    assert len(set(interruptible)) == LABELS
    chose = {np.random.default_rng([3, number]).random() for number in range(ENV_STEPS + 2)}
    assert chose.isdisjoint(interruptible)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": 1}, "`labels` must be at least 2, got 1"),
        ({"labels": 10**6}, "pairs of first clips, fewer than 1000000 labels"),
        ({"settings": {"clip_length": 501}}, "longer than an episode of `CartPole-v1` (500)"),
        ({"settings": {"clip_length": 1}}, "`clip_length` must be at least 2"),
        ({"settings": {"clips_at_once": 3}}, "a set that is ranked or rated; add --ask rank"),
        (
            {"settings": {"queries": 1}},
            "`queries` must be disagreement or information or coverage or uniform, got 1",
        ),
        ({"settings": {"clip_length": "long"}}, "`clip_length` must be a whole number, got 'long'"),
        ({"settings": {"phases": 0}}, "`phases` must lie between 1 and the 4 updates"),
        ({"settings": {"clip_lenght": 5}}, "did you mean `clip_length`?"),
        (
            {"settings": {"decay": 0.9}},
            "`decay` is now called `gae_lambda`; try --set gae_lambda=0.9",
        ),
        ({"settings": {"labels": 50}}, "set the number of `labels` with --labels"),
        ({"teacher": "orakle"}, "did you mean `oracle`?"),
        ({"teacher": "noisy:mistake=2"}, "`mistake` of the teacher must lie in"),
        ({"seeds": 0}, "seeds"),
        ({"algorithm": "ppp"}, "did you mean `ppo`?"),
        ({"env": "CartPole-v2"}, "CartPole-v1"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(tmp_path, changes, said):
    home = tmp_path / "home"
    with pytest.raises(UsageError) as caught:
        tiny(home, **changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not home.exists()


EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "reward_model.py"
OWN = "reward_model:MyRewardModel"


@pytest.fixture
def own_model(tmp_path, monkeypatch):
    """Return settings for the example reward model, copied to the current folder."""
    (tmp_path / "reward_model.py").write_text(EXAMPLE.read_text())
    monkeypatch.chdir(tmp_path)
    return {"reward_model": OWN}


@pytest.fixture(scope="module")
def taught_own(tmp_path_factory):
    """A run with the example reward model."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "reward_model.py").write_text(EXAMPLE.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return tiny(folder, settings={"reward_model": OWN})


@pytest.mark.slow
def test_a_reward_model_of_your_own_teaches_and_resumes(
    taught_own, own_model, tmp_path, monkeypatch
):
    whole = taught_own
    assert np.abs(saved(whole.folder)["reward.weights"]).min() > 0
    original, called = Session.save, 0

    def stopped(*args, **options):
        nonlocal called
        called += 1
        if called == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path / "parts", settings=own_model)
    run = find_run(tmp_path / "parts", "latest")
    assert run.config["teaching"]["reward_model"] == OWN
    resume_teach(run)
    same_arrays(saved(whole.folder), saved(run.folder))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def fit(self, *_): return 1 / 0", "`fit` raised ZeroDivisionError: division by zero"),
        ("def predict(self, p, batch): return batch.reward[0]", "`predict` must return an array"),
    ],
)
def test_an_error_in_a_reward_model_of_your_own_is_one_line(own_model, tmp_path, body, said):
    text = f"from reward_model import MyRewardModel\n\n\nclass Broken(MyRewardModel):\n    {body}\n"
    (tmp_path / "broken_reward_model.py").write_text(text)
    sys.modules.pop("broken_reward_model", None)
    with pytest.raises(RewardModelFailed) as failed:
        tiny(tmp_path / "home", settings={"reward_model": "broken_reward_model:Broken"})
    assert f"reward model `broken_reward_model:Broken`: {said}" in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.slow
def test_a_reward_is_taken_together_with_its_model(taught_own, own_model, tmp_path):
    first = taught_own
    theirs = {"reward_from": str(first.folder), "labels": None}
    again = tiny(tmp_path, **theirs)
    assert find_run(tmp_path, again.run).config["teaching"]["reward_model"] == OWN
    same_arrays(
        {"reward.weights": saved(first.folder)["reward.weights"]},
        {"reward.weights": saved(again.folder)["reward.weights"]},
    )
    with pytest.raises(UsageError, match=f"has a reward model `{OWN}`, not `linear`; leave out"):
        tiny(tmp_path, settings={"reward_model": "linear"}, **theirs)


@pytest.mark.medium
def test_old_runs_without_the_setting_have_the_linear_model(taught):
    path = taught.folder / "run.json"
    manifest = json.loads(path.read_text())
    assert manifest["config"]["teaching"].pop("reward_model") == "intervals"
    whole = path.read_text()
    path.write_text(json.dumps(manifest))
    try:
        start = Start(reward_from=str(taught.folder))
        assert with_reward_model(start, {"phases": 3}) == {"phases": 3, "reward_model": "linear"}
        elsewhere = Run(taught.folder, {**manifest, "env": "Acrobot-v1"})
        env = manifest["env"]
        assert from_elsewhere(start, Run(taught.folder, manifest)) == ""
        assert from_elsewhere(start, elsewhere) == (
            f"the reward model comes from run `{elsewhere.short}` of `{env}`, another environment "
            "than `Acrobot-v1`"
        )
        labels = Start(labels_from=str(taught.folder))
        assert from_elsewhere(labels, elsewhere).startswith("the labels come from run")
        assert from_elsewhere(Start(labels_from="labels.jsonl"), elsewhere) == ""
    finally:
        path.write_text(whole)


def test_an_unknown_reward_model_is_refused_before_a_run_begins(tmp_path):
    with pytest.raises(UsageError, match="unknown reward model `netwrok`, did you mean `network`"):
        tiny(tmp_path, settings={"reward_model": "netwrok"})
    assert list_runs(tmp_path) == []


class Eager(ProgramAnswers):
    """Answers that want 13 queries of each seed once there are labels."""

    def queries_wanted(self):
        """Return none before the first labels, as people do."""
        return len(self._run.seeds) * 13 if self._answered else 0


class EagerSource:
    """The source of a teacher that would wait for queries, as people do."""

    def __init__(self, source):
        self._source = source

    def __getattr__(self, name):
        return getattr(self._source, name)

    @contextlib.contextmanager
    def open(self, run):
        """Yield the answers."""
        yield Eager(self._source._teacher, run)


def rounds_of(folder):
    """Return the queries of the first seed by the env steps of their clips."""
    with LabelStore.open_existing(folder / "labels.sqlite") as store:
        return {steps: store.count_queries(0, steps) for steps in range(0, ENV_STEPS + 1, 64)}


@pytest.mark.slow
def test_queries_come_sooner_for_a_teacher_who_would_wait(tmp_path):
    options = {"labels": 24, "seeds": 2, "settings": {"fresh_share": 0.1}}
    teacher = ProgramSource(SimulatedTeacher())
    planned = rounds_of(tiny(tmp_path / "planned", teacher=teacher, **options).folder)
    eager = EagerSource(teacher)
    sooner = rounds_of(tiny(tmp_path / "sooner", teacher=eager, **options).folder)
    assert planned == {0: 6, 64: 10 + 1, 128: 6, 192: 1, 256: 0}
    assert sooner == {0: 6, 64: 12 + 1, 128: 4, 192: 1, 256: 0}


@pytest.mark.slow
def test_a_resumed_run_knows_which_queries_came_sooner(tmp_path, monkeypatch):
    """It is stopped before it saves phase 2, and goes on with a teacher that never waits."""
    options = {"labels": 24, "seeds": 2, "settings": {"fresh_share": 0.1}}
    eager = EagerSource(ProgramSource(SimulatedTeacher()))
    original, saves = Session.save, []

    def stopped(*args, **arguments):
        saves.append(args)
        if len(saves) == 2:
            raise KeyboardInterrupt
        return original(*args, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path, teacher=eager, **options)
    (run,) = list_runs(tmp_path)
    resume_teach(find_run(tmp_path, run))
    assert rounds_of(tmp_path / "runs" / run) == {0: 6, 64: 12 + 1, 128: 4, 192: 1, 256: 0}


@pytest.mark.slow
def test_a_round_that_was_stopped_gets_its_fresh_pair(tmp_path, monkeypatch):
    """Its fresh pairs are made last, and it had more queries than planned."""
    options = {"labels": 24, "seeds": 1, "settings": {"fresh_share": 0.1}}
    original = QueryMaker._add_pairs

    def stopped(self, pairs, reward, seed, env_steps):
        original(self, pairs[:12] if env_steps else pairs, reward, seed, env_steps)
        if env_steps:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(QueryMaker, "_add_pairs", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path, teacher=EagerSource(ProgramSource(SimulatedTeacher())), **options)
    (run,) = list_runs(tmp_path)
    resume_teach(find_run(tmp_path, run))
    folder = tmp_path / "runs" / run
    assert rounds_of(folder) == {0: 6, 64: 12 + 1, 128: 4, 192: 1, 256: 0}
    with LabelStore.open_existing(folder / "labels.sqlite") as store:
        assert [one.env_steps for one in fresh_answers(store, 0)] == [64, 192]


@pytest.mark.slow
def test_a_resumed_run_without_forecasts_of_fresh_pairs_asks_as_planned(tmp_path, monkeypatch):
    """Fresh pairs of a model without opinions have none, so they look like other queries."""
    monkeypatch.setattr(
        "backflip.training.queries.planned_rounds.fresh_answers",
        lambda store, seed: [],
        raising=True,
    )
    options = {"labels": 24, "seeds": 1, "settings": {"fresh_share": 0.1}}
    original, saves = Session.save, []

    def stopped(*args, **arguments):
        saves.append(args)
        if len(saves) == 1:
            raise KeyboardInterrupt
        return original(*args, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path, **options)
    (run,) = list_runs(tmp_path)
    resume_teach(find_run(tmp_path, run))
    assert rounds_of(tmp_path / "runs" / run) == {0: 6, 64: 10 + 1, 128: 6, 192: 1, 256: 0}
