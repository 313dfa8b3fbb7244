"""Tests of `train`: its result, its refusals, and its files."""

import errno
import importlib
import json
import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.chdir_env import write_chdir_env

import backflip
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.core.checkpoint import load_arrays
from backflip.core.errors import EnvironmentFailed
from backflip.core.trees import unflatten
from backflip.envs.registry import make_native
from backflip.inspect.watch import watch
from backflip.teaching_api import resume_teach
from backflip.training import progress_reporter as telling
from backflip.training import session
from backflip.training.build import build
from backflip.training.planning import evaluation_episodes, phase_count, plan
from backflip.training.policy import load_policy
from backflip.training.progress import Pace, Progress, plain_line
from backflip.training.result import Result
from backflip.training.train import resume_train, train
from runshelf.errors import Interrupted, UsageError, UserFacingError
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics
from runshelf.store.run import Run, open_run

SMALL: dict[str, Any] = {"num_envs": 4, "rollout_length": 16, "epochs": 2, "hidden": (8,)}
ENV_STEPS = 4 * 16 * 6  # six updates
SHORT = {"max_episode_steps": 8}  # so that host environments have several phases too


def small(home: Path, **changes: Any) -> Result:
    """Train CartPole a little."""
    options: dict[str, Any] = {"seeds": 2, "env_steps": ENV_STEPS, "settings": SMALL, "home": home}
    return train("ppo", **{"env": "CartPole-v1", **options, **changes})


def the_run(home: Path) -> Run:
    return find_run(home, "latest")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return small(tmp_path_factory.mktemp("home"), first_seed=7)


@pytest.fixture(scope="module")
def never(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run of CartPole that nothing interrupted."""
    return small(tmp_path_factory.mktemp("never"))


@pytest.mark.medium
def test_the_result_keeps_the_output_contract(trained: Result) -> None:
    fields = trained.to_json()
    assert json.loads(json.dumps(fields)) == fields
    assert fields["env"] == "CartPole-v1"
    assert fields["algorithm"] == "ppo"
    assert fields["seeds"] == [7, 8]
    assert fields["env_steps"] == ENV_STEPS
    assert "labels" not in fields
    assert "optimum" not in fields
    assert len(fields["returns"]) == 2
    assert all(1 <= x <= 500 for x in fields["returns"])
    seconds = fields["seconds"]
    assert set(seconds) == {"setup", "compile", "train", "answers", "evaluate", "total"}
    assert seconds["total"] == pytest.approx(sum(seconds.values()) - seconds["total"], abs=0.01)
    assert trained.folder.name == fields["run"]
    assert open_run(trained.folder).events()[-1]["result"]["returns"] == fields["returns"]


@pytest.mark.medium
def test_every_update_of_every_seed_is_recorded(trained: Result) -> None:
    records = read_metrics(trained.folder, "train").records
    assert [(r["updates"], r["seed"]) for r in records] == [
        (update, seed) for update in range(1, 7) for seed in (7, 8)
    ]
    for record in records:
        assert record["env_steps"] == record["updates"] * 64
        assert record["env_steps_per_second"] > 0
        assert record["memory_mib"] > 10
    wanted = "entropy entropy_max approx_kl clip_fraction value_loss explained_variance "
    wanted += "explained_variance_mc grad_norm update_ratio learning_rate episodes "
    wanted += "episode_return_mean episode_return_std episode_length_min episode_length_max"
    assert set(wanted.split()) <= records[0].keys()
    seconds = [r["seconds"] for r in records]
    assert seconds == sorted(seconds)


@pytest.mark.medium
def test_the_policy_acts_on_one_observation_and_on_many(trained: Result) -> None:
    policy = trained.policy(8)
    obs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    actions = policy.act(obs)
    assert actions.shape == (50,)
    assert [int(policy.act(row)) for row in obs[:5]] == actions[:5].tolist()
    built = build("ppo", "CartPole-v1", env_args={}, settings=SMALL)
    arrays = load_arrays(trained.folder / "checkpoint.safetensors").arrays
    whole = unflatten({"learners": built.driver.start([7, 8])}, arrays)
    of_seed_8 = jax.tree.map(lambda x: x[1], whole["learners"].algorithm)
    np.testing.assert_array_equal(
        actions,
        built.driver.algorithm.evaluation_action(of_seed_8, jnp.asarray(obs), jax.random.key(0)),
    )
    assert not np.array_equal(actions, trained.policy(7).act(obs))
    with pytest.raises(UsageError, match=r"`obs` must have shape \(4,\).* got \(3,\)"):
        policy.act(np.zeros(3))
    with pytest.raises(UsageError, match="has no seed 9; it has 7, 8"):
        load_policy(trained.folder, 9)


@pytest.mark.medium
def test_the_policy_file_has_no_optimiser(trained: Result) -> None:
    names = load_arrays(trained.folder / "policy.safetensors").arrays
    assert {"params.policy.w", "obs_statistics.mean"} <= names.keys()
    assert not [name for name in names if "optimizer" in name]
    full = load_arrays(trained.folder / "checkpoint.safetensors").arrays
    assert "learners.algorithm.optimizer.mu.policy.w" in full


@pytest.mark.slow
def test_a_continuous_policy_stays_within_bounds(tmp_path: Path) -> None:
    result = small(tmp_path, env="Pendulum-v1", seeds=1, env_args={"max_episode_steps": 200})
    policy = result.policy()
    action = policy.act(np.array([1.0, 0.0, 0.0]))
    assert action.shape == (1,)
    policy._evaluate = lambda state, obs, key: np.full((len(obs), 1), 9.0)  # type: ignore[assignment]
    assert policy.act(np.zeros((2, 3))).tolist() == [[2.0], [2.0]]


@pytest.mark.medium
def test_progress_is_reported_after_each_phase(tmp_path: Path) -> None:
    seen: list[Progress] = []
    small(tmp_path, report=seen.append)
    phases = [p.phase for p in seen if not p.doing and not p.note]
    assert phases == list(range(1, seen[-1].phases + 1))
    assert seen[-1].env_steps == ENV_STEPS
    assert seen[-1].eta_seconds == 0.0
    assert {"entropy", "episode_return_mean"} <= seen[-1].health.keys()


@pytest.mark.medium
def test_run_json_is_there_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise RuntimeError("first step")

    monkeypatch.setattr(session.Session, "restore", stop)
    with pytest.raises(RuntimeError, match="first step"):
        small(tmp_path, argv=["backflip", "train"])
    run = the_run(tmp_path)
    assert run.manifest["argv"] == ["backflip", "train"]
    assert run.config["settings"]["learning_rate"] == PPOConfig.learning_rate
    assert run.config["settings"]["env_steps"] == ENV_STEPS
    assert run.seeds == [0, 1]
    assert "jax" in run.manifest["versions"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"algorithm": "poo"}, "unknown algorithm `poo`, did you mean `ppo`"),
    ({"env": "CartPol-v1"}, "unknown environment `CartPol-v1`, did you mean `CartPole-v1`"),
    ({"seeds": 0}, "`seeds` must be at least 1, got 0"),
    ({"first_seed": -1}, "seeds must lie between 0 and"),
    ({"env_steps": 255}, "`env_steps` must be at least one rollout, 8 environments x 32 = 256"),
    ({"settings": {"learning_rat": 1.0}}, "unknown settings `learning_rat`, did you mean"),
    ({"settings": {"learning_rate": "big"}}, "`learning_rate` must be a finite number, got 'big'"),
    ({"settings": {"discount": math.nan}}, "`discount` must be a finite number, got nan"),
    ({"settings": {"epochs": True}}, "`epochs` must be a whole number, got True"),
    ({"settings": {"normalize_obs": 1}}, "`normalize_obs` must be true or false, got 1"),
    ({"settings": {"hidden": (0,)}}, "`hidden` must be whole numbers, at least 1"),
    ({"settings": {"num_envs": 0}}, "`num_envs` must lie between 1 and .*, got 0"),
    ({"settings": {"minibatches": 3}}, "`minibatches` must divide .* = 256, got 3"),
    ({"env_args": {"wind": 3}}, "does not take --env-arg `wind`"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        train(**{"home": tmp_path, **options})
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write runs in"):
        small(tmp_path / "file")


@pytest.mark.slow
def test_a_full_disk_ends_with_one_line_and_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never: Result
) -> None:
    """The disk fills up after three phases; with free space the resumed run finishes."""
    write, limit = os.write, [3]

    def full(descriptor: int, data: Any) -> int:
        if limit[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    def count(progress: Progress) -> None:
        limit[0] -= 1

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(UserFacingError, match="no space left on the disk"):
        small(tmp_path, report=count)
    monkeypatch.setattr(os, "write", write)
    resumed = resume_train(the_run(tmp_path))
    assert_same_end(resumed, never)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "env_args"),
    [("CartPole-v1", {}), pytest.param("gymnasium:CartPole-v1", SHORT, marks=pytest.mark.slow)],
)
def test_an_interrupted_and_resumed_run_has_the_same_bits(
    tmp_path: Path, env: str, env_args: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    with pytest.raises(
        Interrupted, match=r"all finished phases are saved.*backflip resume .*runs/0"
    ):
        small(tmp_path, env=env, env_args=env_args, report=interrupting(after=2))
    run = the_run(tmp_path)
    assert run.events()[-1]["status"] == "interrupted"
    resumed = resume_train(run)
    if env_args:
        never = small(tmp_path / "never", env=env, env_args=env_args)
    else:
        never = request.getfixturevalue("never")
    assert_same_end(resumed, never)
    assert [r["status"] for r in run.events()] == ["started", "interrupted", "resumed", "finished"]
    ours, theirs = (read_metrics(r.folder, "train").records for r in (resumed, never))
    timed = {"seconds", "env_steps_per_second", "memory_mib"}
    for one, other in zip(ours, theirs, strict=True):
        same = {k: repr(v) for k, v in one.items() if k not in timed}
        assert same == {k: repr(v) for k, v in other.items() if k not in timed}


@pytest.mark.slow
def test_interrupted_before_any_phase_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never: Result
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session.Session, "log_phase", stop)
        with pytest.raises(Interrupted, match="no phase was finished"):
            small(tmp_path)
    assert_same_end(resume_train(the_run(tmp_path)), never)


@pytest.mark.medium
def test_a_changed_configuration_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        small(tmp_path, report=interrupting(after=2))
    run = the_run(tmp_path)
    manifest = json.loads((run.folder / "run.json").read_text())
    manifest["config"]["settings"]["discount"] = 0.5
    manifest["seeds"] = [0, 5]
    (run.folder / "run.json").write_text(json.dumps(manifest))
    before = (run.folder / "checkpoint.safetensors").read_bytes()
    expected = r"`config.settings.discount` was 0.98, is 0.5; `seeds` was \[0, 1\], is \[0, 5\]"
    with pytest.raises(UsageError, match=f"changed configuration: {expected}; start a new run"):
        resume_train(open_run(run.folder))
    assert (run.folder / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.medium
def test_after_a_damaged_checkpoint_the_bits_are_the_same(tmp_path: Path, never: Result) -> None:
    with pytest.raises(Interrupted):
        small(tmp_path, report=interrupting(after=3))
    path = the_run(tmp_path).folder / "checkpoint.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    seen: list[Progress] = []
    resumed = resume_train(the_run(tmp_path), seen.append)
    assert seen[0].phase == 3
    assert "using `checkpoint.previous.safetensors` instead" in str(seen[0].note)
    assert seen[1].note is None
    assert_same_end(resumed, never)


OWN = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Breaks(gymnasium.Env):
    """Returns `value` as an observation after 100 env steps of one episode."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.age = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.age += 1
        return np.full(1, np.nan if self.age > 60 else 0.0, np.float32), 1.0, False, False, {}

class Pays(Breaks):
    def step(self, action):
        return np.zeros(1, np.float32), 3e38, False, False, {}
'''


@pytest.mark.medium
def test_a_users_broken_environment_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It breaks in the first phase of 6 updates x 16 env steps; the run is saved."""
    (tmp_path / "own_breaks.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvironmentFailed, match=r"`own_breaks:Breaks` failed in row 0 at step 61"):
        small(tmp_path, env="own_breaks:Breaks")
    events = the_run(tmp_path).events()
    assert events[-1]["status"] == "failed"
    assert "observation[0] is nan" in events[-1]["error"]


@pytest.mark.slow
def test_overflowing_rewards_are_reported_as_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reward is a finite float32, so the environment is valid."""
    (tmp_path / "own_pays.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserFacingError, match=r"rewards, as large as 3e\+38, are finite, but"
    ) as caught:
        small(tmp_path, env="own_pays:Pays")
    assert str(caught.value).startswith(
        "learning failed at seed 0, update 1: the mean reward is inf"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("observe", "seed 0, update 3: an observation is nan"),
        pytest.param("reward", "seed 0, update 3: a reward is nan", marks=pytest.mark.slow),
    ],
)
def test_a_native_environment_that_returns_nan_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, message: str
) -> None:
    """Earlier metrics are logged, and the checkpoint is the last finite one."""
    env = _sick(part)
    monkeypatch.setattr("backflip.training.build.make_native", lambda *_: env)
    with pytest.raises(EnvironmentFailed, match=message) as caught:
        small(tmp_path)
    assert "environment `CartPole-v1` failed at" in str(caught.value)
    run = the_run(tmp_path)
    assert [r["updates"] for r in read_metrics(run.folder, "train").records] == [1, 1, 2, 2, 3, 3]
    arrays = load_arrays(run.folder / "checkpoint.safetensors").arrays
    assert all(np.isfinite(a).all() for name, a in arrays.items() if "algorithm.params" in name)


def _sick(part: str) -> Any:
    """CartPole that never terminates and gives NaN after 40 env steps: in update 3."""
    env: Any = make_native("CartPole-v1")

    class Sick:
        spec = env.spec

        def reset(self, key: Any) -> Any:
            return env.reset(key)

        def step(self, state: Any, action: Any, key: Any) -> Any:
            moved = env.step(state, action, key)
            sick = (part == "reward") & (state.env_steps >= 40)
            reward = jnp.where(sick, jnp.nan, moved.reward)
            return moved._replace(reward=reward, terminated=jnp.zeros((), bool))

        def observe(self, state: Any) -> Any:
            sick = (part == "observe") & (state.env_steps >= 40)
            return jnp.where(sick, jnp.nan, env.observe(state))

    return Sick()


def test_phases_divide_the_updates() -> None:
    for updates in range(1, 400):
        for phases in (1, 3, 20):
            parts = plan(updates, min(phases, updates))
            assert sum(parts) == updates
            assert len(set(parts[:-1])) <= 1
            assert min(parts) >= 1
            asked = min(phases, updates)
            assert updates < 2 * asked or 0.7 * asked <= len(parts) <= 1.35 * asked
    assert plan(391, 20) == [23] * 17
    assert plan(97, 20) == [5] * 18 + [7]  # 97 is prime
    assert plan(13 * 61, 24) == [33] * 23 + [34]  # not 13 phases, its nearest divisor


def test_host_phases_last_several_episodes() -> None:
    native = build("ppo", "CartPole-v1", env_args={}, settings={"env_steps": 100_000})
    host = build("ppo", "gymnasium:CartPole-v1", env_args={}, settings={"env_steps": 100_000})
    assert phase_count(native.config.updates, native.driver) == 20
    count = phase_count(host.config.updates, host.driver)
    assert count == 8
    assert host.config.updates / count * host.config.rollout_length >= 3 * 500


@pytest.mark.medium
def test_games_with_very_long_limits_have_several_phases() -> None:
    pong = build("ppo", "ALE/Pong-v5", env_args={}, settings={"env_steps": 1_000_000})
    assert pong.driver.spec.max_episode_steps == 27_000
    count = phase_count(pong.config.updates, pong.driver)
    assert count == 5
    assert pong.config.updates / count * pong.config.rollout_length >= 3 * 2_000
    assert evaluation_episodes(pong.driver) == 20


def test_phases_have_three_whole_long_episodes() -> None:
    """Three of 1,600 env steps, where there are 12,500 of each environment: two phases."""
    args = {"max_episode_steps": 1_600}
    host = build("ppo", "gymnasium:CartPole-v1", env_args=args, settings={"env_steps": 100_000})
    assert phase_count(host.config.updates, host.driver) == 2
    assert evaluation_episodes(host.driver) == 100


def test_phases_with_a_limit_of_ten_thousand_env_steps() -> None:
    args = {"max_episode_steps": 10_000}
    host = build("ppo", "gymnasium:CartPole-v1", env_args=args, settings={"env_steps": 500_000})
    assert phase_count(host.config.updates, host.driver) == 2
    assert evaluation_episodes(host.driver) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "limit", "said"),
    [("gymnasium:Pendulum-v1", 100, 1), ("gymnasium:Pendulum-v1", 8, 0), ("Pendulum-v1", 200, 0)],
    ids=["longer", "short", "native"],
)
def test_episodes_longer_than_a_phase_are_reported_once(
    env: str, limit: int, said: int, tmp_path: Path
) -> None:
    """96 env steps of each environment; only episodes in JAX continue in the next phase."""
    notes: list[str] = []
    small(
        tmp_path,
        env=env,
        seeds=1,
        env_args={"max_episode_steps": limit},
        report=lambda now: notes.append(now.note) if now.note else None,
    )
    told = [note for note in notes if "no episode" in note]
    assert len(told) == said
    for note in told:
        assert "ended within 96 env steps" in note
        assert "max_episode_steps=32" in note


def test_the_pace_is_unchanged_while_the_share_of_a_phase_is_unknown() -> None:
    """One phase of 30 s is done and 5 s have passed; in the first phase nothing is known."""
    before = Progress(1, 8, 1_000, 54.0, 0.0, {})
    now = Pace(before, seeds=3, phases=1, seconds=30.0, answering_seconds=0.0).at(0.0, 1_000, 5.0)
    assert (now.share, now.env_steps_per_second) == (0.0, 54.0)
    assert now.eta_seconds == 35.0 * 7
    first = Pace(replace(before, phase=0), 3, 0, 0.0, 0.0).at(0.0, 0, 5.0)
    assert "known after the first phase" in plain_line(first)


def test_the_pace_within_a_phase_by_hand() -> None:
    """Two phases of 30 s are done, a quarter of the third took 5 s, answers will take 7 s more.

    A phase takes 65 / 2.25 s; 5 of 8 and three quarters of one are to come.
    """
    before = Progress(2, 8, 1_000, 0.0, 0.0, {"entropy": 0.5})
    pace = Pace(before, seeds=3, phases=2, seconds=60.0, answering_seconds=7.0)
    now = pace.at(0.25, 1_500, 5.0)
    assert (now.phase, now.share, now.phases, now.env_steps) == (2, 0.25, 8, 1_500)
    assert now.env_steps_per_second == 3 * 500 / 5
    assert now.eta_seconds == pytest.approx(65 / 2.25 * 5.75 + 7)
    assert now.health == before.health


@pytest.mark.parametrize(("share", "says"), [(0.0, "7/8"), (0.3, "7.3/8"), (0.99, "7.9/8")])
def test_phases_are_rounded_down(share: float, says: str) -> None:
    line = plain_line(Progress(7, 8, 1_000, 100.0, 5.0, {}, share=share))
    assert line.startswith(f"{says} · ")
    assert "5 s to go" in line


@pytest.mark.slow
def test_progress_within_a_phase_outside_jax_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 updates in one phase, each of 16 env steps in both environments: all are told of.

    The last one is reported after everything is saved; one line is kept.
    """
    monkeypatch.setattr("backflip.training.progress_reporter.SECONDS_BETWEEN_REPORTS", 0.0)
    told: list[Progress] = []
    of = {"env": "gymnasium:CartPole-v1", "env_steps": 32 * 24, "report": told.append}
    small(tmp_path, settings={**SMALL, "num_envs": 2}, **of)
    seen = [progress for progress in told if not (progress.doing or progress.note)]
    assert [progress.env_steps for progress in seen] == [2 * n for n in range(1, 16 * 24 + 1)]
    done = [progress.phase + progress.share for progress in seen]
    assert done == pytest.approx([n / (16 * 24) for n in range(1, 16 * 24 + 1)])
    assert all(progress.env_steps_per_second > 0 for progress in seen)
    assert seen[-1].eta_seconds == 0 < seen[-2].eta_seconds
    said = (the_run(tmp_path).folder / "output.log").read_text()
    assert "1/1 · 768 env steps" in said
    assert "0.5/1" not in said


@pytest.mark.slow
def test_progress_outside_phases_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds of ten and of six episodes of 8 env steps for each of two seeds, in rows of 10."""
    monkeypatch.setattr("backflip.training.progress_reporter.SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr("backflip.training.planning.EPISODES_ON_HOST", 16)
    doing: list[str] = []
    train(
        "sac",
        "gymnasium:Pendulum-v1",
        seeds=2,
        env_steps=36,
        env_args=SHORT,
        settings={
            "num_envs": 3,
            "rollout_length": 2,
            "learning_starts": 30,
            "batch_size": 4,
            "hidden": (8,),
        },
        home=tmp_path,
        report=lambda now: doing.append(now.doing) if now.doing else None,
    )
    assert doing[:10] == [f"warming up: {3 * n} of 30 env steps" for n in range(1, 11)]
    played = [(0, 20 * n) for n in range(8)] + [(20, 160)]  # the first report comes at once
    played += [(20, 160 + 12 * n) for n in range(1, 8)] + [(32, 256)]  # 6 of 10 environments
    assert doing[10:] == [
        f"evaluating: {n} of 32 episodes, {k} of at most 256 env steps" for n, k in played
    ]
    assert "of 32 episodes" not in (the_run(tmp_path).folder / "output.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("work", ["train", "teach"])
def test_an_environment_that_changes_folder_moves_no_run(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so in its constructor and in every env step; the run stays where it began."""
    write_chdir_env(tmp_path, monkeypatch)
    settings: dict[str, Any] = {"num_envs": 2, "rollout_length": 8, "epochs": 1, "minibatches": 1}
    settings |= {"hidden": (4,)}
    of: dict[str, Any] = {"env_steps": 64, "settings": settings}
    if work == "train":
        monkeypatch.setattr(telling, "SECONDS_BETWEEN_REPORTS", 0.0)
        with pytest.raises(Interrupted):
            train("ppo", "chdir_env:ChdirEnv", report=within_a_phase, **of)
        os.chdir(tmp_path)
        result = resume_train(the_run(Path()))
    else:
        of["settings"] |= {"clip_length": 2, "phases": 2, "random_env_steps": 8}
        result = backflip.teach("chdir_env:ChdirEnv", labels=4, **of)
    assert Path.cwd() == Path("/")
    assert result.folder.parent == tmp_path / "runs"
    manifest = open_run(result.folder).manifest
    assert manifest["cwd"] == str(tmp_path)
    assert "chdir_env.py" in (result.folder / "code.json").read_text()
    assert {"policy.safetensors", "curve.svg"} <= {path.name for path in result.folder.iterdir()}
    os.chdir(tmp_path)
    assert result.to_json()["folder"] == f"runs/{result.run}"
    watch(the_run(Path()), seed=None, episodes=1, out=None, on_progress=lambda *_: None, warn=print)
    assert (result.folder / "watch" / "seed-0" / "overview.png").is_file()


CHANGES = """
import gymnasium
import numpy as np

class Changes(gymnasium.Env):
    numbers, choices, made = 3, 2, 0

    def __init__(self, grows=False):
        self.numbers = Changes.numbers + (grows and Changes.made > 1)
        Changes.made += 1
        self.observation_space = gymnasium.spaces.Box(-1, 1, (self.numbers,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(Changes.choices)

    def reset(self, *, seed=None, options=None):
        self.age = 0
        return np.zeros(self.numbers, np.float32), {}

    def step(self, action):
        self.age += 1
        return np.zeros(self.numbers, np.float32), 0.0, self.age == 4, False, {}
"""


@pytest.fixture
def changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class whose spaces depend on a file."""
    (tmp_path / "changes.py").write_text(CHANGES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "changes", raising=False)
    return importlib.import_module("changes").Changes


@pytest.mark.medium
def test_an_environment_that_differs_when_made_again_is_refused(
    changes: Any, tmp_path: Path
) -> None:
    said = r"observation was \(3,\), now \(4,\); every instance must have"
    with pytest.raises(EnvironmentFailed, match=said):
        small(tmp_path, env="changes:Changes", env_args={"grows": True})


@pytest.mark.slow
@pytest.mark.parametrize("work", ["train", "teach"])
def test_a_run_is_not_resumed_with_an_edited_environment(
    work: str, changes: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {**SMALL, "minibatches": 1, "rollout_length": 8}
    of: dict[str, Any] = {"home": tmp_path, "env_steps": ENV_STEPS, "report": interrupting(after=1)}
    begin, resume = partial(train, "ppo", env_args={"max_episode_steps": 4}), resume_train
    if work == "teach":
        settings |= {"clip_length": 2, "phases": 2, "random_env_steps": 8}
        begin, resume = partial(backflip.teach, labels=4), resume_teach
    with pytest.raises(Interrupted):
        begin(env="changes:Changes", settings=settings, **of)
    changes.numbers, changes.choices = 4, 3
    run = the_run(tmp_path)
    said = (
        f"`changes:Changes` has changed since run `{run.short}` was trained: its observation was "
    )
    said += r"\(3,\), now \(4,\) and its action was one of 2, now one of 3"
    with pytest.raises(UsageError, match=said):
        resume(run)
    with pytest.raises(UsageError, match=said):
        watch(run, seed=0, episodes=1, out=None, on_progress=lambda *_: None, warn=print)


def test_the_defaults_fit_every_environment() -> None:
    for env in ("dot", "Pendulum-v1", "CartPole-v1", "MountainCarContinuous-v0"):
        config = build("ppo", env, env_args={}, settings={}).config
        assert config.env_steps >= 100_000
    assert build("ppo", "dot", env_args={}, settings={}).config.discount == 0.9
    assert build("ppo", "Pendulum-v1", env_args={}, settings={}).config.normalize_obs


def test_the_package_has_all_names_of_its_all() -> None:
    assert backflip.train is train
    with pytest.raises(AttributeError, match="no attribute `tain`"):
        backflip.tain  # noqa: B018


def interrupting(after: int) -> Callable[[Progress], None]:
    """Return a progress callback that raises Ctrl-C after some phases."""

    def report(progress: Progress) -> None:
        if progress.phase == after:
            raise KeyboardInterrupt

    return report


def within_a_phase(progress: Progress) -> None:
    """Return a progress callback that raises Ctrl-C within a phase."""
    if progress.share:
        raise KeyboardInterrupt


def assert_same_end(one: Result, other: Result) -> None:
    """Check that returns and checkpoints are equal bit for bit."""
    assert one.returns == other.returns
    ours, theirs = (load_arrays(r.folder / "checkpoint.safetensors").arrays for r in (one, other))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
