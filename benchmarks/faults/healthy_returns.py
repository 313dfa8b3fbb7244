"""Measure what healthy runs reach in known environments, and write it where the doctor reads it.

    python benchmarks/faults/healthy_returns.py

`collect.py 'reference-*' 'calibration-*'` makes the runs; of the calibration, those with default
settings count. `collect_peers.py 'default-*'` makes those of Stable-Baselines3. A case is left out,
and named, if a seed is never half of the way, or if what they learn is not more than three standard
deviations of the final return. Where the runs are not there, what was measured before stays.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from cases import CALIBRATION, REFERENCE
from collect_peers import kept_as
from effect import SPREADS
from fault import Case
from peers import sb3_faults
from store import FOLDER, load

from backflip.doctor.healthy_returns import FILE
from backflip.doctor.log import Log
from backflip.doctor.measures import smoothed
from runshelf.comparison.references import KNOWN

Found = dict[str, dict[str, dict[str, float]]]  # by environment, then algorithm
EPISODES = 100  # of random actions
WINDOW = 0.1  # of the points: the first episodes to end are the short ones, not the typical ones


def main() -> int:
    """Write what was reached, and return the exit status."""
    found: dict[str, Found] = json.loads(FILE.read_text(encoding="utf-8"))
    for name, case in _runs():
        path = FOLDER / f"{name}.npz"
        _add(found.setdefault("backflip", {}), case.env, case.algorithm, path)
    for training in sb3_faults.DEFAULTS:
        path = kept_as(training.name, "monitored")
        _add(found.setdefault("sb3", {}), training.env, training.algorithm.lower(), path)
    for by_env in found.values():
        for env, by_algorithm in by_env.items():
            for one in by_algorithm.values():
                one |= _random_returns(env)
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def _add(found: Found, env: str, algorithm: str, path: Path) -> None:
    """Measure the runs of a file, and say what was measured."""
    name = f"{algorithm} on {env}"
    if not path.exists():
        print(f"{name}: not trained here")
        return
    measured = _measure(*load(path))
    if measured is None:
        print(f"{name}: healthy seeds do not all learn it")
        found.get(env, {}).pop(algorithm, None)
        return
    rounded = {key: float(f"{x:.5g}") for key, x in measured.items()}
    found.setdefault(env, {})[algorithm] = rounded
    print(
        f"{name}: untrained {measured['untrained']:.1f}, reached {measured['reached']:.1f}, half "
        f"of the way after {measured['env_steps']:.0f} env steps"
    )


def _runs() -> Iterator[tuple[str, Case]]:
    yield from ((f"reference-{at:02}", case) for at, case in enumerate(REFERENCE))
    known = {(case.algorithm, case.env) for case in REFERENCE}
    for at, case in enumerate(CALIBRATION):
        if not case.settings and (case.algorithm, case.env) not in known:
            yield f"calibration-{at:02}", case


def _measure(logs: list[Log], returns: "np.ndarray[Any, Any]") -> dict[str, float] | None:
    """Return the untrained return, the median of the final ones, and when the slowest is half way.

    Of an environment without a known untrained return, the first values of the logs are taken.
    """
    curves = [smoothed(log, log.signals["episode_return_mean"], WINDOW) for log in logs]
    known = KNOWN.get(logs[0].env or "")
    untrained = known.low if known else float(np.median([curve.value[0] for curve in curves]))
    reached = float(np.median([curve.value[-1] for curve in curves]))
    half = (untrained + reached) / 2
    passed = [curve.x[curve.value >= half] for curve in curves]
    spread = float(np.std([curve.value[-1] for curve in curves], ddof=1))
    if not all(len(x) for x in passed) or reached - untrained <= SPREADS * spread:
        return None
    halfway = [float(x[0]) for x in passed]
    known = {"untrained": untrained, "reached": reached, "env_steps": max(halfway)}
    return known | _updates(logs, halfway)


def _updates(logs: list[Log], halfway: list[float]) -> dict[str, float]:
    """Return the most updates that a seed needed; empty if they are not counted."""
    counted = [one for log in logs if (one := log.signals.get("sb3_updates")) is not None]
    if len(counted) < len(logs):
        return {}
    needed = [
        float(np.nanmax(one.y[one.x <= x], initial=1.0))
        for one, x in zip(counted, halfway, strict=True)
    ]
    return {"updates": max(needed)}


@cache
def _random_returns(env_id: str) -> dict[str, float]:
    """Return the mean and the standard deviation of the return of an episode of random actions."""
    env = gymnasium.make(env_id)
    env.action_space.seed(0)
    returns = [_random_return(env, seed) for seed in range(EPISODES)]
    env.close()
    found = {"random_mean": np.mean(returns), "random_std": np.std(returns, ddof=1)}
    return {name: float(f"{value:.5g}") for name, value in found.items()}


def _random_return(env: "gymnasium.Env[Any, Any]", seed: int) -> float:
    env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        total, ended = total + float(reward), terminated or truncated
    return total


if __name__ == "__main__":
    sys.exit(main())
