"""Teach the dot through the page with a scripted person in Chromium, end to end.

    python benchmarks/human_dot.py [--seed 0] [--seconds 1.5] [--mistakes 0.05] [--env dot]
        [--env-arg goal=50,60]

The person waits `--seconds`, then presses the key of the clip with the larger true return, or with
probability `--mistakes` the other one. Prints the share of the optimum and the wall-clock time of
the command, with the bars.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright
from side_by_side import BACKFLIP, ROOT

from backflip.preferences.labels import LabelStore
from runshelf.store.run import list_runs

sys.path.insert(0, str(ROOT))

from tests.browser import ARGUMENTS, chromium


def main() -> None:
    """Teach, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="dot")
    parser.add_argument("--env-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0, help="of the run and of the mistakes")
    parser.add_argument("--seconds", type=float, default=1.5, help="per answer")
    parser.add_argument("--mistakes", type=float, default=0.05, help="share of wrong answers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        began = time.monotonic()
        with teaching(options, Path(home)) as trainer:
            answers, first = label(Path(home), trainer, options)
            output, _ = trainer.communicate(timeout=600)
        seconds = time.monotonic() - began
    print_table(json.loads(output), answers, first - began, seconds)


@contextmanager
def teaching(
    options: argparse.Namespace, home: Path
) -> "Generator[subprocess.Popen[str], None, None]":
    """Run the `teach` command until the context ends."""
    command = [str(BACKFLIP), "teach", options.env, "--teacher", "human", "--no-open", "--json"]
    command += ["--seed", str(options.seed), "--home", str(home)]
    command += [part for text in options.env_arg for part in ("--env-arg", text)]
    trainer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield trainer
    finally:
        trainer.kill()
        trainer.wait()


def label(
    home: Path, trainer: "subprocess.Popen[str]", options: argparse.Namespace
) -> tuple[int, float]:
    """Answer until the trainer ends; return the number of answers and when the first pair came."""
    rng, answers, first = random.Random(options.seed), 0, 0.0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        folder = open_page(page, home)
        with LabelStore.open(folder / "labels.sqlite") as store:
            while trainer.poll() is None:
                pair = shown(page)
                if pair is None:
                    time.sleep(0.05)
                    continue
                first = first or time.monotonic()
                time.sleep(options.seconds)
                press(page, store, pair, rng.random() < options.mistakes)
                answers += 1
        browser.close()
    return answers, first


def open_page(page: Page, home: Path) -> Path:
    """Open the page of the only run; return the run's folder."""
    while True:
        for run in list_runs(home):
            folder = home / "runs" / run
            if (folder / "page.json").exists():
                port = json.loads((folder / "page.json").read_text())["port"]
                page.goto(f"http://127.0.0.1:{port}/")
                return folder
        time.sleep(0.05)


def shown(page: Page) -> int | None:
    """Return the pair on the screen, or None."""
    try:
        there: Any = page.evaluate(
            "() => { const { shows, pair } = document.documentElement.dataset;"
            " return shows === 'pair' ? Number(pair) : null; }"
        )
    except Error:  # the page is loading
        return None
    return there


def press(page: Page, store: LabelStore, pair: int, mistaken: bool) -> None:
    """Press the key of the better clip, or of the other one."""
    left, right = (float(clip["reward"].sum()) for clip in store.clips(pair))
    if abs(left - right) < 1e-6:
        key = "ArrowUp"
    else:
        key = "ArrowLeft" if (left > right) != mistaken else "ArrowRight"
    page.keyboard.press(key)


def print_table(result: dict[str, Any], answers: int, first: float, seconds: float) -> None:
    """Print the results with the bars."""
    print("| what | value | bar |")
    print("|---|---|---|")
    if result.get("score"):
        print(f"| share of the optimum | {result['score'][0]:.3f} | at least .90 |")
    else:
        print(f"| true return | {result['returns'][0]:.1f} | |")
    print(f"| wall clock | {seconds:.0f} s | at most 360 s |")
    print(f"| first pair on the screen | {first:.1f} s | |")
    print(f"| labels, answers with repeats | {result['labels']}, {answers} | |")


if __name__ == "__main__":
    main()
