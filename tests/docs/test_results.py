"""The page of results is what its data files say; the README stays short."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def generated() -> str:
    """Return the page as `benchmarks/results_page.py` writes it."""
    path = ROOT / "benchmarks" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_the_page_is_generated_from_the_data_files() -> None:
    written = (ROOT / "docs" / "results.md").read_text()
    assert written == generated(), "type python benchmarks/results_page.py"


def test_every_score_file_has_a_row() -> None:
    rows = generated().count("\n| ") - generated().count("\n| ---")
    assert rows > len(list((ROOT / "docs" / "scores").glob("*.json")))


def test_the_readme_has_at_most_500_words() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 500
