"""Tests of `teach` with every kind of algorithm: on-policy, with a replay, without gradients."""

import numpy as np
import pytest

from backflip import teaching_api
from backflip.core.checkpoint import load_arrays
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import resume_teach, teach
from backflip.training import build as building
from backflip.training.build import build, spec_of
from backflip.training.session import Session
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.defaults import (
    PIXEL_CLIP_STEPS,
    VECTOR_CLIP_STEPS,
    clip_rollouts,
    teach_settings,
)
from backflip.training.train import train
from runshelf.errors import Interrupted, UsageError
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics

LABELS = 8
TEACHING = {
    "phases": 3,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}
REPLAY = {
    "num_envs": 4,
    "rollout_length": 8,
    "learning_starts": 64,
    "buffer_size": 512,
    "batch_size": 16,
    "hidden": (8,),
}
ROLLOUTS = {"num_envs": 4, "rollout_length": 16, "hidden": (8,)}
TINY = {
    "a2c": ROLLOUTS,
    "vpg": ROLLOUTS,
    "cem": {"num_envs": 4, "episodes": 1, "hidden": (4,)},
    "dqn": REPLAY | {"epsilon_steps": 200, "n_step": 1},
    "ddpg": REPLAY,
    "td3": REPLAY,
    "sac": REPLAY,
}


def tiny(home, algorithm, env, **options):
    settings = TINY[algorithm] | TEACHING | options.pop("settings", {})
    fixed = {"labels": LABELS, "argv": ["backflip"], "settings": settings, "home": home}
    return teach(env, algorithm=algorithm, **({"seeds": 2, "env_steps": 384} | fixed | options))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that returns the result and the notes of a run, made once for each argument."""
    made = {}

    def run(algorithm, env, **options):
        arguments = repr((algorithm, env, options))
        if arguments not in made:
            home, notes = tmp_path_factory.mktemp("home"), []
            result = tiny(home, algorithm, env, report=lambda p: notes.append(p.note), **options)
            made[arguments] = result, notes
        return made[arguments]

    return run


def saved(folder):
    return load_arrays(folder / "checkpoint.safetensors").arrays


@pytest.mark.medium
@pytest.mark.parametrize(
    ("algorithm", "env", "options"),
    [
        pytest.param("dqn", "CartPole-v1", {}, marks=pytest.mark.slow),
        pytest.param("sac", "CartPole-v1", {}, marks=pytest.mark.slow),
        pytest.param("sac", "Pendulum-v1", {}, marks=pytest.mark.slow),
        pytest.param("ddpg", "Pendulum-v1", {}, marks=pytest.mark.slow),
        pytest.param(
            "td3",
            "gymnasium:Pendulum-v1",
            {"env_args": {"max_episode_steps": 20}},
            marks=pytest.mark.slow,
        ),
        pytest.param("a2c", "CartPole-v1", {}, marks=pytest.mark.slow),
        pytest.param("vpg", "Pendulum-v1", {}, marks=pytest.mark.slow),
        pytest.param("cem", "CartPole-v1", {"env_steps": 3 * 4 * 500}, marks=pytest.mark.slow),
    ],
)
def test_every_algorithm_learns_from_preferences_to_the_end(whole, algorithm, env, options):
    result, notes = whole(algorithm, env, **options)
    assert (result.algorithm, result.labels) == (algorithm, LABELS)
    assert np.isfinite(result.returns).all()
    line = (
        f"{algorithm} learns `{env}`; oracle answers {LABELS} queries of each seed, by the true "
        "reward"
    )
    assert line in notes
    records = read_metrics(result.folder, "train").records
    assert records[-1]["env_steps"] == result.env_steps
    assert np.isfinite(records[-1]["reward_model_std"])
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        asked_at = [pair.env_steps for pair in store.labelled(0)]
    assert asked_at[0] == 0, "the first clips are those of the random policy"
    assert 0 < asked_at[-1] < result.env_steps
    weights = saved(result.folder)["reward.weights"]
    assert np.abs(weights).max() > 0


@pytest.mark.slow
def test_the_env_steps_before_learning_count_and_fill_the_replay(whole):
    result, _ = whole("dqn", "CartPole-v1")
    assert result.env_steps == 384
    records = read_metrics(result.folder, "train").records
    assert records[0]["env_steps"] == 64 + 4 * 8, "two random rollouts of 32, and one to learn from"
    assert saved(result.folder)["learners.replay.filled"].max() * 4 == 384


# Quick tests resume a run of DQN that explores, and one outside JAX.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env", "options"),
    [
        ("dqn", "CartPole-v1", {}),
        ("td3", "gymnasium:Pendulum-v1", {"env_args": {"max_episode_steps": 20}}),
    ],
)
@pytest.mark.parametrize("saves", [1, 2])
def test_a_stopped_and_resumed_run_has_the_same_bits(
    whole, tmp_path, monkeypatch, algorithm, env, options, saves
):
    """Stopped after no phase, or after one; the replay is part of the checkpoint."""
    never, _ = whole(algorithm, env, **options)
    run = stopped_run(monkeypatch, saves, tmp_path / "stopped", algorithm, env, **options)
    assert_same_end(never, resume_teach(run))


@pytest.mark.slow
def test_a_run_is_resumed_within_its_first_shortened_episodes(tmp_path, monkeypatch):
    """Only a time limit ends episodes, and phases are shorter than it: their length is NaN."""
    run = stopped_run(monkeypatch, 2, tmp_path / "stopped", "a2c", "gymnasium:Pendulum-v1")
    assert np.isnan(saved(run.folder)["learners.episode_length"]).any()
    assert np.isfinite(resume_teach(run).returns).all()


def stopped_run(monkeypatch, saves, home, algorithm, env, **options):
    """Return a run that stopped just before it saved for the given time."""
    original, called = Session.save, 0

    def stopped(*args, **fields):
        nonlocal called
        called += 1
        if called == saves:
            raise KeyboardInterrupt
        return original(*args, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(home, algorithm, env, **options)
    return find_run(home, "latest")


def assert_same_end(never, again):
    assert again.returns == never.returns
    one, other = saved(never.folder), saved(again.folder)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_an_algorithm_that_cannot_choose_the_actions_is_refused(tmp_path):
    says = "`td3` chooses continuous actions, .* use one of: a2c, cem, dqn, ppo, sac, vpg"
    with pytest.raises(UsageError, match=says):
        tiny(tmp_path, "td3", "CartPole-v1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("algorithm", "env"), [("dqn", "CartPole-v1"), ("a2c", "Pendulum-v1"), ("sac", "Pendulum-v1")]
)
def test_other_algorithms_learn_with_the_settings_of_train(algorithm, env):
    spec = build(algorithm, env, env_args={}, settings={}).driver.spec
    learning, teaching = teach_settings(algorithm, spec)
    assert learning == {}
    assert teaching == teach_settings("ppo", spec)[1]


def settings_of(name, num_envs, rollout_length):
    return build(
        "dqn" if name == "dqn" else "ppo",
        "CartPole-v1",
        env_args={},
        settings={"num_envs": num_envs, "rollout_length": rollout_length, "env_steps": 200_000}
        | ({} if name == "dqn" else {"minibatches": 1}),
    ).config


@pytest.mark.parametrize(
    ("name", "num_envs", "rollout_length", "rollouts"),
    [
        ("ppo", 4, 16, VECTOR_CLIP_STEPS // (4 * 16)),
        ("dqn", 8, 32, VECTOR_CLIP_STEPS // (8 * 32)),
        ("dqn", 1, 16, VECTOR_CLIP_STEPS // 16),
        ("dqn", 32, 16, VECTOR_CLIP_STEPS // (16 * 16)),  # clips are cut from 16 of the 32
        ("dqn", 16, 4_096, 4),
    ],
)
def test_clips_come_from_enough_env_steps(name, num_envs, rollout_length, rollouts):
    own, config = settings_of(name, num_envs, rollout_length), TeachConfig(clip_envs=16)
    assert clip_rollouts(own, spec_of("CartPole-v1", {}), config) == rollouts


def test_clips_of_images_come_from_fewer_env_steps():
    own, spec = settings_of("ppo", 4, 16), spec_of("dot", {})
    assert clip_rollouts(own, spec, TeachConfig(clip_envs=16)) == PIXEL_CLIP_STEPS // (4 * 16)
    few = TeachConfig(clip_envs=4, clip_length=2_000)
    assert clip_rollouts(own, spec, few) * 16 >= 2_000, "a clip fits in"


@pytest.mark.slow
def test_dqn_learns_cartpole_from_preferences(tmp_path):
    """A random policy returns about 22; measured: 500, 500 and 214."""
    result = teach(
        "CartPole-v1",
        algorithm="dqn",
        labels=100,
        seeds=3,
        settings={"n_step": 1},
        home=tmp_path,
        argv=["backflip"],
    )
    assert np.mean(result.returns) >= 300.0, result.returns
    assert min(result.returns) >= 100.0, result.returns


@pytest.mark.slow
def test_sac_learns_pendulum_from_preferences(tmp_path):
    """A random policy returns about -1200; measured: -142, -147 and -149."""
    options = {"algorithm": "sac", "labels": 100, "seeds": 3, "home": tmp_path}
    result = teach("Pendulum-v1", argv=["backflip"], **options)
    assert min(result.returns) >= -220.0, result.returns


class Environments:
    """Environments outside JAX that were made and closed."""

    def __init__(self, monkeypatch):
        self.opened, self.closed = [], []
        original = building.make_host

        def watched(*args):
            batch = original(*args)
            self.opened.append(batch)
            close = batch.close
            monkeypatch.setattr(batch, "close", lambda: (self.closed.append(batch), close()))
            return batch

        monkeypatch.setattr(building, "make_host", watched)

    def check_closed(self):
        """Check that all were closed, and that there were some."""
        assert len(self.opened) >= 2
        assert {id(batch) for batch in self.opened} == {id(batch) for batch in self.closed}


@pytest.mark.slow
def test_every_environment_outside_jax_is_closed(tmp_path, monkeypatch):
    environments = Environments(monkeypatch)
    options = {"env_args": {"max_episode_steps": 20}, "env_steps": 192}
    tiny(tmp_path, "td3", "gymnasium:Pendulum-v1", **options)
    environments.check_closed()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"reward_model": "no_such_module:Model"}, "no module `no_such_module`"),
        ({"learning_starts": 0}, "initial labels do not fit"),
        pytest.param(
            {"updates_per_step": 1e9}, "minibatches drawn at once", marks=pytest.mark.slow
        ),
    ],
)
def test_every_environment_outside_jax_is_closed_when_teach_refuses(
    tmp_path, monkeypatch, settings, said
):
    def refuse(start, spec, clip_length):
        if said == "initial labels do not fit":
            raise UsageError(said)

    monkeypatch.setattr(teaching_api, "check_labels", refuse)
    environments = Environments(monkeypatch)
    with pytest.raises(UsageError, match=said):
        tiny(tmp_path, "td3", "gymnasium:Pendulum-v1", settings=settings)
    environments.check_closed()


def test_every_environment_outside_jax_is_closed_when_train_refuses(tmp_path, monkeypatch):
    environments = Environments(monkeypatch)
    with pytest.raises(UsageError, match="replay memory"):
        train(
            "td3",
            "gymnasium:Pendulum-v1",
            settings={"buffer_size": 10**9, "env_steps": 10**9},
            home=tmp_path,
        )
    environments.check_closed()


# Exploring before the first labels, and while they say nothing


def is_exploring(record):
    """Return whether a policy learned from the reward of exploring: small, without a mean."""
    return abs(record["reward_mean"]) < 0.01 < record["reward_std"] < 0.2


EXPLORING_DQN = {
    "pretrain_env_steps": 64,
    "recent_share": 0.5,
    "recent_env_steps": 64,
    "queries": "information",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env", "options"),
    [
        ("dqn", "CartPole-v1", {"settings": EXPLORING_DQN}),
        (
            "sac",
            "gymnasium:Pendulum-v1",
            {
                "settings": {"pretrain_env_steps": 96},
                "env_args": {"max_episode_steps": 20},
                "seeds": 1,
            },
        ),
        (
            "a2c",
            "Pendulum-v1",
            {"settings": {"pretrain_env_steps": 96}, "env_steps": 640, "seeds": 1},
        ),
    ],
)
def test_a_run_explores_before_its_first_queries(whole, algorithm, env, options):
    result, _ = whole(algorithm, env, **options)
    assert result.labels == LABELS
    with LabelStore.open(result.folder / "labels.sqlite") as store:
        asked_at = [pair.env_steps for pair in store.labelled(0)]
    random = 0 if algorithm == "a2c" else 64
    each = 64 if algorithm == "a2c" else 32
    exploring = options["settings"]["pretrain_env_steps"]
    assert asked_at[0] == random + -(-exploring // each) * each
    records = read_metrics(result.folder, "train").records
    assert records[-1]["env_steps"] == result.env_steps
    first = [one for one in records if one["env_steps"] <= asked_at[0]]
    assert first
    assert all(is_exploring(one) for one in first)


@pytest.mark.slow
@pytest.mark.parametrize("saves", [1, 2, 3])
def test_a_stopped_and_resumed_run_that_explores_has_the_same_bits(
    whole, tmp_path, monkeypatch, saves
):
    never, _ = whole("dqn", "CartPole-v1", settings=EXPLORING_DQN)
    original, called = Session.save, 0

    def stopped(*args, **fields):
        nonlocal called
        called += 1
        if called == saves:
            raise KeyboardInterrupt
        return original(*args, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path / "stopped", "dqn", "CartPole-v1", settings=EXPLORING_DQN)
    again = resume_teach(find_run(tmp_path / "stopped", "latest"))
    one, other = saved(never.folder), saved(again.folder)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.slow
def test_while_all_answers_are_ties_the_policy_explores(tmp_path):
    options = {"teacher": "noisy:tie=1e9", "env_steps": 640, "seeds": 1}
    result = tiny(tmp_path, "a2c", "Pendulum-v1", **options)
    records = read_metrics(result.folder, "train").records
    assert all(is_exploring(one) for one in records)
    assert not np.asarray(saved(result.folder)["reward.weights"]).any()


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param("uniform", marks=pytest.mark.slow),
        pytest.param("disagreement", marks=pytest.mark.slow),  # the default of other tests
        pytest.param("information", marks=pytest.mark.slow),  # also that of `EXPLORING_DQN`
        "coverage",
    ],
)
@pytest.mark.slow
def test_every_way_to_choose_queries_spends_the_budget(tmp_path, queries):
    settings = {"queries": queries, "stages": 2}
    result = tiny(tmp_path, "a2c", "Pendulum-v1", settings=settings, env_steps=640, seeds=1)
    assert result.labels == LABELS


@pytest.mark.slow
@pytest.mark.parametrize("queries", ["information", "coverage"])
def test_a_model_without_an_embedding_is_asked_for_its_members(tmp_path, queries):
    settings = {"queries": queries, "reward_model": "network"}
    result = tiny(tmp_path, "a2c", "Pendulum-v1", settings=settings, env_steps=640, seeds=1)
    assert result.labels == LABELS


@pytest.mark.slow
def test_pretraining_that_leaves_nothing_to_learn_in_is_refused(tmp_path):
    with pytest.raises(UsageError, match="pretrain_env_steps=57"):
        tiny(tmp_path, "dqn", "CartPole-v1", settings={"pretrain_env_steps": 320})
