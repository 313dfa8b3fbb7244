"""What an algorithm did on one probe."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from backflip.doctor.probing.probes import Probe

SEEDS = (0, 1)
OnProgress = Callable[[str, float], None]
Verdict = Literal["passed", "failed", "not_converged", "not_asked"]


class Outcome(NamedTuple):
    """What an algorithm did on one probe.

    Attributes:
        probe: the probe.
        value_error: the largest error of a value, relative; infinite if one is not finite, NaN if
            values are not asked.
        action_error: the largest error of an action, likewise; of numbers in halves of their range.
        seconds: how long it took.
        value: the learned value of the first state shown, mean over the seeds; NaN if values are
            not asked.
        not_finite: `NaN` or `infinite`, by `value` and `action`, where one of these is not finite.
        values: the learned values (seeds, shown); empty if values are not asked.
        actions: the actions (seeds, shown); empty if actions are not asked.
        discount: γ.
        judged: the verdict in the light of all probes; None before `verdicts.judged`.
        causes: the ids of the hypotheses that predict what was learned, the nearest first.
        means: what a failure, or values that have not converged, mean; empty if it passed.
        has_env_steps: whether the learner made any env step to learn from.
        refusal: why it was not asked, if it was not.
    """

    probe: Probe
    value_error: float
    action_error: float
    seconds: float
    value: float = float("nan")
    not_finite: Mapping[str, str] = {}
    values: np.ndarray = np.zeros((0, 0))
    actions: np.ndarray = np.zeros((0, 0))
    discount: float = float("nan")
    judged: Verdict | None = None
    causes: tuple[str, ...] = ()
    means: str = ""
    has_env_steps: bool = True
    refusal: str = "the learner has no `value`"

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
    def is_within_tolerance(self) -> bool:
        """Whether all errors are within the tolerance; true if nothing was asked."""
        return all(error <= self.probe.tolerance for error in self.errors.values())

    @property
    def verdict(self) -> Verdict:
        """The verdict; before all probes are known, by the tolerance alone."""
        if not self.was_asked:
            return "not_asked"
        return self.judged or ("passed" if self.is_within_tolerance else "failed")

    @property
    def passed(self) -> bool:
        """Whether it passed; true if nothing was asked."""
        return self.verdict in ("passed", "not_asked")


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
    asked = dict[str, np.ndarray]()
    if probe.values is not None and len(values):
        asked["value"] = np.asarray(values, np.float64)
    if probe.actions is not None:
        asked["action"] = np.asarray(actions, np.float64)
    of_values = of_actions = value = float("nan")
    if "value" in asked and probe.values is not None:
        correct = np.asarray(probe.values(discount))
        value = float(asked["value"][:, 0].mean())
        of_values = _largest(asked["value"] - correct[None]) / float(np.abs(correct).max())
    if probe.actions is not None:
        low, high = probe.bounds or (0.0, 2.0)
        of_actions = _largest(asked["action"] - np.asarray(probe.actions)) / ((high - low) / 2)
    return Outcome(
        probe,
        of_values,
        of_actions,
        seconds,
        value,
        not_finite={what: _strange(found) for what, found in asked.items() if _strange(found)},
        values=asked.get("value", np.zeros((0, 0))),
        actions=asked.get("action", np.zeros((0, 0))),
        discount=discount,
    )


def not_asked(probe: Probe, refusal: str) -> Outcome:
    """Return the outcome of a probe that is not asked, and why."""
    return Outcome(probe, float("nan"), float("nan"), 0.0, refusal=refusal)


def failed(one: Outcome, causes: Sequence[str], means: str) -> Outcome:
    """Return an outcome as a failure, with the ids of its causes and what it means."""
    return one._replace(judged="failed", causes=tuple(causes), means=means)


def _strange(found: np.ndarray) -> str:
    if np.isnan(found).any():
        return "NaN"
    return "" if np.isfinite(found).all() else "infinite"


def _largest(errors: np.ndarray) -> float:
    """Return the largest error. Training that diverged must not look like "not asked"."""
    return float(np.nan_to_num(np.abs(errors), nan=np.inf).max())
