"""Fixtures for tests of pages in the installed Chromium."""

import shutil
from collections.abc import Callable, Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# Root in a container needs the first; the others keep Chromium from using the network.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Milliseconds. Pages are slow when tests share two cores with a compiler.
expect.set_options(timeout=60_000)


def chromium() -> str:
    """Return the path of Chromium; fail the test if it is not installed."""
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
    """Return a function that opens an address in a new browser context.

    The test fails if a page has a JavaScript error or violates its security policy.
    """
    contexts, problems = [], []

    def open_page(address: str, *, wait: bool = True, **settings: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 720}} | settings))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        # Some tests provoke network errors, which are on the console too; ignore them.
        page.on(
            "console", lambda m: problems.append(m.text) if "Security Policy" in m.text else None
        )
        page.goto(address)
        if wait:
            page.wait_for_selector("html[data-shows=pair]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems
