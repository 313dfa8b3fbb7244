"""The environment in docs/examples keeps the interface, and trains from the command line."""

import sys
from pathlib import Path

import numpy as np
import pytest
from packages.backflip.tests.conformance.native_env import check_native_env

from backflip.envs.registry import make_native
from backflip.training.train import train

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(autouse=True)
def _in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "environment", raising=False)


@pytest.mark.medium
def test_keeps_the_interface() -> None:
    env = make_native("environment:Line", {"width": 2})
    assert env is not None
    assert env.spec.observation.high == 2
    check_native_env(env, ends_by={"truncated"}, env_steps=45, random_starts=True)


@pytest.mark.slow
def test_ppo_learns_to_go_to_0(tmp_path: Path) -> None:
    settings = {"num_envs": 8, "rollout_length": 40, "hidden": (16,), "learning_rate": 1e-2}
    result = train(
        "ppo", env="environment:Line", seeds=2, env_steps=8_000, settings=settings, home=tmp_path
    )
    # Standing still costs 10 on average, the best policy 0.6.
    assert np.mean(result.returns) > -3
