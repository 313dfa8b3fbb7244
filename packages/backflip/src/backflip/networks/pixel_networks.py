"""Names of the networks for images, readable without JAX."""

from typing import Literal

GRID_SIDE = 16  # images with at most this many rows and columns are grids of cells, as MinAtar's

PixelNetwork = Literal["auto", "patches", "contrast", "nature", "grid", "flat"]
