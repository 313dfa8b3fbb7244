"""What the settings of off-policy algorithms mean together, and which cannot be."""

from typing import Protocol, runtime_checkable

from backflip.algorithms.interface import rollouts_of
from backflip.core.errors import UsageError
from backflip.core.replay.layout import layout
from backflip.core.spec import EnvSpec

ROUNDING = 1e-5  # of a ratio that is typed with six digits, as it is proposed


@runtime_checkable
class ReplaySettings(Protocol):
    """The settings that every algorithm with a replay has, documented there."""

    @property
    def env_steps(self) -> int: ...  # noqa: D102
    @property
    def num_envs(self) -> int: ...  # noqa: D102
    @property
    def rollout_length(self) -> int: ...  # noqa: D102
    @property
    def updates_per_step(self) -> float: ...  # noqa: D102
    @property
    def batch_size(self) -> int: ...  # noqa: D102
    @property
    def buffer_size(self) -> int: ...  # noqa: D102
    @property
    def warm_up(self) -> int: ...  # noqa: D102


def warm_up_rollouts(settings: ReplaySettings) -> int:
    """Return how many whole rollouts the warm-up takes."""
    return rollouts_of(settings.warm_up, settings.num_envs, settings.rollout_length)


def rollouts_learnt_from(settings: ReplaySettings) -> int:
    """Return how many rollouts follow the warm-up; the last may go a little beyond `env_steps`."""
    rollouts = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length)
    return max(rollouts - warm_up_rollouts(settings), 0)


def gradient_steps(settings: ReplaySettings) -> int:
    """Return U, the gradient steps after each rollout."""
    return round(settings.updates_per_step * settings.num_envs * settings.rollout_length)


def refuse_unworkable(settings: ReplaySettings, spec: EnvSpec, n_step: int = 1) -> None:
    """Refuse settings with which nothing could be learnt, or nothing drawn.

    Raises:
        UsageError: what is wrong, all of it at once.
    """
    wrong = [
        *_schedule_problems(settings),
        *_ratio_problems(settings),
        *_memory_problems(settings, spec, n_step),
    ]
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")


def _schedule_problems(settings: ReplaySettings) -> list[str]:
    if rollouts_learnt_from(settings):
        return []
    return [
        f"`warm_up` must be less than env_steps = {settings.env_steps}, or no update would ever "
        f"happen, got {settings.warm_up}; try warm_up={settings.env_steps // 10}"
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
    lived = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length) * rows
    if settings.batch_size > lived:
        return [
            "`batch_size` must be at most env_steps, for a minibatch is drawn from what was lived "
            f"through: {lived}, got {settings.batch_size}; try "
            f"batch_size={min(128, lived)}"
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
    first = (warm_up_rollouts(settings) + 1) * settings.rollout_length
    if envs * first < least:
        return [
            f"`warm_up` and the first rollout must fill a minibatch, and {window} env steps of "
            f"each of {envs} environments: together at least {least}, got {envs * first}; "
            f"try warm_up={least}{_and_longer(settings, least)}"
        ]
    return []


def _and_longer(settings: ReplaySettings, warm_up: int) -> str:
    """Return what else to type where such a warm-up would leave nothing to learn from."""
    rows = settings.num_envs * settings.rollout_length
    left = rollouts_of(settings.env_steps, settings.num_envs, settings.rollout_length)
    left -= rollouts_of(warm_up, settings.num_envs, settings.rollout_length)
    return "" if left > 0 else f" and --env-steps {settings.env_steps + (1 - left) * rows}"
