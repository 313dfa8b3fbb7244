"""The interface of a representation: features of transitions, fitted without labels.

A linear reward model is r(x) = wᵀf(x). A representation is f. It is fitted to everything that was
observed, and the labels only determine w.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, Num


class Inputs(NamedTuple):
    """What the features of one seed are computed with, fitted without labels.

    Attributes:
        encoder: the representation's own arrays.
        thresholds: those of the threshold group; `()` in all but the additive representation.
    """

    encoder: Any
    thresholds: Any = ()


class Seen(NamedTuple):
    """What is kept of the observations of B steps.

    Attributes:
        before: of each observation before a step; empty (B, 0) if `after` has the whole step.
        after: of each observation after a step, or of the step.
    """

    before: Num[Any, "B d"]
    after: Num[Any, "B D"]


@runtime_checkable
class Representation(Protocol):
    """Features of transitions of one environment."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many features each group has; a group has one prior variance."""
        ...

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return what is kept of B steps; `obs` and `next_obs` are newest frames.

        A pure JAX function of the observations alone. It is cached for labelled clips.
        """
        ...

    def initial(self) -> Inputs:
        """Return inputs of the right shapes, before any fit."""
        ...

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the inputs fitted to what was kept of all observed steps."""
        ...

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return the features of transitions, with the groups concatenated. Pure JAX."""
        ...
