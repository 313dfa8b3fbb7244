"""Tests of `make_reward_model`, and of the errors of a user's reward model."""

import jax
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.rewards.interface import (
    EmbedsClips,
    ObservedClip,
    Opinions,
    PredictsSpread,
    Spread,
)
from backflip.rewards.linear.model import LinearRewardModel
from backflip.rewards.network.model import NetworkRewardModel
from backflip.rewards.registry import make_reward_model
from backflip.rewards.user_model import RewardModelFailed
from runshelf.errors import UsageError

BOX = Box(np.full(2, -2, np.float32), np.full(2, 2, np.float32), np.dtype("f4"))
VECTOR = EnvSpec("vector", BOX, Discrete(3), 100)
KEYS = np.zeros((1, 2), np.uint32)
FLAGS = np.zeros((4, 3), bool)
SEEN = np.zeros((4, 3, 2), np.float32)
BATCH = Transition(
    SEEN, np.zeros((4, 3), np.int32), np.ones((4, 3), np.float32), FLAGS, FLAGS, SEEN, ~FLAGS, ()
)

METRICS = "`fit` must return `metrics` with a dictionary for each of 2 seeds"
NUMBERS = "`fit` must return `metrics` that are numbers"

PARAMETERS = "`fit` must return `parameters`"
NAME = {"('vector', 10, 5)": np.zeros(3)}
NAMED, BARE = jax.tree.structure(NAME), jax.tree.structure(0)
STEPS = np.zeros((5, 2), np.float32)
CLIP = ObservedClip(STEPS, np.zeros(5), STEPS, np.ones(5, bool))

OWN = """
import numpy as np


class Whole:
    def __init__(self, spec, labels, clip_length):
        self.made_with = spec.id, labels, clip_length

    def initial(self, seeds):
        return {str(self.made_with): np.zeros((seeds, 2), np.float32)}

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


class Faulty(Whole):
    def observe(self, record):
        raise SystemExit(3)

    def fit(self, previous, comparisons, keys):
        raise ValueError("no\\nconvergence")

    def predict(self, parameters, batch):
        return batch.reward.sum(0)


class Measures(Whole):
    def fit(self, previous, comparisons, keys):
        from backflip.rewards.interface import Fitted
        return Fitted(self.initial(2), previous)


class Returns(Whole):
    def fit(self, previous, comparisons, keys):
        from backflip.rewards.interface import Fitted
        return Fitted(previous, [{}, {}])

    def opinions(self, parameters, clips):
        return parameters


class Embeds(Whole):
    def embed(self, row, comparisons, clips):
        return None if row else clips

    def predict_spread(self, parameters, batch):
        from backflip.rewards.interface import Spread
        return Spread(parameters, batch)
"""


def make(name):
    return make_reward_model(name, VECTOR, 10, 5)


def test_built_in_reward_models_have_names():
    assert isinstance(make("linear"), LinearRewardModel)
    assert isinstance(make("network"), NetworkRewardModel)


def test_a_class_in_the_current_folder_gets_spec_labels_and_clip_length(tmp_path, monkeypatch):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert set(make("my_reward_models:Whole").initial(2)) == {"('vector', 10, 5)"}


def test_optional_methods_of_a_class_are_used(tmp_path, monkeypatch):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    model, without = make("my_reward_models:Embeds"), make("my_reward_models:Whole")
    assert isinstance(model, EmbedsClips)
    assert isinstance(model, PredictsSpread)
    assert not isinstance(without, EmbedsClips | PredictsSpread)
    assert model.embed(1, [], []) is None
    assert model.predict_spread(1, 2) == Spread(1, 2)


@pytest.mark.parametrize(
    ("name", "call", "said"),
    [
        (
            "Whole",
            lambda model: model.fit(None, [], KEYS),
            "`fit` must return `Fitted`, got NoneType",
        ),
        (
            "Whole",
            lambda model: model.predict(None, BATCH),
            "`predict` must return an array of shape (4, 3), got NoneType",
        ),
        (
            "Faulty",
            lambda model: model.predict(None, BATCH),
            "`predict` must return an array of shape (4, 3), got (3,)",
        ),
        (
            "Faulty",
            lambda model: model.fit(None, [], KEYS),
            "`fit` raised ValueError: no convergence",
        ),
        ("Faulty", lambda model: model.observe(BATCH), "`observe` raised SystemExit: 3"),
        *(
            ("Measures", lambda model, found=found: model.fit(found, [[], []], KEYS), said)
            for found, said in [
                ({}, f"{METRICS}, got dict"),
                ([{}], f"{METRICS}, got 1; try [{{}}] * 2"),
                ([{}, None], f"{METRICS}, got NoneType for a seed; try {{}}"),
                ([{}, {"a": "many"}], f"{NUMBERS}, got 'many' for `a`; try float(...)"),
                (
                    [{}, {"a": np.zeros(2)}],
                    f"{NUMBERS}, got array([0., 0.]) for `a`; try float(...)",
                ),
            ]
        ),
        *(
            ("Returns", lambda model, found=found: model.fit(found, [[], []], KEYS), said)
            for found, said in [
                (np.zeros(2), f"{PARAMETERS} in the structure of `initial`, {NAMED}, got {BARE}"),
                (NAME, f"{PARAMETERS} with a leading axis of 2 seeds, got shapes [(3,)]"),
            ]
        ),
        *(
            ("Returns", lambda model, found=found: model.opinions(found, [CLIP, CLIP]), said)
            for found, said in [
                ([], "`opinions` must return `Opinions`, got list"),
                (
                    Opinions(np.zeros((2, 4)), np.zeros((2, 5)), np.zeros((2, 3))),
                    "`opinions` must return `reward` and `spread` of shape (2, 5) and "
                    "`clip_returns` of shape (2, members), got (2, 4), (2, 5) and (2, 3)",
                ),
                (
                    Opinions(np.zeros((2, 5)), np.zeros((2, 5)), np.zeros(3)),
                    "`opinions` must return `reward` and `spread` of shape (2, 5) and "
                    "`clip_returns` of shape (2, members), got (2, 5), (2, 5) and (3,)",
                ),
            ]
        ),
        (
            "Embeds",
            lambda model: model.embed(0, [], []),
            "`embed` must return `Embedding`, got list",
        ),
    ],
)
def test_an_error_in_a_users_method_is_one_line(tmp_path, monkeypatch, name, call, said):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    model = make(f"my_reward_models:{name}")
    with pytest.raises(RewardModelFailed) as failed:
        call(model)
    prefix = f"reward model `my_reward_models:{name}`: "
    assert str(failed.value) == f"{prefix}{said}; all labels so far are saved"


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
def test_an_invalid_reward_model_is_refused_in_one_line(tmp_path, monkeypatch, name, said):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        make(name)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_metrics_of_a_users_fit_become_numbers(tmp_path, monkeypatch):
    (tmp_path / "my_reward_models.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    fitted = make("my_reward_models:Measures").fit([{"a": np.float32(0.5)}, {}], [[], []], KEYS)
    assert list(fitted.parameters) == list(NAME)
    assert [type(x) for x in fitted.metrics[0].values()] == [float]
    assert fitted.metrics == [{"a": 0.5}, {}]
