"""What every `HostEnv` must keep. A test calls `check_host_env` with what makes one.

A clause that the rollout never reached fails, as in `tests.conformance.native_env`.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from backflip.core.spec import Discrete, EnvSpec
from backflip.envs.spec import HostEnv, HostStep

ROWS = 3


class Rollout(NamedTuple):
    """What random actions brought about: obs acted on and steps, axes (T, N)."""

    obs: np.ndarray
    step: HostStep


def random_actions(spec: EnvSpec, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return uniform actions; those of a box go beyond its bounds by a half."""
    if isinstance(spec.action, Discrete):
        return rng.integers(spec.action.n, size=shape, dtype=np.int32)
    low, high = spec.action.low, spec.action.high
    beyond = (high - low) / 4
    return rng.uniform(low - beyond, high + beyond, (*shape, *low.shape)).astype(np.float32)


def roll_out(env: HostEnv, env_steps: int, seeds: list[int], *, scribble: bool = False) -> Rollout:
    """Return what happens under random actions, with the environment's own arrays scribbled on."""
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
        make: returns so many environments.
        ends_by: how episodes end under random actions: `terminated`, `truncated` or both.
        env_steps: how many to grant each of the rows.
        reset_rows: whether the step after an episode's end is no transition.
        random_starts: whether another seed gives another start.
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
    """Shapes and dtypes are the spec's, observations finite and within bounds."""
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
    """One flag at most holds, and never on a row that did not happen; the time limit is kept."""
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
    """Rows that did not happen are those after an end, or there are none; they pay nothing."""
    ended = rollout.step.terminated | rollout.step.truncated
    after_end = np.concatenate([np.zeros_like(ended[:1]), ended[:-1]])
    assert after_end.any()
    expected = ~after_end if reset_rows else np.ones_like(ended)
    assert np.array_equal(rollout.step.valid, expected)
    assert not rollout.step.reward[~rollout.step.valid].any()


def check_successors(rollout: Rollout) -> None:
    """Within an episode `next_obs` is what is acted on next; across episodes it is not."""
    step, ended = rollout.step, rollout.step.terminated | rollout.step.truncated
    assert np.array_equal(step.obs[:-1], rollout.obs[1:])
    inside = step.valid & ~ended
    assert np.array_equal(step.obs[inside], step.next_obs[inside])
    # Where a new episode begins (now, or after one row that did not happen), what is acted on
    # next must not be what the old one ended with.
    begins = step.obs.copy()
    begins[:-1][ended[:-1] & ~step.valid[1:]] = step.obs[1:][ended[:-1] & ~step.valid[1:]]
    last = np.zeros_like(ended)
    last[-1] = True
    for t, row in np.argwhere(ended & ~last):
        assert not np.array_equal(begins[t, row], step.next_obs[t, row])


def check_repeats(first: Rollout, second: Rollout) -> None:
    """The same seeds and actions give the same bits, whatever was done to the arrays returned."""
    assert np.array_equal(first.obs, second.obs)
    assert all(np.array_equal(a, b) for a, b in zip(first.step, second.step, strict=True))


def check_seeds(env: HostEnv, seeds: list[int], random_starts: bool) -> None:
    """Row i starts from seed i and no other."""
    obs = env.reset(seeds)
    assert np.array_equal(env.reset(seeds[::-1]), obs[::-1])
    assert np.array_equal(obs[0], obs[1]) != random_starts


def check_kept_arrays(env: HostEnv, seeds: list[int]) -> None:
    """What was returned stays as it was while the environment goes on."""
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
