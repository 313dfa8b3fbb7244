"""A plot of one quantity over another on logarithmic axes, with a line of slope 1."""

from collections.abc import Sequence

import numpy as np

from runshelf.charts.picture import Legend, picture
from runshelf.charts.plot import Line
from runshelf.charts.scales import Scale


def log_log_svg(
    sizes: Sequence[float], values: Sequence[float], *, title: str, found: str, x: str, y: str
) -> str:
    """Return the plot as the text of an SVG file.

    Args:
        sizes: along the horizontal axis, all above 0.
        values: along the vertical axis, all above 0.
        title: the title of the plot.
        found: the result, in words.
        x: label of the horizontal axis.
        y: label of the vertical axis, with its unit.
    """
    at, measured = np.array(sizes, float), np.array(values, float)
    linear = values[0] * at / at[0]
    points = "; ".join(f"{a:,.6g}: {b:.4g}" for a, b in zip(sizes, values, strict=True))
    return picture(
        title,
        [Line("linear", at, linear, colour=1, dash=1), Line("measured", at, measured, dots=True)],
        (_decades(at), x),
        (_decades(np.concatenate([measured, linear])), y),
        legend=[Legend("centre", found), Legend("centre", "linear", 1, 1)],
        description=f"{y} over {x}: {points}; {found}",
    )


def _decades(values: np.ndarray) -> Scale:
    """Return a scale of whole decades around the values."""
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), log=True)
