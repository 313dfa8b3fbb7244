"""Write docs/results.md from the data files in docs/scores and docs/results.

    python benchmarks/results_page.py

A test compares the page with the output of this program, so numbers change only with data files.
"""

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
SCORES = ROOT / "docs" / "scores"
MEASURED = ROOT / "docs" / "results" / "measured.json"

INTRO = """\
# Results

Every result, with the misses. Two CPU cores, no GPU. A return is the true return of the final
policy over fresh evaluation episodes, never the learned reward. "Loaded" means that other work
shared the cores, so the time is an upper bound and the score is unaffected.

`python benchmarks/results_page.py` writes this page from `docs/scores/*.json` and
`docs/results/measured.json`. [The log](log.md) has the dated runs and what was tried.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """Return the page as Markdown."""
    measured = json.loads(MEASURED.read_text())
    scores = [json.loads(path.read_text()) for path in sorted(SCORES.glob("*.json"))]
    parts = [
        INTRO,
        "## Teaching from comparisons\n",
        *table(
            ("task", "labels", "seeds", "bar", "mean", "worst seed", "seconds", "met"),
            [teaching_row(row) for row in measured["teaching"]],
        ),
        "Commands:\n",
        *commands(measured["teaching"]),
        "## Training from the environment's reward\n",
        "One row for each file in `docs/scores`, which also holds the command, the commit, the "
        "machine and the return of every seed.\n",
        *table(
            (
                "algorithm",
                "environment",
                "env steps",
                "seeds",
                "bar",
                "mean ± 95 %",
                "worst",
                "s",
                "met",
            ),
            [score_row(score) for score in scores],
        ),
        "Other runs:\n",
        *table(
            ("task", "seeds", "bar", "mean", "worst seed", "seconds", "met"),
            [training_row(row) for row in measured["training"]],
        ),
        "## Interaction\n",
        *table(
            ("what", "bar", "reached", "met"),
            [
                (row["task"], row["asked"], row["reached"], met(row))
                for row in measured["interaction"]
            ],
        ),
    ]
    return "\n".join(parts)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table, then an empty line."""
    return [line(head), line(tuple("---" for _ in head)), *map(line, rows), ""]


def line(cells: tuple[str, ...]) -> str:
    """Return one row of a table."""
    return "| " + " | ".join(cells) + " |"


def teaching_row(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row about teaching."""
    first = training_row(row)
    return (first[0], str(row["labels"]), *first[1:])


def training_row(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row about training without a score file."""
    first, count = row["seeds"]
    numbers = (number(row["mean"], row["unit"]), number(row["worst"], row["unit"]))
    task = row["task"] + (f" ({row['note']})" if "note" in row else "")
    return (task, spread(first, count), row["asked"], *numbers, seconds(row), met(row))


def score_row(score: dict[str, Any]) -> tuple[str, ...]:
    """Return a row for a score file."""
    words = shlex.split(score["command"])
    environment = words[3] + variant(words)
    seeds = score["seeds"]
    bar = "none" if score["asked_for"] is None else f">= {score['asked_for']:g}"
    reached = score["asked_for"] is None or score["mean"] >= score["asked_for"]
    margin = "" if score["margin"] is None else f" ± {score['margin']:.1f}"
    return (
        words[2],
        environment,
        f"{score['env_steps']:,}",
        spread(seeds[0], len(seeds)),
        bar,
        f"{score['mean']:.1f}{margin}",
        f"{score['worst']:.1f}",
        f"{score['seconds']:.0f}",
        "" if score["asked_for"] is None else ("yes" if reached else "no"),
    )


def variant(words: list[str]) -> str:
    """Return the settings and environment arguments of a command, in brackets."""
    given = [b for a, b in pairwise(words) if a in ("--set", "--env-arg")]
    return f" (`{' '.join(given)}`)" if given else ""


def spread(first: int, count: int) -> str:
    """Return a range of seeds."""
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def number(value: float, unit: str) -> str:
    """Return a share with three decimals, a return with one."""
    return f"{value:.3f}" if unit == "share" else f"{value:.1f}"


def seconds(row: dict[str, Any]) -> str:
    """Return the wall-clock time; empty if unknown."""
    if "seconds" not in row:
        return ""
    return f"{row['seconds']:.0f}" + (" loaded" if row.get("loaded") else "")


def met(row: dict[str, Any]) -> str:
    """Return whether the bar is met."""
    return "yes" if row["met"] else "no"


def commands(rows: list[dict[str, Any]]) -> list[str]:
    """Return the distinct commands of rows as a code block."""
    return ["```text", *dict.fromkeys(row["command"] for row in rows), "```", ""]


if __name__ == "__main__":
    main()
