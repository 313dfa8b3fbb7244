"""docs/metrics.md names every metric that is returned, and no other."""

import importlib
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.ppo import ppo
from backflip.algorithms.registry import algorithms
from backflip.drivers.native import NativeDriver
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.dot import Dot
from backflip.envs.native.pendulum import Pendulum
from backflip.rewards.measures import label_metrics, reward_metrics
from backflip.rewards.network.model import FIT_METRICS, PSEUDO_LABELS, TIE_WIDTH
from backflip.teaching_api import teach
from backflip.training.queries.fresh_checks import CHECK_METRICS
from backflip.training.reward_learning.reward_paths import METRIC as PATH_ERROR
from backflip.training.train import train
from runshelf.store.metrics import read_metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
CONFIG = PPOConfig(num_envs=2, rollout_length=4, epochs=1)
ENVS = [CartPole(), Pendulum(), Dot()]  # discrete, continuous, pixels


LEARNING, SESSION = ["update", "driver"], ["session"]
REWARD = ["reward model", "linear reward model", "fresh pairs"]


def table(of: list[str] = LEARNING) -> dict[str, list[str]]:
    """Name to the other columns of its row, under some of the headings."""
    rows: dict[str, list[str]] = {}
    sections = dict(part.split("\n", 1) for part in PAGE.read_text().split("## Of the ")[1:])
    for line in "\n".join(sections[name] for name in of).splitlines():
        if line.startswith("| `"):
            name, *others = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            assert name.strip("`") not in rows, f"{name} has two rows"
            rows[name.strip("`")] = others
    return rows


def returned(env: Any) -> set[str]:
    """Names of what a phase returns; nothing is computed."""
    algorithm = ppo(CONFIG, env.spec)
    run = NativeDriver(env, algorithm).phase(1)
    _, done = jax.eval_shape(run, NativeDriver(env, algorithm).start([0]), np.zeros(1))
    for name, x in done.metrics.items():
        assert x.shape == (1, 1), name
        assert x.dtype == np.float32, name
    return set(done.metrics)


# Sizes at which an update is small; settings that an algorithm lacks are left out.
SMALL = {
    "num_envs": 2,
    "rollout_length": 4,
    "env_steps": 400,
    "epochs": 1,
    "batch_size": 4,
    "buffer_size": 64,
    "learning_starts": 16,
    "updates_per_step": 1.0,
    "hidden": (4,),
}


def of_algorithm(name: str, env: Any) -> set[str]:
    """Names of what an update of an algorithm returns; nothing is computed."""
    entry = algorithms()[name]
    settings = {key: value for key, value in SMALL.items() if key in entry.settings}
    algorithm = entry.build(entry.config(**settings), env.spec)
    learners = NativeDriver(env, algorithm).start([0])
    _, done = jax.eval_shape(NativeDriver(env, algorithm).phase(1), learners, np.zeros(1))
    return set(done.metrics)


@pytest.mark.slow
def test_every_metric_of_the_other_algorithms_is_in_their_table() -> None:
    """And every row names the algorithms that return it, no more and no fewer."""
    found: dict[str, set[str]] = {}
    for name, entry in algorithms().items():
        for env in (CartPole(), Pendulum()):
            if name != "ppo" and entry.supports(env.spec):
                found[name] = found.get(name, set()) | of_algorithm(name, env)
    others = table(["other algorithms"])
    known = set(table()) | set(others)
    assert set().union(*found.values()) <= known
    for metric, (_, _, of) in others.items():
        said = set(re.findall("`([a-z0-9]+)`", of))
        assert said == {name for name, metrics in found.items() if metric in metrics}, metric


@pytest.mark.medium
@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.spec.id)
def test_every_metric_returned_is_in_the_table(env: Any) -> None:
    assert returned(env) <= set(table())


@pytest.mark.medium
def test_every_row_of_the_table_is_returned_by_somebody() -> None:
    assert set(table()) == set().union(*(returned(env) for env in ENVS))


@pytest.mark.medium
def test_what_is_not_returned_everywhere_is_what_the_table_says() -> None:
    everywhere = set.intersection(*(returned(env) for env in ENVS))
    partly = {name for name, (_, meaning, _) in table().items() if "not returned" in meaning}
    assert set(table()) - everywhere == partly


@pytest.mark.slow
def test_a_run_writes_what_the_tables_say(tmp_path: Path) -> None:
    settings = {"epochs": 1, "phases": 2, "clip_length": 5, "clip_envs": 2, "random_envs": 4}
    taught = teach("CartPole-v1", labels=8, env_steps=4096, settings=settings, home=tmp_path)
    trained = train("ppo", "CartPole-v1", env_steps=256, home=tmp_path)
    assert set(read_metrics(trained.folder, "train").records[-1]) == set(table(LEARNING + SESSION))
    both = set(table(LEARNING + SESSION + REWARD))
    assert set(read_metrics(taught.folder, "train").records[-1]) == both
    evaluation = read_metrics(trained.folder, "evaluation").records[-1]
    assert set(evaluation) == {"seed", "updates", "env_steps", "evaluation_return"}
    assert {"evaluation_return", "evaluation_score"} <= set(table(["evaluation"]))
    system = {name for r in read_metrics(taught.folder, "system").records for name in r}
    assert system - {"time", "seconds"} <= set(table(["machine"]))


def test_every_row_is_complete_and_names_a_function() -> None:
    for name, (unit, meaning, where) in table().items():
        assert unit, name
        assert len(meaning) > 5, name
        module, function = where.strip("`").split(".")
        place = "drivers" if module == "episodes" else "algorithms"
        found = importlib.import_module(f"backflip.{place}.{module}")
        assert callable(getattr(found, function))


def test_what_reward_models_measure_is_what_their_tables_say() -> None:
    empty = label_metrics(np.zeros((0, 1)), np.zeros(0), np.zeros((0, 1), bool))
    shared = set(empty | reward_metrics(np.zeros(1)))
    assert set(table(["reward model"])) == {*shared, PATH_ERROR}
    assert set(table(["network reward model"])) == {*FIT_METRICS, PSEUDO_LABELS, TIE_WIDTH}
    assert set(table(["fresh pairs"])) == set(CHECK_METRICS)
    linear = {
        "reward_model_log_evidence",
        "reward_model_collapsed",
        TIE_WIDTH,
        "reward_model_noise",
    }
    assert set(table(["linear reward model"])) == linear
    assert set(table(["reward model `auto`"])) == {"reward_model_choice"}
