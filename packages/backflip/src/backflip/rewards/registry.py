"""Reward models by name: `linear`, `network`, or `module:Class` for the user's own."""

import importlib
from typing import Any

import jax
import numpy as np

from backflip.core.spec import EnvSpec
from backflip.core.user_code import find_object
from backflip.rewards.interface import RewardModel
from runshelf.errors import UsageError, did_you_mean, one_line

REWARD_MODELS = {
    "linear": "backflip.rewards.linear.model:LinearRewardModel",
    "network": "backflip.rewards.network.model:NetworkRewardModel",
}
METHODS = ("initial", "predict", "observe", "fit", "opinions")


def make_reward_model(name: str, spec: EnvSpec, labels: int, clip_length: int) -> RewardModel:
    """Return the reward model that a name stands for.

    Args:
        name: one of `REWARD_MODELS`, or `module:Class`.
        spec: the environment's.
        labels: the budget of each seed.
        clip_length: steps in a clip.

    Raises:
        UsageError: there is none of that name, or the user's class is not a reward model.
    """
    made = _class_of(name)
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
        leaves = jax.tree.leaves(model.initial(2))
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
    return model


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
