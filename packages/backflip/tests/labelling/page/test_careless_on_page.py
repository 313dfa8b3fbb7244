"""The page tells a person who always presses the same key, in Chromium."""

from collections.abc import Callable
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import add_pairs, serving, set_status
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.medium


@pytest.mark.slow
def test_always_the_same_key_is_told_until_it_changes(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    set_status(tmp_path)
    add_pairs(tmp_path, 60)
    with serving(tmp_path) as server:
        page = open_page(f"{server.address}?who=ann")
        for key in ["ArrowLeft", "ArrowRight"] * 4:
            press(page, key)
        told = page.locator("#careless")
        expect(told).not_to_contain_text("left is ")
        for _ in range(30):
            press(page, "ArrowLeft")
        expect(told).to_contain_text("Please take care: left is ")
        expect(told).to_contain_text("the better clip is on either side equally often")
        for _ in range(8):
            press(page, "ArrowRight")
        # Not empty for sure: answers that ignore the clips differ on repeated pairs.
        expect(told).not_to_contain_text("left is ")


def press(page: Page, key: str) -> None:
    page.wait_for_selector("html[data-shows=pair]")
    page.keyboard.press(key)
