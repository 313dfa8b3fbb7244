"""What an algorithm did on one probe."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from backflip.doctor.probing.probes import Probe

SEEDS = (0, 1)
OnProgress = Callable[[str, float], None]


class Outcome(NamedTuple):
    """What an algorithm did on one probe.

    Attributes:
        probe: the probe.
        value_error: the largest error of a value, relative; infinite if one is not finite, NaN if
            values are not asked.
        action_error: the largest error of an action, likewise.
        seconds: how long it took.
        value: the learned value of the first state shown, mean over the seeds; NaN if values are
            not asked.
        not_finite: `NaN` or `infinite`, by `value` and `action`, where one of these is not finite.
    """

    probe: Probe
    value_error: float
    action_error: float
    seconds: float
    value: float = float("nan")
    not_finite: Mapping[str, str] = {}

    @property
    def errors(self) -> dict[str, float]:
        """The errors of what was asked, by `value` and `action`."""
        both = {"value": self.value_error, "action": self.action_error}
        return {name: error for name, error in both.items() if not np.isnan(error)}

    @property
    def was_asked(self) -> bool:
        """Whether anything could be asked: a learner without values has no answer about them."""
        return bool(self.errors)

    @property
    def passed(self) -> bool:
        """Whether all errors are within the tolerance; true if nothing was asked."""
        return all(error <= self.probe.tolerance for error in self.errors.values())


def outcome_of(
    probe: Probe, values: Any, actions: np.ndarray, discount: float, seconds: float
) -> Outcome:
    """Return the outcome of a probe.

    Args:
        probe: the probe.
        values: (seeds, shown); empty if there are none.
        actions: (seeds, shown).
        discount: γ.
        seconds: how long it took.
    """
    of_values = of_actions = value = float("nan")
    asked = dict[str, np.ndarray]()
    if probe.values is not None and len(values):
        correct = np.asarray(probe.values(discount))
        learned = np.asarray(values, np.float64)
        asked["value"] = learned
        value, off = float(learned[:, 0].mean()), np.abs(learned - correct[None])
        of_values = _largest(off) / float(np.abs(correct).max())
    if probe.actions is not None:
        asked["action"] = actions
        of_actions = _largest(np.abs(actions - np.asarray(probe.actions)[None]))
    strange = {what: _strange(found) for what, found in asked.items() if _strange(found)}
    return Outcome(probe, of_values, of_actions, seconds, value, strange)


def _strange(found: np.ndarray) -> str:
    if np.isnan(found).any():
        return "NaN"
    return "" if np.isfinite(found).all() else "infinite"


def _largest(errors: np.ndarray) -> float:
    """Return the largest error. Training that diverged must not look like "not asked"."""
    return float(np.nan_to_num(errors, nan=np.inf).max())
