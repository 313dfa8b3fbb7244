"""Cells of the tables of docs/statistics.md, from the data that benchmarks/statistics writes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
TOO_LOW = 0.90

Table = tuple[Sequence[str], list[Sequence[str]]]  # head and rows


def tables() -> dict[str, Table]:
    """Return each table by the name of its markers."""
    measured = json.loads((RESULTS / "coverage.json").read_text())
    found = {part: of_rows(measured[part]["rows"], part) for part in measured}
    cheetah = json.loads((RESULTS / "half_cheetah.json").read_text())
    found["cheetah-coverage"] = of_rows(cheetah["coverage"], "mean")
    found["cheetah-findings"] = of_rows(cheetah["findings"], "permutation")
    found["rliable"] = beside_rliable(
        json.loads((RESULTS / "against_rliable.json").read_text())["rows"]
    )
    return found


def of_rows(rows: Sequence[Mapping[str, Any]], part: str) -> Table:
    """Return a table with the rows of a data file; coverage that is too low is bold."""
    covers = part not in ("permutation", "sequential")
    return list(rows[0]), [[cell(k, v, covers) for k, v in row.items()] for row in rows]


def cell(column: str, value: Any, covers: bool) -> str:
    """Return a cell: text and n as they are, shares with three decimals."""
    if isinstance(value, str) or column == "n":
        return str(value)
    if column == "works":
        return f"{value:.0%}".replace("%", " %")
    text = f"{value:.2f}" if column == "width" else f"{value:.3f}".lstrip("0")
    return f"**{text}**" if covers and column != "width" and value < TOO_LOW else text


def beside_rliable(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of aggregates, ours beside rliable's."""
    head = ("group", "aggregate", "both", "our interval", "rliable's interval")
    cells = [
        (
            row["group"],
            row["what"].replace("_", " "),
            f"{row['ours'][0]:.3f}",
            *(f"{ends[1]:.3f} to {ends[2]:.3f}" for ends in (row["ours"], row["theirs"])),
        )
        for row in rows
    ]
    return head, cells
