"""A comparison as a document: sections of sentences and tables, in Markdown, LaTeX or CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from runshelf.csv_cells import csv_cell
from runshelf.terminal_text import harmless

_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "–": "--",
    "…": r"\ldots{}",
}


@final
class Table(NamedTuple):
    """A table of texts.

    Attributes:
        title: what it shows, one line.
        heads: the headings; they differ from each other.
        rows: the cells of each row.
        right: the headings of right-aligned columns.
        beside: the headings of columns whose cells are compared with each other in each row.
    """

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Section:
    """A part of the document.

    Attributes:
        title: its heading.
        lines: sentences, before the tables.
        tables: the tables.
        kind: `registered`, `exploratory`, or empty.
        pictures: what a page with pictures draws in it: the place of an analysis, and an
            environment or `across`; None for nothing.
    """

    title: str
    lines: list[str] = field(default_factory=list[str])
    tables: list[Table] = field(default_factory=list[Table])
    kind: str = ""
    pictures: tuple[int, str] | None = None


@final
@dataclass(frozen=True)
class Document:
    """Sections in their order, under a title."""

    title: str
    sections: list[Section]

    def tables(self) -> list[Table]:
        """Return all tables."""
        return [table for section in self.sections for table in section.tables]


def markdown(document: Document) -> str:
    """Return a document in Markdown."""
    lines = [f"# {_markdown(document.title)}", ""]
    for section in document.sections:
        lines += [f"## {_markdown(section.title)}", ""]
        lines += [f"- {_markdown(line)}" for line in section.lines]
        lines += [""] if section.lines else []
        for table in section.tables:
            lines += [*_markdown_table(table), ""]
    return "\n".join(lines)


def latex(document: Document) -> str:
    """Return a document as a fragment of LaTeX, which needs no package."""
    parts = [f"% {' '.join(harmless(document.title).split())}"]
    for section in document.sections:
        parts += [f"\\paragraph{{{_latex(section.title)}}}", ""]
        parts += [f"{_latex(line)}\n" for line in section.lines]
        parts += [_latex_table(table) for table in section.tables]
    return "\n".join(parts) + "\n"


def csv_text(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV; a text that a spreadsheet would compute begins with a quote."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(heads)
    for row in rows:
        table.writerow([csv_cell(cell) for cell in row])
    return text.getvalue()


def _markdown_table(table: Table) -> Iterator[str]:
    yield f"{_markdown(table.title)}"
    yield ""
    yield f"| {' | '.join(map(_markdown, table.heads))} |"
    yield f"|{'|'.join('---:' if head in table.right else '---' for head in table.heads)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_markdown, row))} |"


def _markdown(text: str) -> str:
    plain = " ".join(harmless(text).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in plain)


def _latex_table(table: Table) -> str:
    columns = "".join("r" if head in table.right else "l" for head in table.heads)
    lines = [
        f"{_latex(table.title)}\\\\",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\hline",
        " & ".join(map(_latex, table.heads)) + r" \\",
        "\\hline",
        *(" & ".join(map(_latex, row)) + r" \\" for row in table.rows),
        "\\hline",
        "\\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in " ".join(harmless(text).split()))
