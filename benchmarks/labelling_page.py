"""Measure the labelling page: the time to paint the next pair and to store an answer.

    python benchmarks/labelling_page.py [--answers 200] [--seconds 60]

A real server process serves clips of the dot to the installed Chromium, headless. For several
people at once, threads send requests as a page does: an answer, then a request for the next pairs,
with an open event stream. Prints a table with the bars.
"""

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from backflip.envs.views.dot import DotView
from backflip.preferences.films import FILMS, Film, write_film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from packages.backflip.tests.labelling.page.prepared_run import (  # noqa: E402
    Server,
    serving,
    set_status,
)
from tests.browser import ARGUMENTS, chromium  # noqa: E402

CLIPS = 64
LABELLERS, RATE = 4, 5.0
# From the key press to the first painted frame with another pair.
WATCH = """() => {
    const root = document.documentElement;
    window.measured = [];
    addEventListener('keydown', event => {
        const before = root.dataset.pair;
        const after = new MessageChannel();
        after.port1.onmessage = () => window.measured.push(performance.now() - event.timeStamp);
        const look = () => {
            const there = root.dataset.shows === 'pair' && root.dataset.pair !== before;
            if (there) after.port2.postMessage(0); // handled once this frame is painted
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    }, true);
}"""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=200, help="keys pressed in the browser")
    parser.add_argument("--seconds", type=float, default=60.0, help="of several people answering")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        films = [dot_film(folder, clip) for clip in range(CLIPS)]
        print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        print("| what | bar | measured |\n|---|---|---|")
        report_keys(*keys(folder / "keys", films, folder / FILMS, options.answers))
        report_answers(folder / "answers", films, options.seconds)
    static = resources.files("backflip.labelling") / "static"
    weight = sum(len(item.read_bytes()) for item in static.iterdir())
    print(f"| script and style | <= 150 kB | {weight / 1000:.1f} kB |")


def dot_film(folder: Path, clip: int) -> Film:
    """Return a film of 25 env steps of the dot, rendered as in `teach dot`."""
    along = np.linspace(0, 1, 51)[:, None]
    ends = np.random.default_rng(clip).uniform([10, 10], [150, 200], (2, 2))
    frames = DotView().draw(ends[0] * (1 - along) + ends[1] * along)
    return write_film(folder / FILMS, frames, fps=30.0, pixelated=True)


def make_pool(folder: Path, films: Sequence[Film], pairs: int) -> None:
    """Prepare a run with a number of pairs."""
    folder.mkdir()
    clip = {"obs": np.zeros((25, 2), np.float32)}
    queries = [
        NewQuery(
            seed=0,
            left=clip,
            right=clip,
            env_steps=0,
            films=({"person": films[n % CLIPS]}, {"person": films[(n * 7 + 1) % CLIPS]}),
            opinion={side: np.full((2, 25), 0.5, np.float32) for side in ("left", "right")},
        )
        for n in range(pairs)
    ]
    with LabelStore.open(folder / "labels.sqlite") as store:
        store.add_queries(queries)
    set_status(folder, budget=pairs)


def keys(
    folder: Path, films: Sequence[Film], drawn: Path, answers: int
) -> tuple[list[float], float]:
    """Press keys; return milliseconds until paint for each, and seconds to the first pair."""
    make_pool(folder, films, answers + 20)
    (folder / FILMS).symlink_to(drawn)
    with serving(folder) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        begun = time.perf_counter()
        page.goto(server.address)
        page.wait_for_selector("html[data-shows=pair]")
        first = time.perf_counter() - begun
        page.evaluate(WATCH)
        for count in range(answers):
            page.keyboard.press(("ArrowLeft", "ArrowRight")[count % 2])
            page.wait_for_timeout(200)
        measured = page.evaluate("window.measured")
        browser.close()
    assert len(measured) == answers
    return measured, first


def report_keys(measured: list[float], first: float) -> None:
    """Print the times until paint."""
    print(f"| address opened to first pair | | {first:.2f} s |")
    print(f"| key to next pair painted, median | <= 50 ms | {statistics.median(measured):.1f} ms |")
    print(f"| the same, worst of {len(measured)} | <= 150 ms | {max(measured):.1f} ms |")


def report_answers(folder: Path, films: Sequence[Film], seconds: float) -> None:
    """Let several people answer at once and print the times until an answer was stored."""
    make_pool(folder, films, 1500)
    with serving(folder) as server:
        people = [Labeller(server, f"person {n}", seconds) for n in range(LABELLERS)]
        for person in people:
            person.start()
        for person in people:
            person.join()
    took = sorted(milliseconds for person in people for milliseconds in person.took)
    errors = [error for person in people for error in person.errors]
    given = [query for person in people for query in person.given]
    twice = len(given) - len(set(given))
    p99 = took[int(0.99 * len(took))]
    print(
        f"| {LABELLERS} people, {len(took)} answers in {seconds:g} s: errors | 0 | {len(errors)} |"
    )
    print(f"| pairs given twice | 0 | {twice} |")
    print(f"| answer kept, median | | {statistics.median(took):.1f} ms |")
    print(f"| answer kept, p99 | <= 100 ms | {p99:.1f} ms (worst {took[-1]:.1f}) |")
    for error in errors[:3]:
        print(error, file=sys.stderr)


class Labeller(threading.Thread):
    """A person who answers at a constant rate, with the requests of a page."""

    def __init__(self, server: Server, who: str, seconds: float) -> None:
        super().__init__()
        self.server, self.who, self.seconds = server, who, seconds
        self.token = server.get("/").body.decode().split('token" content="')[1][:64]
        self.took: list[float] = []
        self.errors: list[str] = []
        self.given: list[int] = []

    def run(self) -> None:
        """Answer until the time is over."""
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        with self.server.events():
            begun = time.perf_counter()
            for turn in range(int(self.seconds * RATE)):
                self._wait_until(begun + turn / RATE)
                self._turn(turn)
        self.connection.close()

    def _turn(self, turn: int) -> None:
        pairs = self._post("take", who=self.who, without=[])["pairs"]
        query = pairs[0]["query"]
        attempt = f"{self.who} {turn:06d}"
        begun = time.perf_counter()
        self._post("answer", who=self.who, query=query, answer="left", seconds=0.2, attempt=attempt)
        self.took.append(1000 * (time.perf_counter() - begun))
        self.given.append(query)

    def _wait_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - time.perf_counter()))

    def _post(self, what: str, **fields: object) -> dict[str, list[dict[str, int]]]:
        headers = {"Content-Type": "application/json", "X-Token": self.token}
        self.connection.request("POST", f"/api/{what}", json.dumps(fields), headers)
        answer = self.connection.getresponse()
        told = json.loads(answer.read())
        if answer.status != 200:
            self.errors.append(str(told))
        return told


if __name__ == "__main__":
    main()
