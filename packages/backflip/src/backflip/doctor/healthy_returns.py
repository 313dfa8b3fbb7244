"""What healthy runs reach in known environments, and how many env steps they need for it.

`healthy_returns.json` holds, for each library, environment and algorithm, what ten seeds with
default settings did. `benchmarks/faults/healthy_returns.py` measures it.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from backflip.doctor.log import Log

FILE = Path(__file__).with_name("healthy_returns.json")
PATIENCE = 1.5  # times the env steps of the slowest healthy seed
PATIENCE_WITH_OTHERS = 4.0  # the same where only ours were measured: defaults differ
_PREFIX = "gymnasium:"  # the same environments, by Gymnasium's own code
_COUNTS_UPDATES = "sb3_updates"


@final
class HealthyReturn(NamedTuple):
    """What ten healthy seeds of an algorithm did in an environment.

    Attributes:
        untrained: mean return of the untrained policy.
        reached: median of the returns in the end.
        env_steps: until the slowest seed was half of the way from `untrained` to `reached`.
        updates: the updates until then, as Stable-Baselines3 counts them; 0 if not known.
        random_mean: mean return of an episode of random actions; NaN if it was not measured.
        random_std: standard deviation of the return of such an episode.
    """

    untrained: float
    reached: float
    env_steps: float
    updates: float = 0.0
    random_mean: float = math.nan
    random_std: float = math.nan


@cache
def healthy_returns() -> Mapping[str, Mapping[str, Mapping[str, HealthyReturn]]]:
    """Return the shipped measurements: by library, then environment, then algorithm."""
    loaded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        library: {
            env: {algorithm: HealthyReturn(**values) for algorithm, values in by_algorithm.items()}
            for env, by_algorithm in by_env.items()
        }
        for library, by_env in loaded.items()
    }


def healthy_return(log: Log) -> HealthyReturn | None:
    """Return what healthy runs like that of a log reach; None if such runs were not measured."""
    return healthy_return_of_library(log) or _measured_in("backflip", log)


def healthy_return_of_library(log: Log) -> HealthyReturn | None:
    """Return what healthy runs of the same library reach; None if such runs were not measured."""
    if log.has(_COUNTS_UPDATES):
        return _measured_in("sb3", log)
    return _measured_in("backflip", log) if log.library == "backflip" else None


def _measured_in(library: str, log: Log) -> HealthyReturn | None:
    if log.teaches or log.env_args or log.env is None or log.algorithm is None:
        return None
    by_env = healthy_returns().get(library, {})
    return by_env.get(log.env.removeprefix(_PREFIX), {}).get(log.algorithm)


def patience(log: Log, healthy: HealthyReturn, share: float = 1.0) -> float:
    """Return the env steps before which a low return means nothing, or a share of them.

    A training run with more environments makes fewer updates in as many env steps: both count.
    """
    if not healthy.updates:
        times = PATIENCE if log.library == "backflip" else PATIENCE_WITH_OTHERS
        return share * times * healthy.env_steps
    counted, times = log.signals[_COUNTS_UPDATES], share * PATIENCE
    enough = counted.x[np.nan_to_num(counted.y) >= times * healthy.updates]
    return max(times * healthy.env_steps, float(enough[0]) if len(enough) else math.inf)
