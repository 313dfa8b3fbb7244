"""Contents of a group's page: which seeds count, what differs within it, and similar groups."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

from runshelf.comparison.groups import Difference, differences
from runshelf.errors import UserFacingError
from runshelf.formatting import plural
from runshelf.index.grouping import Samples, samples, title_of
from runshelf.index.identity import IMPORT, has_settings
from runshelf.index.rows import GroupRow, RunRow
from runshelf.index.run_index import Index
from runshelf.store.run import Run, open_run
from runshelf.web.manifest import is_readable_aside
from runshelf.web.pages.runs_table import group_address, quoted, run_title
from runshelf.web.parameters import with_query

_MOST_CANDIDATES = 40
_MOST_SIMILAR = 5
_MOST_READ = 20  # runs whose code and packages are compared
_NUMBER = re.compile(r"[_-]\d+$")


@final
class Note(NamedTuple):
    """A remark on the runs of a group, with a link to the details if there are any."""

    text: str
    address: str = ""


@final
class Similar(NamedTuple):
    """A group of the same algorithm and environment, or program, and what separates it.

    Attributes:
        group: its name.
        address: its page.
        n: its number of independent samples.
        why: what separates it, in words.
        comparison: the page that compares both groups.
    """

    group: str
    address: str
    n: int
    why: str
    comparison: str


@final
class Contents(NamedTuple):
    """The contents of a group's page, apart from curves.

    Attributes:
        independent: the number of independent samples, in words.
        seeds: the seeds of each run in words, by its id, with those that are not counted.
        notes: what differs within the group, and what is unknown.
        similar: similar groups, those with the fewest differences first.
    """

    independent: str
    seeds: dict[str, str]
    notes: list[Note]
    similar: list[Similar]


Candidate = tuple[GroupRow, RunRow]


def candidates(index: Index, group: str, row: RunRow) -> list[Candidate]:
    """Return groups that may be similar to that of `row`, each with its newest run."""
    terms = {"command": row.command, "env": row.env or "", "algorithm": row.algorithm or ""}
    filter_ = " ".join(f"{key}={quoted(value)}" for key, value in terms.items())
    found: list[Candidate] = []
    for other in index.groups(filter_, limit=_MOST_CANDIDATES).rows:
        newest = index.runs(f"group={quoted(other.group)}", limit=1).rows
        if other.group != group and newest and newest[0].group == other.group:
            found.append((other, newest[0]))
    return found


def contents(group: str, rows: Sequence[RunRow], others: Sequence[Candidate]) -> Contents:
    """Return the contents of a group's page; reads the folders of runs.

    Args:
        group: the group's name.
        rows: its runs, newest first.
        others: groups that may be similar.
    """
    found = samples(rows)
    newest = _opened(rows[:1])
    similar = [one for other in others for one in _similar(group, newest, *other)]
    similar.sort(key=lambda one: one[0])
    return Contents(
        _in_words(found),
        _seeds(rows, found),
        _notes(rows, found),
        [one for _, one in similar[:_MOST_SIMILAR]],
    )


def _in_words(found: Samples) -> str:
    seeds = [seed for _, seed in found.counted if seed is not None]
    n = len(found.counted)
    return plural(n, "seed") if len(seeds) == n else plural(n, "independent run")


def _seeds(rows: Sequence[RunRow], found: Samples) -> dict[str, str]:
    """Return the seeds of each run in words, with the reason for those that are not counted."""
    titles = {row.ulid: run_title(row) for row in rows}
    left_out: dict[str, dict[str, list[str]]] = {}
    for repeat in found.repeats:
        why = {
            "seed": f"repeats {titles[repeat.of]}",
            "source": f"same folder as {titles[repeat.of]}",
            "values": f"same values as {titles[repeat.of]}",
        }[repeat.why]
        seed = [] if repeat.seed is None else [str(repeat.seed)]
        left_out.setdefault(repeat.run, {}).setdefault(why, []).extend(seed)
    counted = found.seeds_by_run()
    texts: dict[str, str] = {}
    for row in rows:
        parts = [", ".join(map(str, counted.get(row.ulid, ()))) if row.seeds else ""]
        for why, seeds in left_out.get(row.ulid, {}).items():
            parts.append(f"{', '.join(seeds)} (not counted: {why})".lstrip())
        texts[row.ulid] = "; ".join(part for part in parts if part)
    return texts


def _notes(rows: Sequence[RunRow], found: Samples) -> list[Note]:
    runs = list({sample.run.ulid: sample.run for sample in found.counted}.values())
    read = runs[:_MOST_READ]
    opened = _opened(read)
    notes = [Note(_within(one), _pair(opened, one)) for one in differences(opened)]
    if len(runs) > len(read):
        notes.append(Note(f"Only the newest {len(read)} of {len(runs)} runs are compared."))
    imported = [row for row in rows if row.command == IMPORT]
    unknown = [row for row in rows if not row.code and row.command != IMPORT]
    if imported:
        notes.append(Note(f"Imported: the code and packages of {_of(imported, rows)} are unknown."))
    if any(not has_settings(run.manifest) for run in opened if run.manifest["command"] == IMPORT):
        alone = "The logs hold no settings, so each folder is a group of its own; `--group` pools."
        notes.append(Note(alone))
    if unknown:
        notes.append(Note(f"Code unknown: {_of(unknown, rows)} recorded none."))
    return notes + _identical(found)


def _of(some: Sequence[RunRow], rows: Sequence[RunRow]) -> str:
    if len(some) < len(rows):
        return f"{len(some)} of {plural(len(rows), 'run')}"
    return "the run" if len(rows) == 1 else f"all {plural(len(rows), 'run')}"


def _within(difference: Difference) -> str:
    if difference.separates:
        return f"Pooled by hand: these runs differ in {difference}."
    return f"These runs differ in {difference}. This does not separate groups."


def _pair(runs: Sequence[Run], difference: Difference) -> str:
    """Return the address of the comparison of the newest run with one that differs from it."""
    for run in runs[1:]:
        if any(one.kind == difference.kind for one in differences([runs[0], run])):
            return with_query("/compare", [("run", run.ulid), ("run", runs[0].ulid)])
    return ""


def _identical(found: Samples) -> list[Note]:
    """Return a warning about different seeds whose runs logged identical values."""
    by_content: dict[str, list[int]] = {}
    for run, seed in found.counted:
        if run.content and seed is not None and len(run.seeds) == 1:
            by_content.setdefault(run.content, []).append(seed)
    return [
        Note(
            f"Seeds {', '.join(map(str, sorted(seeds)))} logged identical values: does the program"
            " use its seed?"
        )
        for seeds in by_content.values()
        if len(seeds) > 1
    ]


def _similar(
    group: str, newest: Sequence[Run], other: GroupRow, row: RunRow
) -> list[tuple[int, Similar]]:
    """Return a group and the number of things that separate it; nothing if it is not similar."""
    runs = [*_opened([row]), *newest] if is_readable_aside(row.folder) else []
    if len(runs) < 2 or len({_program(run.manifest) for run in runs}) > 1:
        return []
    found = [one for one in differences(runs) if one.separates]
    similar = Similar(
        group=other.group,
        address=group_address(other.group),
        n=other.n,
        why="; ".join(map(str, found)) or "the user gave it another group",
        comparison=with_query("/compare", [("group", other.group), ("group", group)]),
    )
    return [(sum(len(one.names) for one in found), similar)]


def _program(manifest: Mapping[str, object]) -> tuple[str, ...]:
    """Return the environment and algorithm, or the first two words of the command line."""
    words = title_of(manifest).split()[:2]
    return tuple(_NUMBER.sub("", word) for word in words)


def _opened(rows: Sequence[RunRow]) -> list[Run]:
    found: list[Run] = []
    for row in rows:
        try:
            found.append(open_run(row.folder))
        except UserFacingError:
            continue
    return found
