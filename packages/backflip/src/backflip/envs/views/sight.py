"""The line of sight across which a MuJoCo model moves, if it moves in one plane."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from backflip.envs.views.outlines import HEIGHT_FIELD

SLIDE, HINGE = 2, 3  # MuJoCo's mjtJoint
PARALLEL = 1e-6  # largest deviation of the cosine of two parallel axes from 1


class Sight(NamedTuple):
    """A direction in which a person looks at a model.

    Attributes:
        axes: the picture's axes to the right and up.
        toward: from the model to the person.
    """

    axes: Float[np.ndarray, "2 3"]
    toward: Float[np.ndarray, "3"]


X, Y, Z = np.eye(3)
FROM_THE_SIDE, FROM_ABOVE, FROM_THE_FRONT = (
    Sight(np.stack([X, Z]), -Y),
    Sight(np.stack([X, Y]), Z),
    Sight(np.stack([Y, Z]), X),
)
SIGHTS = (FROM_THE_SIDE, FROM_ABOVE, FROM_THE_FRONT)  # in the order in which they are tried


class NotPlanarError(Exception):
    """A model does not move in one plane, or has shapes that are not drawn."""


def sight_of(model: Any, data: Any) -> Sight:
    """Return the line of sight across which all joints move.

    Raises:
        NotPlanarError: there is none.
    """
    kinds = set(model.jnt_type.tolist())
    if not kinds or kinds - {SLIDE, HINGE}:
        raise NotPlanarError("joints that are neither slides nor hinges")
    if HEIGHT_FIELD in model.geom_type or model.nflex or model.nskin:
        raise NotPlanarError("uneven or soft shapes")
    for sight in SIGHTS:
        along = np.abs(data.xaxis @ sight.toward)
        wanted = np.where(model.jnt_type == HINGE, 1.0, 0.0)
        if np.allclose(along, wanted, atol=PARALLEL):
            return sight
    raise NotPlanarError("joints in several planes")
