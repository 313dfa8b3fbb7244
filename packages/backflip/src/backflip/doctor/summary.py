"""What the doctor says about all seeds of a finished run, in one line."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backflip.doctor.diagnosis import Diagnosis, diagnose
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.errors import UserFacingError
from runshelf.store.diagnosis import write_diagnosis
from runshelf.store.run import open_run

MOST_NAMED = 3


def doctors_word(folder: Path) -> dict[str, Any] | None:
    """Return the findings of all seeds of a run, by check with the number of seeds, and a line.

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
    counts = Counter(seen.check.id for one in found for seen in one.findings)
    line = _line(found, counts, run.short)
    write_diagnosis(folder, counts, line)
    return {"findings": dict(counts.most_common()), "in_words": line}


def _line(found: Sequence[Diagnosis], counts: Counter[str], name: str) -> str:
    if not counts:
        return "doctor: nothing wrong was seen"
    titles = {seen.check.id: seen.check.title for one in found for seen in one.findings}
    named = [
        f"{check} ({titles[check]}) in {many} of {len(found)} seeds"
        for check, many in counts.most_common(MOST_NAMED)
    ]
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"doctor: {', '.join(named)}{more}; backflip doctor {name} says what it means"
