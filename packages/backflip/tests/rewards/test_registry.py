"""Reward models by name, and what is said of names and classes that are none."""

import numpy as np
import pytest

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.rewards.linear.model import LinearRewardModel
from backflip.rewards.network.model import NetworkRewardModel
from backflip.rewards.registry import make_reward_model
from runshelf.errors import UsageError

BOX = Box(np.full(2, -2, np.float32), np.full(2, 2, np.float32), np.dtype("f4"))
VECTOR = EnvSpec("vector", BOX, Discrete(3), 100)

OWN = """
import numpy as np


class Whole:
    def __init__(self, spec, labels, clip_length):
        self.made_with = spec.id, labels, clip_length

    def initial(self, seeds):
        return np.zeros((seeds, 2), np.float32)

    def predict(self, parameters, batch): ...
    def observe(self, record): ...
    def fit(self, previous, comparisons, keys): ...
    def opinions(self, parameters, clips): ...


class Half:
    def initial(self, seeds): ...
    def predict(self, parameters, batch): ...


class Hungry(Whole):
    def __init__(self, spec): ...


class Seedless(Whole):
    def initial(self, seeds):
        return np.zeros(3, np.float32)
"""


def make(name):
    return make_reward_model(name, VECTOR, 10, 5)


def test_the_built_in_ones_have_names():
    assert isinstance(make("linear"), LinearRewardModel)
    assert isinstance(make("network"), NetworkRewardModel)


def test_a_class_of_the_current_folder_is_made_with_the_three_facts(tmp_path, monkeypatch):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert make("my_reward_models:Whole").made_with == ("vector", 10, 5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("linaer", "unknown reward model `linaer`, did you mean `linear`?"),
        ("no_such_module:Model", "no module `no_such_module`"),
        ("my_reward_models:", "must be module:name"),
        ("my_reward_models:Whale", "has no `Whale`, did you mean `Whole`?"),
        ("my_reward_models:Half", "is not a reward model: it has no `observe`, `fit`, `opinions`"),
        ("my_reward_models:Hungry", "cannot be made with (spec, labels, clip_length): TypeError"),
        ("my_reward_models:Seedless", "must return arrays with a leading axis of seeds"),
    ],
)
def test_what_is_no_reward_model_is_refused_in_one_line(tmp_path, monkeypatch, name, said):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        make(name)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
