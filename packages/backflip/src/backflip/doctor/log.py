"""What one training run logged, in our names, from whatever library."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float64

Values = Float64[np.ndarray, " n"]

OF_TEACHING = ("reward_model_", "fresh_", "label_")  # beginnings of names of signals
GPU_USE = "gpu0/utilisation_percent"
LOAD = "load_per_core"
CPU_USE = "cpu_percent"
CORES = "cores"
SAVED = "saved_unneeded_mib"
# What the steps of a log count.
OF_ENVS, OF_EACH_ENV = "env steps", "steps of each environment"
ITERATIONS, UPDATES = "iterations", "updates"
ROWS, CALLS, SECONDS = "rows", "log calls", "seconds"
CONTINUOUS = "continuous"  # the setting `actions`, in place of a number
ON_POLICY = ("ppo", "a2c", "vpg")
OFF_POLICY = ("dqn", "ddpg", "td3", "sac")


@final
class Signal(NamedTuple):
    """One logged quantity.

    Attributes:
        x: env steps, ascending.
        y: the values, in the unit of our metric of this name.
        logged_as: the name in the log.
        how: how its computation differs from ours; empty if it does not.
    """

    x: Values
    y: Values
    logged_as: str
    how: str = ""


@final
@dataclass(frozen=True)
class Log:
    """The log of one training run: of one seed of a run, or of one folder of another library.

    Attributes:
        name: what the user calls it.
        library: `backflip`, one of `runshelf.interop.metric_names`, or `unknown`.
        signals: by our name of the metric.
        unknown: logged names without a meaning for a check.
        broken: series of such names that end in NaN or infinity, after finite numbers.
        algorithm: its name in lower case, if known.
        env: the environment's id, if known.
        settings: the settings of the algorithm, as far as they are known.
        planned: env steps that the training run should reach; NaN if unknown.
        notes: what was wrong with the files.
        run: the folder of a run of ours, else None.
        seed: the seed of the run, if known.
        expected: probabilities of causes that a person wrote down before the run ended, by id.
        env_args: the environment's arguments, which make it another one than the id says.
        repeats: the beginning of a command that repeats the training run; empty if none is known.
        began_at: env steps that the training run had done before the log begins.
        counts: what `x` of the signals counts: env steps, or something else.
        guessed: names of settings that were guessed from signals.
    """

    name: str
    library: str
    signals: Mapping[str, Signal]
    unknown: tuple[str, ...] = ()
    broken: tuple[Signal, ...] = ()
    algorithm: str | None = None
    env: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    planned: float = math.nan
    notes: tuple[str, ...] = ()
    run: str | None = None
    seed: int | None = None
    expected: Mapping[str, float] = field(default_factory=dict[str, float])
    env_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repeats: str = ""
    began_at: float = 0.0
    counts: str = OF_ENVS
    guessed: tuple[str, ...] = ()

    @property
    def end(self) -> float:
        """The largest env step of any signal; 0 without signals."""
        return max((float(one.x[-1]) for one in self.signals.values() if len(one.x)), default=0.0)

    @property
    def is_over_env_steps(self) -> bool:
        """Whether `x` of the signals counts env steps."""
        return self.counts == OF_ENVS

    @property
    def budget(self) -> float:
        """The planned env steps, or where the log ends if nothing was planned."""
        return self.planned if self.planned > 0 else self.end

    @property
    def teaches(self) -> bool:
        """Whether the algorithm learns from a learned reward."""
        return any(name.startswith(OF_TEACHING) for name in self.signals)

    def has(self, *names: str) -> bool:
        """Return whether all these signals have values."""
        return all(name in self.signals and len(self.signals[name].x) for name in names)

    def has_any(self, *names: str) -> bool:
        """Return whether one of these signals has values."""
        return any(self.has(name) for name in names)

    def setting(self, name: str) -> float | None:
        """Return a setting that is a number; None if it is not known."""
        value = self.settings.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)
