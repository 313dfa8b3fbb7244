"""The reward model `auto`: the linear model whose representation explains the labels best.

Every candidate that suits the environment is fitted to all labels of a seed, with the same keys,
and the one of largest log evidence is used. Evidences are comparable, because all candidates give
probabilities to the same labels by the same ordinal model and are fitted in the same way; their
representations are fitted without labels. The network has no evidence, so it is not a candidate. A
collapsed representation (`backflip.rewards.representations.collapse`) is used only if all are.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.rewards.interface import (
    Fitted,
    LabelledComparison,
    ObservedClip,
    Opinions,
    Spread,
)
from backflip.rewards.linear.model import (
    ChangeMapRewardModel,
    ContactsRewardModel,
    IntervalRewardModel,
    LinearRewardModel,
)
from backflip.rewards.representations.contacts import has_contacts

COLLAPSED, EVIDENCE = "reward_model_collapsed", "reward_model_log_evidence"


class AutoParameters(NamedTuple):
    """One seed's fitted rewards.

    Attributes:
        chosen: the number of the candidate in use.
        fitted: the parameters of each candidate.
    """

    chosen: Int[Array, ""]
    fitted: tuple[Any, ...]


@final
class AutoRewardModel:
    """Fits all candidates of all seeds; for each seed the one of largest evidence is used.

    Args:
        spec: the environment's spec.
        labels: the budget of each seed.
        clip_length: steps in a clip.
    """

    def __init__(self, spec: EnvSpec, labels: int, clip_length: int) -> None:
        found = candidates(spec)
        self.names = tuple(found)
        self._models = [kind(spec, labels, clip_length) for kind in found.values()]

    def initial(self, seeds: int) -> AutoParameters:
        """Return parameters of a reward that is zero everywhere."""
        fitted = tuple(model.initial(seeds) for model in self._models)
        return AutoParameters(jnp.zeros(seeds, jnp.int32), fitted)

    def predict(self, parameters: AutoParameters, batch: Transition) -> Float[Array, "T N"]:
        """Return the reward of each transition by the chosen candidate; others cost nothing."""
        return _chosen([model.predict for model in self._models], parameters, batch)

    def predict_spread(self, parameters: AutoParameters, batch: Transition) -> Spread:
        """Return the reward of each transition by the chosen candidate, and its spread."""
        return _chosen([model.predict_spread for model in self._models], parameters, batch)

    def observe(self, record: Transition) -> None:
        """Pass one seed's random policy to every candidate."""
        for model in self._models:
            model.observe(record)

    def fit(
        self,
        previous: Any,
        comparisons: Sequence[Sequence[LabelledComparison]],
        keys: UInt32[np.ndarray, "seeds 2"],
    ) -> Fitted:
        """Return the fits of all candidates, and the metrics of the chosen ones."""
        earlier = (None,) * len(self._models) if previous is None else previous.fitted
        fits = [
            model.fit(before, comparisons, keys)
            for model, before in zip(self._models, earlier, strict=True)
        ]
        chosen = [choice([fit.metrics[row] for fit in fits]) for row in range(len(comparisons))]
        metrics = [
            fits[number].metrics[row] | {"reward_model_choice": float(number)}
            for row, number in enumerate(chosen)
        ]
        fitted = tuple(fit.parameters for fit in fits)
        return Fitted(AutoParameters(jnp.asarray(chosen, jnp.int32), fitted), metrics)

    def opinions(
        self, parameters: AutoParameters, clips: Sequence[ObservedClip]
    ) -> Opinions | None:
        """Return the chosen candidate's opinions."""
        number = int(parameters.chosen)
        return self._models[number].opinions(parameters.fitted[number], clips)

    def chosen_names(self, parameters: AutoParameters) -> list[str]:
        """Return the name of the candidate that each seed uses."""
        return [self.names[int(number)] for number in np.asarray(parameters.chosen)]


def _chosen(
    functions: Sequence[Callable[[Any, Transition], Any]],
    parameters: AutoParameters,
    batch: Transition,
) -> Any:
    """Return what the chosen candidate's function returns for its parameters and a batch."""

    def of(number: int) -> Callable[[tuple[Any, ...], Transition], Any]:
        return lambda fitted, seen: functions[number](fitted[number], seen)

    choices = [of(number) for number in range(len(functions))]
    return jax.lax.switch(parameters.chosen, choices, parameters.fitted, batch)


def candidates(spec: EnvSpec) -> dict[str, type[LinearRewardModel]]:
    """Return the reward models that suit an environment, by name."""
    if spec.is_image:
        grids = {"contacts": ContactsRewardModel} if has_contacts(spec) else {}
        return {"linear": LinearRewardModel, "change_map": ChangeMapRewardModel, **grids}
    return {"intervals": IntervalRewardModel, "linear": LinearRewardModel}


def choice(metrics: Sequence[dict[str, float]]) -> int:
    """Return the number of the candidate of largest evidence; the first of equal ones.

    A candidate whose evidence is not finite, or whose representation has collapsed, comes last.
    """

    def rank(one: dict[str, float]) -> tuple[bool, bool, float]:
        evidence = one[EVIDENCE]
        known = bool(np.isfinite(evidence))
        return known, not one.get(COLLAPSED, 0.0), evidence if known else 0.0

    return max(range(len(metrics)), key=lambda number: rank(metrics[number]))
