"""What experiments leave to decide.

Registrations that are complete, sweeps without a report, and rows of batteries that became worse.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from runshelf.batteries.last_pass import last_passes
from runshelf.errors import UserFacingError
from runshelf.formatting import cut, plural
from runshelf.index.rows import RunRow
from runshelf.registrations.kept import Kept, find, names
from runshelf.store.run import open_run
from runshelf.sweeps.definition import read_sweep
from runshelf.sweeps.making import folder_of, list_sweeps
from runshelf.sweeps.state import state_of_sweep
from runshelf.worklog.facts import Decision, Facts

_SHOWN = 160  # characters of a text
_BAD = ("worse", "failed")


def complete_registrations(facts: Facts) -> Iterable[Decision]:
    """Yield a decision for each registration whose groups have all their seeds.

    It is settled by a note about one of its runs, or that answers one.
    """
    for name in names(facts.home):
        with suppress(UserFacingError):
            kept = find(facts.home, name)
            runs = _runs_of(kept, facts.rows)
            if _is_complete(kept, runs) and not _has_note(facts, runs):
                yield _complete(kept, runs)


def _complete(kept: Kept, runs: Sequence[RunRow]) -> Decision:
    groups = list(dict.fromkeys(run.group for run in reversed(runs)))
    one = kept.registration
    text = (
        f"{cut(one.question, _SHOWN)} ({kept.name}: {plural(len(groups), 'group')} of "
        f"{plural(one.n, 'seed')} have ended)"
    )
    # Groups of a received home may have any names, also those of options.
    end = ["--"] if any(group.startswith("-") for group in groups) else []
    command = shlex.join(["compare", *end, *groups])
    return Decision("registration", text, command, runs[0].ulid, runs[0].created)


def _runs_of(kept: Kept, rows: Sequence[RunRow]) -> list[RunRow]:
    """Return the runs that were started under this version, newest first."""
    carried = kept.carried()
    return [row for row in rows if _registered(row) == carried]


def _registered(row: RunRow) -> object:
    with suppress(UserFacingError):
        return open_run(row.folder).manifest.get("registered")
    return None


def _is_complete(kept: Kept, runs: Sequence[RunRow]) -> bool:
    """Return whether two groups or more, and as many as have commands, have all their seeds."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        if run.state == "running":
            return False
        seeds[run.group] |= {*run.seeds}
    wanted = max(2, len(kept.registration.commands))
    return len(seeds) >= wanted and all(len(of) >= kept.registration.n for of in seeds.values())


def _has_note(facts: Facts, runs: Sequence[RunRow]) -> bool:
    ids = {run.short for run in runs}
    return any(ids & {note.run, note.answers} for note in facts.notes)


def unreported_sweeps(facts: Facts) -> Iterable[Decision]:
    """Yield a decision for each sweep of the home that is tuned and has no report."""
    for name in list_sweeps(facts.home):
        with suppress(UserFacingError):
            folder = folder_of(facts.home, name)
            state = state_of_sweep(read_sweep(folder))
            best = state.standings()
            if state.is_tuned and not state.open and not state.report and best:
                text = (
                    f"The sweep {name} has ended: {plural(len(best), 'configuration')}, compared "
                    "on tuning seeds. A report on other seeds shows what the best one is worth."
                )
                since = (folder / "sweep.json").stat().st_mtime
                yield Decision("sweep", text, f"sweep {shlex.quote(name)} --report", "", since)


def worse_rows(facts: Facts) -> Iterable[Decision]:
    """Yield a decision for each battery whose last pass found rows that are worse, or fail."""
    for one in last_passes(facts.home):
        bad = [f"{name} ({word})" for name, word in one.words.items() if word in _BAD]
        if bad:
            code = f" at commit {one.commit[:12]}" if one.commit else ""
            text = f"The battery {one.battery}{code}: {cut(', '.join(bad), _SHOWN)}."
            yield Decision("battery", text, shlex.join(["battery", one.battery]), "", one.created)
