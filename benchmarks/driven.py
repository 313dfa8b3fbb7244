"""Time the phases of training with a driver alone: no run folder, no evaluation.

    python benchmarks/driven.py ALGORITHM ENV --updates U --phases P [--seeds S] [--set KEY=VALUE]

The clock starts after the warm-up, compilation and a first phase. Prints one JSON line. With
`--bare SECONDS` the environments of one driver are stepped with random actions instead.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from backflip.core.spaces import Discrete
from backflip.envs.registry import make_host
from backflip.training import runtime
from backflip.training.build import build


def phases(
    algorithm: str,
    env: str,
    *,
    settings: Mapping[str, Any],
    updates: int,
    phases: int,
    seeds: int = 1,
    first: int = 0,
    env_args: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the seconds of each of several equal phases, and the content of one phase."""
    built = build(algorithm, env, env_args=env_args or {}, settings=settings)
    driver, config = built.driver, built.config
    start = time.perf_counter()
    learners = driver.fill_replay(driver.start(range(first, first + seeds)))
    run = driver.phase(updates)
    learners, _ = jax.block_until_ready(run(learners, None))
    before = time.perf_counter() - start
    seconds: list[float] = []
    for _ in range(phases):
        start = time.perf_counter()
        learners, _ = jax.block_until_ready(run(learners, None))
        seconds.append(time.perf_counter() - start)
    driver.close()
    plan = driver.algorithm.replay
    return {
        "seeds": seeds,
        "seconds": seconds,
        "before_seconds": before,
        "env_steps": updates * config.num_envs * config.rollout_length,
        "gradient_steps": updates * plan.gradient_steps if plan else 0,
        "settings": dataclasses.asdict(config),
    }


def env_steps_per_second(output: Mapping[str, Any]) -> float:
    """Return the rate over all phases, all seeds together."""
    return output["seeds"] * output["env_steps"] * len(output["seconds"]) / sum(output["seconds"])


def gradient_steps_per_second(output: Mapping[str, Any]) -> float:
    """Return the rate over all phases, all seeds together."""
    return env_steps_per_second(output) * output["gradient_steps"] / output["env_steps"]


def bare(env: str, env_args: Mapping[str, Any], num_envs: int, seconds: float) -> dict[str, Any]:
    """Return env steps per second of environments outside JAX with random actions."""
    batch, rng = make_host(env, env_args, num_envs), np.random.default_rng(0)
    batch.reset(list(range(num_envs)))
    space, steps = batch.spec.action, 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        if isinstance(space, Discrete):
            action = rng.integers(space.n, size=num_envs)
        else:
            drawn = rng.uniform(space.low, space.high, (num_envs, *space.shape))
            action = drawn.astype(np.float32)
        batch.step(action)
        steps += num_envs
    rate = steps / (time.perf_counter() - start)
    batch.close()
    return {"env_steps_per_second": rate}


def value(text: str) -> Any:
    """Parse a setting's value: a number, a boolean, several numbers, or text."""
    if "," in text:
        return tuple(value(part) for part in text.split(","))
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def pair(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE."""
    name, _, written = text.partition("=")
    return name, value(written)


def main() -> None:
    """Time the phases and print one JSON line."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("algorithm")
    parser.add_argument("env")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--updates", type=int, default=1, help="of a phase")
    parser.add_argument("--phases", type=int, default=1)
    parser.add_argument("--set", type=pair, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--env-arg", type=pair, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--bare", type=float, metavar="SECONDS")
    options = parser.parse_args()
    settings, env_args = dict(options.set), dict(options.env_arg)
    runtime.prepare()
    if options.bare:
        output = bare(options.env, env_args, settings["num_envs"], options.bare)
    else:
        output = phases(
            options.algorithm,
            options.env,
            settings=settings,
            updates=options.updates,
            phases=options.phases,
            seeds=options.seeds,
            first=options.seed,
            env_args=env_args,
        )
    print(json.dumps(output))


if __name__ == "__main__":
    main()
