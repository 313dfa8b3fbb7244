"""The replay of off-policy algorithms from their settings, and checks of settings together."""

from backflip.algorithms.interface import ReplayPlan
from backflip.algorithms.rollouts import (
    ReplaySettings,
    gradient_steps,
    rollouts_before_learning,
    rollouts_of,
    rollouts_with_updates,
)
from backflip.core.replay.layout import layout
from backflip.core.spec import EnvSpec
from runshelf.errors import UsageError

ROUNDING = 1e-5  # relative; messages propose ratios with six digits


def replay_plan(settings: ReplaySettings) -> ReplayPlan:
    """Return a uniform one-step replay with the given settings."""
    return ReplayPlan(
        capacity=settings.buffer_size,
        batch_size=settings.batch_size,
        gradient_steps=gradient_steps(settings),
        learning_starts=settings.learning_starts,
        discount=settings.discount,
    )


def refuse_unworkable(settings: ReplaySettings, spec: EnvSpec, n_step: int = 1) -> None:
    """Refuse settings with which no update happens or no minibatch can be drawn.

    Raises:
        UsageError: the message has all problems.
    """
    wrong = [
        *_schedule_problems(settings),
        *_ratio_problems(settings),
        *_memory_problems(settings, spec, n_step),
    ]
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")


def _schedule_problems(settings: ReplaySettings) -> list[str]:
    if rollouts_with_updates(settings):
        return []
    total = settings.env_steps
    return [
        f"`learning_starts` must be less than env_steps = {total}, or no update would ever happen, "
        f"got {settings.learning_starts}; try learning_starts={total // 10}"
    ]


def _ratio_problems(settings: ReplaySettings) -> list[str]:
    rows = settings.num_envs * settings.rollout_length
    wanted = settings.updates_per_step * rows
    if round(wanted) >= 1 and abs(wanted - round(wanted)) < ROUNDING * wanted:
        return []
    below = max(int(wanted), 1)
    near = dict.fromkeys((below, max(int(wanted) + 1, 1)))
    good = " or ".join(f"{steps / rows:g}" for steps in near)
    return [
        f"`updates_per_step` times num_envs x rollout_length = {rows} must be a whole number of "
        f"gradient steps, at least 1, got {settings.updates_per_step:g} x {rows} = {wanted:g}; "
        f"try updates_per_step={good}"
    ]


def _memory_problems(settings: ReplaySettings, spec: EnvSpec, n_step: int) -> list[str]:
    rows = settings.num_envs * settings.rollout_length
    steps = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length) * rows
    if settings.batch_size > steps:
        return [
            "`batch_size` must be at most env_steps, because a minibatch is drawn from the env "
            f"steps made: {steps}, got {settings.batch_size}; try batch_size={min(128, steps)}"
        ]
    held = layout(
        spec,
        capacity=settings.buffer_size,
        num_envs=settings.num_envs,
        rollout_length=settings.rollout_length,
        n_step=n_step,
    )
    envs = settings.num_envs
    window = max(held.first_age + held.lead + 1, settings.rollout_length)
    rounded = -(-window // settings.rollout_length) * settings.rollout_length
    least = max(settings.batch_size, envs * rounded)
    if settings.buffer_size < least:
        return [
            f"`buffer_size` must hold a minibatch, and {window} env steps of each of {envs} "
            f"environments in whole rollouts: at least {least}, got {settings.buffer_size}; "
            f"try buffer_size={least}"
        ]
    first = (rollouts_before_learning(settings) + 1) * settings.rollout_length
    if envs * first < least:
        return [
            f"`learning_starts` and the first rollout must fill a minibatch, and {window} env "
            f"steps of each of {envs} environments: together at least {least}, got {envs * first}; "
            f"try learning_starts={least}{_and_longer(settings, least)}"
        ]
    return []


def _and_longer(settings: ReplaySettings, learning_starts: int) -> str:
    """Return what else to type if so many random env steps would leave none to learn in."""
    rows = settings.num_envs * settings.rollout_length
    left = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length)
    left -= rollouts_of(learning_starts, settings.num_envs, settings.rollout_length)
    return "" if left > 0 else f" and --env-steps {settings.env_steps + (1 - left) * rows}"
