"""What was found in the runs of the benchmark, as tables of docs/faults.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from effect import CHANCE, has_effect, lowers_return
from looks import SHARES, SOON, finds_at, finds_ever
from rldebugger import OF_LOSS_CURVES, warnings_of

from backflip.doctor.diagnosis import Diagnosis

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
RETURN_ALONE = frozenset(("ENV-NOTHING", "ENV-WORSE", "ENV-DROP"))  # what a person sees in a curve
Returns = np.ndarray[Any, Any]


class Row(NamedTuple):
    """What was found in the seeds of one broken training run.

    Attributes:
        fault, run: the names of the fault and of the training run.
        counts: whether the fault has an effect.
        lowers: whether it lowers the return beyond chance.
        found: share of the seeds with a finding, with all signals; NaN if these were not logged.
        found_logged: the same from what the library logs.
        found_other: the same from what it logs, with or without the environment's name.
        by_return: the same from the curve of the return alone.
        by_rldebugger: the same by RLDebugger's rules.
        by_few_rules: the same by its rules that do not look at the curve of a loss.
        first, among_three: share of the seeds with a finding whose true cause is in that place.
        since: median share of the budget after which the first finding was there.
        soon: share of the seeds with a finding at a look after 20 % of the budget.
    """

    fault: str
    run: str
    counts: bool
    lowers: bool
    found: float
    found_logged: float
    found_other: float
    by_return: float
    by_rldebugger: float
    by_few_rules: float
    first: float
    among_three: float
    since: float
    soon: float


class Healthy(NamedTuple):
    """What was found in a healthy training run."""

    run: str
    found: Sequence[Diagnosis]

    @property
    def alarms(self) -> list[Diagnosis]:
        """The seeds with a finding."""
        return [one for one in self.found if one.findings]

    @property
    def warnings(self) -> list[Diagnosis]:
        """The seeds with a warning and no finding."""
        return [one for one in self.found if one.warnings and not one.findings]

    @property
    def alarms_while_trained(self) -> int:
        """How many seeds had a finding at one of many looks while they trained, or at the end."""
        return sum(finds_ever(one.log) for one in self.found)

    @property
    def suspect(self) -> int:
        """How many seeds the return alone would put under suspicion."""
        return sum(map(_by_return, self.found))

    @property
    def by_rldebugger(self) -> int:
        """How many seeds RLDebugger's rules would put under suspicion."""
        return sum(map(_by_rldebugger, self.found))

    @property
    def by_few_rules(self) -> int:
        """The same by its rules that do not look at the curve of a loss."""
        return sum(map(_by_few_rules, self.found))


def row(
    names: tuple[str, str],
    causes: Sequence[str],
    returns: tuple[Returns, Returns],
    full: Sequence[Diagnosis],
    logged: Sequence[Diagnosis],
    other: Sequence[Diagnosis],
) -> Row:
    """Return what was found in the seeds of a broken training run.

    Args:
        names: of the fault and of the training run.
        causes: ids of the true causes.
        returns: of the healthy and of the broken training run.
        full: the diagnoses with all signals; none if only the logged ones are known.
        logged: those from what the library logs.
        other: those from what it logs, with or without the environment's name.
    """
    best = full or logged
    hits = [one for one in best if one.findings]
    ranks = [_rank(one, causes) for one in hits]
    return Row(
        *names,
        has_effect(*returns),
        lowers_return(*returns),
        _share([bool(one.findings) for one in full]),
        _share([bool(one.findings) for one in logged]),
        _share([bool(one.findings) for one in other]),
        _share(list(map(_by_return, best))),
        _share(list(map(_by_rldebugger, best))),
        _share(list(map(_by_few_rules, best))),
        _share([rank == 0 for rank in ranks]),
        _share([rank < 3 for rank in ranks]),
        float(np.median([_since(one) for one in hits])) if hits else float("nan"),
        _share([finds_at(one.log, SOON) for one in best]),
    )


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _by_return(one: Diagnosis) -> bool:
    """Return whether the curve of the return alone would have raised suspicion."""
    return any(m.check.id in RETURN_ALONE for m in (*one.findings, *one.warnings, *one.remarks))


def _by_rldebugger(one: Diagnosis) -> bool:
    return bool(warnings_of(one.log))


def _by_few_rules(one: Diagnosis) -> bool:
    return bool(set(warnings_of(one.log)) - OF_LOSS_CURVES)


def _rank(one: Diagnosis, causes: Sequence[str]) -> int:
    """Return the place of the best of the true causes, from 0."""
    order = [ranked.cause.id for ranked in one.causes]
    return min((order.index(cause) for cause in causes if cause in order), default=len(order))


def _since(one: Diagnosis) -> float:
    """Return the share of the budget after which the first finding was there."""
    return min(found.since for found in one.findings) / one.log.budget


def summary(
    rows: Sequence[Row], healthy: Sequence[Healthy], signals: tuple[str, str, str]
) -> list[str]:
    """Return the table of figures over all faults and healthy runs.

    Args:
        rows: the broken training runs.
        healthy: the healthy ones.
        signals: names of the signals of the full, the logged and the other diagnoses.
    """
    full, logged, other = signals
    real = [row for row in rows if row.counts]
    quiet = [row for row in rows if not row.counts]
    seeds = sum(len(one.found) for one in healthy)
    alarms = sum(len(one.alarms) for one in healthy)
    trained = sum(one.alarms_while_trained for one in healthy)
    warned = sum(len(one.warnings) for one in healthy)
    lower = [row for row in rows if row.lowers]
    early = [float(row.since <= 0.2) for row in real if best_of(row) > 0.5]
    return [
        "| measured | figure |",
        "|---|---|",
        f"| faults with an effect, of all | {len(real)} of {len(rows)} |",
        f"| their seeds with a finding, {full} | {_mean([row.found for row in real])} |",
        f"| the same from {logged} | {_mean([row.found_logged for row in real])} |",
        f"| the same from {other} | {_mean([row.found_other for row in real])} |",
        f"| the same by the return alone | {_mean([row.by_return for row in real])} |",
        f"| the same by RLDebugger's rules | {_mean([row.by_rldebugger for row in real])} |",
        f"| the same by those that look at no loss | {_mean([row.by_few_rules for row in real])} |",
        f"| true cause first, of the seeds with a finding | {_mean([r.first for r in real])} |",
        f"| true cause among the first three | {_mean([row.among_three for row in real])} |",
        f"| faults found before 20 % of the budget | {_mean(early)} |",
        "| seeds of faults with an effect with a finding at a look after 20 % of the budget | "
        f"{_mean([row.soon for row in real])} |",
        f"| seeds with a finding, faults without effect | {_mean([best_of(r) for r in quiet])} |",
        f"| healthy seeds with a finding | {alarms} of {seeds} ({alarms / max(seeds, 1):.1%}) |",
        f"| the same by the return alone | {sum(one.suspect for one in healthy)} of {seeds} |",
        f"| the same by RLDebugger's rules | {sum(h.by_rldebugger for h in healthy)} of {seeds} |",
        "| the same by those that look at no loss | "
        f"{sum(one.by_few_rules for one in healthy)} of {seeds} |",
        f"| healthy seeds with a warning only | {warned} of {seeds} |",
        f"| healthy seeds with a finding at any of {len(SHARES)} looks while they trained | "
        f"{trained} of {seeds} ({trained / max(seeds, 1):.1%}) |",
        f"| faults that lower the return (p < {CHANCE}), of all | {len(lower)} of {len(rows)} |",
        f"| their seeds with a finding, {full} | {_mean([row.found for row in lower])} |",
        f"| the same from {logged} | {_mean([row.found_logged for row in lower])} |",
        f"| true cause first, of these seeds | {_mean([row.first for row in lower])} |",
    ]


def _mean(values: Sequence[float]) -> str:
    known = [one for one in values if not np.isnan(one)]
    return f"{np.mean(known):.1%}" if known else "-"


def best_of(row: Row) -> float:
    """Return the share of the seeds with a finding: with all signals if they were logged."""
    return row.found_logged if np.isnan(row.found) else row.found


def table(rows: Sequence[Row]) -> list[str]:
    """Return the table of all faults: those with an effect first."""
    lines = [
        "| fault | run | effect | found | from logs | cause first | among three | since |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(rows, key=lambda row: (not row.counts, row.fault, row.run)):
        shares = (one.found, one.found_logged, one.first, one.among_three, one.since)
        cells = ["-" if np.isnan(share) else f"{share:.0%}" for share in shares]
        effect = "yes" if one.counts else "no"
        lines.append(f"| {one.fault} | {one.run} | {effect} | {' | '.join(cells)} |")
    return lines


def misses(rows: Sequence[Row]) -> list[str]:
    """Return a list of the faults with an effect that are missed, or whose cause is."""
    real = [row for row in rows if row.counts]
    missed = {
        "Found in at most half of the seeds": [row for row in real if best_of(row) <= 0.5],
        "True cause not among the first three in half of these seeds": [
            row for row in real if row.among_three <= 0.5
        ],
    }
    return [
        f"- {text}: {', '.join(f'{row.fault}@{row.run}' for row in them) or 'no fault'}."
        for text, them in missed.items()
    ]


def alarms(healthy: Sequence[Healthy]) -> list[str]:
    """Return the table of healthy runs, with the checks that found something."""
    lines = [
        "| healthy run | seeds | with a finding | with a warning only | checks |",
        "|---|---|---|---|---|",
    ]
    for one in healthy:
        found = [m for alarm in one.alarms for m in alarm.findings]
        found += [m for warned in one.warnings for m in warned.warnings]
        ids = ", ".join(sorted({m.check.id for m in found}))
        counts = f"{len(one.found)} | {len(one.alarms)} | {len(one.warnings)}"
        lines.append(f"| {one.run} | {counts} | {ids} |")
    return lines


def put(parts: Mapping[str, str]) -> None:
    """Put texts into docs/faults.md, each between the markers of its name."""
    page = PAGE.read_text(encoding="utf-8")
    for marker, text in parts.items():
        start, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->"
        head, _, rest = page.partition(start)
        page = f"{head}{start}{text}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(page, encoding="utf-8")
