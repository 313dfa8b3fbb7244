"""Fixtures for tests of pages in the installed Chromium."""

import shutil
from collections.abc import Callable, Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# The first is what root needs in a container; the others keep Chromium from asking the network.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# How long a page may take to show something: one that shares two cores with a compiler is slow.
expect.set_options(timeout=60_000)


def chromium() -> str:
    """The path of Chromium; without one the test fails."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.fail("the tests of the pages need Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="session")
def browser() -> Generator[Browser, None, None]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Generator[Callable[..., Page], None, None]:
    """A function that opens an address as a person of their own; what goes wrong in pages fails."""
    contexts, wrong = [], []

    def open_page(address: str, *, wait: bool = True, **settings: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 720}} | settings))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        # What the network does is part of some tests; what the policy forbids is part of none.
        page.on("console", lambda m: wrong.append(m.text) if "Security Policy" in m.text else None)
        page.goto(address)
        if wait:
            page.wait_for_selector("html[data-shows=pair]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong
