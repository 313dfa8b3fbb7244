"""Runs the conformance suite on every reward model, and on broken models that must fail."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.conformance.reward_model import CLAUSES, LENGTH, keys_of
from tests.modules import module_at

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.auto import AutoRewardModel
from backflip.rewards.interface import Embedding, EmbedsClips
from backflip.rewards.linear.model import (
    AdditiveRewardModel,
    ChangeMapRewardModel,
    ContactsRewardModel,
    FewKnotsRewardModel,
    IntervalRewardModel,
    LinearRewardModel,
    NumbersRewardModel,
    PlaceMapRewardModel,
)
from backflip.rewards.network.model import HalfTieNetworkRewardModel, NetworkRewardModel

Own: Any = module_at("docs/examples/reward_model.py").MyRewardModel


def box(*shape: int) -> Box:
    return Box(np.full(shape, -2, np.float32), np.full(shape, 2, np.float32), np.dtype("f4"))


VECTOR = EnvSpec("vector", box(2), Discrete(2), 100)
CONTINUOUS = EnvSpec("continuous", box(3), box(2), 100)
FRAME = Box(np.zeros((24, 24, 2), np.uint8), np.full((24, 24, 2), 255, np.uint8), np.dtype("u1"))
PIXELS = EnvSpec("pixels", FRAME, Discrete(3), 100, frame_stack=2)
CELLS = Box(np.zeros((8, 8, 6), np.uint8), np.ones((8, 8, 6), np.uint8), np.dtype("u1"))
GRID = EnvSpec("grid", CELLS, Discrete(3), 100, frame_stack=2)

MODELS = {
    "additive": AdditiveRewardModel,
    "additive-7-knots": FewKnotsRewardModel,
    "auto": AutoRewardModel,
    "intervals": IntervalRewardModel,
    "linear": LinearRewardModel,
    "network": NetworkRewardModel,
    "network-half-ties": HalfTieNetworkRewardModel,
    "own": Own,
}
OF_IMAGES = {
    "auto": AutoRewardModel,
    "change_map": ChangeMapRewardModel,
    "place_map": PlaceMapRewardModel,
}


EMBEDDING = "an_embedding_is_that_of_the_fit"
SPREAD = "spreads_are_those_of_opinions"
# Variants of models that are tested here.
VARIANTS = (
    "additive",
    "additive-7-knots",
    "auto",
    "linear",
    "network",
    "network-half-ties",
    "numbers",
    "place_map",
)
# `own` takes a tenth of the time of the others and passes all clauses but the optional two, which
# `intervals` passes. Of the other models, whose fits take seconds, most clauses are slow tests.
QUICK_CLAUSES = {
    "own": tuple(CLAUSES),
    "intervals": ("the_true_reward_is_not_read", EMBEDDING, SPREAD),
}
ALWAYS_QUICK = ("a_known_reward_is_learned",)


def is_slow(model: str, clause: str) -> bool:
    """Return whether a quick test covers the same code."""
    return model in VARIANTS or clause not in (*ALWAYS_QUICK, *QUICK_CLAUSES.get(model, ()))


def cases(models: Mapping[str, Any]) -> list[Any]:
    """Return model and clause; of models without an optional part, without its clause."""
    optional = {EMBEDDING: "embed", SPREAD: "predict_spread"}
    return [
        pytest.param(model, clause, marks=pytest.mark.slow if is_slow(model, clause) else ())
        for model in models
        for clause in CLAUSES
        if clause not in optional or hasattr(models[model], optional[clause])
    ]


def check(clause: str, model: Any, spec: EnvSpec) -> None:
    CLAUSES[clause](lambda labels: model(spec, labels, LENGTH), spec)


@pytest.mark.medium
@pytest.mark.parametrize(("model", "clause"), cases(MODELS))
def test_a_reward_model_passes_the_conformance_suite(model: str, clause: str) -> None:
    check(clause, MODELS[model], VECTOR)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [CONTINUOUS, PIXELS], ids=lambda spec: spec.id)
@pytest.mark.parametrize(("model", "clause"), cases(MODELS))
def test_a_reward_model_passes_the_conformance_suite_on_other_environments(
    model: str, spec: EnvSpec, clause: str
) -> None:
    check(clause, MODELS[model], spec)


@pytest.mark.medium
@pytest.mark.parametrize(("model", "clause"), cases(OF_IMAGES))
def test_a_reward_model_of_images_passes_the_conformance_suite(model: str, clause: str) -> None:
    check(clause, OF_IMAGES[model], PIXELS)


@pytest.mark.medium
@pytest.mark.parametrize(("model", "clause"), cases({"numbers": NumbersRewardModel}))
def test_the_reward_model_of_long_vectors_passes_the_conformance_suite(
    model: str, clause: str
) -> None:
    check(clause, NumbersRewardModel, CONTINUOUS)


@pytest.mark.medium
@pytest.mark.parametrize(("model", "clause"), cases({"contacts": ContactsRewardModel}))
def test_the_reward_model_of_grids_passes_the_conformance_suite(model: str, clause: str) -> None:
    check(clause, ContactsRewardModel, GRID)


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


def embeds(self, row, comparisons, clips):
    """A right embedding of the example: its inputs, and the weights that its fit finds."""
    if not comparisons:
        return None
    weights = Own.fit(self, Own.initial(self, 1), [comparisons], keys_of(row)).parameters.weights
    inputs = np.stack([self.total(clip) for clip in clips])
    pairs = [[self.total(clip) for clip in label.clips()] for label in comparisons]
    differences = np.stack([left - right for left, right in pairs])
    return Embedding(inputs, differences, weights[0], 0.0)


def embeds_labels_the_other_way(self, row, comparisons, clips):
    found = embeds(self, row, comparisons, clips)
    return found and found._replace(labelled=-found.labelled)


def embeds_with_opposite_weights(self, row, comparisons, clips):
    found = embeds(self, row, comparisons, clips)
    return found and found._replace(weights=-found.weights)


def embeds_means_of_clips(self, row, comparisons, clips):
    found = embeds(self, row, comparisons, clips)
    steps = np.array([[clip.alive.sum()] for clip in clips])
    return found and found._replace(clips=found.clips / steps)


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
    (EMBEDDING, "embed", embeds_labels_the_other_way),
    (EMBEDDING, "embed", embeds_with_opposite_weights),
    (EMBEDDING, "embed", embeds_means_of_clips),
    ("a_known_reward_is_learned", "fit", learns_the_opposite),
]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("clause", "method", "broken"), BROKEN, ids=[b[2].__name__ for b in BROKEN]
)
def test_a_broken_reward_model_fails_the_suite(clause: str, method: str, broken: Any) -> None:
    with pytest.raises(AssertionError):
        check(clause, type("Broken", (Own,), {method: broken}), VECTOR)


@pytest.mark.medium
def test_a_right_embedding_passes_the_suite() -> None:
    right = type("Right", (Own,), {"embed": embeds})
    assert isinstance(right(VECTOR, 0, LENGTH), EmbedsClips)
    check(EMBEDDING, right, VECTOR)


def spreads_in_logits(self, parameters, batch):
    found = LinearRewardModel.predict_spread(self, parameters, batch)
    return found._replace(spread=found.spread * parameters.scale)


def spreads_of_the_mean_alone(self, parameters, batch):
    found = LinearRewardModel.predict_spread(self, parameters, batch)
    return found._replace(spread=jnp.zeros_like(found.spread))


@pytest.mark.medium
@pytest.mark.parametrize("broken", [spreads_in_logits, spreads_of_the_mean_alone])
def test_a_broken_spread_fails_the_suite(broken: Any) -> None:
    kind = type("Broken", (LinearRewardModel,), {"predict_spread": broken})
    with pytest.raises(AssertionError):
        check(SPREAD, kind, VECTOR)


def test_every_clause_has_a_broken_model() -> None:
    assert {clause for clause, _, _ in BROKEN} | {SPREAD} == set(CLAUSES)
