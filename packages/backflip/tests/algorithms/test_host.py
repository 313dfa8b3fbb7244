"""The host driver feeds an algorithm what a hand-written loop over single environments would."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from backflip.algorithms.cem import cem
from backflip.algorithms.dqn import dqn
from backflip.algorithms.entries.cem import CEMConfig
from backflip.algorithms.entries.dqn import DQNConfig
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.ppo import ppo
from backflip.core.errors import EnvironmentFailed
from backflip.core.spec import LONGEST_EPISODE
from backflip.core.types import Transition
from backflip.drivers.driver import Learner
from backflip.drivers.host import HostDriver
from backflip.drivers.native import NativeDriver
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.registry import make_host, make_native

CARTPOLE = "gymnasium:CartPole-v1"
MODES = ["next_step", "same_step"]
next_step_quickly = pytest.mark.parametrize(
    "autoreset", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.slow)]
)
LIMIT = 25
SMALL = PPOConfig(env_steps=1_000, num_envs=3, rollout_length=40, epochs=2, hidden=(8,))


def driver(
    autoreset: str = "next_step", algorithm: Algorithm | None = None, limit: int = LIMIT
) -> HostDriver:
    """A driver of short CartPole episodes, so that some terminate and some are truncated."""
    args = {"max_episode_steps": limit}

    def make(rows: int) -> GymnasiumEnv:
        env: Any = make_host(CARTPOLE, args, rows, autoreset)
        return env

    return HostDriver(make, algorithm or ppo(SMALL, make_host(CARTPOLE, args, 1).spec))


def spying(seen: list[Any]) -> Algorithm:
    """PPO that stores every batch of `update` and learns nothing."""
    algorithm = ppo(SMALL, make_host(CARTPOLE, {}, 1).spec)

    def update(state: Any, batch: Transition, key: Any) -> Any:
        jax.debug.callback(lambda b: seen.append(jax.tree.map(np.asarray, b)), batch)
        return state, {}

    return algorithm._replace(update=update)


def batches(autoreset: str, updates: int) -> list[Transition]:
    """The batches of one seed, in order."""
    seen: list[Any] = []
    there = driver(autoreset, spying(seen))
    there.phase(updates)(there.start([5]), None)
    jax.effects_barrier()
    there.close()
    return seen


def same_bits(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.medium
@next_step_quickly
def test_batches_equal_those_of_a_simple_loop(autoreset: str) -> None:
    """Every valid row follows from stepping a single CartPole with the action in it."""
    parts = batches(autoreset, updates=3)
    batch = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
    ends = {"terminated": 0, "truncated": 0, "invalid": 0}
    for env in range(SMALL.num_envs):
        age, last = 0, batch.valid.shape[0] - 1
        for t in range(last + 1):
            row = jax.tree.map(lambda x: x[t, env], batch)  # noqa: B023
            if not row.valid:
                ends["invalid"] += 1
                before = jax.tree.map(lambda x: x[t - 1, env], batch)  # noqa: B023
                assert before.terminated | before.truncated
                age = 0
                continue
            one: Any = gymnasium.make("CartPole-v1").unwrapped
            one.reset()
            one.state = row.obs.astype(np.float64)
            successor, reward, terminated, _, _ = one.step(int(row.action))
            age += 1
            np.testing.assert_allclose(row.next_obs, successor, atol=1e-5)
            assert row.reward == reward
            assert row.terminated == terminated
            assert row.truncated == (not terminated and (age == LIMIT or t == last))
            if row.terminated or row.truncated:
                ends["terminated"] += row.terminated
                ends["truncated"] += age == LIMIT
                age = 0 if autoreset == "same_step" else age
            elif t < last:
                np.testing.assert_array_equal(batch.obs[t + 1, env], row.next_obs)
            if age == 0 and t < last:  # a first observation
                assert np.abs(batch.obs[t + 1, env]).max() <= 0.05
    assert ends["terminated"] > 1
    assert ends["truncated"] > 0
    assert (ends["invalid"] > 2) == (autoreset == "next_step")


@pytest.mark.medium
def test_contents_of_reset_rows_change_nothing() -> None:
    """Learning from a batch whose invalid rows are poisoned gives the same bits."""
    batch = batches("next_step", updates=1)[0]
    assert not batch.valid.all()
    algorithm = ppo(SMALL, make_host(CARTPOLE, {}, 1).spec)

    def poison(x: np.ndarray) -> np.ndarray:
        rows = ~batch.valid.reshape(*batch.valid.shape, *(1,) * (x.ndim - 2))
        bad = {"f": np.nan, "b": True, "i": 1}[x.dtype.kind]
        return np.where(rows, np.asarray(bad, x.dtype), x)

    poisoned = jax.tree.map(poison, batch)._replace(valid=batch.valid)
    update = jax.jit(algorithm.update)
    state = algorithm.init(5)
    same_bits(update(state, batch, jax.random.key(0)), update(state, poisoned, jax.random.key(0)))


@pytest.mark.medium
@next_step_quickly
def test_episode_metrics_are_those_of_the_batches(autoreset: str) -> None:
    """Returns and lengths by a loop; CartPole pays 1 a step, so both are the same."""
    seen: list[Any] = []
    there = driver(autoreset, spying(seen))
    _, phase = there.phase(4)(there.start([5]), None)
    jax.effects_barrier()
    lengths = np.zeros(SMALL.num_envs)
    for update, batch in enumerate(seen):
        found = []
        for t in range(SMALL.rollout_length):
            lengths += batch.valid[t]
            cut = (update, t) == (3, SMALL.rollout_length - 1)  # no episode's end
            over = batch.terminated[t] | (batch.truncated[t] & ((lengths == LIMIT) | (not cut)))
            found += lengths[over & batch.valid[t]].tolist()
            lengths[over] = 0
        assert phase.metrics["episodes"][0, update] == len(found)
        for name in ("episode_return", "episode_length"):
            for suffix in ("mean", "std", "min", "max"):
                expected = getattr(np, suffix)(found)
                actual = phase.metrics[f"{name}_{suffix}"][0, update]
                assert actual == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_metrics_have_the_names_of_the_native_driver() -> None:
    env = make_native("CartPole-v1")
    assert env is not None
    native = NativeDriver(env, ppo(SMALL, env.spec))
    there = driver()
    _, one = native.phase(1)(native.start([0]), None)
    _, other = there.phase(1)(there.start([0]), None)
    assert one.metrics.keys() == other.metrics.keys()
    assert {x.shape for x in other.metrics.values()} == {(1, 1)}


@pytest.mark.medium
def test_same_seed_same_bits_and_phases_are_resumable() -> None:
    """A second driver that continues from copied learners gives the same results."""
    one, other = driver(), driver()
    half = one.phase(2)(one.start([3, 4]), None)[0]
    copied: Learner = jax.tree.map(lambda x: np.array(x), half)
    end = one.phase(2)(half, None)[0]
    same_bits(end, other.phase(2)(copied, None)[0])
    assert not np.array_equal(end.algorithm.params["policy"]["w"][0], 0)
    assert not np.array_equal(
        end.algorithm.params["policy"]["w"][0], end.algorithm.params["policy"]["w"][1]
    )


@pytest.mark.medium
def test_every_phase_starts_different_episodes() -> None:
    there = driver()
    run = there.phase(1, record_rollouts=1, record_envs=3)
    learners, one = run(there.start([3, 4]), None)
    _, two = run(learners, None)
    firsts = np.concatenate([phase.record.obs[:, 0].reshape(-1, 4) for phase in (one, two)])
    assert len(np.unique(firsts, axis=0)) == 12
    assert np.abs(firsts).max() <= 0.05
    assert np.nanmax(two.metrics["episode_length_max"]) <= LIMIT


@pytest.mark.slow
def test_a_seed_learns_the_same_alone_and_with_others() -> None:
    """Up to the rounding of differently batched matrix products."""
    there = driver()
    alone = there.phase(1)(there.start([4]), None)[0]
    company = there.phase(1)(there.start([3, 4]), None)[0]
    for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(company), strict=True):
        np.testing.assert_allclose(one[0], two[1], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_update_gets_the_learned_reward_and_the_record_the_true_one() -> None:
    """NaN as the true reward changes nothing but the episode statistics and the record."""

    def learned(parameters: Any, batch: Transition) -> Any:
        return parameters * jnp.ones_like(batch.terminated, jnp.float32)

    def train(broken: bool) -> Any:
        there = driver()
        if broken:
            batch = there._batch
            there._batch = lambda rows: _NanReward(batch(rows))  # type: ignore[method-assign]
        run = there.phase(2, reward=learned, record_rollouts=1, record_envs=2)
        return run(there.start([0]), np.array([0.5], np.float32))

    (fine, known), (same, unknown) = train(False), train(True)
    same_bits(fine.algorithm, same.algorithm)
    assert np.isnan(unknown.record.reward).all()
    np.testing.assert_array_equal(known.record.reward[known.record.valid], 1.0)
    assert known.record.obs.shape == (1, SMALL.rollout_length, 2, 4)
    assert unknown.metrics["reward_mean"][0, 0] == pytest.approx(0.5)


class _NanReward:
    """An environment whose reward is NaN, past the adapter's check."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.spec, self.num_envs = env.spec, env.num_envs
        self.reset, self.close = env.reset, env.close

    def step(self, actions: Any) -> Any:
        step = self._env.step(actions)
        return step._replace(reward=np.full_like(step.reward, np.nan))


@pytest.mark.medium
def test_a_random_record_repeats_actions_and_depends_on_its_seed() -> None:
    there = driver()
    record = there.random_record([1, 2], envs=20, env_steps=200, repeat=0.8)
    assert record.obs.shape == (2, 200, 20, 4)
    # A fresh action is the same by chance in one of two: 0.8 + 0.2 / 2; 5 standard errors.
    same = (record.action[:, 1:] == record.action[:, :-1]).mean()
    assert same == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / (199 * 40)))
    assert record.action.mean() == pytest.approx(0.5, abs=0.05)
    again = there.random_record([2], envs=20, env_steps=200, repeat=0.8)
    same_bits(jax.tree.map(lambda x: x[1:], record), again)


@pytest.mark.slow
def test_native_random_record_repeats_actions_and_depends_on_its_seed() -> None:
    env = make_native("CartPole-v1")
    assert env is not None
    there = NativeDriver(env, ppo(SMALL, env.spec))
    record = there.random_record([1, 2], envs=20, env_steps=200, repeat=0.8)
    assert record.obs.shape == (2, 200, 20, 4)
    same = (record.action[:, 1:] == record.action[:, :-1]).mean()
    assert same == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / (199 * 40)))
    assert record.action.mean() == pytest.approx(0.5, abs=0.05)
    again = there.random_record([2], envs=20, env_steps=200, repeat=0.8)
    same_bits(jax.tree.map(lambda x: x[1:], record), again)
    going_on = ~(record.terminated | record.truncated)[:, :-1]
    assert record.terminated.any()
    following, successors = record.obs[:, 1:], record.next_obs[:, :-1]
    np.testing.assert_array_equal(following[going_on], successors[going_on])


def test_random_actions_fill_the_space() -> None:
    rng = np.random.default_rng(0)
    drawn = random_actions_on_host(make_native("dot", {}).spec.action, rng, 1000)
    assert set(drawn.tolist()) == set(range(5))
    torques = random_actions_on_host(make_native("Pendulum-v1", {}).spec.action, rng, 1000)
    assert torques.shape == (1000, 1)
    assert -2 <= torques.min() < -1.9
    assert 1.9 < torques.max() <= 2


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env_id", "low", "high"),
    [("gymnasium:Pendulum-v1", -2.0, 2.0), ("MountainCarContinuous-v0", -1.0, 1.0)],
)
def test_random_actions_fill_a_box(env_id: str, low: float, high: float) -> None:
    make: Callable[[int], Any] = partial(make_host, env_id, {})
    there = HostDriver(make, ppo(SMALL, make(1).spec))
    record = there.random_record([0], envs=10, env_steps=100, repeat=0.0)
    assert record.action.dtype == np.float32
    assert low <= record.action.min() < low + 0.02 * (high - low)
    assert high >= record.action.max() > high - 0.02 * (high - low)
    assert record.action.std() == pytest.approx((high - low) / np.sqrt(12), rel=0.05)


@pytest.mark.medium
def test_evaluation_plays_whole_new_episodes_from_the_same_starts() -> None:
    there = driver()
    learners = there.start([0, 1])
    one = there.evaluate(learners, [0, 1], episodes=10)
    assert one.returns.shape == one.lengths.shape == (2, 10)
    np.testing.assert_array_equal(one.returns, one.lengths)
    assert one.returns.max() <= LIMIT
    assert one.returns.min() >= 8
    assert np.isnan(one.optimum).all()
    same_bits(one, there.evaluate(learners, [0, 1], episodes=10))
    other = there.evaluate(learners, [0, 2], episodes=10)
    np.testing.assert_array_equal(other.returns[0], one.returns[0])


@pytest.mark.medium
def test_half_a_round_has_the_first_episodes_of_a_whole_one() -> None:
    there = driver()
    learners = there.start([0, 1])
    whole = there.evaluate(learners, [0, 1], episodes=20)
    half = there.evaluate(learners, [0, 1], episodes=15)
    same_bits(half, jax.tree.map(lambda each: each[:, :15], whole))


@pytest.mark.medium
def test_a_learner_with_few_environments_is_evaluated_in_more() -> None:
    opened: list[int] = []

    def make(rows: int) -> Any:
        opened.append(rows)
        return make_host(CARTPOLE, {"max_episode_steps": LIMIT}, rows)

    there = HostDriver(make, ppo(PPOConfig(num_envs=1), make(1).spec))
    found = there.evaluate(there.start([0, 1]), [0, 1], episodes=25)
    assert opened[-1] == 2 * 10
    assert found.returns.shape == (2, 25)


class _Endless(gymnasium.Env[Any, Any]):
    """Pays 1 a step and never ends."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, False, False, {}


@pytest.mark.slow
def test_evaluation_stops_endless_episodes() -> None:
    def make(rows: int) -> GymnasiumEnv:
        return GymnasiumEnv.of("endless", _Endless, rows)

    there = HostDriver(make, ppo(PPOConfig(num_envs=1), make(1).spec))
    found = there.evaluate(there.start([0]), [0], episodes=1)
    assert found.returns.tolist() == [[LONGEST_EPISODE]]
    assert found.cut.tolist() == [[True]]


class _Short(_Endless):
    """Ends after the first step."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, True, False, {}


@pytest.mark.medium
@pytest.mark.parametrize(("kind", "episodes"), [(_Endless, 20), (_Short, 30)])
def test_evaluation_ends_before_many_endless_episodes(
    kind: type[_Endless], episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds have ten episodes of 50 env steps, which are enough with 20 episodes."""
    monkeypatch.setattr("backflip.core.spec.LONGEST_EPISODE", 50)
    monkeypatch.setattr("backflip.drivers.host_evaluation.ENOUGH_ENV_STEPS", 500)

    def make(rows: int) -> GymnasiumEnv:
        return GymnasiumEnv.of("endless", kind, rows)

    there = HostDriver(make, ppo(PPOConfig(num_envs=1), make(1).spec))
    found = there.evaluate(there.start([0, 1]), [0, 1], episodes=30)
    assert found.lengths.shape == (2, episodes)
    assert found.cut.all() == (kind is _Endless)


FROM_REPLAY = DQNConfig(
    env_steps=2_000,
    num_envs=2,
    rollout_length=5,
    updates_per_step=0.5,
    batch_size=8,
    buffer_size=200,
    learning_starts=20,
    epsilon_steps=100,
    n_step=1,
    hidden=(8,),
)


def replaying(**settings: Any) -> Algorithm:
    config = DQNConfig(**(vars(FROM_REPLAY) | settings))
    return dqn(config, make_host(CARTPOLE, {}, 1).spec)


@pytest.mark.slow
def test_the_end_of_a_phase_truncates_in_the_replay_but_counts_no_episode() -> None:
    """Six env steps of CartPole end no episode; the end of the phase truncates it in the replay."""
    there = driver(algorithm=replaying(rollout_length=3))
    learners, phase = there.phase(2)(there.start([5]), None)
    there.close()
    assert phase.metrics["episodes"].sum() == 0
    rows = learners.replay.truncated.reshape(-1, 2)[:6]
    np.testing.assert_array_equal(rows, [[False] * 2] * 5 + [[True] * 2])


@pytest.mark.slow
def test_a_failing_environment_ends_the_phase_with_one_line() -> None:
    class Breaks(_Endless):
        age = 0

        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            self.age += 1
            return np.full(1, np.nan if self.age > 50 else 0, np.float32), 1.0, False, False, {}

    def make(rows: int) -> GymnasiumEnv:
        return GymnasiumEnv.of("breaks", Breaks, rows)

    there = HostDriver(make, ppo(SMALL, make(1).spec))
    with pytest.raises(EnvironmentFailed, match=r"`breaks` failed in row 0 at step 51 .* is nan"):
        there.phase(2)(there.start([0]), None)


def pendulums(autoreset: str) -> HostDriver:
    """A driver of InvertedPendulum, which shows the whole state: scenes must equal observations."""

    def make(rows: int) -> GymnasiumEnv:
        env: Any = make_host("InvertedPendulum-v5", {"max_episode_steps": 9}, rows, autoreset)
        return env

    return HostDriver(make, ppo(SMALL, make(1).spec))


def assert_scenes_are_those_of_obs(record: Transition) -> None:
    ended = record.terminated | record.truncated
    assert record.terminated.any()
    assert record.truncated.any()
    assert record.scene.dtype == np.float32
    np.testing.assert_allclose(record.scene, record.obs, rtol=1e-6, atol=1e-6)
    # It would have been noticed if they were those of what followed.
    assert np.abs(record.scene - record.next_obs)[ended].max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("autoreset", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.slow)])
def test_scenes_of_recorded_steps_are_those_of_the_observations_acted_on(autoreset: str) -> None:
    there = pendulums(autoreset)
    run_phase = there.phase(3, record_rollouts=2, record_envs=2)
    _, phase = run_phase(there.start([5, 6]), None)
    assert phase.record is not None
    assert phase.record.scene.shape == (2, 80, 2, 4)
    assert_scenes_are_those_of_obs(phase.record)


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", MODES)
def test_scenes_of_a_random_policy_are_those_of_its_observations(autoreset: str) -> None:
    record = pendulums(autoreset).random_record([5, 6], envs=3, env_steps=40, repeat=0.5)
    assert record.scene.shape == (2, 40, 3, 4)
    assert_scenes_are_those_of_obs(record)


@pytest.mark.slow
def test_scenes_are_read_only_while_recording() -> None:
    read: list[int] = []

    def make(rows: int) -> GymnasiumEnv:
        env: Any = make_host("InvertedPendulum-v5", {}, rows)
        scenes = env.scenes
        env.scenes = lambda drawn: read.append(rows) or scenes(drawn)
        return env

    there = HostDriver(make, ppo(SMALL, make(1).spec))
    there.phase(3, record_rollouts=1, record_envs=1)(there.start([5]), None)
    assert len(read) == SMALL.rollout_length
    there.phase(1)(there.start([5]), None)
    assert len(read) == SMALL.rollout_length


@pytest.mark.slow
def test_both_drivers_give_the_same_returns() -> None:
    """CartPole's mean return over training, ten seeds each: equal within five standard errors."""
    config = PPOConfig(env_steps=20_480, num_envs=8, rollout_length=32)
    env = make_native("CartPole-v1")
    assert env is not None
    native = NativeDriver(env, ppo(config, env.spec))
    make: Callable[[int], Any] = partial(make_host, CARTPOLE, {})
    there = HostDriver(make, ppo(config, env.spec))
    seeds = list(range(10))
    scores = []
    for one in (native, there):
        learners, _ = one.phase(config.updates)(one.start(seeds), None)
        scores.append(one.evaluate(learners, seeds, episodes=40).returns.mean(1))
    error = np.sqrt(sum(np.var(x, ddof=1) / len(x) for x in scores))
    assert min(x.mean() for x in scores) > 150
    assert abs(scores[0].mean() - scores[1].mean()) < 5 * error + 1


@pytest.mark.slow
def test_every_generation_of_cem_starts_with_a_reset_and_phases_end_no_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two phases of three generations, each shorter than an episode: six resets, no seed twice."""
    seeds: list[list[int]] = []
    reset = GymnasiumEnv.reset

    def spy(env: GymnasiumEnv, of: list[int]) -> np.ndarray:
        seeds.append(of)
        return reset(env, of)

    monkeypatch.setattr(GymnasiumEnv, "reset", spy)
    short = CEMConfig(env_steps=6 * 4 * 5, num_envs=4, rollout_length=5)
    there = driver(algorithm=cem(short, make_host(CARTPOLE, {}, 1).spec))
    learners, run = there.start([5]), there.phase(3)
    shares: list[float] = []
    for _ in range(2):
        learners, phase = run(learners, None)
        shares += np.asarray(phase.metrics["finished_share"])[0].tolist()
    there.close()
    assert len({tuple(of) for of in seeds}) == len(seeds) == 6
    assert shares == [0.0] * 6
