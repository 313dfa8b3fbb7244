"""docs/metrics.md names every metric that is returned, and no other."""

import importlib
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from backflip.algorithms import rollout
from backflip.algorithms.ppo import PPOConfig, ppo
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
CONFIG = PPOConfig(num_envs=2, rollout_length=4, epochs=1)
ENVS = [CartPole(), Pendulum(), Dot()]  # discrete, continuous, pixels


def table() -> dict[str, list[str]]:
    """Name to the other columns of its row."""
    rows: dict[str, list[str]] = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            name, *others = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            assert name.strip("`") not in rows, f"{name} has two rows"
            rows[name.strip("`")] = others
    return rows


def returned(env: Any) -> set[str]:
    """Names of what a phase returns; nothing is computed."""
    algorithm = ppo(CONFIG, env.spec)
    run = rollout.phase(env, algorithm, updates=1)
    _, done = jax.eval_shape(run, rollout.start(env, algorithm, [0]), np.zeros(1))
    for name, x in done.metrics.items():
        assert x.shape == (1, 1), name
        assert x.dtype == np.float32, name
    return set(done.metrics)


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.spec.id)
def test_every_metric_returned_is_in_the_table(env: Any) -> None:
    assert returned(env) <= set(table())


def test_every_row_of_the_table_is_returned_by_somebody() -> None:
    assert set(table()) == set().union(*(returned(env) for env in ENVS))


def test_what_is_not_returned_everywhere_is_what_the_table_says() -> None:
    everywhere = set.intersection(*(returned(env) for env in ENVS))
    partly = {name for name, (_, meaning, _) in table().items() if "not returned" in meaning}
    assert set(table()) - everywhere == partly


def test_every_row_is_complete_and_names_a_function() -> None:
    for name, (unit, meaning, where) in table().items():
        assert unit, name
        assert len(meaning) > 5, name
        module, function = where.strip("`").split(".")
        assert callable(getattr(importlib.import_module(f"backflip.algorithms.{module}"), function))
