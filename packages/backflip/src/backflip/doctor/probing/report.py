"""Outcomes of probes as text and as JSON."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from backflip.doctor.probing.outcome import Outcome, Verdict

_STATES: dict[Verdict, str] = {
    "passed": "passed ",
    "failed": "FAILED ",
    "not_converged": "not yet",
    "not_asked": "--     ",
}


def in_words(outcomes: Sequence[Outcome]) -> str:
    """Return one line for each probe, its states where it failed, and what the failures mean."""
    lines = [line for one in outcomes for line in (_line(one), *_states(one))]
    asked = [one for one in outcomes if one.was_asked]
    rest = _left([one for one in outcomes if not one.was_asked])
    if all(one.passed for one in asked):
        said = f"all {len(asked)} probes passed" if asked else "no probe was asked"
        return "\n".join([*lines, "", said + rest])
    counts = {
        "failed": sum(one.verdict == "failed" for one in asked),
        "did not converge": sum(one.verdict == "not_converged" for one in asked),
    }
    said = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
    return "\n".join([*lines, "", f"of {len(asked)} probes {said}{rest}", *_meanings(asked)])


def _left(left: Sequence[Outcome]) -> str:
    """Return how many probes were not asked, for each reason."""
    counts = Counter(one.refusal for one in left)
    return "".join(f"; {count} could not be asked, because {why}" for why, count in counts.items())


def _meanings(asked: Sequence[Outcome]) -> list[str]:
    """Return what failures mean, each with its probes; clear causes come first."""
    by_meaning = dict[str, list[Outcome]]()
    for one in asked:
        if one.means:
            by_meaning.setdefault(one.means, []).append(one)
    groups = sorted(by_meaning.items(), key=lambda group: _weight(group[1][0]))
    return [f"{', '.join(one.probe.id for one in of)}: {means}" for means, of in groups]


def _weight(one: Outcome) -> int:
    """Return a smaller number for a meaning that says more."""
    if one.verdict == "not_converged":
        return 2
    return 0 if one.causes else 1


def _line(one: Outcome) -> str:
    said = ", ".join(
        f"a learned {name} is {one.not_finite[name]}"
        if name in one.not_finite
        else f"{name} off by {error:.3f}"
        for name, error in one.errors.items()
    )
    said = f"{said}; {one.seconds:.0f} s" if said else f"not asked: {one.refusal}"
    return f"{_STATES[one.verdict]} {one.probe.id:17} {one.probe.asks}  ({said})"


def _states(one: Outcome) -> list[str]:
    """Return what was learned in each state, where a probe did not pass."""
    if one.passed:
        return []
    return [
        f"          at {', '.join(f'{number:g}' for number in obs)}: " + "; ".join(said)
        for obs, *said in zip(one.probe.shown, *_columns(one), strict=True)
    ]


def _columns(one: Outcome) -> list[list[str]]:
    """Return, for values and for actions, what was learned and what is correct in each state."""
    return [
        [
            f"{name} {_seeds(here)}, correct {right:.4g}"
            for here, right in zip(of.T, correct, strict=True)
        ]
        for name, (of, correct) in _tables(one).items()
    ]


def _seeds(numbers: np.ndarray) -> str:
    """Return one number for seeds that agree, and else that of each seed."""
    texts = [f"{number:.4g}" for number in numbers]
    return texts[0] if len(set(texts)) == 1 else " and ".join(texts)


def _tables(one: Outcome) -> dict[str, tuple[np.ndarray, Sequence[float]]]:
    """Return learned numbers (seeds, shown) and the correct ones, by `value` and `action`."""
    found = dict[str, tuple[np.ndarray, Sequence[float]]]()
    if len(one.values) and one.probe.values is not None:
        found["value"] = one.values, one.probe.values(one.discount)
    if len(one.actions) and one.probe.actions is not None:
        found["action"] = one.actions, one.probe.actions
    return found


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcomes as a JSON document."""
    return {
        "probes": [_document(one) for one in outcomes],
        "passed": all(one.passed for one in outcomes) and any(o.was_asked for o in outcomes),
    }


def _document(one: Outcome) -> dict[str, Any]:
    decided = {"passed": True, "failed": False}
    return {
        "probe": one.probe.id,
        "verdict": one.verdict,
        "passed": decided.get(one.verdict),
        "value": _number(one.value),
        "value_error": _number(one.value_error),
        "action_error": _number(one.action_error),
        "not_finite": dict(one.not_finite),
        "tolerance": one.probe.tolerance,
        "states": _state_documents(one),
        "asks": one.probe.asks,
        "causes": list(one.causes),
        "means": one.means or None,
        "refusal": None if one.was_asked else one.refusal,
        "seconds": one.seconds,
    }


def _state_documents(one: Outcome) -> list[dict[str, Any]]:
    """Return each state: its observation, what each seed learned there, and what is correct."""
    tables = _tables(one)
    return [
        {"obs": list(obs)}
        | {
            name: {"learned": [_number(seed[at]) for seed in of], "correct": float(correct[at])}
            for name, (of, correct) in tables.items()
        }
        for at, obs in enumerate(one.probe.shown)
    ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
