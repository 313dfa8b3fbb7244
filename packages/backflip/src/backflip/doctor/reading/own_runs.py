"""Reads runs of ours, and runs that were imported into our store."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from backflip.core.checkpoint import CHECKPOINT
from backflip.core.paths import name_on_command_line
from backflip.doctor.log import CORES, CPU_USE, GPU_USE, LOAD, SAVED, Log, Signal
from backflip.doctor.reading.continued import began_at, joined, parents_of
from backflip.doctor.reading.expected_causes import expected_causes
from backflip.doctor.reading.imported_runs import log_of_import
from backflip.doctor.reading.own_labels import signals_of_labels
from backflip.doctor.reading.saved_models import of_checkpoint
from runshelf.recorder.rerun import records_itself
from runshelf.store.columns import Column
from runshelf.store.metrics import read_columns
from runshelf.store.run import Run
from runshelf.store.series import NOT_METRICS, series_by_seed

POLICY = "policy.safetensors"  # that of `backflip.training.policy`, which imports JAX
TRUE_RETURN = "episode_return_mean"
OF_THE_TRUE_REWARD = ("oracle", "noisy")  # teachers
_AXES = ("env_steps", "step")
_AS_METRICS = ("seconds", "env_steps", "episodes")


def logs_of_run(run: Run) -> list[Log]:
    """Return the log of each seed of a run, joined to those of the runs that it continues.

    Raises:
        UserFacingError: a file cannot be read.
    """
    logs = _logs_of_run(run)
    for parent in parents_of(run):
        earlier = {log.seed: log for log in _logs_of_run(parent)}
        logs = [joined(log, earlier[log.seed]) if log.seed in earlier else log for log in logs]
    return logs


def _logs_of_run(run: Run) -> list[Log]:
    """Return the log of each seed of a run alone."""
    columns = read_columns(run.folder)
    if "imported" in run.manifest:
        return [log_of_import(run, columns)]
    by_seed = _by_seed(columns)
    shared = by_seed.pop(None, {})
    if not by_seed:
        return [_log(run, None, shared)]
    labels, machine = signals_of_labels(run.folder), _of_machine(columns)
    shared = shared | machine | _of_saved(run)
    return [
        _log(run, seed, shared | signals | dict(labels.get(seed, {})))
        for seed, signals in sorted(by_seed.items())
        if seed is not None
    ]


def _log(run: Run, seed: int | None, signals: Mapping[str, Signal]) -> Log:
    config: Mapping[str, Any] = run.manifest["config"]
    settings = config.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    planned = settings.get("env_steps")
    name = run.short if seed is None else f"{run.short}, seed {seed}"
    if _teaches_something_else(config):
        signals = {name: one for name, one in signals.items() if name != TRUE_RETURN}
    return Log(
        name,
        "backflip",
        signals,
        algorithm=run.manifest.get("algorithm"),
        env=run.manifest.get("env"),
        settings=settings,
        planned=float(planned) if isinstance(planned, int | float) else float("nan"),
        run=str(run.folder),
        seed=seed,
        expected=expected_causes(run),
        env_args=config.get("env_args") or {},
        repeats=f"backflip rerun {name_on_command_line(run)}" if records_itself(run) else "",
        began_at=began_at(config),
    )


def _teaches_something_else(config: Mapping[str, Any]) -> bool:
    """Return whether a teacher may want something else than the environment's own reward.

    Its return then says nothing about learning: who teaches a robot to fall wants it to fall.
    """
    teacher = config.get("teacher")
    return isinstance(teacher, str) and teacher.partition(":")[0] not in OF_THE_TRUE_REWARD


def _of_saved(run: Run) -> dict[str, Signal]:
    """Return what the checkpoint of a run holds besides its policy; empty if it has none."""
    found = of_checkpoint(run.folder / CHECKPOINT, run.folder / POLICY)
    return {} if found is None else {SAVED: Signal(np.ones(1), np.asarray([found]), SAVED)}


def _by_seed(columns: Mapping[str, Column]) -> dict[int | None, dict[str, Signal]]:
    """Return the metrics of each seed over env steps; the seed is None for those of no seed."""
    found: dict[int | None, dict[str, Signal]] = {}
    for name in sorted({*columns} - NOT_METRICS | {*_AS_METRICS} & {*columns}):
        for seed, (x, y, _) in _series(columns, name).items():
            found.setdefault(seed, {})[name] = Signal(x, y, name)
    return found


def _of_machine(columns: Mapping[str, Column]) -> dict[str, Signal]:
    """Return what is logged over seconds alone, over the env steps of the first seed."""
    along = series_by_seed(columns, "env_steps", "seconds")
    if not along:
        return {}
    seconds, env_steps, _ = next(iter(along.values()))
    found: dict[str, Signal] = {}
    for name in {CORES, CPU_USE, GPU_USE, LOAD} & {*columns}:
        for x, y, _ in series_by_seed(columns, name, "seconds").values():
            found[name] = Signal(np.interp(x, seconds, env_steps), y, name)
    return found


def _series(columns: Mapping[str, Column], name: str) -> Any:
    for axis in _AXES:
        found = series_by_seed(columns, name, axis)
        if found:
            return found
    return {}
