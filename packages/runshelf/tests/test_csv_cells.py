"""Cells of CSV files, for spreadsheets and for programs."""

import pytest

from runshelf.csv_cells import csv_cell


@pytest.mark.parametrize(
    "text", ["=1+1", "+a", "-a", "@a", "\t=1", "\r=1", "\n=1", "\0=1", "-1 =2"]
)
def test_a_text_that_begins_like_a_formula_is_quoted(text: str) -> None:
    assert csv_cell(text) == "'" + text.replace("\0", "")


@pytest.mark.parametrize("value", [-1.5, -1, None, True, "a=1", "", "-150.5 -1e-05 nan", "-inf"])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert csv_cell(value) == value
