"""Learned rewards of a whole replay against the reward of each single env step of drawn rows."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from backflip.core.replay.layout import Layout, Replay, empty, layout
from backflip.core.replay.rows import add, read_steps
from backflip.core.replay.sampling import sample_on_host
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.drivers import replay_rewards
from backflip.drivers.replay_rewards import ReplayRewards

SEEDS, ENVS, ROLLOUT = 2, 3, 4
COLUMNS = SEEDS * ENVS
PARAMETERS = np.float32([1.0, -3.0])  # of the two seeds


def images(length: int) -> Layout:
    """A replay of stacked images with successors, whose true rewards are clipped."""
    shape = (2, 1, 4)
    seen = Box(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), np.dtype(np.uint8))
    return layout(
        EnvSpec("images", seen, Discrete(3), None, frame_stack=4),
        capacity=length * ENVS,
        num_envs=ENVS,
        rollout_length=ROLLOUT,
        n_step=3,
        discount=0.5,
        seeds=SEEDS,
        clip_rewards=True,
        keeps_successors=True,
    )


def rollout(rng: np.random.Generator) -> Transition:
    """Transitions (T, C) of random content; some end an episode."""
    rows = (ROLLOUT, COLUMNS)
    ended = rng.random((2, *rows)) < 0.1
    return Transition(
        rng.integers(0, 256, (*rows, 2, 1, 4), np.uint8),
        rng.integers(0, 3, rows, np.int32),
        np.full(rows, np.nan, np.float32),  # a learned reward never reads the true one
        ended[0],
        ended[1] & ~ended[0],
        rng.integers(0, 256, (*rows, 2, 1, 4), np.uint8),
        np.ones(rows, bool),
        extra=(),
    )


def filled(of: Layout, rollouts: int) -> Replay:
    rng = np.random.default_rng(0)
    memory = empty(of)
    for _ in range(rollouts):
        memory = add(of, memory, rollout(rng))
    return memory


def reward(parameter: Any, batch: Transition) -> Any:
    """Reads the whole stack, the action and the successor; larger than a clipped true reward."""
    seen = batch.obs.astype(np.float32).sum((-3, -2, -1))
    newest = batch.next_obs[..., -1].astype(np.float32).sum((-2, -1))
    return parameter * (seen + 2 * newest) + 7.0 * batch.action.astype(np.float32)


def of_steps(of: Layout, memory: Replay, drawn: Transition) -> np.ndarray:
    """R = Σ_{k<m} γ^k r(step k) of drawn rows (S, U, B), by looking up every step."""
    steps = read_steps(of, memory, drawn.extra.place)
    each = [reward(p, jax.tree.map(lambda x: x[s], steps.rows)) for s, p in enumerate(PARAMETERS)]  # noqa: B023
    return (np.stack(each) * steps.discount).sum(-2)


@pytest.mark.medium
@pytest.mark.parametrize("rollouts", [2, 5, 9])  # less than full, full, and written over
@pytest.mark.parametrize("at_once", [1, 30, 48, 10_000])  # rows of time: 1, 5, 8, all
def test_sums_of_drawn_rows_are_those_of_their_env_steps(
    rollouts: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_rewards, "ROWS_AT_ONCE", at_once)
    of = images(20)
    memory = filled(of, rollouts)
    rewards = ReplayRewards(reward).of_replay(of, memory, PARAMETERS)
    rngs = [np.random.default_rng(seed) for seed in range(SEEDS)]
    unclipped = dataclasses.replace(of, clip_rewards=False)
    drawn = sample_on_host(unclipped, memory._replace(reward=rewards), rngs, (4, 16))
    np.testing.assert_allclose(drawn.reward, of_steps(of, memory, drawn), rtol=1e-6)
    assert np.ptp(drawn.extra.discount) > 0  # some rows are cut by an episode's end


@pytest.mark.medium
def test_a_rollout_has_the_rewards_that_its_rows_have_in_the_replay() -> None:
    of = images(20)
    memory, batch = filled(of, 5), rollout(np.random.default_rng(9))
    at = int(memory.position)
    by_seed = jax.tree.map(
        lambda x: np.moveaxis(x.reshape(ROLLOUT, SEEDS, ENVS, *x.shape[2:]), 1, 0), batch
    )

    def newest(parameter: Any, rows: Transition) -> Any:
        """Needs no older frames, of which the replay has others."""
        seen = rows.next_obs[..., -1].astype(np.float32).sum((-2, -1))
        return parameter * seen + rows.action.astype(np.float32)

    model = ReplayRewards(newest)
    found = model.of_rollout(by_seed, PARAMETERS)
    stored = model.of_replay(of, add(of, memory, batch), PARAMETERS)
    assert found.shape == (ROLLOUT, COLUMNS)
    np.testing.assert_array_equal(found, stored[at : at + ROLLOUT])
