"""The native driver: true successors, honest episode statistics, the same bits however cut."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.ppo import ppo
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import where_rows
from backflip.core.types import Transition
from backflip.drivers.driver import Learner, own_reward
from backflip.drivers.episodes import episode_totals
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.envs.spec import NativeStep

CONFIG = PPOConfig(
    env_steps=100_000, num_envs=4, rollout_length=16, epochs=2, minibatches=2, hidden=(16, 16)
)
SCALED = PPOConfig(**(vars(CONFIG) | {"normalize_obs": True, "normalize_rewards": True}))
PIXELS = PPOConfig(env_steps=10_000, num_envs=2, rollout_length=8, epochs=2, minibatches=2)


class CounterState(NamedTuple):
    """Age and length of the episode, and the sum of its actions."""

    age: Any
    length: Any
    total: Any


@dataclass(frozen=True)
class Counter:
    """Counts; ends by its own rule after 3 steps, or is cut after 5, as the start decides."""

    reward: float = 1.0

    @property
    def spec(self) -> EnvSpec:
        """Three numbers in, two actions out."""
        high = np.full(3, np.inf, np.float32)
        return EnvSpec("counter", Box(-high, high, high.dtype), Discrete(2), 5)

    def reset(self, key: Any) -> CounterState:
        """Return an episode of either length."""
        length = jnp.where(jax.random.bernoulli(key), 3, 5)
        return CounterState(jnp.zeros((), jnp.int32), length, jnp.zeros((), jnp.int32))

    def step(self, state: CounterState, action: Any, key: Any) -> NativeStep:
        """Count; pay one more than the action."""
        del key
        after = CounterState(state.age + 1, state.length, state.total + action)
        ended = after.age >= after.length
        short = state.length == 3
        reward = self.reward * (action.astype(jnp.float32) + 1)
        return NativeStep(after, reward, ended & short, ended & ~short)

    def observe(self, state: CounterState) -> Any:
        """Return all there is."""
        return jnp.stack(state).astype(jnp.float32)


@dataclass(frozen=True)
class DrawnCounter(Counter):
    """A counter that has scenes."""

    def scene(self, state: CounterState) -> Any:
        """Return age and length, negative."""
        return -jnp.stack([state.age, state.length]).astype(jnp.float32)


@dataclass(frozen=True)
class Pedals:
    """The reward is the action: one bounded dimension, one with only a lower bound."""

    @property
    def spec(self) -> EnvSpec:
        """One number in, two pedals."""
        one = np.ones(1, np.float32)
        low, high = np.float32([-1, -0.5]), np.float32([1, np.inf])
        return EnvSpec("pedals", Box(-one, one, one.dtype), Box(low, high, low.dtype), 4)

    def reset(self, key: Any) -> Any:
        """Return an age of 0."""
        del key
        return jnp.zeros((), jnp.int32)

    def step(self, state: Any, action: Any, key: Any) -> NativeStep:
        """Pay 100 a + b, so that both can be read from the reward."""
        del key
        reward = 100 * jnp.round(action[0], 1) + action[1]
        return NativeStep(state + 1, reward, state < 0, state >= 3)

    def observe(self, state: Any) -> Any:
        """Return nothing of use."""
        del state
        return jnp.zeros(1)


def run(
    env: Any,
    config: PPOConfig,
    seeds: list[int],
    phases: list[int],
    *,
    record: bool = False,
    reward: Any = own_reward,
) -> tuple[Learner, dict[str, np.ndarray], Transition | None]:
    """Learners, metrics (seeds, updates) and the last phase's record, all as NumPy arrays."""
    algorithm = ppo(config, env.spec)
    learners = NativeDriver(env, algorithm).start(seeds)
    parameters, metrics, last = np.zeros(len(seeds)), [], None
    for updates in phases:
        recorded = {"record_rollouts": updates, "record_envs": config.num_envs} if record else {}
        run_phase = NativeDriver(env, algorithm).phase(updates, reward=reward, **recorded)
        learners, done = run_phase(learners, parameters)
        metrics.append(jax.tree.map(np.asarray, done.metrics))
        last = jax.tree.map(np.asarray, done.record)
    together = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *metrics)
    return jax.tree.map(np.asarray, learners), together, last


@cache
def once(env: Any, config: PPOConfig, seeds: tuple[int, ...], updates: int, record: bool) -> Any:
    """Return what `run` does, the same for all tests that ask for it."""
    return run(env, config, list(seeds), [updates], record=record)


def of_seed(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def assert_same_bits(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


# Transitions


@pytest.mark.slow
def test_environments_get_no_action_outside_their_space_learners_keep_the_one_drawn() -> None:
    env = Pedals()
    _, _, record = run(env, CONFIG, [0], [1], record=True)
    assert record is not None
    drawn = record.action
    assert drawn[..., 0].max() > 1
    assert drawn[..., 1].min() < -0.5
    given = np.clip(drawn, env.spec.action.low, env.spec.action.high)
    np.testing.assert_allclose(
        record.reward, 100 * np.round(given[..., 0], 1) + given[..., 1], atol=1e-3
    )
    shouting = ppo(CONFIG, env.spec)._replace(evaluation_action=lambda *_: jnp.full((8, 2), -9.0))
    driver = NativeDriver(env, shouting)
    played = driver.evaluate(driver.start([0]), [0], episodes=8)
    np.testing.assert_allclose(played.returns, 4 * (-100 - 0.5))


@pytest.mark.medium
def test_next_obs_is_the_true_successor_whatever_ended() -> None:
    _, _, record = once(Counter(), CONFIG, (0, 1, 2), 4, record=True)
    assert record is not None
    ended = record.terminated | record.truncated
    assert record.terminated.any()
    assert record.truncated.any()
    assert not (record.terminated & record.truncated).any()
    assert record.valid.all()
    age, length, total = np.moveaxis(record.obs, -1, 0)
    expected = np.stack([age + 1, length, total + record.action], -1)
    np.testing.assert_array_equal(record.next_obs, expected)
    np.testing.assert_array_equal(record.terminated, (age == 2) & (length == 3))
    np.testing.assert_array_equal(record.truncated, (age == 4) & (length == 5))
    # The next row starts an episode after an end, and else continues.
    begins, before = record.obs[:, 1:], ended[:, :-1]
    np.testing.assert_array_equal(begins[before][:, [0, 2]], 0)
    np.testing.assert_array_equal(begins[~before], record.next_obs[:, :-1][~before])


@pytest.mark.slow
def test_transitions_equal_cartpole_stepped_by_hand() -> None:
    env = CartPole(max_episode_steps=20)
    algorithm = ppo(CONFIG, env.spec)
    state = jax.tree.map(lambda x: jnp.asarray(x[0]), NativeDriver(env, algorithm).start([7]).env)
    _, _, record = run(env, CONFIG, [7], [4], record=True)
    assert record is not None
    assert record.terminated.any()
    assert record.truncated.any()
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, None)))
    for t in range(record.obs.shape[1]):
        np.testing.assert_allclose(record.obs[0, t], state.physics, rtol=1e-5, atol=1e-6)
        moved = step(state, jnp.asarray(record.action[0, t]), jax.random.key(0))
        ended = np.asarray(moved.terminated | moved.truncated)
        np.testing.assert_array_equal(record.terminated[0, t], moved.terminated)
        np.testing.assert_array_equal(record.truncated[0, t], moved.truncated)
        np.testing.assert_allclose(record.next_obs[0, t], moved.state.physics, rtol=1e-5, atol=1e-6)
        state = moved.state
        if ended.any() and t + 1 < record.obs.shape[1]:  # take the fresh start from the record
            fresh = state._replace(
                physics=jnp.asarray(record.obs[0, t + 1]),
                env_steps=jnp.zeros_like(state.env_steps),
            )
            assert (np.abs(record.obs[0, t + 1][ended]) <= 0.05).all()
            state = where_rows(jnp.asarray(ended), fresh, state)


@pytest.mark.slow
def test_pixels_in_the_record_are_the_newest_frames_and_the_true_successors() -> None:
    _, _, record = once(Dot(), PIXELS, (0,), 2, record=True)
    assert record is not None
    assert record.obs.shape == (1, 16, 2, 84, 84, 1)
    np.testing.assert_array_equal(record.obs[:, 1:], record.next_obs[:, :-1])


@pytest.mark.slow
def test_scenes_of_recorded_steps_are_the_states_before_them() -> None:
    """The square moves from scene to scene as the action says, and is where the glasses see it."""
    _, _, record = once(Dot(), PIXELS, (0,), 2, record=True)
    assert record is not None
    assert record.scene.shape == (1, 16, 2, 2)
    assert record.scene.dtype == np.float32
    assert_dot_moves(record)
    rows = record.obs[..., 0].astype(np.float64).sum(-1)
    seen = (rows * (np.arange(84) + 0.5)).sum(-1) / rows.sum(-1) * 210 / 84
    np.testing.assert_allclose(seen, record.scene[..., 1], atol=0.6)


@pytest.mark.slow
def test_scenes_of_a_random_policy_are_the_states_before_each_step() -> None:
    env = Dot()
    driver = NativeDriver(env, ppo(PIXELS, env.spec))
    record = driver.random_record([3, 4], envs=2, env_steps=20, repeat=0.5)
    assert record.scene.shape == (2, 20, 2, 2)
    assert_dot_moves(record)


def assert_dot_moves(record: Transition) -> None:
    moves = np.array([[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]])
    moved = record.scene[:, :-1] + 4 * moves[record.action[:, :-1]]
    np.testing.assert_array_equal(record.scene[:, 1:], np.clip(moved, [2, 2], [157, 207]))
    assert len(np.unique(record.scene)) > 4


@pytest.mark.slow
def test_a_scene_after_an_end_is_of_the_new_episode() -> None:
    """Counter, drawn from its age and length: the scene is always what obs shows, never beyond."""
    _, _, record = run(DrawnCounter(), CONFIG, [0, 1], [3], record=True)
    assert record is not None
    ended = record.terminated | record.truncated
    assert record.terminated.any()
    assert record.truncated.any()
    np.testing.assert_array_equal(record.scene, -record.obs[..., :2])
    assert (record.scene[:, 1:][ended[:, :-1]][..., 0] == 0).all()


@pytest.mark.slow
def test_no_scene_is_recorded_if_observations_suffice() -> None:
    _, _, record = once(CartPole(), CONFIG, (0, 1), 6, record=True)
    assert record is not None
    assert record.scene == ()


@pytest.mark.slow
@pytest.mark.parametrize("record", [False, True])
def test_reward_and_update_get_no_scenes(record: bool) -> None:
    given: list[Any] = []

    def reward(parameters: Any, batch: Transition) -> Any:
        del parameters
        given.append(batch.scene)
        return batch.reward

    run(DrawnCounter(), CONFIG, [0], [1], record=record, reward=reward)
    assert given
    assert all(scene == () for scene in given)


@pytest.mark.slow
def test_only_the_last_rollouts_of_the_first_environments_are_recorded() -> None:
    algorithm, seeds = ppo(CONFIG, Counter().spec), [0, 1, 2]
    everything = once(Counter(), CONFIG, tuple(seeds), 4, record=True)[2]
    few = NativeDriver(Counter(), algorithm).phase(4, record_rollouts=2, record_envs=3)
    _, done = few(NativeDriver(Counter(), algorithm).start(seeds), np.zeros(3))
    for part, whole in zip(jax.tree.leaves(done.record), jax.tree.leaves(everything), strict=True):
        np.testing.assert_array_equal(part, whole[:, 32:, :3])


# Episode statistics


@pytest.mark.medium
def test_episode_statistics_equal_a_slow_loop_across_rollouts() -> None:
    """Episodes of 3 or 5 steps do not fit rollouts of 16, so many cross from one to the next."""
    seeds, updates = (0, 1, 2), 4
    _, metrics, record = once(Counter(), CONFIG, seeds, updates, record=True)
    assert record is not None
    for s in range(len(seeds)):
        total, length = np.zeros(4), np.zeros(4)
        for u in range(updates):
            returns, lengths = [], []
            for t in range(16 * u, 16 * (u + 1)):
                for n in range(4):
                    total[n] += record.reward[s, t, n]
                    length[n] += 1
                    if record.terminated[s, t, n] or record.truncated[s, t, n]:
                        returns.append(total[n])
                        lengths.append(length[n])
                        total[n] = length[n] = 0
            assert metrics["episodes"][s, u] == len(returns)
            for name, x in (("episode_return", returns), ("episode_length", lengths)):
                for suffix, function in (
                    ("mean", np.mean),
                    ("std", np.std),
                    ("min", np.min),
                    ("max", np.max),
                ):
                    found = metrics[f"{name}_{suffix}"][s, u]
                    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_episode_statistics_are_nan_if_no_episode_ended() -> None:
    _, metrics, _ = run(Pendulum(), CONFIG, [0], [2])
    np.testing.assert_array_equal(metrics["episodes"], [[0, 0]])
    for name in ("mean", "std", "min", "max"):
        assert np.isnan(metrics[f"episode_return_{name}"]).all()
        assert np.isnan(metrics[f"episode_length_{name}"]).all()


@pytest.mark.medium
def test_invalid_rows_count_in_no_episode() -> None:
    """By hand: rewards 1, 2, end; a reset row of 100; 3 begins the next episode."""
    no = jnp.zeros((4, 1), bool)
    batch = Transition(
        obs=(),
        action=(),
        reward=jnp.array([[1.0], [2.0], [100.0], [3.0]]),
        terminated=no.at[1, 0].set(True).at[2, 0].set(True),
        truncated=no,
        next_obs=(),
        valid=~no.at[2, 0].set(True),
        extra=(),
    )
    total, length, returns, lengths = episode_totals(jnp.ones(1), jnp.ones(1), batch)
    assert (float(total[0]), float(length[0])) == (3, 1)
    assert (float(returns[1, 0]), float(lengths[1, 0])) == (1 + 3, 1 + 2)


# The same bits


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "config"),
    [
        (CartPole(), CONFIG),
        pytest.param(Pendulum(), SCALED, marks=pytest.mark.slow),
        pytest.param(Dot(), PIXELS, marks=pytest.mark.slow),
    ],
    ids=lambda x: type(x).__name__,
)
def test_same_seed_same_bits(env: Any, config: PPOConfig) -> None:
    one = once(env, config, (0, 1), 6, record=True)
    assert_same_bits(one, run(env, config, [0, 1], [6], record=True))


@pytest.mark.medium
def test_another_seed_another_result() -> None:
    learners, _, _ = once(CartPole(), CONFIG, (0, 1), 6, record=True)
    for leaf in (learners.key, learners.env.physics, learners.algorithm.params["policy"]["w"]):
        assert (leaf[0] != leaf[1]).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "config"),
    [(CartPole(), CONFIG), (Pendulum(), SCALED)],
    ids=lambda x: type(x).__name__,
)
def test_phases_of_other_lengths_give_the_same_bits(env: Any, config: PPOConfig) -> None:
    in_one = once(env, config, (0, 1), 6, record=False)
    assert_same_bits(run(env, config, [0, 1], [2, 2, 2])[:2], in_one[:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "config"),
    [
        (CartPole(), CONFIG),
        pytest.param(DrawnCounter(), SCALED, marks=pytest.mark.slow),
        pytest.param(Dot(), PIXELS, marks=pytest.mark.slow),
    ],
    ids=lambda x: type(x).__name__,
)
def test_recording_changes_no_bit(env: Any, config: PPOConfig) -> None:
    plain, recorded = (once(env, config, (0, 1), 6, record=r)[:2] for r in (False, True))
    assert_same_bits(plain, recorded)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [[0, 1, 2], [0, 1], [3, 2, 1, 0]])
def test_a_seed_learns_the_same_bits_from_pixels_with_any_other_seeds(
    beside: list[int],
) -> None:
    alone, _, _ = run(Dot(), PIXELS, [0], [3])
    together, _, _ = run(Dot(), PIXELS, beside, [3])
    assert_same_bits(of_seed(alone, 0), of_seed(together, beside.index(0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "beside",
    [[0, 1, 2], *(pytest.param(x, marks=pytest.mark.slow) for x in ([0, 1], [3, 2, 1, 0]))],
)
@pytest.mark.parametrize(
    ("env", "config"),
    [(CartPole(), CONFIG), pytest.param(Pendulum(), SCALED, marks=pytest.mark.slow)],
    ids=lambda x: type(x).__name__,
)
def test_a_seed_learns_the_same_bits_with_any_other_seeds(
    env: Any, config: PPOConfig, beside: list[int]
) -> None:
    alone, _, _ = run(env, config, [0], [3])
    together, _, _ = run(env, config, beside, [3])
    assert_same_bits(of_seed(alone, 0), of_seed(together, beside.index(0)))


# Rewards from elsewhere


def learned_reward(parameters: Any, batch: Transition) -> Any:
    return parameters * batch.next_obs[..., 0]


@pytest.mark.slow
def test_new_reward_parameters_compile_nothing_and_do_matter() -> None:
    env, traced = Counter(), []

    def reward(parameters: Any, batch: Transition) -> Any:
        traced.append(True)
        return learned_reward(parameters, batch)

    algorithm = ppo(CONFIG, env.spec)
    run_phase = NativeDriver(env, algorithm).phase(2, reward=reward)
    outcomes = []
    for weight in (1.0, 1.0, -1.0):
        learners = NativeDriver(env, algorithm).start([0, 1])
        outcomes.append(run_phase(learners, np.full(2, weight, np.float32)))
        if len(outcomes) == 1:
            traced.clear()
    assert not traced
    one, same, other = (np.asarray(done.metrics["reward_mean"]) for _, done in outcomes)
    np.testing.assert_array_equal(one, same)
    assert (one[:, 0] == -other[:, 0]).all()


@pytest.mark.slow
def test_each_seed_has_its_own_reward_parameters() -> None:
    env = Counter()
    algorithm = ppo(CONFIG, env.spec)
    run_phase = NativeDriver(env, algorithm).phase(1, reward=learned_reward)
    twins = NativeDriver(env, algorithm).start([0, 0, 0])
    _, done = run_phase(twins, np.array([1, 2, 0], np.float32))
    found = np.asarray(done.metrics["reward_mean"])[:, 0]
    np.testing.assert_allclose(found / found[0], [1, 2, 0], rtol=1e-5)


@pytest.mark.slow
def test_training_on_the_true_reward_uses_it() -> None:
    learners, _, _ = run(Counter(float("nan")), CONFIG, [0], [1])
    assert np.isnan(learners.algorithm.params["value"]["w"]).all()


# Evaluation


@pytest.mark.medium
def test_evaluation_equals_episodes_played_by_hand() -> None:
    """Counter pays 1 for action 0 and 2 for action 1, for 3 or 5 steps."""
    env = Counter()
    algorithm = ppo(CONFIG, env.spec)
    driver = NativeDriver(env, algorithm)
    learners = driver.start([0, 1])
    found = driver.evaluate(learners, [0, 1], episodes=50)
    assert found.returns.shape == (2, 50)
    assert set(found.lengths.ravel()) == {3.0, 5.0}
    assert np.isnan(found.optimum).all()
    for s in range(2):
        state = jax.tree.map(lambda x, s=s: jnp.asarray(x[s]), learners.algorithm)
        for length in (3, 5):
            total, payment = 0, 0.0
            for age in range(length):
                obs = jnp.array([[age, length, total]], jnp.float32)
                action = int(algorithm.evaluation_action(state, obs, jax.random.key(0))[0])
                total, payment = total + action, payment + action + 1
            np.testing.assert_array_equal(found.returns[s][found.lengths[s] == length], payment)
    again = driver.evaluate(learners, [0, 1], episodes=50)
    assert_same_bits(found, again)


@pytest.mark.medium
def test_an_evaluation_reports_the_episodes_that_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counter's episodes last 3 or 5 env steps; the parts of the evaluation 1, 2 and 2."""
    algorithm = ppo(CONFIG, Counter().spec)
    learners = NativeDriver(Counter(), algorithm).start([0, 1])
    in_one_part = NativeDriver(Counter(), algorithm).evaluate(learners, [0, 1], episodes=50)
    monkeypatch.setattr("backflip.drivers.native_evaluation.FIRST_PART", 1)
    monkeypatch.setattr("backflip.drivers.native_evaluation.SECONDS_OF_PART", np.inf)
    told: list[tuple[int, int]] = []
    found = NativeDriver(Counter(), algorithm).evaluate(
        learners, [0, 1], episodes=50, on_progress=lambda *done: told.append(done)
    )
    assert_same_bits(found, in_one_part)
    short = int((found.lengths == 3).sum())
    assert sorted(set(told)) == [(0, 0), (0, 100), (short, 300)]
