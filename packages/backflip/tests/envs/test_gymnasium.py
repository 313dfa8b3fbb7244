"""The Gymnasium adapter equals a plain loop over single environments, in both autoreset modes."""

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from packages.backflip.tests.conformance.host_env import check_host_env, random_actions

from backflip.core.errors import EnvironmentFailed
from backflip.core.spaces import Discrete
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.registry import make_host
from runshelf.errors import UsageError, UserFacingError

ROWS = 3
MODES = ["next_step", "same_step"]
# id, time limit, how random episodes of that length end, env steps that show it
TASKS: list[tuple[str, int, set[str], int]] = [
    ("gymnasium:CartPole-v1", 14, {"terminated", "truncated"}, 60),
    ("gymnasium:Pendulum-v1", 9, {"truncated"}, 25),
    ("InvertedPendulum-v5", 6, {"terminated", "truncated"}, 40),
    ("Hopper-v5", 14, {"terminated", "truncated"}, 70),
]


class _Counter(gymnasium.Env[Any, Any]):
    """Observes the number of env steps; ends after `length`; reuses its observation buffer."""

    def __init__(self, length: int = 4, observation: Any = None, action: Any = None) -> None:
        self.observation_space = observation or spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = action or spaces.Discrete(2)
        self.length, self.taken = length, []
        self.buffer = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.buffer[:] = 0, 1 if seed is None else seed
        return self.buffer, {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.taken.append(np.copy(action))
        self.buffer[0] += 1
        return self.buffer, 1.0, bool(self.buffer[0] == self.length), False, {}


class _Shows(_Counter):
    """Observes `value` at env step 7 and zeros before."""

    def __init__(self, value: Any, observation: Any = None) -> None:
        super().__init__(length=20, observation=observation)
        self.value = value

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.age = 0
        return self.zeros(), {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.age += 1
        return self.zeros() if self.age < 7 else self.value, 0.0, False, False, {}

    def zeros(self) -> np.ndarray:
        return np.zeros(self.observation_space.shape or (), self.observation_space.dtype)


class _Returns(_Counter):
    """Replaces some of the five values that `step` returns at env step 7."""

    def __init__(self, **values: Any) -> None:
        super().__init__(length=20)
        self.values = values

    def step(self, action: Any) -> Any:
        names = ("obs", "reward", "terminated", "truncated", "info")
        step = dict(zip(names, super().step(action), strict=True))
        step |= self.values if self.buffer[0] == 7 else {}
        return tuple(value for value in step.values() if value is not ...)


class _Raises(_Counter):
    def __init__(self) -> None:
        super().__init__(length=20)

    def step(self, action: Any) -> Any:
        if self.buffer[0] == 6:
            raise RuntimeError("the joint\n  has come apart")
        return super().step(action)


class _Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class _Leaves(_Raises):
    """Raises the given exception at env step 7; `close` raises `SystemExit`."""

    def __init__(self, how: BaseException) -> None:
        super().__init__()
        self.how = how

    def step(self, action: Any) -> Any:
        if self.buffer[0] == 6:
            raise self.how
        return super().step(action)

    def close(self) -> None:
        raise SystemExit(4)


class _TiresInItsThirdEpisode(_Counter):
    episodes = 0

    def reset(self, **kwargs: Any) -> Any:
        self.episodes += 1
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return (np.full(2, np.nan) if self.episodes == 3 else obs, *rest)


class _CannotReset(_Counter):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is None:
            raise OSError("no simulator")
        return super().reset(seed=seed)


def step_often(env: GymnasiumEnv, env_steps: int) -> None:
    for _ in range(env_steps):
        env.step(np.zeros(env.num_envs, np.int32))


def by_hand(env_id: str, limit: int, seed: int, actions: np.ndarray) -> list[tuple[Any, ...]]:
    """Return the transitions of one environment, from a loop that resets after each episode."""
    env = gymnasium.make(env_id.removeprefix("gymnasium:"), max_episode_steps=limit)
    obs, rows = env.reset(seed=seed)[0], []
    for action in actions:
        box = env.action_space if isinstance(env.action_space, spaces.Box) else None
        within = np.clip(action, box.low, box.high) if box else action
        next_obs, reward, terminated, truncated, _ = env.step(within)
        rows.append((obs, reward, terminated, truncated and not terminated, next_obs))
        obs = env.reset()[0] if terminated or truncated else next_obs
    return rows


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", MODES)
@pytest.mark.parametrize(("env_id", "limit", "ends_by", "env_steps"), TASKS)
def test_equals_a_loop_by_hand(
    env_id: str, limit: int, ends_by: set[str], env_steps: int, autoreset: str
) -> None:
    env = make_host(env_id, {"max_episode_steps": limit}, ROWS, autoreset)
    actions = random_actions(env.spec, np.random.default_rng(3), (ROWS, env_steps))
    seeds, taken = [7, 8, 9], np.zeros(ROWS, int)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(ROWS)]
    obs = env.reset(seeds)
    for _ in range(env_steps):
        step = env.step(actions[np.arange(ROWS), taken])
        for row in np.flatnonzero(step.valid):
            found[row].append((obs[row], *(field[row] for field in step[1:5])))
        taken += step.valid
        obs = step.obs
    env.close()
    for row, seed in enumerate(seeds):
        expected = by_hand(env_id, limit, seed, actions[row, : taken[row]])
        for ours, theirs in zip(found[row], expected, strict=True):
            assert np.array_equal(ours[0], theirs[0].astype(np.float32))
            assert np.array_equal(ours[1], np.float32(theirs[1]))
            assert [bool(flag) for flag in ours[2:4]] == [bool(flag) for flag in theirs[2:4]]
            assert np.array_equal(ours[4], theirs[4].astype(np.float32))


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", MODES)
@pytest.mark.parametrize(("env_id", "limit", "ends_by", "env_steps"), TASKS)
def test_conforms_to_the_interface(
    env_id: str, limit: int, ends_by: set[str], env_steps: int, autoreset: str
) -> None:
    check_host_env(
        lambda num_envs: make_host(env_id, {"max_episode_steps": limit}, num_envs, autoreset),
        ends_by=ends_by,
        env_steps=env_steps,
        reset_rows=autoreset == "next_step",
    )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("copy", [True, False])
def test_given_batch_conforms_to_the_interface(mode: AutoresetMode, copy: bool) -> None:
    def make(num_envs: int) -> GymnasiumEnv:
        makers = [lambda: gymnasium.make("Pendulum-v1", max_episode_steps=9)] * num_envs
        return GymnasiumEnv("mine", SyncVectorEnv(makers, copy=copy, autoreset_mode=mode))

    reset_rows = mode is AutoresetMode.NEXT_STEP
    check_host_env(make, ends_by={"truncated"}, env_steps=25, reset_rows=reset_rows)
    assert make(2).spec.max_episode_steps == 9


@pytest.mark.parametrize("autoreset", MODES)
def test_last_observation_is_copied_from_a_reused_buffer(autoreset: str) -> None:
    env = GymnasiumEnv.of("counter", _Counter, 2, autoreset)
    assert env.reset([5, 6]).tolist() == [[0, 5], [0, 6]]
    steps = [env.step(np.zeros(2, np.int32)) for _ in range(5)]
    assert steps[3].terminated.all()
    assert steps[3].next_obs.tolist() == [[4, 5], [4, 6]]
    begun = steps[3] if autoreset == "same_step" else steps[4]
    assert begun.obs.tolist() == [[0, 1], [0, 1]]
    assert steps[4].valid.tolist() == [autoreset == "same_step"] * 2
    assert steps[0].obs.tolist() == [[1, 5], [1, 6]]


def test_suite_fails_if_an_announced_case_does_not_occur() -> None:
    for wrong in ({"ends_by": {"truncated"}}, {"env_steps": 3}, {"reset_rows": False}):
        given: dict[str, Any] = {"ends_by": {"terminated"}, "env_steps": 12, "reset_rows": True}
        with pytest.raises(AssertionError):
            check_host_env(lambda n: GymnasiumEnv.of("x", _Counter, n), **(given | wrong))


@pytest.mark.medium
@pytest.mark.parametrize("broken", ["aliased", "successor", "flags", "seeds", "valid"])
def test_suite_fails_for_broken_environments(broken: str) -> None:
    class Broken:
        def __init__(self, num_envs: int) -> None:
            self.env = make_host("gymnasium:CartPole-v1", {"max_episode_steps": 14}, num_envs)
            self.spec, self.num_envs, self.close = self.env.spec, num_envs, self.env.close
            self.reward = np.zeros(num_envs, np.float32)

        def reset(self, seeds: list[int]) -> np.ndarray:
            return self.env.reset([seeds[0]] * len(seeds) if broken == "seeds" else seeds)

        def step(self, actions: np.ndarray) -> Any:
            step = self.env.step(actions)
            if broken == "aliased":
                self.reward[:] = step.reward
                return step._replace(reward=self.reward)
            if broken == "successor":
                return step._replace(next_obs=np.roll(step.next_obs, 1, axis=1))
            if broken == "flags":
                return step._replace(truncated=step.truncated | step.terminated)
            return step._replace(valid=np.ones_like(step.valid)) if broken == "valid" else step

    ends_by = {"terminated", "truncated"}
    with pytest.raises(AssertionError):
        check_host_env(Broken, ends_by=ends_by, env_steps=60, reset_rows=True)


def test_discrete_observation_is_one_hot_from_its_start() -> None:
    observation = spaces.Discrete(3, start=5)
    env = GymnasiumEnv.of("x", lambda: _Discrete(observation=observation), 2)
    assert env.spec.observation.shape == (3,)
    assert env.reset([0, 1]).tolist() == [[1, 0, 0]] * 2
    assert env.step(np.zeros(2, np.int32)).obs.tolist() == [[0, 1, 0]] * 2
    env.step(np.zeros(2, np.int32))
    with pytest.raises(EnvironmentFailed, match=r"row 0 at step 3 of episode 1.*Discrete\(3"):
        env.step(np.zeros(2, np.int32))


class _Discrete(_Counter):
    def reset(self, **_: Any) -> Any:
        self.place = 5
        return self.place, {}

    def step(self, action: Any) -> Any:
        self.place += 1
        return np.int64(self.place), 0, False, False, {}


def test_images_are_unchanged_and_vectors_become_float32() -> None:
    image = spaces.Box(0, 255, (4, 5, 3), np.uint8)
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    env = GymnasiumEnv.of("x", lambda: _Shows(pixels, image), 1)
    env.reset([0])
    assert env.spec.is_image
    seen = [env.step(np.zeros(1, int)).obs for _ in range(7)][-1]
    assert seen.dtype == np.uint8
    assert np.array_equal(seen[0], pixels)
    for space in (spaces.Box(0, 9, (2,), np.uint8), spaces.Box(0, 9, (2,), np.int64)):
        env = GymnasiumEnv.of("x", lambda space=space: _Shows(None, space), 1)
        assert env.reset([0]).dtype == env.spec.observation.dtype == np.float32
    env = GymnasiumEnv.of("x", lambda: _Shows(np.float64(2), spaces.Box(0, 9, ())), 1)
    assert env.reset([0]).shape == (1, 1) == (1, *env.spec.observation.shape)


def test_matrices_become_vectors_and_grey_images_get_a_channel() -> None:
    """Observations are flattened row by row, and actions are reshaped."""
    table = spaces.Box(-9, 9, (3, 2), np.float64)
    action = spaces.Box(np.full((2, 3), -1.0), np.arange(6.0).reshape(2, 3), dtype=np.float64)
    inner = _Shows(np.arange(6.0).reshape(3, 2), table)
    inner.action_space = action
    env = GymnasiumEnv.of("x", lambda: inner, 1)
    assert (env.spec.observation.shape, env.spec.action.low.shape) == ((6,), (6,))
    env.reset([0])
    seen = [env.step(np.full((1, 6), 2.0, np.float32)).obs for _ in range(7)][-1]
    assert seen.tolist() == [[0, 1, 2, 3, 4, 5]]
    grey = spaces.Box(0, 255, (20, 30), np.uint8)
    env = GymnasiumEnv.of("x", lambda: _Shows(None, grey), 1)
    assert env.spec.is_image
    assert env.reset([0]).shape == (1, 20, 30, 1)
    inner = _Counter(action=action)
    env = GymnasiumEnv.of("x", lambda: inner, 1)
    env.reset([0])
    env.step(np.full((1, 6), 2.0, np.float32))
    assert inner.taken[0].tolist() == [[0, 1, 2], [2, 2, 2]]


def test_actions_are_clipped_and_shifted() -> None:
    inner = _Counter(action=spaces.Box(-1, np.array([0.5, 2.0]), dtype=np.float64))
    env = GymnasiumEnv.of("x", lambda: inner, 1)
    env.reset([0])
    env.step(np.array([[-3.0, 3.0]], np.float32))
    assert inner.taken[0].tolist() == [-1, 2]
    inner = _Counter(action=spaces.Discrete(3, start=-1))
    env = GymnasiumEnv.of("x", lambda: inner, 1)
    assert env.spec.action == Discrete(3)
    env.reset([0])
    env.step(np.array([0], np.int32))
    assert inner.taken == [-1]


def test_action_that_is_not_finite_is_an_error_of_the_policy() -> None:
    env = make_host("gymnasium:Pendulum-v1", {}, 2)
    env.reset([0, 1])
    with pytest.raises(
        UserFacingError, match=r"the policy's action \[nan\] in row 1 is not finite"
    ):
        env.step(np.array([[0], [np.nan]], np.float32))


RAGGED = [[1.0], [1.0, 2.0]]
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: _Shows(np.array([0.0, np.nan])), r"observation\[1\] is nan, expected a finite number"),
    (lambda: _Shows(np.array([1e300, 0])), r"observation\[0\] is inf"),
    (lambda: _Shows(np.zeros(1)), r"observation has shape \(1,\), expected \(2,\)"),
    (lambda: _Shows(np.zeros((2, 2))), r"observation has shape \(2, 2\), expected \(2,\)"),
    (lambda: _Shows(np.array(["a", "b"])), r"observation has dtype <U1, expected float64"),
    (lambda: _Shows(RAGGED), r"observation is \[\[1.0\], \[1.0, 2.0\]\], expected an array"),
    (lambda: _Shows(None), r"observation has shape \(\), expected \(2,\)"),
    (
        lambda: _Shows(np.zeros(2), spaces.Box(0, 9, (2,), np.uint8)),
        "observation has dtype float64, expected uint8",
    ),
    (lambda: _Returns(reward=np.nan), "reward is nan, expected a finite number"),
    (lambda: _Returns(reward=-np.inf), "reward is -inf, expected a finite number"),
    (lambda: _Returns(reward=None), "`reward` is None, expected a number"),
    (lambda: _Returns(reward=np.ones(1)), r"`reward` is array\(\[1.\]\), expected a number"),
    (lambda: _Returns(terminated=None), "`terminated` is None, expected a bool"),
    (lambda: _Returns(truncated=0.5), "`truncated` is 0.5, expected a bool"),
    (lambda: _Returns(info=...), r"`step` returned \(array.*\), expected 5 values"),
    (_Raises, "`step` raised RuntimeError: the joint has come apart"),
    (lambda: _Leaves(SystemExit(3)), "`step` raised SystemExit: 3"),
    (lambda: _Leaves(BaseException("base")), "`step` raised BaseException: base"),
    (lambda: _Leaves(GeneratorExit()), "`step` raised GeneratorExit"),
    (lambda: _Leaves(_Untold()), "`step` raised _Untold without a message"),
]


@pytest.mark.parametrize("autoreset", MODES)
@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_invalid_data_is_reported_in_one_line(
    make: Callable[[], Any], message: str, autoreset: str
) -> None:
    good = make()
    good_space = good.observation_space
    rows = iter([_Shows(np.zeros(2, good_space.dtype), good_space), good])
    env = GymnasiumEnv.of("mine:Env", lambda: next(rows), 2, autoreset)
    env.reset([0, 1])
    for _ in range(6):
        env.step(np.zeros(2, np.int32))
    with pytest.raises(EnvironmentFailed) as caught:
        env.step(np.zeros(2, np.int32))
    expected = "environment `mine:Env` failed in row 1 at step 7 of episode 1: "
    assert re.fullmatch(re.escape(expected) + f"{message}.*", str(caught.value))


@pytest.mark.parametrize("autoreset", MODES)
def test_episodes_are_counted(autoreset: str) -> None:
    rows = iter([_Counter(4), _TiresInItsThirdEpisode(3)])
    env = GymnasiumEnv.of("x", lambda: next(rows), 2, autoreset)
    env.reset([0, 1])
    with pytest.raises(EnvironmentFailed, match=r"row 1 at step 1 of episode 3: observation\[0\]"):
        step_often(env, 20)


@pytest.mark.parametrize(
    ("autoreset", "when"),
    [("next_step", "the start of episode 2"), ("same_step", "step 4 of episode 1")],
)
def test_failing_reset_is_reported_in_one_line(autoreset: str, when: str) -> None:
    env = GymnasiumEnv.of("x", _CannotReset, 1, autoreset)
    env.reset([0])
    message = f"`x` failed in row 0 at {when}: `reset` raised OSError: no simulator"
    with pytest.raises(EnvironmentFailed, match=message):
        step_often(env, 6)


def test_sys_exit_in_reset_is_a_failure() -> None:
    class Leaves(_Counter):
        def reset(self, **_: Any) -> Any:
            raise SystemExit(5)

    with pytest.raises(EnvironmentFailed, match="in row 0 at the start of episode 1: `reset` "):
        GymnasiumEnv.of("x", Leaves, 1).reset([0])


def test_ctrl_c_is_not_a_failure_and_close_ignores_exceptions() -> None:
    env = GymnasiumEnv.of("x", lambda: _Leaves(KeyboardInterrupt()), 2)
    env.reset([0, 1])
    with pytest.raises(KeyboardInterrupt):
        step_often(env, 7)
    env.close()
    given = GymnasiumEnv("x", SyncVectorEnv([lambda: _Leaves(SystemExit(3))]))
    given.reset([0])
    with pytest.raises(EnvironmentFailed, match="`step` raised SystemExit: 3"):
        step_often(given, 7)


def test_given_batch_is_checked() -> None:
    class Batch(SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            obs, reward, *rest = super().step(actions)
            return obs, reward[:1], *rest

    env = GymnasiumEnv("x", Batch([_Counter] * 2))
    env.reset([0, 1])
    with pytest.raises(EnvironmentFailed, match=r"`reward` is float64 of shape \(1,\), expected"):
        env.step(np.zeros(2, np.int32))
    env = GymnasiumEnv("x", SyncVectorEnv([lambda: _Counter(9), _Raises]))
    env.reset([0, 1])
    with pytest.raises(EnvironmentFailed, match="in one of 2 rows at step 7 of episode 1: `step`"):
        step_often(env, 9)


@pytest.mark.parametrize(
    ("spaces_given", "message"),
    [
        ({"observation": spaces.Dict(a=spaces.Text(3))}, "observation space Dict('a': Text(1"),
        ({"observation": spaces.Sequence(spaces.Discrete(2))}, "observation space Sequence(Discr"),
        ({"observation": spaces.Text(3)}, "observation space Text(1, 3"),
        ({"observation": spaces.Dict(a=spaces.Box(0, 1, (0,)))}, "observation space Dict('a': Box"),
        ({"action": spaces.Text(3)}, "action space Text(1, 3"),
        ({"action": spaces.Box(-np.inf, np.inf, (1,))}, "action space Box(-inf, inf, (1,)"),
        ({"action": spaces.Box(0, 3, (1,), np.int64)}, "action space Box(0, 3, (1,), int64)"),
        ({"action": spaces.Box(-1, 1, (0,))}, "action space Box([], [], (0,)"),
        ({"action": spaces.Box(-3e38, 3e38, (1,))}, "action space Box(-3e+38, 3e+38, (1,)"),
        ({"action": spaces.Box(2e38, 3e38, (1,))}, "action space Box(2e+38, 3e+38, (1,)"),
        ({"action": spaces.Box(-1e300, 1e300, (1,), np.float64)}, "action space Box(-1e+300, 1e"),
        ({"action": spaces.Box(1, 1 + 1e-12, (1,), np.float64)}, "action space Box(1.0, 1.0"),
        ({"action": spaces.Discrete(10**9)}, "action space Discrete(1000000000)"),
        ({"observation": spaces.Discrete(10**9)}, "observation space Discrete(1000000000)"),
    ],
)
def test_unsupported_space_is_named(spaces_given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        GymnasiumEnv.of("mine:Env", lambda: _Counter(**spaces_given), 2)
    assert str(caught.value).split("; supported:")[1]
    assert "\n" not in str(caught.value)


def test_largest_spaces_are_supported() -> None:
    wide = spaces.Box(-1e38, 1e38, (2,), np.float64)
    env = GymnasiumEnv.of("x", lambda: _Counter(action=wide), 1)
    env.reset([0])
    env.step(np.full((1, 2), 1e38, np.float32))
    for many in (spaces.Discrete(100_000), wide):
        assert GymnasiumEnv.of("x", lambda many=many: _Shows(None, many), 1).spec.observation
    assert GymnasiumEnv.of("x", lambda: _Counter(action=spaces.Discrete(100_000)), 1).spec.action


FIRST = [(3, 16, 20), (4, 84, 84), (1, 64, 64), (12, 84, 84), (24, 40, 30)]


@pytest.mark.parametrize("shape", FIRST)
def test_images_with_channels_first_are_refused(shape: tuple[int, ...]) -> None:
    image = spaces.Box(0, 255, shape, np.uint8)
    with pytest.raises(UsageError, match=r"channels first, .* `numpy.moveaxis\(image, 0, -1\)`"):
        GymnasiumEnv.of("x", lambda: _Shows(None, image), 1)


@pytest.mark.parametrize("shape", [(84, 84, 12), (16, 16, 16), (10, 10, 12), (3, 15, 20)])
def test_small_images_and_many_channels_are_accepted(shape: tuple[int, ...]) -> None:
    image = spaces.Box(0, 255, shape, np.uint8)
    assert GymnasiumEnv.of("x", lambda: _Shows(None, image), 1).spec.is_image


def test_constant_action_is_refused() -> None:
    with pytest.raises(UsageError, match=r"action space Box.* low below high"):
        GymnasiumEnv.of("x", lambda: _Counter(action=spaces.Box(0, np.array([0.0, 1]))), 1)


def test_batch_without_autoreset_is_refused() -> None:
    vector = SyncVectorEnv([_Counter], autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(UsageError, match=r"must be AutoresetMode\.NEXT_STEP or"):
        GymnasiumEnv("x", vector)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UsageError, match="`num_envs` must be at least 1, got 0"):
        GymnasiumEnv.of("x", _Counter, 0)
    with pytest.raises(UsageError, match="`autoreset` must be next_step or same_step, got `never`"):
        GymnasiumEnv.of("x", _Counter, 1, "never")
    with pytest.raises(ValueError, match="`seeds` must be 2 numbers, got 1"):
        GymnasiumEnv.of("x", _Counter, 2).reset([0])


# Scenes


@pytest.mark.medium
@pytest.mark.parametrize("autoreset", MODES)
@pytest.mark.parametrize("env_id", ["InvertedPendulum-v5", "Hopper-v5"])
def test_scenes_are_the_states_of_the_current_observations(env_id: str, autoreset: str) -> None:
    """Both observe positions and velocities: Hopper without the first position, within ±10."""
    hidden = 1 if env_id == "Hopper-v5" else 0
    env = make_host(env_id, {"max_episode_steps": 12}, ROWS, autoreset)
    rng = np.random.default_rng(0)
    obs, ended = env.reset(list(range(ROWS))), 0
    for action in random_actions(env.spec, rng, (40, ROWS)):
        scenes = env.scenes()
        assert scenes is not None
        assert scenes.dtype == np.float32
        shown = scenes[:, hidden:]
        if hidden:
            shown = np.concatenate([shown[:, :5], np.clip(shown[:, 5:], -10, 10)], axis=1)
        np.testing.assert_allclose(shown, obs, rtol=1e-6, atol=1e-6)
        step = env.step(action)
        ended += (step.terminated | step.truncated).sum()
        obs = step.obs
    assert ended > ROWS
    env.close()


def test_environment_without_mujoco_has_no_scenes() -> None:
    env = make_host("gymnasium:CartPole-v1", {}, ROWS)
    env.reset([0, 1, 2])
    assert env.scenes() is None
    env.close()


class _Closes(_Counter):
    """Closes standard output, the stream or the descriptor, in its second env step."""

    def __init__(self, close: Callable[[], None]) -> None:
        super().__init__()
        self.close_stdout = close

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        result = super().step(action)
        if self.buffer[0] == 2:
            self.close_stdout()
        return result


def _close_descriptor() -> None:
    os.close(sys.stdout.fileno())


def _close_stream() -> None:
    sys.stdout.close()


@pytest.mark.parametrize("close", [_close_stream, _close_descriptor])
def test_closing_standard_output_is_reported(
    close: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    descriptor = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    monkeypatch.setattr(sys, "stdout", os.fdopen(descriptor, "w", closefd=close is _close_stream))
    env = GymnasiumEnv.of("closes", lambda: _Closes(close), 1)
    env.reset([0])
    env.step(np.zeros(1, int))
    with pytest.raises(EnvironmentFailed, match=r"`closes` .*: .* standard output was closed"):
        env.step(np.zeros(1, int))


def test_constructor_that_closes_standard_output_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shuts.py").write_text(
        "import sys\nfrom gymnasium.envs.classic_control import PendulumEnv\n"
        "class Shuts(PendulumEnv):\n    def __init__(self):\n"
        "        super().__init__()\n        sys.stdout.close()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "stdout", (tmp_path / "out").open("w"))
    with pytest.raises(UsageError, match=r"`shuts:Shuts` cannot be created: .*output was closed"):
        make_host("shuts:Shuts")


def test_stream_without_descriptor_counts_as_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    env = GymnasiumEnv.of("counts", _Counter, 2)
    env.reset([0, 1])
    assert env.step(np.zeros(2, int)).valid.all()
