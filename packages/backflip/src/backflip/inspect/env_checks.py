"""Checks that step an environment: is it repeatable, and does each action have an effect?"""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from backflip.core.spaces import Box, Discrete
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HostEnv, HostStep

REPEATED = 200  # env steps that are played twice and compared
MOMENTS = (0, 5, 25, 100)  # env steps after a reset at which every action is tried
HELD = 8  # env steps for which the action is then repeated
MOST_ACTIONS = 64  # at most this many actions are tried
# Env steps that `repeatability` and `audit_actions` take.
REPEATABILITY_STEPS, AUDIT_STEPS = 2 * REPEATED, sum(MOMENTS) + len(MOMENTS) * HELD

Trace = list[list[bytes]]  # for each env step, one digest per row
OnEnvStep = Callable[[], None]


def ignore() -> None:
    """Do nothing."""


class Repeatability(NamedTuple):
    """Result of playing the same seeds and actions twice.

    Attributes:
        env_steps: number of env steps compared.
        first_difference: the first env step that differs, counted from 1, 0 for the reset; None if
            none does.
        rows: number of rows, each with its own seed.
        distinct_starts: number of distinct first observations among the rows.
        distinct_histories: number of distinct trajectories among the rows under equal actions.
    """

    env_steps: int
    first_difference: int | None
    rows: int
    distinct_starts: int
    distinct_histories: int


def repeatability(env: HostEnv, seed: int, on_env_step: OnEnvStep = ignore) -> Repeatability:
    """Play 200 env steps twice with the same seeds and actions, and compare them bit for bit."""
    rng = np.random.default_rng(seed)
    seeds = rng.integers(2**31, size=env.num_envs).tolist()
    one_row = [random_actions_on_host(env.spec.action, rng, 1) for _ in range(REPEATED)]
    actions = [np.repeat(action, env.num_envs, 0) for action in one_row]
    first, second = (_trace(env, seeds, actions, on_env_step) for _ in range(2))
    differs = [
        step for step, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]
    ]
    histories = {b"".join(row) for row in zip(*first, strict=True)}
    return Repeatability(
        REPEATED, differs[0] if differs else None, env.num_envs, len(set(first[0])), len(histories)
    )


def _trace(
    env: HostEnv, seeds: list[int], actions: list[np.ndarray], on_env_step: OnEnvStep
) -> Trace:
    """Return digests of the first observations and of the result of each env step, per row."""
    trace = [[_digest(row) for row in env.reset(seeds)]]
    for action in actions:
        trace.append(_step_digests(env.step(action)))
        on_env_step()
    return trace


def _step_digests(step: HostStep) -> list[bytes]:
    """Return one digest per row of everything that an env step returned."""
    flags = np.stack([step.terminated, step.truncated], 1)
    rows = zip(step.next_obs, step.obs, step.reward[:, None], flags, strict=True)
    return [_digest(*row) for row in rows]


def _digest(*parts: np.ndarray) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.digest()


class ActionEffect(NamedTuple):
    """The effect of one discrete action, or of one dimension of a continuous action.

    Attributes:
        name: `action 2` or `number 0`.
        after: env steps until the outcome first differed from that of another action, 1 for an
            immediate effect; None if it never differed.
        same_as: an earlier action with the same outcome in every trial, or None.
    """

    name: str
    after: int | None
    same_as: str | None


class ActionAudit(NamedTuple):
    """The effect of each action, tried from the same states.

    Attributes:
        choices: one entry per action, or per dimension of a continuous action.
        reward_after: env steps until rewards first differed between actions, 1 for an immediate
            effect; None if they never differed.
        comparable: rows with equal seeds and actions stayed equal. If false, the other fields
            have no meaning.
        trials: number of states from which the actions were tried.
        left_out: number of actions or dimensions not tried because the space is large.
    """

    choices: list[ActionEffect]
    reward_after: int | None
    comparable: bool
    trials: int
    left_out: int


def variants(action: Box | Discrete) -> list[np.ndarray]:
    """Return the actions to try: all discrete ones, or the middle and each dimension's two ends.

    An unbounded dimension is tried at -1 and 1. The middle comes first, then low and high of each
    dimension.
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
    make: Callable[[int], HostEnv],
    action: Box | Discrete,
    seed: int,
    names: Sequence[str] = (),
    on_env_step: OnEnvStep = ignore,
) -> ActionAudit:
    """Try every action from the same few states and compare the outcomes.

    Each action has its own row. All rows have the same seed and take the same random actions up to
    one of `MOMENTS`; then each row repeats its own action.

    Args:
        make: returns a batch with the given number of environments.
        action: the action space.
        seed: the seed of all randomness.
        names: names of discrete actions, if known.
        on_env_step: called after each env step.
    """
    tried = np.stack(variants(action))
    env = make(len(tried))
    try:
        trials = [_try_all(env, tried, seed + n, m, on_env_step) for n, m in enumerate(MOMENTS)]
    finally:
        env.close()
    outcomes = np.stack([trial.outcomes for trial in trials])  # (moments, env steps held, rows)
    rewards = np.stack([trial.rewards for trial in trials])
    default_names, pairs = _comparisons(action, len(tried))
    labels = list(names)[: len(default_names)] or default_names
    return ActionAudit(
        [
            ActionEffect(
                name, _first_difference(outcomes, rows, others), _twin(outcomes, labels, i, action)
            )
            for i, (name, (rows, others)) in enumerate(zip(labels, pairs, strict=True))
        ],
        _first_step(rewards != rewards[..., :1]),
        all(trial.comparable for trial in trials),
        len(MOMENTS),
        max((action.n if isinstance(action, Discrete) else action.low.size) - MOST_ACTIONS, 0),
    )


class _Trial(NamedTuple):
    """One moment: outcome numbers (H, V), equal where outcomes are equal, and rewards (H, V)."""

    outcomes: np.ndarray
    rewards: np.ndarray
    comparable: bool


def _try_all(
    env: HostEnv, tried: np.ndarray, seed: int, moment: int, on_env_step: OnEnvStep
) -> _Trial:
    rng, rows = np.random.default_rng(seed), len(tried)
    obs = env.reset([seed] * rows)
    comparable = len({_digest(row) for row in obs}) == 1
    for _ in range(moment):
        step = env.step(np.repeat(random_actions_on_host(env.spec.action, rng, 1), rows, 0))
        comparable &= len(set(_step_digests(step))) == 1
        on_env_step()
    numbers: list[list[int]] = []
    rewards: list[np.ndarray] = []
    for _ in range(HELD):
        step = env.step(tried)
        digests = _step_digests(step)
        numbers.append([digests.index(digest) for digest in digests])
        rewards.append(step.reward)
        on_env_step()
    return _Trial(np.array(numbers), np.stack(rewards), comparable)


def _comparisons(
    action: Box | Discrete, rows: int
) -> tuple[list[str], list[tuple[int, list[int]]]]:
    """Return the default names, and for each name its row and the rows to compare it with."""
    if isinstance(action, Discrete):
        every = [(row, [other for other in range(rows) if other != row]) for row in range(rows)]
        return [f"action {row}" for row in range(rows)], every
    ends = [(1 + 2 * index, [0, 2 + 2 * index]) for index in range((rows - 1) // 2)]
    return [f"number {index}" for index in range(len(ends))], ends


def _first_difference(outcomes: np.ndarray, row: int, others: list[int]) -> int | None:
    """Return the env step at which `row` first differed from any of `others`."""
    return _first_step(outcomes[:, :, others] != outcomes[:, :, [row]])


def _first_step(differs: np.ndarray) -> int | None:
    """Return the first env step, from 1, with a true entry in `differs` (moments, steps, rows)."""
    steps = differs.any((0, 2))
    return int(steps.argmax()) + 1 if steps.any() else None


def _twin(outcomes: np.ndarray, names: list[str], row: int, action: Box | Discrete) -> str | None:
    """Return the first action before `row` with the same outcomes in every trial."""
    if not isinstance(action, Discrete):
        return None
    same = (outcomes[:, :, :row] == outcomes[:, :, [row]]).all((0, 1))
    return names[int(same.argmax())] if same.any() else None
