"""The sections of a comparison: sentences and tables, the same in every format."""

import math
from collections.abc import Sequence
from dataclasses import replace

from runshelf.comparison.across import SCORES_PER_UNIT
from runshelf.comparison.differing import table_of_differences
from runshelf.comparison.document import Document, Section, Table
from runshelf.comparison.result import (
    AcrossResult,
    ComparisonResult,
    EnvironmentResult,
    PairResult,
    SideResult,
)
from runshelf.formatting import count, number, plural
from runshelf.statistics.estimate import Estimate

ACROSS = "across"
STRIP = 36  # characters of a strip of dots
_MOST_SEEDS = 40  # named in a table of values
_MOST_LINES = 40  # conclusions of one environment
_MOST_SCORES = 12
_DASH = "–"


def document(results: Sequence[ComparisonResult]) -> Document:
    """Return a comparison as a document.

    Args:
        results: the registered analysis, if any, then what is exploratory.
    """
    first = results[0]
    sections = [_settings(first)]
    sections += [_registration(first)] if first.registered else []
    for place, result in enumerate(results):
        follows = result.registered is not None and result.registered.is_fixed
        kind = "registered" if follows else _exploratory(results)
        found = [_environment(result, one, kind) for one in result.environments]
        found += [_across(result, result.across, kind)] if result.across else []
        names = [*(one.env for one in result.environments), ACROSS]
        sections += [
            replace(one, pictures=(place, name)) for one, name in zip(found, names, strict=False)
        ]
    sections += [_notes(first)]
    return Document(title_of(first), [one for one in sections if one.lines or one.tables])


def title_of(result: ComparisonResult) -> str:
    """Return what is compared, in one line."""
    labels = result.labels
    named = f"{', '.join(labels[:-1])} and {labels[-1]}" if 1 < len(labels) < 6 else labels[0]
    named = named if len(labels) < 6 else plural(len(labels), "group")
    return f"{named}: {value_of_seed(result)}"


def value_of_seed(result: ComparisonResult) -> str:
    """Return how the value of a seed is computed, in words."""
    outlines = [
        seed.outline
        for env in result.environments
        for side in env.sides
        for seed in side.seeds
        if seed.outline
    ]
    if outlines and all(one.values == 1 for one in outlines):
        return f"{result.metric}, the one value of each seed"
    along = result.axis.replace("_", " ")
    return f"{result.metric}, mean of the last {result.window} % of {along} of each seed"


def strip(side: SideResult, low: float, high: float) -> str:
    """Return the seeds as a line of characters from `low` to `high`.

    `o` is one seed, a digit so many, `+` ten or more, `x` a failure, `|` the mean.
    """
    cells = [0] * STRIP
    failed = [False] * STRIP
    for seed, value in zip(side.seeds, side.counted, strict=True):
        if math.isfinite(value):
            at = _cell(value, low, high)
            cells[at] += 1
            failed[at] |= bool(seed.failure)
    marks = [_mark(n, failed=bad) for n, bad in zip(cells, failed, strict=True)]
    if math.isfinite(side.mean.value):
        at = _cell(side.mean.value, low, high)
        marks[at] = "|" if marks[at] == " " else marks[at]
    return "".join(marks)


def span(one: Estimate, *, sign: bool = False) -> str:
    """Return `3.2 (1.1 to 5.3)`, or the value alone if there is no interval."""
    if not math.isfinite(one.value):
        return _DASH
    value = ("+" if sign and one.value > 0 else "") + number(one.value)
    if not math.isfinite(one.low):
        return value
    return f"{value} ({number(one.low)} to {number(one.high)})"


def p_value(p: float) -> str:
    """Return a p-value with two digits, `< .0001` below that."""
    if not math.isfinite(p):
        return _DASH
    return "< .0001" if p < 1e-4 else f"{p:.2g}".replace("0.", ".", 1)


def _exploratory(results: Sequence[ComparisonResult]) -> str:
    return "exploratory" if results[0].registered else ""


def _settings(result: ComparisonResult) -> Section:
    """Return the differences in settings, code and packages, and the budgets."""
    tables, lines = table_of_differences(result.differences, result.labels)
    if not tables and len(result.labels) > 1:
        lines = ["the settings, code and packages are the same"]
    return Section("What differs", lines, [*tables, _budgets(result)])


def _budgets(result: ComparisonResult) -> Table:
    tried = any(one.configurations is not None for one in result.budgets)
    heads = ("group", "environment", "env steps", *(("configurations tried",) if tried else ()))
    rows = [
        (
            one.side,
            one.env,
            _steps(one.shortest, one.longest),
            *((str(one.configurations or "unknown"),) if tried else ()),
        )
        for one in result.budgets
    ]
    return Table("budgets", heads, rows, right=("env steps", "configurations tried"))


def _steps(shortest: float, longest: float) -> str:
    if not math.isfinite(longest):
        return _DASH
    if shortest == longest:
        return count(round(longest))
    return f"{count(round(shortest))} to {count(round(longest))}"


def _registration(result: ComparisonResult) -> Section:
    assert result.registered is not None
    kept, departures = result.registered
    one = kept.registration
    lines = [
        f"`{kept.name}`, version {kept.version}, registered {kept.created[:16].replace('T', ' ')} "
        f"UTC, SHA-256 {kept.sha256[:12]}",
        f"question: {one.question}",
        *(f"hypothesis {h.name}: {h.predicts}" for h in one.hypotheses),
        f"registered analysis: {one.metric}, last {one.window} %, {one.test} test, "
        f"alpha {one.alpha:g}, {one.stopping}",
        "only the difference of the means, its interval and its p-value are registered; all other "
        "figures are exploratory",
    ]
    lines += [f"departure: {text}" for text in departures] or ["no departure from it was found"]
    return Section("Registration", lines)


def _environment(result: ComparisonResult, one: EnvironmentResult, kind: str) -> Section:
    heading = {"registered": "registered analysis", "exploratory": "exploratory, not registered"}
    title = one.env + (f" ({heading[kind]})" if kind else "")
    if kind == "exploratory":
        title += f": {value_of_seed(result)}"
    conclusions = [pair.conclusion for pair in one.pairs]
    lines = conclusions[:_MOST_LINES]
    if more := len(conclusions) - len(lines):
        lines.append(f"and {more} more pairs: see the table")
    if one.floor is not None:
        lines.append(
            f"a failure counts as {number(one.floor)} in means, intervals and tests: "
            + ("as registered" if one.floor_is_registered else "the worst value of any seed here")
        )
    tables = [_sides(result, one), _seeds(one)]
    corrected = sum(len(env.pairs) for env in result.environments) > 1
    tables += [_pairs(one, corrected=corrected)] if one.pairs else []
    return Section(title, lines, tables, kind)


def _sides(result: ComparisonResult, one: EnvironmentResult) -> Table:
    heads = ["group", "n", "mean (95 % interval)", "median", "worst"]
    fails = any(side.failures for side in one.sides)
    heads += ["failures"] if fails else []
    heads += [_reaching(result, one.threshold)] if one.threshold is not None else []
    heads += ["area under the curve"] if one.has_curves else []
    rows = [
        (
            side.label,
            str(len(side.seeds)),
            span(side.mean),
            _or_dash(side.median),
            _or_dash(side.worst),
            *((str(side.failures),) if fails else ()),
            *((_share(side),) if one.threshold is not None else ()),
            *((_area(side),) if one.has_curves else ()),
        )
        for side in one.sides
    ]
    right = ("n", "median", "worst", "failures")
    return Table(f"{one.env}: {value_of_seed(result)}", tuple(heads), rows, right)


def _area(side: SideResult) -> str:
    known = sum(not one.failure and math.isfinite(one.area) for one in side.seeds)
    of = f", {known} of {len(side.seeds)} seeds" if known < len(side.seeds) else ""
    return span(side.area) + of


def _reaching(result: ComparisonResult, threshold: float) -> str:
    return f"{'≥' if result.better == 'higher' else '≤'} {number(threshold)}"


def _share(side: SideResult) -> str:
    if side.share is None:
        return _DASH
    ends = f"{100 * side.share.low:.0f} to {100 * side.share.high:.0f} %"
    return f"{side.above} of {len(side.seeds)} ({ends})"


def _seeds(one: EnvironmentResult) -> Table:
    known = [v for side in one.sides for v in side.counted if math.isfinite(v)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    scale = f"{number(low)} to {number(high)}"
    rows = [(side.label, f"[{strip(side, low, high)}]", _values(side)) for side in one.sides]
    title = f"{one.env}: every seed (o one, x failure, | mean)"
    return Table(title, ("group", scale, "values by seed"), rows)


def _values(side: SideResult) -> str:
    shown = [
        f"{'run ' + seed.run if seed.seed is None else seed.seed}: "
        + (f"{number(seed.value)} " if math.isfinite(seed.value) else "")
        + ("failed" if seed.failure else "")
        for seed in side.seeds[:_MOST_SEEDS]
    ]
    more = len(side.seeds) - _MOST_SEEDS
    return ", ".join(text.strip() for text in shown) + (f" and {more} more" if more > 0 else "")


def _pairs(one: EnvironmentResult, *, corrected: bool) -> Table:
    heads = (
        "groups",
        "difference (95 % interval, Welch)",
        "p",
        *(("p, Holm",) if corrected else ()),
    )
    rows = [
        (
            f"{pair.one} − {pair.other}",
            span(pair.difference, sign=True),
            p_value(pair.p),
            *((p_value(pair.p_corrected),) if corrected else ()),
            span(pair.better),
        )
        for pair in one.pairs
    ]
    test = _test_of(one.pairs)
    return Table(
        f"{one.env}: differences, {test}", (*heads, "P(X > Y)"), rows, right=("p", "p, Holm")
    )


def _test_of(pairs: Sequence[PairResult]) -> str:
    return {"welch": "Welch's t-test"}.get(pairs[0].test, "permutation test")


def _across(result: ComparisonResult, one: AcrossResult, kind: str) -> Section:
    heads = ("group", "interquartile mean (95 % interval)", "mean (95 % interval)")
    rows = [
        (label, span(iqm), span(mean))
        for label, iqm, mean in zip(one.labels, one.iqm, one.mean, strict=True)
    ]
    tables = [Table(f"normalised scores over {plural(len(one.envs), 'environment')}", heads, rows)]
    if one.improvement:
        rows = [(f"{a} > {b}", span(p)) for a, b, p in one.improvement]
        tables.append(Table("probability of improvement", ("groups", "P (95 % interval)"), rows))
    tables += [_profiles(one), _references(result, one)]
    suffix = " (exploratory, not registered)" if kind == "exploratory" else ""
    return Section(f"Across environments{suffix}", list(one.notes), tables, kind)


def _profiles(one: AcrossResult) -> Table:
    """Return the profiles at a few scores."""
    scores = one.profiles[0].thresholds
    quarters = range(0, len(scores), SCORES_PER_UNIT // 4)
    places = quarters[:: max(1, math.ceil(len(quarters) / _MOST_SCORES))]
    heads = ("group", *(f"> {scores[place]:.3g}" for place in places))
    rows = [
        (label, *(f"{100 * profile.share[place]:.0f} %" for place in places))
        for label, profile in zip(one.labels, one.profiles, strict=True)
    ]
    return Table("performance profiles: share of runs above a score", heads, rows, right=heads[1:])


def _references(result: ComparisonResult, one: AcrossResult) -> Table:
    rows = [
        (env.env, number(env.reference.low), number(env.reference.high), env.reference.source)
        for env in result.environments
        if env.reference and env.env in one.envs
    ]
    heads = ("environment", "score 0", "score 1", "source")
    return Table("what scores are relative to", heads, rows, right=("score 0", "score 1"))


def _notes(result: ComparisonResult) -> Section:
    left = [f"`{env}` is left out: only {label} has it" for env, label in result.left_out.items()]
    return Section("What to know", [*result.notes, *left])


def _cell(value: float, low: float, high: float) -> int:
    share = 0.5 if high == low else (value / 2 - low / 2) / (high / 2 - low / 2)
    return min(int(share * STRIP), STRIP - 1)


def _mark(many: int, *, failed: bool) -> str:
    if not many:
        return " "
    if failed:
        return "x"
    return "o" if many == 1 else str(many) if many < 10 else "+"


def _or_dash(value: float) -> str:
    return number(value) if math.isfinite(value) else _DASH
