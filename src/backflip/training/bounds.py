"""Between which numbers a setting has a meaning, wherever an algorithm has it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from backflip.core.spec import LARGEST_COUNT


class Bounds(NamedTuple):
    """The numbers that a setting can be.

    Attributes:
        low: the least.
        high: the largest.
        above: `low` itself is not one of them.
    """

    low: float
    high: float = math.inf
    above: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a number is one of them."""
        return (value > self.low if self.above else value >= self.low) and value <= self.high

    def __str__(self) -> str:
        """Return them in words, after "must"."""
        low, high = _said(self.low), _said(self.high)
        if math.isinf(self.high):
            return f"be {'above' if self.above else 'at least'} {low}"
        if self.above:
            return f"be above {low} and at most {high}"
        return f"lie between {low} and {high}"


def _said(number: int | float) -> str:
    """Return whole numbers in full, as they are typed, others as short as they are exact."""
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


LARGEST = 1e10  # its square is a float32, and so are sums of many of these
COUNT, SHARE, POSITIVE = Bounds(1, LARGEST_COUNT), Bounds(0, 1), Bounds(0, LARGEST, above=True)
NOT_NEGATIVE, ANY, RATE = Bounds(0, LARGEST), Bounds(-LARGEST, LARGEST), Bounds(0, 10)

BOUNDS: dict[str, Bounds] = {
    **dict.fromkeys(
        (
            "env_steps",
            "num_envs",
            "rollout_length",
            "epochs",
            "minibatches",
            "batch_size",
            "buffer_size",
            "target_update",
            "policy_delay",
            "value_steps",
            "exploration_steps",
        ),
        COUNT,
    ),
    **dict.fromkeys(
        (
            "discount",
            "decay",
            "rms_decay",
            "exploration_start",
            "exploration_end",
            "priority_correction",
            "entropy_share",
            "noise_end",
        ),
        SHARE,
    ),
    **dict.fromkeys(
        (
            "clip",
            "max_grad_norm",
            "rms_epsilon",
            "updates_per_step",
            "initial_temperature",
            "initial_std",
        ),
        POSITIVE,
    ),
    **dict.fromkeys(
        (
            "learning_rate",  # 0 leaves as it is what it is the rate of
            "learning_rate_end",
            "value_learning_rate",
            "actor_learning_rate",
            "critic_learning_rate",
            "temperature_learning_rate",
        ),
        RATE,
    ),
    # Less entropy, too, can be what somebody wants.
    **dict.fromkeys(("entropy_bonus", "entropy_bonus_end", "entropy_per_dimension"), ANY),
    **dict.fromkeys(
        (
            "clip_end",
            "value_weight",
            "value_clip",
            "priority_exponent",
            "exploration_noise",
            "target_noise",
            "target_noise_clip",
            "noise",
        ),
        NOT_NEGATIVE,
    ),
    "warm_up": Bounds(0, LARGEST_COUNT),
    "episodes": Bounds(1, 10_000),  # of each member of CEM: in all there are as many whole ones
    "n_step": Bounds(1, 1_000),  # each is a part of the program that is compiled
    "target_rate": Bounds(0, 1, above=True),
    "elite_share": Bounds(0, 1, above=True),
    "initial_log_std": Bounds(-20, 10),  # beyond, the deviation leaves the numbers of a float32
}


def out_of_bounds(config: Any, of_settings: Mapping[str, Bounds] = BOUNDS) -> list[str]:
    """Return what is wrong with each setting that lies outside of its bounds."""
    return [
        f"`{name}` must {bounds}, got {getattr(config, name)}"
        for name, bounds in of_settings.items()
        if hasattr(config, name) and not bounds.holds(getattr(config, name))
    ]
