"""Measure the CPU time that the identities of an update take, as a share of training.

    python benchmarks/faults/overhead.py

A phase of training is run with and without them in turn, so that a busy machine slows both.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms import a2c, dqn, ppo
from backflip.algorithms.registry import entry_of
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole

REPETITIONS = 15
UPDATES = {"ppo": 20, "a2c": 1000, "dqn": 5}  # of one phase


def main() -> None:
    """Print a line for each algorithm."""
    for name, updates in UPDATES.items():
        without, with_them = _phase(name, updates, _left_out()), _phase(name, updates, {})
        shares = [_seconds(with_them) / _seconds(without) - 1.0 for _ in range(REPETITIONS)]
        low, middle, high = np.percentile(shares, (25, 50, 75))
        print(f"{name}: {middle:+.2%} of CPU time (quartiles {low:+.2%}, {high:+.2%})", flush=True)


def _left_out() -> Mapping[tuple[Any, str], Any]:
    def nothing(*args: Any, **options: Any) -> dict[str, Any]:
        return {}

    def number(*args: Any, **options: Any) -> Any:
        return jnp.zeros(())

    return {
        (ppo, "rollout_identities"): nothing,
        (a2c, "rollout_identities"): nothing,
        (dqn, "target_error"): number,
    }


def _phase(name: str, updates: int, changes: Mapping[tuple[Any, str], Any]) -> Callable[[], Any]:
    """Return a compiled phase of training, which starts from the same learners each time."""
    env, entry = CartPole(), entry_of(name)
    algorithm = entry.build(entry.config(), env.spec)
    driver = NativeDriver(env, algorithm)
    with ExitStack() as stack:
        for (module, attribute), change in changes.items():
            stack.enter_context(patch.object(module, attribute, change))
        run, learners = driver.phase(updates), driver.start([0])
        jax.block_until_ready(run(learners, np.zeros(1))[1].metrics)  # compiles

    def again() -> Any:
        return run(driver.start([0]), np.zeros(1))[1].metrics

    return again


def _seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    jax.block_until_ready(run())
    return time.process_time() - start


if __name__ == "__main__":
    main()
