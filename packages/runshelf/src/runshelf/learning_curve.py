"""Learning curves: the true return of a run over env steps, as SVG and as CSV."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from runshelf.charts.picture import Legend, picture
from runshelf.charts.plot import Line, y_scale
from runshelf.charts.scales import Scale
from runshelf.errors import UsageError
from runshelf.formatting import count, plural, short
from runshelf.statistics.intervals import mean_interval
from runshelf.store.metrics import read_metrics
from runshelf.store.writing import replace_file

RETURN = "episode_return_mean"
_NEAR = 0.02  # of the longest seed: seeds that end so close together end together
MOST_POINTS = 100  # per curve; the chart has too few pixels to show more


@final
class Curve(NamedTuple):
    """One metric of several seeds over the same env steps.

    Attributes:
        seeds: the seeds.
        env_steps: the env steps of a single seed at each point, ascending.
        values: one row per seed; NaN before a seed's first value and after its last.
    """

    seeds: list[int]
    env_steps: Float[np.ndarray, " points"]
    values: Float[np.ndarray, "seeds points"]

    @property
    def mean(self) -> Float[np.ndarray, " points"]:
        """The mean over seeds; NaN where a seed has no value, since the mean would jump there."""
        return self.values.mean(0)

    @property
    def margin(self) -> Float[np.ndarray, " points"]:
        """Half the width of the 95 % interval of the mean; NaN where the mean is NaN."""
        interval = mean_interval(self.values)
        return np.where(np.isnan(self.mean), math.nan, interval.high - interval.centre)


def curve(records: Iterable[Mapping[str, Any]], metric: str = RETURN) -> Curve:
    """Return a metric over env steps, with all seeds at the same points.

    Records without a finite value of the metric are skipped. If a seed has more than `MOST_POINTS`
    records, neighbours are averaged, weighted by `episodes` if the records have it. Values of a
    seed between its points are interpolated linearly.

    Args:
        records: metric records with `seed` and `env_steps` (of that seed).
        metric: the metric's name.

    Raises:
        UsageError: no record has the metric.
    """
    found: dict[int, list[tuple[float, float, float]]] = {}
    for record in records:
        value, seed = record.get(metric), record.get("seed")
        if isinstance(value, int | float) and math.isfinite(value) and isinstance(seed, int):
            weight = float(record.get("episodes") or 1.0)
            found.setdefault(seed, []).append((float(record["env_steps"]), float(value), weight))
    if not found:
        raise UsageError(f"no record has a value of `{metric}`: there is no curve to draw")
    seeds = sorted(found)
    lines = [_thinned(np.array(sorted(found[seed]))) for seed in seeds]
    grid = np.unique(np.concatenate([line[:, 0] for line in lines]))
    values = [np.interp(grid, *line.T, left=math.nan, right=math.nan) for line in lines]
    return Curve(seeds, grid, np.stack(values))


def _thinned(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "m 2"]:
    """Return at most `MOST_POINTS` rows (env steps, value): weighted means of neighbours."""
    groups = np.array_split(points, min(len(points), MOST_POINTS))
    means = [np.average(group[:, :2], axis=0, weights=group[:, 2]) for group in groups]
    # The last point keeps its position, so that the curve ends where training ended.
    means[-1][0] = points[-1, 0]
    return np.stack(means)


def curve_csv(curve: Curve) -> str:
    """Return a curve as CSV: env steps, mean, 95 % interval, and one column per seed."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["env_steps", "mean", "low_95", "high_95", *(f"seed_{s}" for s in curve.seeds)])
    low, high = curve.mean - curve.margin, curve.mean + curve.margin
    for row in zip(curve.env_steps, curve.mean, low, high, *curve.values, strict=True):
        table.writerow("" if math.isnan(x) else f"{x:.10g}" for x in row)
    return text.getvalue()


def write_curve(folder: Path, *, title: str, optimum: int | float | None = None) -> list[Path]:
    """Write the true returns of a run to `curve.svg` and `curve.csv`; return the paths.

    If no episode ended during training, nothing is written and the list is empty.

    Args:
        folder: the run's folder.
        title: the task and the algorithm.
        optimum: the best possible return, if known.

    Raises:
        UserFacingError: the metrics cannot be read, or the files cannot be written.
    """
    records = read_metrics(folder, "train").records
    if not any(math.isfinite(record.get(RETURN, math.nan)) for record in records):
        return []
    drawn = curve(records)
    picture = learning_curve_svg(drawn, title=title, optimum=optimum)
    files = {"curve.svg": picture, "curve.csv": curve_csv(drawn)}
    for name, text in files.items():
        replace_file(folder, name, text.encode())
    return [folder / name for name in files]


def learning_curve_svg(
    curve: Curve,
    *,
    title: str,
    value_label: str = "true return of an episode",
    optimum: int | float | None = None,
) -> str:
    """Return a chart as SVG: thin lines for seeds, a thick line for the mean, a band for the range.

    The interval of the mean is not drawn, only written by `curve_csv`: with few seeds, one of which
    fails, it reaches far beyond the largest possible return.

    Args:
        curve: the curve.
        title: the task and the algorithm; one line.
        value_label: what the vertical axis measures, with its unit.
        optimum: the best possible value, if known.
    """
    right = float(curve.env_steps[-1]) or 1.0
    several = len(curve.seeds) > 1
    low, high = (curve.values.min(0), curve.values.max(0)) if several else (None, None)
    seeds = list(curve.values) if several else []
    lines = [Line("mean", curve.env_steps, curve.mean, low=low, high=high, seeds=seeds)]
    if optimum is not None:
        lines.append(Line("optimum", np.array([0, right]), np.full(2, float(optimum)), 1, 1))
    scale = y_scale(lines)
    assert scale is not None  # a curve has a value
    return picture(
        title,
        lines,
        (Scale(0.0, right), "environment steps of each seed"),
        (scale, value_label),
        legend=_legend(curve, optimum),
        description=_description(curve, value_label, optimum),
    )


def _legend(curve: Curve, optimum: int | float | None) -> list[Legend]:
    entries = [Legend("centre", f"seed {curve.seeds[0]} (a single seed)")]
    if len(curve.seeds) > 1:
        entries = [
            Legend("centre", f"mean of {plural(len(curve.seeds), 'seed')}{_up_to(curve)}"),
            Legend("band", "worst to best seed"),
            Legend("seed", "one seed"),
        ]
    if optimum is not None:
        entries.append(Legend("centre", f"optimum {optimum:.4g}", 1, 1))
    return entries


def _up_to(curve: Curve) -> str:
    """Return where the mean ends, since a seed ends there; empty if all end together."""
    found = _first_end(curve)
    return f", up to {short(found[1])}" if found else ""


def _first_end(curve: Curve) -> tuple[int, float] | None:
    """Return the shortest seed and where it ends; None if all end within 2 % of the longest."""
    ends = [float(curve.env_steps[np.isfinite(row)][-1]) for row in curve.values]
    first = min(ends)
    is_early = first < (1 - _NEAR) * max(ends)
    return (curve.seeds[ends.index(first)], first) if is_early else None


def _description(curve: Curve, value_label: str, optimum: int | float | None) -> str:
    begins, last = np.nanmean(curve.values[:, 0]), [_last(row) for row in curve.values]
    text = (
        f"{value_label} over environment steps, {plural(len(curve.seeds), 'seed')}: from "
        f"{begins:.4g} to a mean of {np.mean(last):.4g} (worst seed {min(last):.4g}, best "
        f"{max(last):.4g}) after {'up to ' if _first_end(curve) else ''}"
        f"{count(round(curve.env_steps[-1]))} environment steps of each seed."
    )
    if found := _first_end(curve):
        at = f"{count(round(found[1]))} environment steps"
        text += f" The mean ends at {at}, with the last value of seed {found[0]}."
    return text + (f" The optimum is {optimum:.4g}." if optimum is not None else "")


def _last(values: Float[np.ndarray, " n"]) -> float:
    return float(values[np.isfinite(values)][-1])
