"""The picture of a sensitivity study: the score by how many hyper-parameters are tuned."""

import numpy as np

from backflip.studies.sensitivity import ENOUGH, Sensitivity
from runshelf.charts.picture import Legend, picture
from runshelf.charts.plot import Line
from runshelf.charts.scales import Scale


def sensitivity_picture(found: Sensitivity, title: str) -> str:
    """Return the picture as the text of an SVG file."""
    counts = np.arange(len(found.by_count), dtype=float)
    scores = np.array(found.by_count)
    enough = np.full(len(counts), ENOUGH * found.tuned)
    top = max(float(scores.max()), found.tuned) * 1.05 + 1e-9
    return picture(
        title,
        [
            Line("tuned", counts, scores, dots=True),
            Line("enough", counts, enough, colour=1, dash=1),
        ],
        (Scale(0.0, max(float(counts[-1]), 1.0)), "hyper-parameters tuned for each environment"),
        (Scale(min(0.0, float(scores.min())), top), "normalised score, mean over environments"),
        legend=[
            Legend("centre", "best with so many tuned"),
            Legend("centre", "95 % of tuning all", colour=1, dash=1),
        ],
        description=(
            f"One fixed setting scores {found.fixed:.3g}, settings tuned for each environment "
            f"{found.tuned:.3g}; {found.dimensionality} hyper-parameters must be tuned to reach "
            "95 %."
        ),
    )
