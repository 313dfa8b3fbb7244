"""What healthy runs reach in known environments, and how many env steps they need for it.

`healthy_returns.json` holds, for each environment and algorithm, what ten seeds of ours with
default settings did. `benchmarks/faults/healthy_returns.py` measures it.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

from backflip.doctor.log import Log

FILE = Path(__file__).with_name("healthy_returns.json")
PATIENCE = 1.5  # times the env steps of the slowest healthy seed
PATIENCE_WITH_OTHERS = 4.0  # the same for other libraries: their defaults may need more env steps
_PREFIX = "gymnasium:"  # the same environments, by Gymnasium's own code


@final
class HealthyReturn(NamedTuple):
    """What ten healthy seeds of an algorithm did in an environment.

    Attributes:
        untrained: mean return of the untrained policy.
        reached: median of the returns in the end.
        env_steps: until the slowest seed was half of the way from `untrained` to `reached`.
    """

    untrained: float
    reached: float
    env_steps: float


@cache
def healthy_returns() -> Mapping[str, Mapping[str, HealthyReturn]]:
    """Return the shipped measurements: by environment, then by algorithm."""
    loaded = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        env: {algorithm: HealthyReturn(*values) for algorithm, values in by_algorithm.items()}
        for env, by_algorithm in loaded.items()
    }


def healthy_return(log: Log) -> HealthyReturn | None:
    """Return what healthy runs like that of a log reach; None if such runs were not measured."""
    if log.teaches or log.env_args or log.env is None or log.algorithm is None:
        return None
    return healthy_returns().get(log.env.removeprefix(_PREFIX), {}).get(log.algorithm)


def patience(log: Log, healthy: HealthyReturn) -> float:
    """Return the env steps before which a low return means nothing."""
    is_ours = log.library == "backflip"
    return healthy.env_steps * (PATIENCE if is_ours else PATIENCE_WITH_OTHERS)
