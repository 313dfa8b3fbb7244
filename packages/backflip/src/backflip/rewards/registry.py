"""Reward models by name: `REWARD_MODELS`, or `module:Class` for a user's class."""

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import jax
import numpy as np
from jaxtyping import UInt32

from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.core.user_code import find_object
from backflip.rewards.interface import (
    LABELS_ONLY,
    Embedding,
    FitSettings,
    Fitted,
    LabelledComparison,
    ObservedClip,
    Opinions,
    RewardModel,
    Spread,
)
from runshelf.errors import UsageError, UserFacingError, did_you_mean, one_line, shown

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
OPTIONAL = {"embed": (Embedding, type(None)), "predict_spread": (Spread,)}  # and what they return


@final
class RewardModelFailed(UserFacingError):
    """A method of a user's reward model raised an exception or returned invalid data."""


@final
class UserRewardModel:
    """A user's reward model, whose errors become one-line messages.

    Every method raises `RewardModelFailed` if the user's method raises an exception. It has those
    optional methods that the user's class has.

    Args:
        name: `module:Class`.
        model: an instance of the class.
    """

    def __init__(self, name: str, model: RewardModel) -> None:
        self._name, self._model = name, model
        for method in OPTIONAL:
            if callable(getattr(model, method, None)):
                setattr(self, method, partial(self._call_optional, method))

    def initial(self, seeds: int) -> Any:
        """Return the user's initial parameters."""
        return self._call("initial", seeds)

    def predict(self, parameters: Any, batch: Transition) -> Any:
        """Return the reward of each transition, after a check of its shape."""
        reward = self._call("predict", parameters, batch)
        expected = np.shape(batch.reward)
        if not hasattr(reward, "shape") or reward.shape != expected:
            got = getattr(reward, "shape", type(reward).__name__)
            raise self._failed(f"`predict` must return an array of shape {expected}, got {got}")
        return reward

    def observe(self, record: Transition) -> None:
        """Call the user's method."""
        self._call("observe", record)

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the user's fit, after a check of its type; metrics become Python's numbers."""
        fitted = self._call("fit", previous, comparisons, keys)
        if not isinstance(fitted, Fitted):
            raise self._failed(f"`fit` must return `Fitted`, got {type(fitted).__name__}")
        return fitted._replace(metrics=self._metrics(fitted.metrics, len(comparisons)))

    def _metrics(self, metrics: Any, seeds: int) -> list[dict[str, float]]:
        """Return the metrics of a fit, after a check that each seed has names and numbers."""
        expected = f"`fit` must return `metrics` with a dictionary for each of {seeds} seeds"
        if not isinstance(metrics, list | tuple):
            raise self._failed(f"{expected}, got {type(metrics).__name__}")
        each: Sequence[Any] = metrics
        if len(each) != seeds:
            raise self._failed(f"{expected}, got {len(each)}; try [{{}}] * {seeds}")
        found: list[dict[str, float]] = []
        for one in each:
            if not isinstance(one, Mapping):
                raise self._failed(f"{expected}, got {type(one).__name__} for a seed; try {{}}")
            found.append({str(name): self._number(str(name), x) for name, x in one.items()})
        return found

    def _number(self, name: str, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            got = " ".join(shown(value).split())  # an array has several lines
            raise self._failed(
                f"`fit` must return `metrics` that are numbers, got {got} for `{name}`; "
                "try float(...)"
            ) from None

    def opinions(self, parameters: Any, clips: Sequence[ObservedClip]) -> Opinions | None:
        """Return the user's opinions."""
        return self._call("opinions", parameters, clips)

    def _call_optional(self, method: str, *arguments: Any) -> Any:
        """Return what an optional method of the user returns, after a check of its type."""
        found = self._call(method, *arguments)
        if not isinstance(found, OPTIONAL[method]):
            expected, got = OPTIONAL[method][0].__name__, type(found).__name__
            raise self._failed(f"`{method}` must return `{expected}`, got {got}")
        return found

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._model, method)(*arguments)
        except (KeyboardInterrupt, UserFacingError):
            raise
        except BaseException as error:  # `sys.exit` in a user's method is an error, too
            raise self._failed(f"`{method}` raised {one_line(error)}") from error

    def _failed(self, problem: str) -> RewardModelFailed:
        return RewardModelFailed(
            f"reward model `{self._name}`: {problem}; all labels so far are saved"
        )


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
    return UserRewardModel(name, model)


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
