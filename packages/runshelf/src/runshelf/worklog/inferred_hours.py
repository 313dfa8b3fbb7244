"""Hours of work that were not recorded, inferred from starts of runs, commits and notes."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from runshelf.snapshot.git import find_repository
from runshelf.snapshot.git_process import query, setting
from runshelf.worklog.hours import Work

INFERRED = "inferred"
GAP = 2 * 3600.0  # two events farther apart belong to two sittings
BEFORE = 1800.0  # seconds of work before the first event of a sitting
_MOST_COMMITS = 10_000


def inferred_works(moments: Iterable[float], recorded: Sequence[Work]) -> list[Work]:
    """Return the sittings that events show, without the time that was recorded.

    A sitting begins half an hour before its first event and ends with its last one; its events
    follow each other within two hours.

    Args:
        moments: the times of events, in Unix seconds.
        recorded: pieces of work that were recorded.
    """
    sittings: list[tuple[float, float]] = []
    for moment in sorted(moments):
        if sittings and moment - sittings[-1][1] <= GAP:
            sittings[-1] = (sittings[-1][0], moment)
        else:
            sittings.append((moment - BEFORE, moment))
    taken = sorted((work.begin, work.begin + work.seconds) for work in recorded)
    return [
        Work(INFERRED, begin, end - begin, end - begin)
        for sitting in sittings
        for begin, end in _without(sitting, taken)
    ]


def commit_moments(folder: Path, since: float) -> list[float]:
    """Return when the user of git made commits in the repository of a folder.

    Empty without git, a repository, a name of the user, or an answer in time.
    """
    repository = find_repository(folder)
    email = setting(repository, "user.email") if repository else None
    if repository is None or not email:
        return []
    output = query(
        repository,
        [
            "log",
            "--all",
            "--fixed-strings",
            f"--max-count={_MOST_COMMITS}",
            "--format=%ct",
            f"--since=@{int(since)}",
            f"--author=<{os.fsdecode(email).strip()}>",
        ],
    )
    return [float(line) for line in (output or b"").split() if line.isdigit()]


def _without(
    span: tuple[float, float], taken: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the parts of a span that lie in none of the sorted spans `taken`."""
    left: list[tuple[float, float]] = []
    begin, end = span
    for first, last in taken:
        if last <= begin or first >= end:
            continue
        if first > begin:
            left.append((begin, first))
        begin = max(begin, last)
    return [*left, (begin, end)] if begin < end else left
