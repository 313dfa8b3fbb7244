"""Names of the networks, readable without JAX."""

from typing import Annotated

from backflip.core.settings import Choices

GRID_SIDE = 16  # images with at most this many rows and columns are grids of cells, as MinAtar's
BUILT_IN = ("auto", "patches", "contrast", "nature", "grid", "flat")

PixelNetwork = Annotated[str, Choices(BUILT_IN, own="module:function")]


def is_own(network: str) -> bool:
    """Return whether a network is the user's, `module:function`."""
    return ":" in network
