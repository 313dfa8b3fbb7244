"""Write the figures of README and docs from the data in docs/scores and docs/results.

    python benchmarks/figures.py

It writes docs/results.md, and the tables between `<!-- figures: NAME -->` and `<!-- end -->` in
README.md, docs/statistics.md and docs/algorithms/*.md. A test compares the pages with it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import label_savers
import statistics_tables
from rows import ROOT, Row, read_rows

README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "results.md"
ALGORITHMS = ROOT / "docs" / "algorithms"
STATISTICS = ROOT / "docs" / "statistics.md"
MEASURED = ROOT / "docs" / "results" / "measured.json"
SHORT_COMMIT = 8

INTRO = """\
# Results

Every result, with the misses. Two CPU cores, no GPU. A return is the true return of the final
policy over fresh evaluation episodes, never the learned reward. "Loaded" means that other work
shared the cores, so the time is an upper bound and the score is unaffected. "Commit" is the code
that was measured: its defaults may differ from those of today. A mean has half of its 95 %
interval over seeds (Student's t). So has the share of another row, which counts the seeds of
both. It is wide where some of five seeds find a poorer way to move: such a share does not tell 80
from 110 %.

`python benchmarks/figures.py` writes this page, and the tables of the README and of the algorithms,
from `docs/scores/*.json` and `docs/results/measured.json`. `make battery` measures the rows again
and says which no longer hold. [The log](log.md) has the dated runs and what was tried.

![Every seed of the tasks that were taught, with the mean and the bar](pictures/taught.svg)
"""
# Rows of the README: file in docs/scores, first cell.
HIGHLIGHTS = {
    "teach-dot-goal-50-60": "`teach dot`, share of the optimum",
    "teach-Pendulum-v1": "`teach Pendulum-v1`",
    "teach-MinAtar-Breakout-1000": "`teach MinAtar/Breakout-v1`",
    "teach-Pong-1000": "`teach ALE/Pong-v5`",
    "ppo-CartPole-v1-first": "`train ppo CartPole-v1`",
    "ppo-MinAtar-Breakout-v1": "`train ppo MinAtar/Breakout-v1`",
}
# What papers report for rows of the README: the figure and its source.
PUBLISHED = {
    "teach-Pong-1000": "Rahtz 2018: 19, 208 core-hours",
}


def main() -> None:
    """Write all pages."""
    for path, text in pages().items():
        path.write_text(text)


def pages() -> dict[Path, str]:
    """Return the text of every page with figures."""
    rows = {name: row for name, row in read_rows().items() if row.commit}
    measured = json.loads(MEASURED.read_text())
    found = {RESULTS: results_page(rows, measured)}
    found[README] = filled(README.read_text(), "highlights", highlights(rows, measured["rivals"]))
    found[STATISTICS] = STATISTICS.read_text()
    for name, (head, cells) in statistics_tables.tables().items():
        found[STATISTICS] = filled(found[STATISTICS], name, table(head, cells))
    for name in sorted({row.words[2] for row in rows.values() if row.words[1] == "train"}):
        path = ALGORITHMS / f"{name}.md"
        found[path] = filled(path.read_text(), name, scores_of(name, rows))
    return found


def filled(text: str, name: str, lines: Sequence[str]) -> str:
    """Return a page with the lines of a table between its markers.

    Raises:
        ValueError: the page does not have the markers once.
    """
    pattern = rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)"
    between = "\n".join(("", *lines, ""))  # Markdown needs an empty line before a table
    text, count = re.subn(pattern, lambda m: m[1] + between + m[2], text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"a page needs `<!-- figures: {name} -->` once, found {count}")
    return text


def results_page(rows: Mapping[str, Row], measured: Mapping[str, Any]) -> str:
    """Return docs/results.md."""
    taught = [
        row
        for name, row in rows.items()
        if row.words[1] != "train" and not name.startswith(label_savers.PREFIX)
    ]
    trained = [row for row in rows.values() if row.words[1] == "train"]
    head = ("bar", "mean ± 95 %", "worst", "s", "met", "commit", "command")
    parts = [
        INTRO,
        "## Teaching from comparisons\n",
        *table(("task", "labels", "seeds", *head), map(teaching_cells, taught)),
        "## What saves labels\n",
        label_savers.INTRO,
        *table(*label_savers.label_savers(rows)),
        "## Training from the environment's reward\n",
        "One row for each file in `docs/scores`, which also holds the machine and the return of "
        "every seed.\n",
        *table(
            ("algorithm", "environment", "env steps", "seeds", *head), map(training_cells, trained)
        ),
        "## Interaction\n",
        *table(
            ("what", "bar", "reached", "met", "commit", "command"),
            map(interaction_cells, measured["interaction"]),
        ),
        "## Other figures\n",
        "Figures in running text, and those of other programs. `benchmarks/README.md` says how the "
        "programs are compared.\n",
        *table(
            ("figure", "where", "commit", "command"),
            [
                *(claim_cells(one["text"], one["page"], one) for one in measured["claims"]),
                *(claim_cells(one["text"], "README.md", one) for one in measured["rivals"]),
            ],
        ),
    ]
    return "\n".join(parts)


def highlights(rows: Mapping[str, Row], rivals: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the table of the README."""
    rival_of = {one["row"]: one["text"] for one in rivals}
    cells = [
        (
            f"{words}, {len(rows[name].seeds)} seeds",
            str(rows[name].labels or ""),
            *(number(x, rows[name].unit) for x in (rows[name].mean, rows[name].worst)),
            seconds(rows[name]),
            rival_of.get(name, PUBLISHED.get(name, "none published")),
        )
        for name, words in HIGHLIGHTS.items()
    ]
    return table(("task", "labels", "mean", "worst seed", "seconds", "best rival"), cells)


def scores_of(algorithm: str, rows: Mapping[str, Row]) -> list[str]:
    """Return the table of an algorithm's page."""
    head = ("environment", "env steps", "seeds", "return", "worst seed", "commit", "command")
    cells = [
        (
            environment(row),
            f"{row.env_steps:,}",
            spread(row.seeds),
            with_margin(row),
            number(row.worst, row.unit),
            row.commit[:SHORT_COMMIT],
            f"`{row.command}`" + (f" ({row.note})" if row.note else ""),
        )
        for row in rows.values()
        if row.words[1:3] == ["train", algorithm]
    ]
    return table(head, cells)


def table(head: Sequence[str], rows: Any) -> list[str]:
    """Return the lines of a Markdown table, then an empty line."""
    return [line(head), line(["---" for _ in head]), *map(line, rows), ""]


def line(cells: Sequence[str]) -> str:
    """Return one row of a table."""
    return "| " + " | ".join(cells) + " |"


def teaching_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row about teaching."""
    task = row.words[2] if row.words[1] == "teach" else option(row.words, "--env") or "dot"
    task += f" ({row.note})" if row.note else ""
    return (task, str(row.labels), spread(row.seeds), *common_cells(row))


def option(words: Sequence[str], name: str) -> str:
    """Return the value of an option; empty if it is not given."""
    return words[words.index(name) + 1] if name in words else ""


def training_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row about training."""
    name = environment(row) + (f" ({row.note})" if row.note else "")
    return (row.words[2], name, f"{row.env_steps:,}", spread(row.seeds), *common_cells(row))


def common_cells(row: Row) -> tuple[str, ...]:
    """Return the cells that rows about training and teaching share."""
    met = ("no" if row.missed else "yes") if row.bar else ""
    numbers = (bar(row), with_margin(row), number(row.worst, row.unit), seconds(row))
    return (*numbers, met, row.commit[:SHORT_COMMIT], f"`{row.command}`")


def interaction_cells(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row about interaction."""
    met = "yes" if entry["met"] else "no"
    return (entry["task"], entry["asked"], entry["reached"], met, *source_cells(entry))


def claim_cells(text: str, page: str, entry: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cells of a figure in running text."""
    return (text, f"`{page}`", *source_cells(entry))


def source_cells(entry: Mapping[str, str]) -> tuple[str, str]:
    """Return the cells that say where a figure comes from."""
    return entry["commit"][:SHORT_COMMIT], f"`{entry['command']}`"


def environment(row: Row) -> str:
    """Return the environment of a row, with the settings of its command."""
    given = [b for a, b in pairwise(row.words) if a in ("--set", "--env-arg")]
    return row.words[3] + (f" (`{' '.join(given)}`)" if given else "")


def spread(seeds: Sequence[int]) -> str:
    """Return a range of seeds."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]}"


def bar(row: Row) -> str:
    """Return the bar of a row in words."""
    words = {
        "mean": "mean >= {}",
        "worst": "each >= {}",
        "all_but_one": "all but one >= {}",
        "share": f"{{}} of `{row.against}`",
        "seconds": "{} s",
    }
    texts = {key: f"{x:.0%}" if key == "share" else f"{x:g}" for key, x in row.bar.items()}
    return ", ".join(words[key].format(text) for key, text in texts.items()) or "none"


def number(value: float, unit: str) -> str:
    """Return a share with three decimals, a return with one."""
    return f"{value:.3f}" if unit == "share" else f"{value:.1f}"


def with_margin(row: Row) -> str:
    """Return the mean, with its margin if that is known."""
    margin = "" if row.margin is None else f" ± {number(row.margin, row.unit)}"
    return number(row.mean, row.unit) + margin + share(row)


def share(row: Row) -> str:
    """Return the share of the row that it is compared with, in brackets; empty without one."""
    if row.share is None:
        return ""
    margin = "" if row.share_margin is None else f" ± {row.share_margin:.0%}"
    return f" ({row.share:z.0%}{margin})"


def seconds(row: Row) -> str:
    """Return the wall-clock time; empty if unknown."""
    if row.seconds is None:
        return ""
    return f"{row.seconds:.0f}" + (" loaded" if row.loaded else "")


if __name__ == "__main__":
    main()
