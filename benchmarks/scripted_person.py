"""Teach through the page with a scripted person in Chromium, end to end: the dot, or `--env`.

    python benchmarks/scripted_person.py [--seed 0] [--seconds 1.5] [--mistakes 0.05] [--env dot]
        [--env-arg goal=50,60] [--labels 150] [--set NAME=VALUE] [--person oracle]
        [--keep FOLDER]

The person waits `--seconds`, then presses the key of the clip with the larger true return, or with
probability `--mistakes` the other one. `--person module:function` prefers what a teacher of
docs/examples prefers; with the backflip's, complete backward turns are counted. Prints the share of
the optimum, the wall-clock time of the command, and the share of the time from the first pair to
the last answer in which a pair was on the screen, with the bars. Last come the answers that differ
from what the person prefers: as many as mistakes, unless the page mixes pairs up. `--keep` keeps
the run in a folder.
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
from typing import Any, NamedTuple

import numpy as np
from backflips import turns_of_run
from playwright.sync_api import Error, Page, sync_playwright
from side_by_side import BACKFLIP, ROOT

from backflip.preferences.clips import from_arrays
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.teacher_query import ShownClip, TeacherQuery
from backflip.preferences.teachers import Teacher, parse_teacher
from runshelf.index.location import cache_folder
from runshelf.store.finding import list_runs

sys.path.insert(0, str(ROOT))

from tests.browser import ARGUMENTS, chromium

KEYS = {"left": "ArrowLeft", "right": "ArrowRight", "tie": "ArrowUp"}
OTHER = {"left": "right", "right": "left", "tie": "tie"}


def main() -> None:
    """Teach, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--env", default="dot")
    parser.add_argument("--env-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--labels", type=int, default=150)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=0, help="of the run and of the mistakes")
    parser.add_argument("--seconds", type=float, default=1.5, help="per answer")
    parser.add_argument("--mistakes", type=float, default=0.05, help="share of wrong answers")
    parser.add_argument("--person", default="oracle", help="`oracle`, or module:function")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the run here")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "docs" / "examples"))
    with tempfile.TemporaryDirectory() as temporary:
        home = options.keep or Path(temporary)
        began = time.monotonic()
        with teaching(options, home) as trainer:
            labelled = label(home, trainer, options)
            output, _ = trainer.communicate(timeout=3600)
        seconds = time.monotonic() - began
        print_table(json.loads(output), labelled, began, seconds)
        (run,) = list_runs(home)
        folder = home / "runs" / run
        print_wrong(folder, options)
        if options.person.startswith("backflip_teacher:"):
            turns = turns_of_run(folder)
            print(f"| complete backward turns in 1,000 env steps | {turns[0]:.1f} | at least 5 |")


class Labelled(NamedTuple):
    """What the person did.

    Attributes:
        answers: the number of answers, of repeats too.
        first: when the first pair was on the screen.
        last: when the last pair was answered.
        waits: seconds without a pair on the screen after each answer but the last.
    """

    answers: int
    first: float
    last: float
    waits: list[float]

    @property
    def ready(self) -> float:
        """The share of the time in which a pair was on the screen."""
        return 1 - sum(self.waits) / max(self.last - self.first, 1e-9)


@contextmanager
def teaching(
    options: argparse.Namespace, home: Path
) -> "Generator[subprocess.Popen[str], None, None]":
    """Run the `teach` command until the context ends."""
    command = [str(BACKFLIP), "teach", options.env, "--teacher", "human", "--no-open", "--json"]
    command += ["--seed", str(options.seed), "--home", str(home)]
    command += [part for text in options.env_arg for part in ("--env-arg", text)]
    command += ["--labels", str(options.labels)]
    command += [part for text in options.set for part in ("--set", text)]
    trainer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield trainer
    finally:
        trainer.kill()
        trainer.wait()


def label(home: Path, trainer: "subprocess.Popen[str]", options: argparse.Namespace) -> Labelled:
    """Answer until the trainer ends."""
    rng, done = random.Random(options.seed), Labelled(0, 0.0, 0.0, [])
    person = parse_teacher(options.person)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        folder = open_page(page, home)
        with LabelStore.open(folder / LABELS) as store:
            while trainer.poll() is None:
                pair, now = shown(page), time.monotonic()
                if pair is None:
                    time.sleep(0.05)
                    continue
                waits = [*done.waits, now - done.last] if done.answers else []
                time.sleep(options.seconds)
                answer = wanted(person, store, pair, options.env)
                if rng.random() < options.mistakes:
                    answer = OTHER[answer]
                page.keyboard.press(KEYS[answer])
                done = Labelled(done.answers + 1, done.first or now, time.monotonic(), waits)
        browser.close()
    return done


def open_page(page: Page, home: Path) -> Path:
    """Open the page of the only run; return the run's folder."""
    while True:
        for run in list_runs(home):
            folder = home / "runs" / run
            kept = cache_folder(folder) / "page.json"
            if kept.exists():
                port = json.loads(kept.read_text())["port"]
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


def wanted(person: Teacher, store: LabelStore, pair: int, env: str) -> str:
    """Return the person's answer to a pair."""
    left, right = (from_arrays(clip) for clip in store.clips(pair))
    shown = [
        ShownClip(env, c.obs, c.action, c.next_obs, c.reward, c.alive, lambda: np.zeros(0))
        for c in (left, right)
    ]
    return person.answer(TeacherQuery(*shown), np.random.default_rng(0))


def print_table(result: dict[str, Any], labelled: Labelled, began: float, seconds: float) -> None:
    """Print the results with the bars."""
    print("| what | value | bar |")
    print("|---|---|---|")
    if result.get("score"):
        print(f"| share of the optimum | {result['score'][0]:.3f} | at least .90 |")
    else:
        print(f"| true return | {result['returns'][0]:.1f} | |")
    bar = "at most 360 s" if result.get("score") else ""
    print(f"| wall clock | {seconds:.0f} s | {bar} |")
    print(f"| first pair on the screen | {labelled.first - began:.1f} s | |")
    print(f"| from the first pair to the last answer | {labelled.last - labelled.first:.0f} s | |")
    print(f"| of it with a pair on the screen | {labelled.ready:.1%} | at least 90 % |")
    long = [wait for wait in labelled.waits if wait > 1]
    print(f"| waits of more than 1 s | {', '.join(f'{wait:.0f}' for wait in long) or 'none'} | |")
    print(f"| labels, answers with repeats | {result['labels']}, {labelled.answers} | |")


def print_wrong(folder: Path, options: argparse.Namespace) -> None:
    """Print how many answers in the label file are not what the person prefers."""
    person = parse_teacher(options.person)
    with LabelStore.open_existing(folder / LABELS) as store:
        answers = store.in_force(options.seed, np.iinfo(np.int64).max)
        wrong = sum(one.answer != wanted(person, store, one.query, options.env) for one in answers)
    print(f"| wrong answers | {wrong} of {len(answers)} | about {options.mistakes:.0%} |")


if __name__ == "__main__":
    main()
