"""Reward models by name: `REWARD_MODELS`, or `module:Class` for a user's class."""

import importlib
from typing import Any

import jax
import numpy as np

from backflip.core.spec import EnvSpec
from backflip.core.user_code import find_object
from backflip.rewards.interface import (
    LABELS_ONLY,
    FitSettings,
    RewardModel,
)
from backflip.rewards.user_model import UserRewardModel
from runshelf.errors import UsageError, did_you_mean, one_line

REWARD_MODELS = {
    "additive": "backflip.rewards.linear.model:AdditiveRewardModel",
    "additive-7-knots": "backflip.rewards.linear.model:FewKnotsRewardModel",
    "auto": "backflip.rewards.auto:AutoRewardModel",
    "change_map": "backflip.rewards.linear.model:ChangeMapRewardModel",
    "contacts": "backflip.rewards.linear.model:ContactsRewardModel",
    "intervals": "backflip.rewards.linear.model:IntervalRewardModel",
    "linear": "backflip.rewards.linear.model:LinearRewardModel",
    "network": "backflip.rewards.network.model:NetworkRewardModel",
    "network-half-ties": "backflip.rewards.network.model:HalfTieNetworkRewardModel",
    "numbers": "backflip.rewards.linear.model:NumbersRewardModel",
    "place_map": "backflip.rewards.linear.model:PlaceMapRewardModel",
}
NETWORKS = ("network", "network-half-ties")  # fitted by gradient steps
METHODS = ("initial", "predict", "observe", "fit", "opinions")


def make_reward_model(
    name: str,
    spec: EnvSpec,
    labels: int,
    clip_length: int,
    settings: FitSettings = LABELS_ONLY,
) -> RewardModel:
    """Return a new reward model.

    Args:
        name: one of `REWARD_MODELS`, or `module:Class`.
        spec: the environment's spec.
        labels: the label budget of each seed.
        clip_length: steps in a clip.
        settings: what a fit uses besides whole labels.

    Raises:
        UsageError: the name is unknown, the user's class is not a reward model, or the model is
            fitted to whole labels only.
    """
    made = _class_of(name)
    if name in NETWORKS:
        return made(spec, labels, clip_length, settings)
    _refuse_more_than_labels(name, settings)
    if name in REWARD_MODELS:
        return made(spec, labels, clip_length)
    missing = [f"`{method}`" for method in METHODS if not callable(getattr(made, method, None))]
    if missing:
        raise UsageError(
            f"`{name}` is not a reward model: it has no {', '.join(missing)}; "
            "see backflip.rewards.interface.RewardModel"
        )
    try:
        model: RewardModel = made(spec, labels, clip_length)
        initial = model.initial(2)
        leaves = jax.tree.leaves(initial)
    except Exception as error:
        raise UsageError(
            f"reward model `{name}` cannot be made with (spec, labels, clip_length): "
            f"{one_line(error)}"
        ) from error
    if not leaves or any(np.shape(leaf)[:1] != (2,) for leaf in leaves):
        raise UsageError(
            f"reward model `{name}`: `initial(seeds)` must return arrays with a leading axis of "
            f"seeds, got shapes {[np.shape(leaf) for leaf in leaves]} for 2 seeds"
        )
    return UserRewardModel(name, model, initial)


def _refuse_more_than_labels(name: str, settings: FitSettings) -> None:
    """Refuse settings that only networks can use.

    A linear model weighs each label once: the evidence of its prior, the choice of `auto` and the
    width of the posterior would count a crop, or its own opinion, as a further answer of the
    teacher.

    Raises:
        UsageError: the message says what to type.
    """
    given = {"crops": settings.crops, "pseudo_label_weight": settings.pseudo_label_weight}
    used = [setting for setting, value in given.items() if value]
    if not used:
        return
    model = f"`{name}` counts each label once" if name in REWARD_MODELS else f"`{name}` is your own"
    raise UsageError(
        f"{' and '.join(f'`{x}`' for x in used)} only work in a reward model that is fitted by "
        f"gradient steps, and {model}; try --set reward_model=network, or "
        f"{' '.join(f'--set {x}=0' for x in used)}"
    )


def _class_of(name: str) -> Any:
    if name in REWARD_MODELS:
        module, _, attribute = REWARD_MODELS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if ":" not in name:
        raise UsageError(
            f"unknown reward model `{name}`{did_you_mean(name, REWARD_MODELS)} "
            f"(known: {', '.join(REWARD_MODELS)}, or `module:Class` for your own)"
        )
    return find_object(name)
