"""FrozenLake has Gymnasium's transition probabilities and distribution of returns."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.native_env import roll_out

from backflip.envs.native.frozen_lake import FrozenLake, FrozenLake8x8, FrozenLakeState, transitions
from backflip.envs.registry import make_host, make_native
from runshelf.errors import UsageError

ARGS = [
    {},
    {"map_name": "8x8"},
    {"is_slippery": False},
    {"success_rate": 0.8},
    {"map_name": "8x8", "is_slippery": False, "success_rate": 0.8},
]
DRAWS = 4000


def by_args(args: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in args.items()) or "default"


def of_gymnasium(args: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(s'|s,a), and reward and termination of each s', from Gymnasium's table."""
    env: Any = gymnasium.make("FrozenLake-v1", **args).unwrapped
    size = env.observation_space.n
    chances, reward, ends = np.zeros((size, 4, size)), np.zeros(size), np.zeros(size, bool)
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            for chance, after, paid, over in outcomes:
                chances[state, action, after] += chance
                if after != state:
                    reward[after], ends[after] = paid, over
    return chances, reward, ends


@pytest.mark.parametrize("args", ARGS, ids=by_args)
def test_transition_probabilities_equal_gymnasiums(args: dict[str, Any]) -> None:
    np.testing.assert_allclose(transitions(FrozenLake(**args)), of_gymnasium(args)[0], atol=1e-12)


@pytest.mark.medium
@pytest.mark.parametrize("args", ARGS, ids=by_args)
def test_steps_follow_the_probabilities_rewards_and_flags(args: dict[str, Any]) -> None:
    env = FrozenLake(**args)
    chances, reward, ends = of_gymnasium(args)
    alive = np.flatnonzero(~ends)
    places, actions = (x.ravel() for x in np.meshgrid(alive, np.arange(4), indexing="ij"))
    zeros = jnp.zeros(len(places), jnp.int32)
    state = FrozenLakeState(jnp.asarray(places, jnp.int32), zeros)
    keys = jax.random.split(jax.random.key(0), (DRAWS, len(places)))
    step = jax.jit(jax.vmap(jax.vmap(env.step), (None, None, 0)))
    steps = step(state, jnp.asarray(actions, jnp.int32), keys)
    after = np.asarray(steps.state.place)
    for column, (place, action) in enumerate(zip(places, actions, strict=True)):
        shares = np.bincount(after[:, column], minlength=len(ends)) / DRAWS
        expected = chances[place, action]
        assert (shares[expected == 0] == 0).all()
        np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / np.sqrt(DRAWS))
    np.testing.assert_array_equal(steps.reward, reward[after])
    np.testing.assert_array_equal(steps.terminated, ends[after])
    assert not steps.truncated.any()


@pytest.mark.parametrize(
    ("env_id", "limit", "size"), [("FrozenLake-v1", 100, 16), ("FrozenLake8x8-v1", 200, 64)]
)
def test_spec_equals_the_host_environments(env_id: str, limit: int, size: int) -> None:
    ours, theirs = make_native(env_id), make_host(env_id)
    assert ours is not None
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps == limit
    assert ours.spec.action == theirs.spec.action
    assert ours.spec.observation.shape == theirs.spec.observation.shape == (size,)
    seen = ours.observe(ours.reset(jax.random.key(0)))
    np.testing.assert_array_equal(seen, theirs.reset([0])[0])
    theirs.close()


def test_larger_map_keeps_the_limit_of_its_id() -> None:
    reference = gymnasium.make("FrozenLake-v1", map_name="8x8").spec
    assert reference is not None
    assert FrozenLake(map_name="8x8").max_episode_steps == reference.max_episode_steps
    assert FrozenLake8x8().map_name == "8x8"


@pytest.mark.medium
def test_random_episodes_are_distributed_as_in_gymnasium() -> None:
    reference, rng = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0)
    theirs = []
    for seed in range(1500):
        reference.reset(seed=seed)
        over, length, paid = False, 0, 0.0
        while not over:
            _, reward, terminated, truncated, _ = reference.step(int(rng.integers(4)))
            over, length, paid = terminated or truncated, length + 1, float(reward)
        theirs.append((paid, length))
    step = roll_out(FrozenLake(), 8000).step
    ours = []
    for row in range(step.reward.shape[1]):
        ends = np.flatnonzero(step.terminated[:, row] | step.truncated[:, row])
        ours += list(zip(step.reward[ends, row], np.diff(ends, prepend=-1), strict=True))
    (paid, length), (their_paid, their_length) = np.array(ours).T, np.array(theirs).T
    for ours_of, theirs_of in ((paid, their_paid), (length, their_length)):
        error = np.hypot(*(x.std() / np.sqrt(len(x)) for x in (ours_of, theirs_of)))
        assert abs(ours_of.mean() - theirs_of.mean()) < 4 * error
    np.testing.assert_allclose(length.std(), their_length.std(), rtol=0.15)


def test_time_limit_truncates_unless_the_step_terminates() -> None:
    env = FrozenLake(is_slippery=False, max_episode_steps=6)
    step = jax.jit(env.step)
    state = env.reset(jax.random.key(0))
    for number, action in enumerate([1, 1, 2, 1, 2, 2]):  # the shortest way, down and right
        after = step(state, jnp.int32(action), jax.random.key(0))
        state = after.state
        assert bool(after.terminated) == (number == 5)
        assert not after.truncated
    assert float(after.reward) == 1
    state = env.reset(jax.random.key(0))
    flags = []
    for _ in range(6):
        after = step(state, jnp.int32(3), jax.random.key(0))  # against the edge
        state = after.state
        flags.append((bool(after.terminated), bool(after.truncated)))
    assert flags == [(False, False)] * 5 + [(False, True)]


@pytest.mark.medium
@pytest.mark.parametrize("args", [{}, {"map_name": "8x8", "max_episode_steps": 200}], ids=by_args)
def test_optimum_equals_a_recursion_over_gymnasiums_table(args: dict[str, Any]) -> None:
    """The recursion goes state by state."""
    env: Any = gymnasium.make("FrozenLake-v1", **args).unwrapped
    ours = FrozenLake(**args)
    values = np.zeros(env.observation_space.n)
    for left in range(ours.max_episode_steps + 1):
        if left in (0, 6, 20, ours.max_episode_steps):
            age = ours.max_episode_steps - left
            for place in (0, 1, len(values) - 2):
                state = FrozenLakeState(jnp.int32(place), jnp.int32(age))
                assert float(ours.optimum(state)) == pytest.approx(values[place], abs=1e-6)
        values = np.array(
            [
                max(
                    sum(p * (paid + (not over) * values[to]) for p, to, paid, over in outcomes)
                    for outcomes in env.P[place].values()
                )
                for place in range(len(values))
            ]
        )


def test_without_slipping_the_goal_needs_six_steps() -> None:
    for limit, chance in ((5, 0), (6, 1)):
        env = FrozenLake(is_slippery=False, max_episode_steps=limit)
        assert float(env.optimum(env.reset(jax.random.key(0)))) == chance


@pytest.mark.parametrize(
    ("args", "words"),
    [({"map_name": "9x9"}, "4x4 or 8x8"), ({"success_rate": 1.5}, "probability in")],
)
def test_invalid_arguments_are_refused(args: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_native("FrozenLake-v1", args)
