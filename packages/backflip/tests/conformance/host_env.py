"""Conformance suite of `HostEnv`: tests call `check_host_env` with a function that creates one.

A clause fails if the rollout never exercises it.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.spec import HostEnv, HostStep

ROWS = 3


class Rollout(NamedTuple):
    """Observations acted on and results of random actions, with axes (T, N)."""

    obs: np.ndarray
    step: HostStep


def random_actions(spec: EnvSpec, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return uniform actions; those of a box exceed its bounds by up to a half."""
    if isinstance(spec.action, Discrete):
        return rng.integers(spec.action.n, size=shape, dtype=np.int32)
    low, high = spec.action.low, spec.action.high
    beyond = (high - low) / 4
    return rng.uniform(low - beyond, high + beyond, (*shape, *low.shape)).astype(np.float32)


def roll_out(env: HostEnv, env_steps: int, seeds: list[int], *, scribble: bool = False) -> Rollout:
    """Return the rollout of random actions; `scribble` overwrites the arrays returned."""
    rng = np.random.default_rng(0)
    actions = random_actions(env.spec, rng, (env_steps, env.num_envs))
    obs, rows = env.reset(seeds), []
    for action in actions:
        step = env.step(action)
        rows.append(Rollout(obs.copy(), HostStep(*(np.copy(field) for field in step))))
        if scribble:
            for field in (obs, *step[1:]):
                field[...] = 1
        obs = step.obs
    obs, steps = zip(*rows, strict=True)
    return Rollout(np.stack(obs), HostStep(*(np.stack(f) for f in zip(*steps, strict=True))))


def check_host_env(
    make: Callable[[int], HostEnv],
    *,
    ends_by: Collection[str],
    env_steps: int,
    reset_rows: bool,
    random_starts: bool = True,
) -> None:
    """Assert every clause of the interface.

    Args:
        make: returns a batch with the given number of environments.
        ends_by: how episodes end under random actions: `terminated`, `truncated` or both.
        env_steps: env steps per row.
        reset_rows: whether the env step after an episode's end only resets.
        random_starts: whether another seed gives another initial state.
    """
    env, seeds = make(ROWS), list(range(ROWS))
    rollout = roll_out(env, env_steps, seeds)
    check_types(env, rollout)
    check_ends(env, rollout, ends_by)
    check_valid(rollout, reset_rows)
    check_successors(rollout)
    check_repeats(rollout, roll_out(env, env_steps, seeds))  # the second time, mid-episode
    check_repeats(rollout, roll_out(make(ROWS), env_steps, seeds, scribble=True))
    check_seeds(env, seeds, random_starts)
    check_kept_arrays(env, seeds)
    env.close()
    env.close()


def check_types(env: HostEnv, rollout: Rollout) -> None:
    """Assert that shapes and dtypes equal the spec's, and that observations are finite."""
    lead, box = rollout.obs.shape[:2], env.spec.observation
    assert env.num_envs == ROWS == lead[1]
    for obs in (rollout.obs, rollout.step.obs, rollout.step.next_obs):
        assert obs.shape == (*lead, *box.shape)
        assert obs.dtype == box.dtype
        assert np.isfinite(obs).all()
    assert rollout.step.reward.shape == lead
    assert rollout.step.reward.dtype == np.float32
    for flag in (rollout.step.terminated, rollout.step.truncated, rollout.step.valid):
        assert flag.shape == lead
        assert flag.dtype == bool


def check_ends(env: HostEnv, rollout: Rollout, ends_by: Collection[str]) -> None:
    """Assert that at most one flag is true, none on invalid rows, and that the limit holds."""
    step, limit = rollout.step, env.spec.max_episode_steps
    assert ends_by
    assert not (step.terminated & step.truncated).any()
    assert not ((step.terminated | step.truncated) & ~step.valid).any()
    assert step.terminated.any() == ("terminated" in ends_by)
    assert step.truncated.any() == ("truncated" in ends_by)
    age = np.zeros(env.num_envs, int)
    for t in range(len(step.valid)):
        age += step.valid[t]
        assert limit is None or (age <= limit).all()
        assert limit is None or (age[step.truncated[t]] == limit).all()
        age[step.terminated[t] | step.truncated[t]] = 0


def check_valid(rollout: Rollout, reset_rows: bool) -> None:
    """Assert that invalid rows are exactly those after an end, or none, with reward 0."""
    ended = rollout.step.terminated | rollout.step.truncated
    after_end = np.concatenate([np.zeros_like(ended[:1]), ended[:-1]])
    assert after_end.any()
    expected = ~after_end if reset_rows else np.ones_like(ended)
    assert np.array_equal(rollout.step.valid, expected)
    assert not rollout.step.reward[~rollout.step.valid].any()


def check_successors(rollout: Rollout) -> None:
    """Assert that `next_obs` is acted on next within an episode, but not across episodes."""
    step, ended = rollout.step, rollout.step.terminated | rollout.step.truncated
    assert np.array_equal(step.obs[:-1], rollout.obs[1:])
    inside = step.valid & ~ended
    assert np.array_equal(step.obs[inside], step.next_obs[inside])
    # The first observation of an episode (at once, or after an invalid row) must differ from the
    # last one of the episode before.
    begins = step.obs.copy()
    begins[:-1][ended[:-1] & ~step.valid[1:]] = step.obs[1:][ended[:-1] & ~step.valid[1:]]
    last = np.zeros_like(ended)
    last[-1] = True
    for t, row in np.argwhere(ended & ~last):
        assert not np.array_equal(begins[t, row], step.next_obs[t, row])


def check_repeats(first: Rollout, second: Rollout) -> None:
    """Assert that the same seeds and actions give the same bits."""
    assert np.array_equal(first.obs, second.obs)
    assert all(np.array_equal(a, b) for a, b in zip(first.step, second.step, strict=True))


def check_seeds(env: HostEnv, seeds: list[int], random_starts: bool) -> None:
    """Assert that the initial state of row i depends on seed i only."""
    obs = env.reset(seeds)
    assert np.array_equal(env.reset(seeds[::-1]), obs[::-1])
    assert np.array_equal(obs[0], obs[1]) != random_starts


def check_kept_arrays(env: HostEnv, seeds: list[int]) -> None:
    """Assert that returned arrays do not change in later env steps."""
    rng = np.random.default_rng(1)
    kept = [env.reset(seeds)]
    then = [kept[0].copy()]
    for _ in range(5):
        step = env.step(random_actions(env.spec, rng, (env.num_envs,)))
        kept += step
        then += [np.copy(field) for field in step]
    assert all(np.array_equal(a, b) for a, b in zip(kept, then, strict=True))
    pairs = [(a, b) for i, a in enumerate(kept) for b in kept[:i]]
    assert not any(np.shares_memory(a, b) for a, b in pairs)
