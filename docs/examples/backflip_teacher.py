"""A teacher that wants Hopper to do backflips: it prefers the clip with more backward rotation.

    backflip teach fixed:Hopper-v5 --teacher backflip_teacher:backward --labels 100

Observation 1 of Hopper is the angle of its torso in radians, which grows when it leans forward and
is not limited to one turn.
"""

ANGLE = 1
SAME = 0.05  # radians that cannot be told apart


def backward(left, right):
    """Return which clip has more backward rotation, or `tie`."""
    more = rotation(left) - rotation(right)
    if abs(more) < SAME:
        return "tie"
    return "left" if more > 0 else "right"


def rotation(clip):
    """Return by how many radians the torso rotates backward in a clip."""
    return float(clip.observations[0, ANGLE] - clip.next_observations[-1, ANGLE])
