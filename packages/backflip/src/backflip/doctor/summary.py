"""What the doctor says about all seeds of a finished run, in one line."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from backflip.doctor.diagnosis import Diagnosis, Measured, diagnose
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.errors import UserFacingError
from runshelf.store.diagnosis import write_diagnosis
from runshelf.store.run import open_run

MOST_NAMED = 3


def doctors_word(folder: Path) -> dict[str, Any] | None:
    """Return findings and warnings of all seeds, by check with the number of seeds, and a line.

    They are also written to the run's folder, for `now` and the pages. None if its metrics cannot
    be read: a result is shown without a diagnosis then.
    """
    try:
        run = open_run(folder)
        found = [diagnose(log) for log in logs_of_run(run) if log.seed is not None]
    except UserFacingError:
        return None
    if not any(one.can_tell for one in found):
        return None
    findings = _counts(one.findings for one in found)
    warnings = _counts(one.warnings for one in found)
    line = _line(found, findings, warnings, run.short)
    write_diagnosis(folder, findings, line)
    counts = {"findings": findings, "warnings": warnings}
    return {name: dict(one.most_common()) for name, one in counts.items()} | {"in_words": line}


def _counts(seen: Iterable[Sequence[Measured]]) -> Counter[str]:
    return Counter(one.check.id for of_seed in seen for one in of_seed)


def _line(
    found: Sequence[Diagnosis], findings: Counter[str], warnings: Counter[str], name: str
) -> str:
    counts = findings or warnings
    if not counts:
        return "doctor: nothing wrong was seen"
    begin = "" if findings else "nothing is proven wrong, but look at "
    every = [seen for one in found for seen in (*one.findings, *one.warnings)]
    titles = {seen.check.id: seen.check.title for seen in every}
    named = [
        f"{check} ({titles[check]}) in {many} of {len(found)} seeds"
        for check, many in counts.most_common(MOST_NAMED)
    ]
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"doctor: {begin}{', '.join(named)}{more}; backflip doctor {name} says what it means"
