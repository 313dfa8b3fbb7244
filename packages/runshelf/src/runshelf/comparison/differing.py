"""The table of what differs between the groups of a comparison: settings, code, packages."""

from collections.abc import Sequence
from typing import NamedTuple, final

from runshelf.comparison.document import Table
from runshelf.comparison.groups import Difference, shortest
from runshelf.formatting import plural

_MOST_GROUPS = 8  # columns of a table; of more groups, each has a row
_MOST_COLUMNS = 6
_MOST_OF_KIND = 30
_TITLE = "settings that differ, in the newest run of each group"
_UNKNOWN = "?"


@final
class _Line(NamedTuple):
    """Something that differs, with a text for each group."""

    kind: str
    name: str
    values: tuple[str, ...]


def table_of_differences(
    differences: Sequence[Difference], labels: Sequence[str]
) -> tuple[list[Table], list[str]]:
    """Return the table, if anything differs, and what it leaves out, in words.

    A setting is a line with a column for each group; of many groups, each is a line with a column
    for each setting.
    """
    separating = [one for one in differences if one.separates]
    lines = [line for one in separating for line in _lines(one, len(labels))]
    more = sum(max(len(one.rows) - _MOST_OF_KIND, 0) for one in separating)
    if not lines:
        return [], []
    if len(labels) <= _MOST_GROUPS:
        table = _by_setting(lines, labels)
    else:
        table = _by_group(lines[:_MOST_COLUMNS], labels)
        more += len(lines[_MOST_COLUMNS:])
    return [table], [f"{plural(more, 'more difference')} not shown"] if more else []


def _lines(one: Difference, groups: int) -> list[_Line]:
    return [
        _Line(
            one.kind,
            row.key,
            tuple(shortest(str(value)) for value in row.values) or (_UNKNOWN,) * groups,
        )
        for row in one.rows[:_MOST_OF_KIND]
    ]


def _by_setting(lines: Sequence[_Line], labels: Sequence[str]) -> Table:
    heads = _distinct(["kind", "name", *labels])
    rows = [(one.kind, one.name, *one.values) for one in lines]
    return Table(_TITLE, heads, rows, beside=heads[2:])


def _by_group(lines: Sequence[_Line], labels: Sequence[str]) -> Table:
    names = [one.name if one.kind == "settings" else f"{one.kind}: {one.name}" for one in lines]
    rows = [(label, *(one.values[n] for one in lines)) for n, label in enumerate(labels)]
    return Table(_TITLE, _distinct(["group", *names]), rows)


def _distinct(heads: Sequence[str]) -> tuple[str, ...]:
    """Return headings, of which no two are the same: a group may be called `name`."""
    found: list[str] = []
    for head in heads:
        number, text = 2, head
        while text in found:
            number, text = number + 1, f"{head} ({number})"
        found.append(text)
    return tuple(found)
