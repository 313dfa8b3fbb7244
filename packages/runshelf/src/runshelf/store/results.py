"""The result of a run: the one number that people look for first.

This is the metric that the user has named for the home, if the run has it. Otherwise it is the
evaluated return of the final policy, else a return of training, else a success, an accuracy or a
reward, else a loss, else another metric. Metrics of the machine are never the result.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from runshelf.errors import UserFacingError
from runshelf.formatting import number
from runshelf.received_json import parse_record
from runshelf.statistics.intervals import mean_interval
from runshelf.store.home import RESULT_METRIC, shared, write_setting
from runshelf.store.machine_metrics import is_of_machine
from runshelf.store.opening import read_whole
from runshelf.store.series import read_series
from runshelf.store.summary import summarise

_TESTED = r"(^|[/_.])(eval|evaluation|test|val|validation)([/_.]|$)"
_SCORE = r"(return|reward|rew_mean|success|accuracy|acc$|score|win_rate)"
# The returns, best first. A run whose episodes have not ended yet has no value of them.
_RETURNS = (
    r"^evaluation_return$",
    rf"{_TESTED}.*(return|reward|rew_mean)",
    r"(^|[/_.])(episode_return_mean|ep_rew_mean)$",
    r"(^|[/_.])(episode|episodic)_(return|reward)$",
    r"(?i)(^|[/_. ])(mean|average|total|cumulative)[ _]?(ep(isode)?[ _]?)?(re(ward|turn)s?|ret)"
    r"( \(mean\))?$",
    r"^rewards/step$",  # rl_games, which logs it over `iter` and `time`, too
    r"^r$",  # monitors of Gymnasium and Stable-Baselines3
)
_OTHERS = (
    rf"{_TESTED}.*{_SCORE}",
    r"returns?(_mean)?$",
    r"success|accuracy|(^|[/_.])acc$|score|win_rate",
    r"reward_mean$|rewards?$",
    rf"{_TESTED}.*loss",
    r"(^|[/_.])loss$",
    r"loss",
    r"(^|[/_.])(?!.*(learning_rate|^lr$|_coef$|epsilon|_std$|_min$|_max$|^time/))",
)


@final
@dataclass(frozen=True)
class Result:
    """The result of a run, or of a group of runs.

    Attributes:
        metric: the metric.
        value: its last value, averaged over seeds; None if nothing has been measured yet.
        seeds: the number of seeds with a value.
    """

    metric: str
    value: float | None
    seeds: int = 1

    @property
    def missing(self) -> str:
        """Why there is no value."""
        return "no episode ended" if is_return(self.metric) else "no value"


@final
@dataclass(frozen=True)
class RunResult:
    """The result of one run with the last value of each seed.

    Attributes:
        result: the metric and its mean over seeds.
        values: the last value of each seed; the seed is None for records without one.
    """

    result: Result
    values: Mapping[int | None, float]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean over seeds; None for fewer than two seeds."""
        if len(self.values) < 2:
            return None
        found = mean_interval(np.array([*self.values.values()])[:, None])
        return float(found.low[0]), float(found.high[0])

    @property
    def spread(self) -> str:
        """The number of seeds, the interval and the lowest value, as text; empty for one seed."""
        if self.interval is None:
            return ""
        low, high = map(number, self.interval)
        if low == high:
            return f"the same for each of {len(self.values)} seeds"
        worst = min(self.values, key=lambda seed: (self.values[seed], str(seed)))
        lowest = f"lowest {number(self.values[worst])} (seed {worst})"
        return f"mean of {len(self.values)} seeds, 95 % interval {low} to {high}, {lowest}"


def read_result(folder: Path, named: str | None) -> RunResult | None:
    """Return the result of the run in `folder`; None without metrics.

    Args:
        folder: the run's folder.
        named: the metric that the user has named for the home.

    Raises:
        UserFacingError: a file cannot be read.
    """
    summaries = summarise(folder)
    metric = result_metric({name: one.count for name, one in summaries.items()}, named)
    return None if metric is None else result_of(folder, metric)


def result_of(folder: Path, metric: str) -> RunResult:
    """Return the value of a metric as the result of the run in `folder`.

    Raises:
        UserFacingError: a file cannot be read.
    """
    series = read_series(folder, [metric], "step")[metric]
    values = {seed: float(of_seed.y[-1]) for seed, of_seed in series.items()}
    mean = sum(values.values()) / len(values) if values else None
    return RunResult(Result(metric, mean, len(values)), values)


def is_return(metric: str) -> bool:
    """Return whether a metric is a return of episodes."""
    return any(re.search(pattern, metric) for pattern in _RETURNS)


def result_metric(counts: Mapping[str, int], named: str | None = None) -> str | None:
    """Return the metric that is the result of a run; None if it has only metrics of the machine.

    A return without values comes after the returns with values, and before everything else.

    Args:
        counts: the number of values of each metric.
        named: the metric that the user has named for the home.
    """
    if named in counts:
        return named
    usual = [name for name in counts if not is_of_machine(name)]
    return min(usual, key=lambda name: _rank(name, counts[name]), default=None)


def usual_first(metrics: Iterable[str]) -> list[str]:
    """Return metrics in the order in which they are chosen as the result."""
    return sorted(metrics, key=lambda name: (is_of_machine(name), _rank(name, 1)))


def _rank(metric: str, count: int) -> tuple[int, int, str]:
    place = next((n for n, pattern in enumerate(_RETURNS) if re.search(pattern, metric)), None)
    if place is not None:
        return (0 if count else 1), place, metric
    place = next((n for n, pattern in enumerate(_OTHERS) if re.search(pattern, metric)), None)
    return (2 if count else 3), len(_OTHERS) if place is None else place, metric


def named_metric(home: Path) -> str | None:
    """Return the metric that the user has named for a home; None if there is none."""
    path = shared(home, RESULT_METRIC)
    with suppress(UserFacingError, ValueError, KeyError):
        named = parse_record(read_whole(path.parent, path.name) or b"")["metric"]
        return named if isinstance(named, str) else None
    return None


def name_metric(home: Path, metric: str | None) -> None:
    """Name the metric that is the result of the runs of a home; None for the usual one.

    Raises:
        UsageError: the home cannot be written.
    """
    write_setting(home, RESULT_METRIC, {"metric": metric})
