"""The figures of README and docs are what their data files say; the README stays short."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # its programs import each other

import figures  # noqa: E402
import label_savers  # noqa: E402
import rows  # noqa: E402

ROWS: dict[str, Any] = rows.read_rows()
MEASURED = json.loads(figures.MEASURED.read_text())
PROSE = ["README.md", "docs/index.md", "docs/start.md"]
QUANTITY = re.compile(r"\b\d[\d.,]* (?:MB|GB|GiB|kB|s|seconds|minutes|hours)\b")
SCORE = re.compile(r"\d\.\d|±")
PUBLISHED = ("Zoo", "Spinning Up", "CleanRL", "the paper")


@pytest.mark.medium
@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.name)
def test_a_page_of_figures_is_generated_from_the_data_files(page: Path) -> None:
    assert page.read_text() == figures.pages()[page], "type python benchmarks/figures.py"


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_complete_and_has_a_score_for_each_seed(name: str) -> None:
    row = ROWS[name]
    assert re.fullmatch("[0-9a-f]{40}", row.commit)
    assert "--json" not in row.words
    assert row.mean >= row.worst
    if row.scores:
        assert len(row.scores) == len(row.seeds)


def test_the_table_of_label_savers_marks_worst_seeds_that_are_better_without_a_part() -> None:
    def row(scores: list[float]) -> Any:
        return SimpleNamespace(mean=sum(scores) / len(scores), worst=min(scores))

    all_, without = row([1.0, 5.0]), row([2.0, 3.0])
    given = {"saves-Pendulum-all": all_, "saves-Pendulum-additive": without}
    _, lines = label_savers.label_savers(given)
    cells = {line[0]: line[1:3] for line in lines}
    assert cells["the defaults"] == ("3.0 (1.0)", "not measured")
    assert cells[label_savers.IN_WORDS["additive"]][0] == "2.5 (**2.0**)"
    assert set(label_savers.IN_WORDS) == set(label_savers.REMOVED)


def test_figures_that_are_no_rows_name_commit_and_command() -> None:
    for kind in ("interaction", "rivals", "claims"):
        for one in MEASURED[kind]:
            assert re.fullmatch("[0-9a-f]{40}", one["commit"]), one
            assert one["command"], one
    assert {one["row"] for one in MEASURED["rivals"]} <= ROWS.keys()


def test_claims_stand_on_their_pages() -> None:
    for claim in MEASURED["claims"]:
        assert claim["text"] in (ROOT / claim["page"]).read_text(), claim


@pytest.mark.parametrize("page", PROSE)
def test_every_quantity_in_running_text_is_a_claim(page: str) -> None:
    claims = " ".join(one["text"] for one in MEASURED["claims"] if one["page"] == page)
    for quantity in QUANTITY.findall(without_tables(ROOT / page)):
        assert quantity in claims, f"add `{quantity}` to the claims in docs/results/measured.json"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "algorithms").glob("*.md")), ids=str)
def test_scores_in_running_text_cite_the_log_with_a_date(page: Path) -> None:
    """Those of our own runs; a published score names who reports it."""
    section = without_tables(page).partition("## Verified scores")[2]
    for paragraph in section.split("\n\n")[2:]:
        if not re.search(r"\[log\]\(\.\./log\.md\), 20\d\d-\d\d-\d\d", paragraph):
            for sentence in re.split(r"[.;] ", paragraph):
                named = any(name in sentence for name in PUBLISHED)
                assert named or not SCORE.search(sentence), sentence


def without_tables(page: Path) -> str:
    """Return a page without its generated tables."""
    return re.sub(r"<!-- figures: .*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)


def test_a_page_without_the_markers_of_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="found 0"):
        figures.filled("no markers", "ppo", [])


def test_the_readme_has_at_most_500_words() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 500
