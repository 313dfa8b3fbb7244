"""Measure the archive's pages in Chromium: 10,000 runs with 100 metrics each.

    python benchmarks/many_runs.py HOME --runs 10000 --metrics 100 --points 20 --long 20x10000
    python benchmarks/pages.py HOME [--times 15]

The server is a real process. The browser has scripts and styles of the pages in its cache. A page
is timed from the start of the navigation to the frame after it is complete. The charts of the group
are computed each time, with an axis, smoothing or scale that was not requested before. Prints a
table with the bars.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from packages.runshelf.tests.web.pages import serving  # noqa: E402
from tests.browser import ARGUMENTS, chromium  # noqa: E402

# Resolves at the start of the frame after the one in which the page was complete.
PAINTED = """() => new Promise(done => {
    const after = () => requestAnimationFrame(() => setTimeout(() => done(performance.now())));
    if (document.readyState === 'complete') after(); else addEventListener('load', after);
})"""
FILTERS = (
    "env=CartPole-v1",
    "algorithm=ppo env~Pong -state=failed",
    "matter",
    "seed=3 tag=paper",
    "state=finished created>2020",
    "learning_rate<0.01",
    "loss",
    "-question~wider",
    "metric.train/loss<0.5",
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with serving(options.home) as server, sync_playwright() as playwright:
        wait_until_read(server.address)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        print("| what | bar | median | slowest |\n|---|---|---|---|")
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        painted(page, server.address)
        measure(page, server.address, options.times)
        browser.close()
        memory = re.findall(r"VmHWM:\s+(\d+)", status_of(server.process.pid))
        print(f"| memory of the server, largest | <= 300 MB | {int(memory[0]) / 1000:.0f} MB | |")


def measure(page: Page, address: str, times: int) -> None:
    """Time every kind of page."""
    first = [painted(page, address) for _ in range(times)]
    report("first page of the table, groups", 150, first)
    first = [painted(page, f"{address}?show=runs") for _ in range(times)]
    report("first page of the table, runs", 150, first)
    empty = [painted(page, f"{address}nothing-here") for _ in range(times)]
    report("a page of one sentence, for comparison", 150, empty)
    again = [painted(page, f"{address}?show=runs", leave=False) for _ in range(times)]
    report("the table, from another page of backflip", 150, again)
    for show in ("runs", "groups"):
        of_each: list[float] = []
        for text in FILTERS:
            query = urlencode({"show": show, "filter": text})
            of_each += [painted(page, f"{address}?{query}") for _ in range(3)]
        report(f"{len(FILTERS)} filters, {show}", 300, of_each)
    views = [
        {"x": axis, "smooth": smooth, "log": log}
        for axis in ("env_steps", "updates", "seconds")
        for smooth in ("0", "2", "5", "10", "20")
        for log in ("0", "1")
    ]
    drawn = [
        painted(page, f"{address}group?{urlencode({'name': 'long', **view})}")
        for view in views[:times]
    ]
    report("a group of 20 runs x 10,000 points, computed again", 300, drawn)


def painted(page: Page, address: str, leave: bool = True) -> float:
    """Return the milliseconds until a page is painted.

    When the previous page is of another site, Chromium first starts a process.
    """
    if leave:
        page.goto("about:blank")
    page.goto(address, wait_until="commit")
    milliseconds: float = page.evaluate(PAINTED)
    return milliseconds


def report(what: str, bar: int, times: Sequence[float]) -> None:
    """Print a row of the table."""
    print(f"| {what} | <= {bar} ms | {statistics.median(times):.0f} ms | {max(times):.0f} ms |")


def wait_until_read(address: str) -> None:
    """Wait until the index has all runs; the first time this takes a minute or two."""
    begun = time.monotonic()
    while "reading run folders" in urllib.request.urlopen(address).read().decode():
        time.sleep(1)
    print(json.dumps({"seconds until all runs are in the index": time.monotonic() - begun}))


def status_of(pid: int) -> str:
    """Return the system's status of a process."""
    return Path(f"/proc/{pid}/status").read_text()


if __name__ == "__main__":
    main()
