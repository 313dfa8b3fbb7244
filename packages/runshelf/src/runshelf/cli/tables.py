"""Tables on the terminal."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from runshelf import formatting
from runshelf.terminal_text import harmless

if TYPE_CHECKING:
    from rich.text import Text

    from runshelf.store.results import Result

_STYLES = {
    "running": "bold cyan",
    "finished": "green",
    "failed": "bold red",
    "lost": "bold magenta",
    "stopped": "yellow",
    "interrupted": "yellow",
}
# Columns that are shortened on a narrow terminal.
_LONG = frozenset({"question", "name", "group", "tags", "states", "A", "B"})
_SHORTEST = 8
# The width in characters if stdout is not a terminal.
_WHOLE = 100_000

size_of = formatting.size


def value_of(value: object) -> str:
    """Return a value as typed: a short number, `true`, text; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list | tuple):
        return ",".join(value_of(item) for item in cast("Sequence[object]", value))
    return harmless(value)


def result_text(result: "Result | None", *, named: bool = False) -> str:
    """Return the value of a result, with the name of its metric if `named`; empty for None."""
    if result is None:
        return ""
    value = result.missing if result.value is None else plain(formatting.number(result.value))
    return f"{value} {result.metric}" if named and result.value is not None else value


def plain(text: str) -> str:
    """Return text with minus signs that can be copied into a command."""
    return text.replace("−", "-")


def moment_of(seconds: float) -> str:
    """Return a time in the local time zone, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def print_table(
    columns: Mapping[str, Sequence[object]],
    *,
    right: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> None:
    """Print a table with escaped cells and coloured states, as wide as the terminal at most.

    If stdout is not a terminal, nothing is shortened or coloured.

    Args:
        columns: the cells by heading; all columns have the same number.
        right: headings of right-aligned columns.
        beside: headings of columns whose cells are compared with each other in each row; cells of
            other columns are compared with those above and below. A long cell is cut where it is
            like the others.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = Console()
    width = terminal.width if terminal.is_terminal else 0
    texts = {name: [value_of(cell) for cell in cells] for name, cells in columns.items()}
    widths = _fitted(texts, width, beside) if width else dict.fromkeys(texts)
    texts = _cut({name: texts[name] for name in widths}, widths, beside)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in texts:
        table.add_column(
            Text(harmless(name)),
            justify="right" if name in right else "left",
            overflow="ellipsis",
            no_wrap=True,
            width=widths[name],
        )
    for row in zip(*texts.values(), strict=True):
        table.add_row(*(_styled(name, cell) for name, cell in zip(texts, row, strict=True)))
    Console(width=width or _WHOLE, highlight=False).print(table)


def _cut(
    texts: Mapping[str, list[str]], widths: Mapping[str, int | None], beside: Sequence[str]
) -> dict[str, list[str]]:
    """Return the cells of columns, shortened to their widths; None stands for any width."""
    found = {name: list(cells) for name, cells in texts.items()}
    for name, width in widths.items():
        if width is not None and name not in beside:
            found[name] = formatting.shortened(texts[name], width)
    here = [name for name in beside if widths.get(name)]
    most = min((widths[name] or 0 for name in here), default=0)
    for row in range(len(texts[here[0]]) if here else 0):
        cells = formatting.shortened([texts[name][row] for name in here], most)
        for name, cell in zip(here, cells, strict=True):
            found[name][row] = cell
    return found


def _styled(name: str, cell: str) -> "Text":
    from rich.text import Text

    return Text(cell, _STYLES.get(cell, "") if name == "state" else "")


def _fitted(
    texts: Mapping[str, Sequence[str]], width: int, beside: Sequence[str]
) -> dict[str, int]:
    """Return column widths that fit into `width`.

    The widest of the long columns are shortened. If that is not enough, long columns are left out,
    the last one first, then others. The first two columns and those in `beside` stay.
    """
    from rich.cells import cell_len

    widths = {name: max(map(cell_len, (name, *cells))) for name, cells in texts.items()}
    while sum(widths.values()) + 2 * (len(widths) - 1) > width:
        long = [name for name in widths if name in _LONG]
        widest = max(long, key=widths.__getitem__, default="")
        if widths.get(widest, 0) > _SHORTEST:
            widths[widest] -= 1
        else:
            spare = [name for name in list(widths)[2:] if name not in beside]
            if not spare:
                break
            del widths[next((name for name in reversed(spare) if name in long), spare[-1])]
    return widths
