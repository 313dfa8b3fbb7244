"""Checks of settings that cannot be right: outside of the range in which they have a meaning."""

from collections.abc import Callable

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.checks.settings import told
from backflip.doctor.log import OFF_POLICY, ON_POLICY, Log

ROUNDING = 1e-6  # 32 bits hold no discount of 1 that was computed more exactly than this
_DEFINITION = "the definition of the setting"


def _outside(*names: str) -> Callable[[Log], Running | None]:
    """Return a measure of how far settings are outside of 0 to 1; the largest of several."""

    def measure(log: Log) -> Running | None:
        values = [value for name in names if (value := log.setting(name)) is not None]
        outside = [max(value - 1.0, -value, 0.0) for value in values]
        return Running(np.zeros(1), np.asarray([max(outside)])) if outside else None

    return measure


def _tau(log: Log) -> Running | None:
    """Return how far the step size is outside; other algorithms may use the name for more."""
    return _outside("tau")(log) if log.algorithm in OFF_POLICY else None


CHECKS = (
    Check(
        id="GAMMA-RANGE",
        title="the discount is above 1 or below 0",
        quantity="how far the discount is outside of 0 to 1",
        measure=_outside("discount"),
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="With a discount above 1, values grow without bound: each target is larger "
        "than the value that it is computed from.",
        causes={"discount": 0.95},
        source="Sutton & Barto 2018, section 3.3: 0 to 1",
        limit=ROUNDING,
    ),
    Check(
        id="GAE-RANGE",
        title="the λ of the advantages is above 1 or below 0",
        quantity="how far `gae_lambda` is outside of 0 to 1",
        measure=_outside("gae_lambda"),
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="Advantages are means of estimates with weights that grow with the distance, "
        "or that have changing signs.",
        causes={"advantages": 0.9},
        source="Schulman et al. 2016, arXiv:1506.02438: 0 to 1",
        limit=ROUNDING,
        algorithms=ON_POLICY,
    ),
    Check(
        id="Q-TAU-RANGE",
        title="the step size of the target network is above 1 or below 0",
        quantity="how far `tau` is outside of 0 to 1",
        measure=_tau,
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="The target network goes beyond the network that it follows, or away from it.",
        causes={"target-network": 0.9},
        source=_DEFINITION,
        limit=ROUNDING,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-EPS-RANGE",
        title="the share of random actions is above 1 or below 0",
        quantity="how far `epsilon_start` or `epsilon_end` is outside of 0 to 1",
        measure=_outside("epsilon_start", "epsilon_end"),
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="No share is outside of 0 to 1: all actions are random for longer than it "
        "seems, or none is.",
        causes={"too-much-exploration": 0.5, "too-little-exploration": 0.5},
        source=_DEFINITION,
        limit=ROUNDING,
        algorithms=("dqn",),
    ),
    Check(
        id="PI-CLIP-ZERO",
        title="the clip range is not above 0",
        quantity="`clip_range` of the probability ratio",
        measure=told("clip_range"),
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="The loss clips the ratio wherever the policy has moved at all: it hardly "
        "learns.",
        causes={"policy-loss": 0.7, "steps-too-small": 0.5},
        source="Schulman et al. 2017, arXiv:1707.06347: above 0",
        limit=ROUNDING,
        algorithms=("ppo",),
    ),
)
