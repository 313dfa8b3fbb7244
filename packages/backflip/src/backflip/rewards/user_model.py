"""A user's reward model, with checks of what its methods return."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import jax
import numpy as np
from jaxtyping import UInt32

from backflip.core.types import Transition
from backflip.rewards.interface import (
    Embedding,
    Fitted,
    LabelledComparison,
    ObservedClip,
    Opinions,
    RewardModel,
    Spread,
)
from runshelf.errors import UserFacingError, one_line, shown

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
        initial: its initial parameters, whose structure all later ones have.
    """

    def __init__(self, name: str, model: RewardModel, initial: Any) -> None:
        self._name, self._model = name, model
        self._structure = jax.tree.structure(initial)
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
        """Return the user's fit, after a check of its content; metrics become Python's numbers."""
        fitted = self._call("fit", previous, comparisons, keys)
        if not isinstance(fitted, Fitted):
            raise self._failed(f"`fit` must return `Fitted`, got {type(fitted).__name__}")
        metrics = self._metrics(fitted.metrics, len(comparisons))
        self._check_parameters(fitted.parameters, len(comparisons))
        return fitted._replace(metrics=metrics)

    def _check_parameters(self, parameters: Any, seeds: int) -> None:
        """Refuse parameters that later calls could not use."""
        structure = jax.tree.structure(parameters)
        if structure != self._structure:
            raise self._failed(
                "`fit` must return `parameters` in the structure of `initial`, "
                f"{self._structure}, got {structure}"
            )
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(parameters)]
        if any(shape[:1] != (seeds,) for shape in shapes):
            raise self._failed(
                f"`fit` must return `parameters` with a leading axis of {seeds} seeds, "
                f"got shapes {shapes}"
            )

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
        """Return the user's opinions, after a check of their shapes."""
        found = self._call("opinions", parameters, clips)
        if found is None:
            return None
        if not isinstance(found, Opinions):
            raise self._failed(f"`opinions` must return `Opinions`, got {type(found).__name__}")
        count, length = len(clips), len(clips[0].alive)
        reward, spread, clip_returns = map(np.shape, found)
        if not reward == spread == (count, length) or clip_returns[:-1] != (count,):
            raise self._failed(
                f"`opinions` must return `reward` and `spread` of shape {(count, length)} and "
                f"`clip_returns` of shape ({count}, members), got {reward}, {spread} and "
                f"{clip_returns}"
            )
        return found

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
