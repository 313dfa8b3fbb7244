"""The network in docs/examples keeps the interface and learns, as a person types it."""

import sys
from pathlib import Path

import numpy as np
import pytest

import backflip
from backflip.envs.native.cartpole import CartPole
from backflip.networks.own import own_network
from backflip.training.train import resume_train, train
from runshelf.store.finding import find_run

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NETWORK = "network:residual"


@pytest.fixture(autouse=True)
def _in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "network", raising=False)


@pytest.mark.medium
def test_keeps_the_interface() -> None:
    assert own_network(NETWORK, CartPole().spec, (24, 8)).features == 24


@pytest.mark.slow
def test_ppo_learns_cartpole_with_it(tmp_path: Path) -> None:
    settings = {"network": NETWORK, "num_envs": 8, "hidden": (32,)}
    result = train(
        "ppo", "CartPole-v1", seeds=2, env_steps=20_000, settings=settings, home=tmp_path
    )
    assert np.mean(result.returns) > 100  # a random policy gets 22
    again = resume_train(find_run(tmp_path, result.run))
    assert list(again.returns) == list(result.returns)
    policy = backflip.load_policy(result.run, seed=1, home=tmp_path)
    assert policy.act(np.zeros((5, 4), np.float32)).shape == (5,)
