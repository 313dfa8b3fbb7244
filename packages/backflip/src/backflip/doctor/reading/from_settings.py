"""Signals that follow from the settings of a run, where the log has the settings alone.

CleanRL writes its options into its event file, and logs ε and most learning rates nowhere.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from backflip.doctor.log import Log, Signal, Values

# Settings of other libraries whose meaning is exactly that of ours.
NAMES = {
    "gamma": "discount",
    "ent_coef": "entropy_coef",
    "vf_coef": "value_coef",
    "num_steps": "rollout_length",
    "n_steps": "rollout_length",
    "n_envs": "num_envs",
    "update_epochs": "epochs",
    "n_epochs": "epochs",
    "num_minibatches": "minibatches",
    "clip_coef": "clip_range",
    "start_e": "epsilon_start",
    "end_e": "epsilon_end",
    "exploration_initial_eps": "epsilon_start",
    "exploration_final_eps": "epsilon_end",
    "target_network_frequency": "target_update_interval",
    "policy_frequency": "policy_delay",
}
HOW = "computed from the settings"
RATES = ("learning_rate", "q_lr")
POINTS = 9  # of each signal: fewer than a diagnosis needs, so that settings alone are not enough


def with_settings(log: Log) -> Log:
    """Return a log with our names of its settings, and the signals that follow from these.

    Signals that followed from earlier settings are computed again.

        lr(t) = lr (1 - t / T)  if it is annealed, else lr
        ε(t) = ε₀ + (ε₁ - ε₀) min(1, t / (f T))

    T are the planned env steps: without them no schedule is computed. What was logged is kept.

    Args:
        log: of another library.
    """
    ours = {name: log.settings[theirs] for theirs, name in NAMES.items() if theirs in log.settings}
    settings = {**log.settings, **ours}
    x = np.linspace(0.0, max(log.end, 1.0), POINTS)
    found = {
        "learning_rate": _rate(settings, log.planned, x),
        "epsilon": _epsilon(settings, log.planned, x),
    }
    computed = {name: Signal(x, y, name, HOW) for name, y in found.items() if y is not None}
    logged = {name: one for name, one in log.signals.items() if one.how != HOW}
    return replace(log, settings=settings, signals=computed | logged)


def with_told(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which facts replace what the log says, under all names of a setting."""
    told = {NAMES.get(name, name): value for name, value in facts.items()}
    known = {**settings, **facts, **told}
    return {name: told.get(NAMES.get(name, name), value) for name, value in known.items()}


def _rate(settings: Mapping[str, Any], planned: float, x: Values) -> Values | None:
    rate = next((_number(settings, name) for name in RATES if name in settings), None)
    if rate is None:
        return None
    if settings.get("anneal_lr") is True:
        return rate * np.maximum(0.0, 1.0 - x / planned) if planned > 0 else None
    return np.full_like(x, rate)


def _epsilon(settings: Mapping[str, Any], planned: float, x: Values) -> Values | None:
    start, last, share = (
        _number(settings, name) for name in ("epsilon_start", "epsilon_end", "exploration_fraction")
    )
    if start is None or last is None or share is None or not planned > 0:
        return None
    done = np.minimum(1.0, x / max(share * planned, 1.0))
    return start + (last - start) * done


def _number(settings: Mapping[str, Any], name: str) -> float | None:
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
