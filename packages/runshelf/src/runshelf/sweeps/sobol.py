"""Sobol's sequence: points that fill a cube more evenly than random points.

Point k is the exclusive or of the direction numbers v_j of the bits of k's Gray code. The order of
the points and the direction numbers are those of Joe & Kuo 2008, "Constructing Sobol sequences with
better two-dimensional projections", SIAM J. Sci. Comput. 30(5). A random digital shift keeps the
evenness: all coordinates of one dimension are combined with one random number by exclusive or.
"""

import numpy as np
from jaxtyping import Float64, UInt32

from runshelf.errors import UsageError

_BITS = 30
# Of each dimension after the first: the degree s of a primitive polynomial, its coefficients a,
# and the first s direction numbers m.
_JOE_KUO = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
    (6, 1, (1, 3, 3, 9, 7, 49)),
    (6, 13, (1, 1, 1, 15, 21, 21)),
    (6, 16, (1, 3, 1, 13, 27, 49)),
    (6, 19, (1, 1, 1, 15, 7, 5)),
    (6, 22, (1, 3, 1, 15, 13, 25)),
    (6, 25, (1, 1, 5, 5, 19, 61)),
    (7, 1, (1, 3, 7, 11, 23, 15, 103)),
    (7, 4, (1, 3, 7, 13, 13, 15, 69)),
)
MOST_DIMENSIONS = 1 + len(_JOE_KUO)


def sobol_points(
    first: int, count: int, dimensions: int, seed: int | None
) -> Float64[np.ndarray, "count dimensions"]:
    """Return points `first` to `first + count - 1` of the sequence, in [0, 1).

    Args:
        first: the index of the first point.
        count: the number of points.
        dimensions: coordinates of a point, at most `MOST_DIMENSIONS`.
        seed: of the digital shift; None for the plain sequence, whose first point is 0.

    Raises:
        UsageError: too many dimensions.
    """
    if dimensions > MOST_DIMENSIONS:
        raise UsageError(
            f"Sobol's sequence has {MOST_DIMENSIONS} dimensions here, got {dimensions} parameters; "
            "try --search random"
        )
    directions = np.stack([_directions(place) for place in range(dimensions)])
    points = np.zeros((count, dimensions), np.uint32)
    for row, index in enumerate(range(first, first + count)):
        gray = index ^ (index >> 1)
        for bit in range(gray.bit_length()):
            if gray >> bit & 1:
                points[row] ^= directions[:, bit]
    if seed is not None:
        # Sorted by dimension, so that one point is the same however many are asked for.
        points ^= np.random.default_rng(seed).integers(2**_BITS, size=dimensions, dtype=np.uint32)
    return points / 2.0**_BITS


def _directions(dimension: int) -> UInt32[np.ndarray, " bits"]:
    """Return v_1 ... v_30 of a dimension as integers, v_j = m_j 2^(30 - j).

    m_k = 2 a_1 m_(k-1) ⊕ 2² a_2 m_(k-2) ⊕ ... ⊕ 2^(s-1) a_(s-1) m_(k-s+1) ⊕ 2^s m_(k-s) ⊕ m_(k-s)
    """
    if dimension == 0:
        m = [1] * _BITS
    else:
        degree, coefficients, start = _JOE_KUO[dimension - 1]
        m = list(start)
        for k in range(degree, _BITS):
            value = m[k - degree] ^ (m[k - degree] << degree)
            for i in range(1, degree):
                if coefficients >> (degree - 1 - i) & 1:
                    value ^= m[k - i] << i
            m.append(value)
    return np.array([m[j] << (_BITS - 1 - j) for j in range(_BITS)], np.uint32)
