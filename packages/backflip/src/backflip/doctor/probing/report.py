"""Outcomes of probes as text and as JSON."""

import math
from collections.abc import Sequence
from typing import Any

from backflip.doctor.probing.outcome import Outcome


def in_words(outcomes: Sequence[Outcome]) -> str:
    """Return one line for each probe, and what the first failure means."""
    lines = [_line(one) for one in outcomes]
    asked = [one for one in outcomes if one.was_asked]
    failed = [one for one in asked if not one.passed]
    left = len(outcomes) - len(asked)
    rest = f"; {left} could not be asked, because the learner has no `value`" if left else ""
    if not failed:
        said = f"all {len(asked)} probes passed" if asked else "no probe was asked"
        return "\n".join([*lines, "", said + rest])
    values = [one for one in asked if one.probe.actions is None]
    lines += ["", f"{len(failed)} of {len(asked)} probes failed; the first says most{rest}:"]
    lines += [f"{failed[0].probe.id}: {failed[0].probe.fails}"]
    if values and all(one.passed for one in values):
        lines.append("All values are right, and actions are wrong: look at the policy alone.")
    return "\n".join(lines)


def _line(one: Outcome) -> str:
    if not one.was_asked:
        return (
            f"--      {one.probe.id:17} {one.probe.asks}  (not asked: the learner has no `value`)"
        )
    said = ", ".join(
        f"a learned {name} is {one.not_finite[name]}"
        if name in one.not_finite
        else f"{name} off by {error:.3f}"
        for name, error in one.errors.items()
    )
    if not one.passed and math.isfinite(one.value):
        said = f"first value {one.value:.3g}, {said}"
    state = "passed" if one.passed else "FAILED"
    return f"{state}  {one.probe.id:17} {one.probe.asks}  ({said}; {one.seconds:.0f} s)"


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as a JSON document."""
    return {
        "probes": [
            {
                "probe": one.probe.id,
                "passed": one.passed if one.was_asked else None,
                "value": _number(one.value),
                "value_error": _number(one.value_error),
                "action_error": _number(one.action_error),
                "not_finite": dict(one.not_finite),
                "tolerance": one.probe.tolerance,
                "asks": one.probe.asks,
                "means": None if one.passed else one.probe.fails,
                "seconds": one.seconds,
            }
            for one in outcomes
        ],
        "passed": all(one.passed for one in outcomes) and any(o.was_asked for o in outcomes),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
