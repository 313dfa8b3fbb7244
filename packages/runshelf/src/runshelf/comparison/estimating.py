"""THROWAWAY until runshelf.statistics is a package."""

import math
from collections.abc import Sequence

import numpy as np

from runshelf.comparison.result import Span
from runshelf.statistics import mean_interval, student_quantile

NONE = Span(math.nan, math.nan, math.nan)


def mean(values: Sequence[float]) -> Span:
    found = mean_interval(np.array(values)[:, None])
    return Span(float(found.centre[0]), float(found.low[0]), float(found.high[0]))


def share(k: int, n: int) -> Span:
    z, p = 1.959964, k / n
    mid = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Span(p, mid - half, mid + half)


def difference(a: Sequence[float], b: Sequence[float]) -> tuple[Span, float]:
    x, y = np.array(a), np.array(b)
    d = float(x.mean() - y.mean())
    if len(x) < 2 or len(y) < 2:
        return Span(d, math.nan, math.nan), math.nan
    u, v = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    if u + v == 0:
        return Span(d, math.nan, math.nan), math.nan
    df = (u + v) ** 2 / (u * u / (len(x) - 1) + v * v / (len(y) - 1))
    half = student_quantile(max(1, int(df))) * math.sqrt(u + v)
    return Span(d, d - half, d + half), math.nan


def permutation(a: Sequence[float], b: Sequence[float]) -> float:
    x = np.array([*a, *b])
    n, rng = len(a), np.random.default_rng(0)
    seen = abs(x[:n].mean() - x[n:].mean())
    order = rng.random((5000, len(x))).argsort(1)
    mixed = x[order]
    diff = np.abs(mixed[:, :n].mean(1) - mixed[:, n:].mean(1))
    return float((1 + (diff >= seen - 1e-12).sum()) / 5001)


def improvement(a: Sequence[float], b: Sequence[float]) -> Span:
    x, y = np.array(a)[:, None], np.array(b)[None]
    return Span(float((x > y).mean() + 0.5 * (x == y).mean()), math.nan, math.nan)


def holm(ps: Sequence[float]) -> list[float]:
    order = np.argsort(ps)
    out, most = [0.0] * len(ps), 0.0
    for rank, at in enumerate(order.tolist()):
        most = max(most, min(1.0, ps[at] * (len(ps) - rank)))
        out[at] = most
    return out
