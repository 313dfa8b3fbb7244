"""The next experiment that a diagnosis suggests, as a command."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from backflip.doctor.catalogue import CHECKS
from backflip.doctor.check import Change, Check
from backflip.doctor.diagnosis import Diagnosis, against, run_check
from backflip.doctor.log import Log, Signal
from runshelf.formatting import roughly
from runshelf.terminal_text import harmless

PART = 0.5  # of the env steps in which it learns


def command_of(diagnosis: Diagnosis) -> str:
    """Return the command of the next experiment; empty if it is not a change of settings.

    It repeats the run with all of its settings but those of the experiment, for fewer env steps.
    """
    log, changes = diagnosis.log, _changes(diagnosis)
    if not log.repeats or not changes:
        return ""
    sets = [f"--set {name}={as_text(value)}" for name, value in changes.items()]
    return harmless(" ".join([log.repeats, *sets, f"--set env_steps={_env_steps(log, changes)}"]))


def time_of(diagnosis: Diagnosis) -> str:
    """Return how long the next experiment takes, as a comment of the shell; empty if unknown.

    The log of a continued run has the times of the last run only.
    """
    log = diagnosis.log
    spent = log.signals.get("seconds", Signal(np.zeros(0), np.zeros(0), ""))
    x, y = (one[np.isfinite(spent.y)] for one in (spent.x, spent.y))
    if len(y) < 2 or not x[-1] > x[0]:
        return ""
    seconds = float(np.maximum(np.diff(y), 0.0).sum() / (x[-1] - x[0]))  # of an env step
    return f"  # {roughly(seconds * _env_steps(log, _changes(diagnosis)))}"


def _changes(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the settings that the next experiment changes; empty if there are none."""
    if not diagnosis.causes:
        return {}
    return settings_of(diagnosis.log, diagnosis.causes[0].cause.experiment.settings)


def _env_steps(log: Log, changes: Mapping[str, Any]) -> int:
    return part_of(round(log.budget), {**log.settings, **changes})


def part_of(env_steps: int, settings: Mapping[str, Any]) -> int:
    """Return the env steps of a repetition: a part of those in which the algorithm learns."""
    starts = settings.get("learning_starts", 0)  # of another library, it may be anything
    before = min(starts, env_steps) if isinstance(starts, int) and starts > 0 else 0
    return max(1, before + round((env_steps - before) * PART))


def settings_of(log: Log, changes: Mapping[str, Change]) -> dict[str, Any]:
    """Return the settings that an experiment changes, of those that the algorithm has.

    Text, such as the name of a schedule in another library, is left alone. Empty if the change
    goes further beyond the limit of a check of settings: it would make things worse.
    """
    present = {name: log.settings[name] for name in changes if _is_number(log.settings.get(name))}
    found = {name: changes[name](value, log) for name, value in present.items()}
    changed = {name: value for name, value in found.items() if value != present[name]}
    return {} if _goes_beyond(log, changed) else changed


def _goes_beyond(log: Log, changed: Mapping[str, Any]) -> bool:
    """Return whether changed settings are further beyond a limit of settings than the present."""
    after = _with(log, changed)
    checks = [one for one in CHECKS if one.limit_from == "setting" and one.applies_to(log)]
    return any(_excess(one, after) > max(_excess(one, log), 0.0) for one in checks)


def _with(log: Log, changed: Mapping[str, Any]) -> Log:
    """Return a log with other settings; signals of their names change in proportion."""
    signals = {
        name: log.signals[name]._replace(y=log.signals[name].y * (value / log.settings[name]))
        for name, value in changed.items()
        if log.has(name) and log.settings[name]
    }
    settings = {**log.settings, **changed}
    return replace(log, settings=settings, signals={**log.signals, **signals})


def _excess(check: Check, log: Log) -> float:
    """Return how far a setting is beyond the limit of its check; -inf if it cannot be told."""
    running = run_check(check, log) if all(map(log.has, check.needs)) else None
    if running is None or check.limit is None:
        return -math.inf
    value = against(check, running, check.limit).value
    return value - check.limit if check.bad_side == "above" else check.limit - value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def as_text(value: Any) -> str:
    """Return a setting as it is typed."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
