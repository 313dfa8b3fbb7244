"""A comparison as JSON, and as rows of CSV."""

import math
from collections.abc import Sequence
from typing import Any

from runshelf.comparison.document import csv_text
from runshelf.comparison.groups import Difference
from runshelf.comparison.result import (
    AcrossResult,
    ComparisonResult,
    EnvironmentResult,
    PairResult,
    SideResult,
)
from runshelf.comparison.seed_values import SeedValue
from runshelf.statistics.estimate import Estimate

HEADS = (
    "environment",
    "group",
    "metric",
    "n",
    "failures",
    "mean",
    "low_95",
    "high_95",
    "median",
    "worst",
    "threshold",
    "reaching",
    "area",
    "area_low_95",
    "area_high_95",
    "seeds",
    "values",
)


def fields(results: Sequence[ComparisonResult]) -> dict[str, Any]:
    """Return the JSON document: the first analysis, and further ones as `exploratory`."""
    first, *others = results
    found = _one(first)
    return found | ({"exploratory": [_one(one) for one in others]} if others else {})


def csv_of(results: Sequence[ComparisonResult]) -> str:
    """Return one row of CSV for each side of each environment."""
    rows = [
        _row(result, env, side)
        for result in results
        for env in result.environments
        for side in env.sides
    ]
    return csv_text(HEADS, rows)


def _one(result: ComparisonResult) -> dict[str, Any]:
    registered = result.registered
    return {
        "groups": result.labels,
        "metric": result.metric,
        "window_percent": result.window,
        "axis": result.axis,
        "better": result.better,
        "alpha": result.alpha,
        "registered": None
        if registered is None
        else {**registered.kept.carried(), "deviations": registered.deviations},
        "environments": [_environment(one) for one in result.environments],
        "across": None if result.across is None else _across(result.across),
        "differences": [_difference(one) for one in result.differences],
        "budgets": [
            {name: _known(value) for name, value in one._asdict().items()} for one in result.budgets
        ],
        "notes": result.notes,
        "left_out": dict(result.left_out),
    }


def _difference(one: Difference) -> dict[str, Any]:
    rows = [{"name": row.key, "values": row.values} for row in one.rows]
    return {"kind": one.kind, "names": one.names, "separates": one.separates, "rows": rows}


def _environment(one: EnvironmentResult) -> dict[str, Any]:
    return {
        "environment": one.env,
        "groups": [_side(side) for side in one.sides],
        "pairs": [_pair(pair) for pair in one.pairs],
        "failures_count_as": one.floor,
        "threshold": one.threshold,
        "reference": None if one.reference is None else one.reference._asdict(),
    }


def _side(side: SideResult) -> dict[str, Any]:
    return {
        "group": side.label,
        "n": len(side.seeds),
        "failures": side.failures,
        "mean": _span(side.mean),
        "median": _known(side.median),
        "worst": _known(side.worst),
        "area": _span(side.area),
        "reaching": side.above,
        "share": None if side.share is None else _span(side.share),
        "seeds": [
            {**_seed(seed), "counted": _known(value)}
            for seed, value in zip(side.seeds, side.counted, strict=True)
        ],
    }


def _seed(seed: SeedValue) -> dict[str, Any]:
    return {
        "seed": seed.seed,
        "run": seed.run,
        "value": _known(seed.value),
        "area": _known(seed.area),
        "failure": seed.failure or None,
        "end": None if seed.outline is None else seed.outline.end,
        "tuning": seed.is_tuning,
    }


def _pair(pair: PairResult) -> dict[str, Any]:
    return {
        "one": pair.one,
        "other": pair.other,
        "test": pair.test,
        "difference": _span(pair.difference),
        "p": _known(pair.p),
        "p_corrected": _known(pair.p_corrected),
        "probability_better": _span(pair.better),
        "conclusion": pair.conclusion,
    }


def _across(one: AcrossResult) -> dict[str, Any]:
    return {
        "environments": one.envs,
        "groups": [
            {
                "group": label,
                "iqm": _span(iqm),
                "mean": _span(mean),
                "profile": {
                    name: [_known(value) for value in of.tolist()]
                    for name, of in profile._asdict().items()
                },
            }
            for label, iqm, mean, profile in zip(
                one.labels, one.iqm, one.mean, one.profiles, strict=True
            )
        ],
        "improvement": [{"one": a, "other": b, **_span(p)} for a, b, p in one.improvement],
        "notes": one.notes,
    }


def _span(one: Estimate) -> dict[str, float | None]:
    return {name: _known(value) for name, value in one._asdict().items()}


def _known(value: Any) -> Any:
    """Return a value; None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _row(result: ComparisonResult, env: EnvironmentResult, side: SideResult) -> list[object]:
    values = " ".join(f"{seed.value:.10g}" for seed in side.seeds)
    names = " ".join(str(seed.seed) if seed.seed is not None else seed.run for seed in side.seeds)
    threshold = "" if env.threshold is None else env.threshold
    above = "" if side.above is None else side.above
    numbers = [*side.mean[:3], side.median, side.worst]
    return [
        env.env,
        side.label,
        result.metric,
        len(side.seeds),
        side.failures,
        *map(_blank, numbers),
        threshold,
        above,
        *map(_blank, side.area[:3]),
        names,
        values,
    ]


def _blank(value: float) -> object:
    return "" if math.isnan(value) else value
