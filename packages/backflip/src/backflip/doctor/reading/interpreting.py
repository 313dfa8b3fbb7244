"""Makes a log of logged series: signals by our names, settings, algorithm and environment."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from backflip.doctor.log import CONTINUOUS, Log, Signal
from backflip.doctor.reading.actions import DEVIATIONS, with_actions
from backflip.doctor.reading.from_settings import with_settings
from backflip.doctor.reading.guessing import (
    algorithm_of,
    with_action_values,
    with_loss_of_q,
    without_first_steps,
)
from backflip.doctor.reading.naming import Logged, Named, named
from backflip.doctor.reading.single_returns import monitored, unrolled
from backflip.doctor.reading.step_counts import has_own_axis, with_steps_by_clock
from runshelf.interop.event_columns import Column
from runshelf.interop.log_survey import FolderName
from runshelf.interop.metric_names import library_of

# The clip range of PPO, of Stable-Baselines3 and of TorchRL: a setting, if it is constant.
_LOGGED_SETTINGS = {
    "clip_range": ("train/clip_range", "train/clip_epsilon"),
    "learning_rate": ("train/learning_rate", "charts/learning_rate", "Loss/learning_rate"),
}
# Names of settings that hold the environment, the most certain ones first.
ENVIRONMENTS = ("env_id", "env_name", "gym_id", "environment_id", "env", "environment")
RUNTIME = "_runtime"  # seconds since the start, as W&B names them
_COUNT = "time/episodes"  # until each line, of Stable-Baselines3
_GRADIENT_STEPS = "train/num_sgd_steps"  # of an update, of Sample Factory


def interpreted(
    name: str,
    logged: Mapping[str, Logged],
    settings: Mapping[str, Any],
    notes: Sequence[str],
    mapping: Mapping[str, str],
    about: FolderName,
) -> Log:
    """Return the log of logged series.

    Args:
        name: what the user calls the training run.
        logged: the series by logged name, over env steps as far as that is known.
        settings: the settings that the log holds.
        notes: what was wrong with the files.
        mapping: our names by logged names, as the user gave them.
        about: what the name of the folder says.

    Raises:
        UsageError: the mapping is wrong.
    """
    found = named(logged, mapping)
    config = {**_constants(logged), **about.config, **settings}
    signals, said = _meant(found, logged)
    if any(name in logged for name in DEVIATIONS):
        config.setdefault("actions", CONTINUOUS)
    planned = config.get("total_timesteps")
    log = with_settings(
        Log(
            name=name,
            library=found.library,
            signals=signals,
            unknown=found.unknown,
            broken=found.broken,
            algorithm=_algorithm_of(
                found.library, signals, logged, about.algorithm or config.get("exp_name")
            ),
            env=about.env or _environment(config),
            settings=config,
            planned=float(planned) if isinstance(planned, int | float) else math.nan,
            notes=(*notes, *found.notes, *said),
        )
    )
    return with_actions(log)


def _algorithm_of(
    library: str, signals: Mapping[str, Signal], logged: Mapping[str, Logged], written: object
) -> str | None:
    """Return the algorithm that a log names, or that logs such series; None if several do."""
    clips = "ppo" if any(name in logged for name in _LOGGED_SETTINGS["clip_range"]) else None
    return _algorithm(written) or algorithm_of(library, signals) or clips


def _environment(config: Mapping[str, Any]) -> str | None:
    """Return the environment that settings name; None if they name none."""
    lower = {str(name).lower(): value for name, value in config.items()}
    named = (lower.get(name) for name in ENVIRONMENTS)
    return next((one for one in named if isinstance(one, str)), None)


def _meant(
    found: Named, logged: Mapping[str, Logged]
) -> tuple[Mapping[str, Signal], tuple[str, ...]]:
    """Return the signals as their library means them, and notes on those that are left out."""
    signals = with_loss_of_q(found.library, with_action_values(found.library, found.signals))
    if _COUNT in logged:
        signals = unrolled(signals, Signal(*logged[_COUNT], _COUNT))
    if found.library == "sample_factory" and _GRADIENT_STEPS in logged:
        return without_first_steps(signals, Signal(*logged[_GRADIENT_STEPS], _GRADIENT_STEPS))
    return signals, ()


def _constants(logged: Mapping[str, Logged]) -> dict[str, Any]:
    """Return settings that a library logs as series; only of those that stay."""
    found = {
        setting: next((logged[name].y for name in names if name in logged), np.zeros(0))
        for setting, names in _LOGGED_SETTINGS.items()
    }
    return {name: float(y[0]) for name, y in found.items() if len(y) and np.all(y == y[0])}


def _algorithm(name: object) -> str | None:
    """Return the algorithm in a name such as `ppo_continuous_action`; None if there is none."""
    known = ("ppo", "a2c", "dqn", "ddpg", "td3", "sac", "vpg")
    words = re.split(r"[^a-z0-9]+", str(name or "").lower())
    return next((word for word in words if word in known), None)


def with_seconds(log: Log, times: Logged | None, logged_as: str) -> Log:
    """Return a log with the times that its records have, unless it has the signal `seconds`.

    Env steps that a later program made again count in that program only: times of two programs are
    of no speed.
    """
    if times is None or "seconds" in log.signals:
        return log
    later = np.fmin.accumulate(np.append(times.x[1:], np.inf)[::-1])[::-1]
    last = times.x < later
    seconds = Signal(times.x[last], times.y[last], logged_as)
    return replace(log, signals={**log.signals, "seconds": seconds})


def with_episodes(log: Log, episodes: Mapping[str, Logged], envs: int) -> Log:
    """Return a log of Stable-Baselines3 with the episodes of its Monitors, one for each env."""
    if not episodes or log.library != "sb3":
        return log
    returns, lengths = (Signal(*episodes[name], name) for name in ("r", "l"))
    return monitored(log, returns, lengths, envs)


def series_of(parts: Mapping[str, Sequence[Column]]) -> dict[str, Logged]:
    """Return the series of events by tag, and the seconds of all, over env steps if a clock tells.

    Args:
        parts: the numbers of each tag, in one or several files.
    """
    logged = {tag: _joined(columns) for tag, columns in parts.items()}
    logged = with_steps_by_clock(logged, parts)
    return logged | _times_of(parts, logged) if _COUNT not in logged else logged


def _times_of(
    parts: Mapping[str, Sequence[Column]], logged: Mapping[str, Logged]
) -> dict[str, Logged]:
    """Return the seconds since the first event, of the tag with the most events, over its steps."""
    library = library_of(logged)
    tags = [tag for tag in parts if not has_own_axis(library, tag)]
    if not tags:
        return {}
    most = max(tags, key=lambda tag: (len(logged[tag].x), tag))  # of a tie, always the same
    times = np.concatenate([column.times for column in parts[most]])
    return {RUNTIME: Logged(logged[most].x, times - times.min())}


def _joined(columns: Sequence[Column]) -> Logged:
    """Return the numbers of a tag in several event files."""
    x = np.concatenate([column.steps for column in columns]).astype(np.float64)
    return Logged(x, np.concatenate([column.values for column in columns]))
