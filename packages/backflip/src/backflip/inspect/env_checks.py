"""What is asked of an environment by stepping it: is it repeatable, does what is done matter?"""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backflip.core.spec import Box, Discrete
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HostEnv, HostStep

REPEATED = 200  # env steps that have to come out twice the same
MOMENTS = (0, 5, 25, 100)  # env steps into an episode, from where every action is tried
HELD = 8  # env steps for which it is held
MOST_ACTIONS = 64  # actions tried, of a space with more
REPEATING, TRYING = 2 * REPEATED, sum(MOMENTS) + len(MOMENTS) * HELD  # env steps in all

Trace = list[list[bytes]]  # for each env step, a digest of each row


class Repeatability(NamedTuple):
    """Whether the same seeds and actions give the same bits, and other seeds others.

    Attributes:
        env_steps: so many were compared.
        first_difference: the env step of the first one, counted from 1, 0 for the reset; None if
            there was none.
        rows: with so many seeds.
        distinct_starts: first observations among them that are not the same.
        distinct_histories: what followed in them under the same actions.
    """

    env_steps: int
    first_difference: int | None
    rows: int
    distinct_starts: int
    distinct_histories: int


def repeatability(env: HostEnv, seed: int) -> Repeatability:
    """Return what became of two goes of 200 env steps with the same seeds and actions."""
    rng = np.random.default_rng(seed)
    seeds = rng.integers(2**31, size=env.num_envs).tolist()
    one_row = [random_actions_on_host(env.spec.action, rng, 1) for _ in range(REPEATED)]
    actions = [np.repeat(action, env.num_envs, 0) for action in one_row]
    first, second = _trace(env, seeds, actions), _trace(env, seeds, actions)
    differs = [
        step for step, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]
    ]
    histories = {b"".join(row) for row in zip(*first, strict=True)}
    return Repeatability(
        REPEATED, differs[0] if differs else None, env.num_envs, len(set(first[0])), len(histories)
    )


def _trace(env: HostEnv, seeds: list[int], actions: list[np.ndarray]) -> Trace:
    """Return a digest of every row's first observation, and of what each env step brought it."""
    trace = [[_digest(row) for row in env.reset(seeds)]]
    for action in actions:
        step = env.step(action)
        trace.append([_outcome(step, row) for row in range(env.num_envs)])
    return trace


def _outcome(step: HostStep, row: int) -> bytes:
    """Return a digest of all that an env step brought one row."""
    flags = np.array([step.terminated[row], step.truncated[row]])
    reward = step.reward[row : row + 1]
    return _digest(step.next_obs[row], step.obs[row], reward, flags)


def _digest(*parts: np.ndarray) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.digest()


class Choice(NamedTuple):
    """One thing that can be done otherwise: an action, or one number of an action.

    Attributes:
        name: which: `action 2`, `number 0`.
        after: env steps it was held for when something first came out otherwise, 1 at once; None
            if nothing ever did.
        same_as: an action before it that led to the same in every trial, or None.
    """

    name: str
    after: int | None
    same_as: str | None


class ActionAudit(NamedTuple):
    """What each action led to, from the same states.

    Attributes:
        choices: one for each action, or for each number of a continuous one.
        reward_after: env steps after which rewards first differed between actions, 1 at once; None
            if they never did.
        comparable: rows of one seed that did the same stayed equal; else nothing above has meaning.
        trials: states from which everything was tried.
        left_out: actions, or numbers of an action, not tried, of a space with very many.
    """

    choices: list[Choice]
    reward_after: int | None
    comparable: bool
    trials: int
    left_out: int


def variants(action: Box | Discrete) -> list[np.ndarray]:
    """Return the actions to try: all of a discrete space, else the middle and each number's ends.

    A number without bounds is tried at -1 and 1. The middle comes first, then low and high of each.
    """
    if isinstance(action, Discrete):
        return [np.asarray(n, np.int32) for n in range(min(action.n, MOST_ACTIONS))]
    low = np.where(np.isfinite(action.low), action.low, -1.0).astype(np.float32)
    high = np.where(np.isfinite(action.high), action.high, 1.0).astype(np.float32)
    tried = [(low + high) / 2]
    for index in range(min(low.size, MOST_ACTIONS)):
        for end in (low, high):
            tried.append(tried[0].copy())
            tried[-1].flat[index] = end.flat[index]
    return tried


def audit_actions(
    make: Callable[[int], HostEnv], action: Box | Discrete, seed: int, called: Sequence[str] = ()
) -> ActionAudit:
    """Return what comes of trying every action from the same few states.

    A row for each action; all rows have one seed and do the same up to a moment, then each does its
    own for some env steps.

    Args:
        make: returns a batch of so many environments.
        action: the space.
        seed: from which all randomness comes.
        called: names of a discrete space's actions, if they have any.
    """
    tried = np.stack(variants(action))
    env = make(len(tried))
    try:
        trials = [_try_all(env, tried, seed + n, moment) for n, moment in enumerate(MOMENTS)]
    finally:
        env.close()
    outcomes = np.stack([trial.outcomes for trial in trials])  # (moments, env steps held, rows)
    rewards = np.stack([trial.rewards for trial in trials])
    names, pairs = _pairs(action, len(tried))
    names = list(called)[: len(names)] or names
    return ActionAudit(
        [
            Choice(name, _first(outcomes, rows, others), _twin(outcomes, names, index, action))
            for index, (name, (rows, others)) in enumerate(zip(names, pairs, strict=True))
        ],
        _first_unequal(rewards),
        all(trial.comparable for trial in trials),
        len(MOMENTS),
        max((action.n if isinstance(action, Discrete) else action.low.size) - MOST_ACTIONS, 0),
    )


class _Trial(NamedTuple):
    """From one moment: numbers (H, V) that are equal where outcomes were, and rewards (H, V)."""

    outcomes: np.ndarray
    rewards: np.ndarray
    comparable: bool


def _try_all(env: HostEnv, tried: np.ndarray, seed: int, moment: int) -> _Trial:
    rng, rows = np.random.default_rng(seed), len(tried)
    obs = env.reset([seed] * rows)
    comparable = len({_digest(row) for row in obs}) == 1
    for _ in range(moment):
        step = env.step(np.repeat(random_actions_on_host(env.spec.action, rng, 1), rows, 0))
        comparable &= len({_outcome(step, row) for row in range(rows)}) == 1
    numbers: list[list[int]] = []
    rewards: list[np.ndarray] = []
    for _ in range(HELD):
        step = env.step(tried)
        digests = [_outcome(step, row) for row in range(rows)]
        numbers.append([digests.index(digest) for digest in digests])
        rewards.append(step.reward)
    return _Trial(np.array(numbers), np.stack(rewards), comparable)


def _pairs(action: Box | Discrete, rows: int) -> tuple[list[str], list[tuple[int, list[int]]]]:
    """Return the choices' names, and for each the row to compare with which others."""
    if isinstance(action, Discrete):
        every = [(row, [other for other in range(rows) if other != row]) for row in range(rows)]
        return [f"action {row}" for row in range(rows)], every
    ends = [(1 + 2 * index, [0, 2 + 2 * index]) for index in range((rows - 1) // 2)]
    return [f"number {index}" for index in range(len(ends))], ends


def _first(outcomes: np.ndarray, row: int, others: list[int]) -> int | None:
    """Return after how many env steps a row first differed from one of the others."""
    differs = (outcomes[:, :, others] != outcomes[:, :, [row]]).any((0, 2))
    return int(differs.argmax()) + 1 if differs.any() else None


def _first_unequal(rewards: np.ndarray) -> int | None:
    differs = (rewards != rewards[..., :1]).any((0, 2))
    return int(differs.argmax()) + 1 if differs.any() else None


def _twin(outcomes: np.ndarray, names: list[str], row: int, action: Box | Discrete) -> str | None:
    """Return the first action before `row` that led to the same in every trial."""
    if not isinstance(action, Discrete):
        return None
    same = (outcomes[:, :, :row] == outcomes[:, :, [row]]).all((0, 1))
    return names[int(same.argmax())] if same.any() else None
