"""Each number of a long vector by itself: there are too many products for the labels.

Ant observes 105 numbers. 78 of them are contact forces, nearly always 0; the reward depends on
speed, height and action. Slow directions (`backflip.rewards.representations.slow`) mix all numbers,
and 105 numbers have 5,565 products. With z the standardised observation and δ its standardised
change, the groups are:

    constant   1
    state      z_i
    change     δ_i
    action     a_i, a_i a_j (i <= j);  one-hot a for discrete actions
    threshold  σ(2 (z'_i - q_ik) / w_ik), as in `backflip.rewards.representations.additive`
    interval   t_ik - t_i,k+1, as in `backflip.rewards.representations.intervals`

So the reward is a sum of functions of one number each, with a rule such as "the height is between
.2 and 1", and of the action's cost. A number that hardly varies is divided by `LEAST_DEVIATION`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.rewards.inputs import one_hot_action, scaled_action, see_vectors
from backflip.rewards.representations.additive import FEW_KNOTS, Thresholds, knots_of, passed
from backflip.rewards.representations.interface import Inputs, Seen
from backflip.rewards.representations.intervals import between
from backflip.rewards.representations.slow import LARGEST_VECTOR, VECTOR_LIMIT, products
from runshelf.errors import UsageError

LEAST_DEVIATION = 1e-3
MOST_NUMBERS = 128  # with twice as many, the features of 350 labels take more than half a GiB


def is_long(spec: EnvSpec) -> bool:
    """Return whether observations are vectors of 33 to `MOST_NUMBERS` numbers."""
    return not spec.is_image and LARGEST_VECTOR < spec.observation.shape[0] <= MOST_NUMBERS


class Scale(NamedTuple):
    """z = (x - mean) / deviation and δ = (x' - x) / change, with x' the observation after x."""

    mean: Float[Array, " D"]
    deviation: Float[Array, " D"]
    change: Float[Array, " D"]


@dataclass(frozen=True)
class NumberFeatures:
    """The representation of one environment of vectors; see the module.

    Attributes:
        spec: of the environment.

    Raises:
        UsageError: its observations are images.
    """

    spec: EnvSpec

    def __post_init__(self) -> None:
        """Refuse images."""
        if self.spec.is_image:
            raise UsageError(
                f"reward model `numbers` is for vectors, and `{self.spec.id}` has images; "
                "try --set reward_model=auto"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the six groups."""
        size = self._size
        return (1, size, size, self._actions, size * FEW_KNOTS, size * FEW_KNOTS)

    @property
    def _size(self) -> int:
        return self.spec.observation.shape[0]

    @property
    def _actions(self) -> int:
        if isinstance(self.spec.action, Discrete):
            return self.spec.action.n
        a = self.spec.action.shape[0]
        return a + a * (a + 1) // 2

    def see(self, obs: Any, next_obs: Any) -> Seen:
        """Return the vectors of the observations before and after."""
        return Seen(*see_vectors(self.spec, obs, next_obs))

    def initial(self) -> Inputs:
        """Return a scale of 1 around 0, and knots at zero."""
        zero, ones = jnp.zeros(self._size), jnp.ones((self._size, FEW_KNOTS))
        return Inputs(Scale(zero, zero + 1, zero + 1), Thresholds(0 * ones, ones))

    def fit(self, before: np.ndarray, after: np.ndarray) -> Inputs:
        """Return the scale of the observations before, and knots of those after."""
        deviation, change = (
            np.maximum(x.std(0, np.float64), LEAST_DEVIATION) for x in (before, after - before)
        )
        scale = (before.mean(0, np.float64), deviation, change)
        z = (after - scale[0]) / deviation
        return Inputs(Scale(*(jnp.asarray(x, jnp.float32) for x in scale)), knots_of(z, FEW_KNOTS))

    def features(self, inputs: Inputs, before: Any, action: Any, after: Any) -> Float[Array, "B F"]:
        """Return all groups."""
        mean, deviation, moved = inputs.encoder
        z, next_z = ((x - mean[None]) / deviation[None] for x in (before, after))
        change = jnp.clip((after - before) / moved[None], -VECTOR_LIMIT, VECTOR_LIMIT)
        thresholds = passed(inputs.thresholds, next_z)
        groups = [
            jnp.ones((z.shape[0], 1)),
            jnp.clip(z, -VECTOR_LIMIT, VECTOR_LIMIT),
            change,
            *self._of_action(action),
            thresholds,
            between(thresholds, FEW_KNOTS),
        ]
        return jnp.concatenate(groups, axis=1)

    def _of_action(self, action: Any) -> list[Array]:
        if isinstance(self.spec.action, Discrete):
            return [one_hot_action(self.spec.action.n, action)]
        a = scaled_action(self.spec.action, action)
        return [a, products(a)]
