"""Runs the conformance suite on every reward model, and on broken models that must fail."""

import importlib.util
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import CLAUSES, LENGTH

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.linear.model import AdditiveRewardModel, LinearRewardModel
from backflip.rewards.network.model import NetworkRewardModel

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "reward_model.py"


def example() -> Any:
    """Return the module in docs/examples."""
    found = importlib.util.spec_from_file_location("reward_model_example", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


Own: Any = example().MyRewardModel


def box(*shape: int) -> Box:
    return Box(np.full(shape, -2, np.float32), np.full(shape, 2, np.float32), np.dtype("f4"))


VECTOR = EnvSpec("vector", box(2), Discrete(2), 100)
CONTINUOUS = EnvSpec("continuous", box(3), box(2), 100)
FRAME = Box(np.zeros((24, 24, 2), np.uint8), np.full((24, 24, 2), 255, np.uint8), np.dtype("u1"))
PIXELS = EnvSpec("pixels", FRAME, Discrete(3), 100, frame_stack=2)

MODELS = {
    "additive": AdditiveRewardModel,
    "linear": LinearRewardModel,
    "network": NetworkRewardModel,
    "own": Own,
}


def check(clause: str, model: Any, spec: EnvSpec) -> None:
    CLAUSES[clause](lambda labels: model(spec, labels, LENGTH), spec)


@pytest.mark.medium
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("model", MODELS)
def test_a_reward_model_passes_the_conformance_suite(model: str, clause: str) -> None:
    check(clause, MODELS[model], VECTOR)


@pytest.mark.slow
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("spec", [CONTINUOUS, PIXELS], ids=lambda spec: spec.id)
@pytest.mark.parametrize("model", MODELS)
def test_a_reward_model_passes_the_conformance_suite_on_other_environments(
    model: str, spec: EnvSpec, clause: str
) -> None:
    check(clause, MODELS[model], spec)


# Broken methods. Each replaces one method of the example model.


def reads_the_true_reward(self, parameters, batch):
    return Own.predict(self, parameters, batch) + 0 * batch.reward


def returns_nan(self, parameters, batch):
    return jnp.log(Own.predict(self, parameters, batch) - 1e3)


def rewards_before_labels(self, seeds):
    blank = Own.initial(self, seeds)
    return blank._replace(weights=blank.weights + 1)


def grows_with_the_budget(self, seeds):
    return Own.initial(self, seeds), np.zeros((seeds, self.labels), np.float32)


def always_prefers_the_left(self, previous, comparisons, keys):
    always = [[one._replace(left_preferred=1.0) for one in labels] for labels in comparisons]
    return Own.fit(self, previous, always, keys)


def learns_the_opposite(self, previous, comparisons, keys):
    turned = [
        [one._replace(left_preferred=1 - one.left_preferred) for one in labels]
        for labels in comparisons
    ]
    return Own.fit(self, previous, turned, keys)


def does_not_pad(self, previous, comparisons, keys):
    self.labels = 0
    return Own.fit(self, previous, comparisons, keys)


def _with_weights(found, weights):
    return found._replace(parameters=found.parameters._replace(weights=np.float32(weights)))


def counts_padding_as_labels(self, previous, comparisons, keys):
    found = Own.fit(self, previous, comparisons, keys)
    share = [len(labels) / max(self.labels, len(labels), 1) for labels in comparisons]
    return _with_weights(found, found.parameters.weights * np.array(share)[:, None])


def draws_from_the_clock(self, previous, comparisons, keys):
    found = Own.fit(self, previous, comparisons, keys)
    noise = np.random.default_rng().normal(size=found.parameters.weights.shape)
    return _with_weights(found, found.parameters.weights + 1e-3 * noise)


def keeps_hidden_state(self, previous, comparisons, keys):
    found = Own.fit(self, getattr(self, "hidden", previous), comparisons, keys)
    self.hidden = _with_weights(found, 50 * found.parameters.weights).parameters
    return found


def judges_by_position(self, parameters, clips):
    found = Own.opinions(self, parameters, clips)
    places = np.arange(len(clips))[:, None]
    return found and found._replace(clip_returns=found.clip_returns + places)


def shows_people_another_reward(self, parameters, clips):
    found = Own.opinions(self, parameters, clips)
    return found and found._replace(reward=2 * found.reward)


def counts_steps_after_the_end(self, clip):
    return clip.next_obs.reshape(len(clip.alive), -1).astype(np.float32)


BROKEN = [
    ("rewards_are_finite_numbers_of_each_transition", "predict", returns_nan),
    ("nothing_is_rewarded_before_the_first_label", "initial", rewards_before_labels),
    ("preferences_are_symmetric", "fit", always_prefers_the_left),
    ("preferences_are_symmetric", "opinions", judges_by_position),
    ("a_refit_compiles_nothing", "fit", does_not_pad),
    ("the_same_seed_gives_the_same_bits", "fit", draws_from_the_clock),
    ("a_resumed_run_gives_the_same_bits", "fit", keeps_hidden_state),
    ("parameters_depend_on_the_environment_alone", "initial", grows_with_the_budget),
    ("the_true_reward_is_not_read", "predict", reads_the_true_reward),
    ("padding_changes_nothing", "fit", counts_padding_as_labels),
    ("steps_after_the_end_count_for_nothing", "vectors", counts_steps_after_the_end),
    ("opinions_are_the_predicted_rewards", "opinions", shows_people_another_reward),
    ("a_known_reward_is_learned", "fit", learns_the_opposite),
]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("clause", "method", "broken"), BROKEN, ids=[b[2].__name__ for b in BROKEN]
)
def test_a_broken_reward_model_fails_the_suite(clause: str, method: str, broken: Any) -> None:
    with pytest.raises(AssertionError):
        check(clause, type("Broken", (Own,), {method: broken}), VECTOR)


def test_every_clause_has_a_broken_model() -> None:
    assert {clause for clause, _, _ in BROKEN} == set(CLAUSES)
