"""The additive representation, and intervals between its knots: what is rewarded may be narrow.

With the thresholds t_ik of `backflip.rewards.representations.additive`, there is one more group:

    interval  t_ik - t_i,k+1, and t_iK for the last

It is near 1 where number i lies between the knots k and k + 1, and 0 elsewhere. Thresholds and
intervals can say the same, but not as cheaply: a prior variance belongs to a group, and is in units
of what the group's features differ by between labelled clips. A fallen pole lies on the left or on
the right, so all thresholds between differ by whole clips, and the few env steps in which the pole
stands need weights that the prior makes improbable. Each of these env steps is in an interval of
its own. Where a reward changes once, such as with height, thresholds need fewer weights. The
evidence decides.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.rewards.representations.additive import KNOTS, AdditiveFeatures
from backflip.rewards.representations.interface import Inputs, Seen


@dataclass(frozen=True)
class IntervalFeatures:
    """The representation of one environment; see the module.

    Attributes:
        spec: of the environment.
    """

    spec: EnvSpec

    @property
    def additive(self) -> AdditiveFeatures:
        """The other groups; the last one has the thresholds."""
        return AdditiveFeatures(self.spec)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of all groups."""
        sizes = self.additive.sizes
        return (*sizes, sizes[-1])

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the vectors of the observations before and after."""
        return self.additive.see(obs, next_obs)

    def initial(self) -> Inputs:
        """Return the inputs of the additive representation before any fit."""
        return self.additive.initial()

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the inputs of the additive representation."""
        return self.additive.fit(before, after)

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return all groups."""
        groups = self.additive.features(inputs, before, action, after)
        return jnp.concatenate([groups, between(groups[:, -self.sizes[-1] :], KNOTS)], axis=1)


def between(passed: Float[Array, "B kK"], knots: int) -> Float[Array, "B kK"]:
    """Return how far each number is above each knot, minus how far above the next."""
    each = passed.reshape(passed.shape[0], -1, knots)
    above = jnp.concatenate([each[:, :, 1:], jnp.zeros_like(each[:, :, :1])], axis=2)
    return (each - above).reshape(passed.shape)
