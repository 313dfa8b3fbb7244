"""A hundred times SIGKILL, for the trainer, the page's server or the browser, at random moments.

Real processes, real SQLite, real Chromium with a profile on disk. What the browser was told is
kept must be there once and for all; what was never acknowledged may be there once, never twice.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Playwright, sync_playwright
from tests.browser import ARGUMENTS, chromium

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.status import read_status
from backflip.preferences.labels import LabelStore
from runshelf.store.finding import list_runs
from runshelf.web.serving.address import saved_port

TRAINER = """
import sys
from pathlib import Path
from runshelf.store.finding import find_run, list_runs
from backflip.teaching_api import resume_teach, teach
from backflip.labelling.people_source import LabellingSettings

home, labels, port = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings = {
    "num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2, "hidden": (8,),
    "phases": 30, "clip_length": 5, "clip_envs": 4, "random_envs": 8, "random_env_steps": 60,
}
if list_runs(home):
    resume_teach(find_run(home, "latest"))
else:
    teach("Pendulum-v1", teacher="human", labels=labels, settings=settings, env_steps=4 * 16 * 30,
          home=home, argv=["backflip"], labelling=LabellingSettings(port=port))
"""
KEYS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "u")


class World:
    """Trainer, page and browser; each can be killed and comes back."""

    def __init__(self, home: Path, playwright: Playwright, labels: int) -> None:
        self.home, self.playwright = home, playwright
        # Not the usual port, where a test beside this one has its page; nor one given by chance.
        port = 20_000 + os.getpid() % 10_000
        self.command = [sys.executable, "-c", TRAINER, str(home), str(labels), str(port)]
        self.trainer = subprocess.Popen(self.command)
        self.folder = self._folder()
        self.acknowledged: dict[int, str] = {}  # label: attempt
        self.context: Any = None
        self.open_browser()

    def _folder(self) -> Path:
        for _ in range(1200):
            for name in list_runs(self.home):
                if saved_port(self.home / "runs" / name):
                    return self.home / "runs" / name
            time.sleep(0.05)
        raise AssertionError("no run began")

    @property
    def profile(self) -> Path:
        """Where the browser keeps what it is to remember."""
        return self.home / "profile"

    def open_browser(self) -> None:
        """Open the page, in a browser that remembers."""
        self.context = self.playwright.chromium.launch_persistent_context(
            str(self.profile), executable_path=chromium(), args=ARGUMENTS, headless=True
        )
        self.browser_killed = False
        self.page = self.context.pages[0]
        self.page.on("response", self._heard)
        port = saved_port(self.folder)
        for _ in range(200):
            try:
                self.page.goto(f"http://127.0.0.1:{port}/")
                return
            except Error:  # the server is down at the moment
                time.sleep(0.1)
        raise AssertionError("the page did not come back")

    def _heard(self, response: Any) -> None:
        """Note what the browser has been told is kept."""
        if response.status == 200 and response.url.endswith("/api/answer"):
            try:
                told = response.json()
            except Error:  # killed while it was being read: then the page was not told either
                return
            sent = json.loads(response.request.post_data)
            self.acknowledged[told["label"]] = sent["attempt"]

    def press(self, rng: random.Random, seconds: float) -> None:
        """Answer whatever is shown for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                self.page.keyboard.press(rng.choice(KEYS))
                self.page.wait_for_timeout(rng.uniform(5, 120))
            except Error:
                return

    def kill_trainer(self) -> None:
        """Kill the trainer; its page ends by itself."""
        self.trainer.kill()
        self.trainer.wait()

    def kill_server(self) -> None:
        """Kill the page's process."""
        self._kill(f"backflip.labelling.page {self.folder}")

    def kill_browser(self) -> None:
        """Kill the browser, all of its processes."""
        self.browser_killed = True
        self._kill(f"user-data-dir={self.profile}")

    def _kill(self, pattern: str) -> None:
        found = subprocess.run(
            ["pgrep", "-f", "--", pattern], capture_output=True, text=True, check=False
        )
        for line in found.stdout.split():
            if int(line) != os.getpid():
                try:
                    os.kill(int(line), signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def mend(self) -> None:
        """Bring back what was killed; the server is brought back by the trainer."""
        if self.trainer.poll() is not None:
            self.trainer = subprocess.Popen(self.command)
        if self.browser_killed:
            with contextlib.suppress(Error):
                self.context.close()
            self.open_browser()


def kill_at_random(home: Path, kills: int, seed: int) -> tuple[World, dict[str, int]]:
    """Kill so many times; return the world at the end, and how often each part was hit.

    In a thread of its own, since other tests may keep a browser of theirs open in this one.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_kill_at_random, home, kills, seed).result()


def _kill_at_random(home: Path, kills: int, seed: int) -> tuple[World, dict[str, int]]:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    with sync_playwright() as playwright:
        world = World(home, playwright, labels=10 * kills)
        victims = {
            "trainer": world.kill_trainer,
            "server": world.kill_server,
            "browser": world.kill_browser,
        }
        for _ in range(kills):
            world.press(rng, rng.uniform(0.1, 2.0))
            victim = rng.choice(list(victims))
            victims[victim]()
            counts[victim] += 1
            world.mend()
        for _ in range(60):  # on a busy machine it takes a while until all are back
            world.press(rng, 3.0)
            if world.acknowledged:
                break
        world.page.wait_for_timeout(3000)  # what was kept in the browser is sent
        with LabelStore.open(world.folder / "labels.sqlite") as store:
            LabelQueue(store).finish_labelling("me")
        try:
            assert world.trainer.wait(600) == 0
        finally:
            world.kill_trainer()
            world.context.close()
    return world, dict(counts)


def check(world: World) -> int:
    """Check what the label file holds against what the browser was told; return its answers."""
    with LabelStore.open(world.folder / "labels.sqlite") as store:
        rows = store.file.rows("SELECT id, attempt FROM labels WHERE answer IS NOT NULL")
        in_force = store.file.rows("SELECT query, count(*) FROM effective GROUP BY query")
    kept = dict(rows)
    lost = [label for label in world.acknowledged if label not in kept]
    assert not lost
    assert all(kept[label] == attempt for label, attempt in world.acknowledged.items())
    doubled = [attempt for attempt, count in Counter(kept.values()).items() if count > 1]
    assert not doubled
    assert all(count == 1 for _, count in in_force)
    assert read_status(world.folder).doing == "finished"
    return len(kept)


def seed() -> int:
    chosen = int(os.environ.get("BACKFLIP_TEST_SEED", random.SystemRandom().randrange(10**6)))
    sys.stdout.write(f"replay with BACKFLIP_TEST_SEED={chosen}\n")
    return chosen


@pytest.mark.slow
def test_killed_five_times_no_label_is_lost_or_doubled(tmp_path: Path) -> None:
    world, _ = kill_at_random(tmp_path, 5, seed())
    assert check(world) > 0


@pytest.mark.attack
@pytest.mark.slow
def test_killed_a_hundred_times_no_label_is_lost_or_doubled(tmp_path: Path, tried: Any) -> None:
    world, counts = kill_at_random(tmp_path, 100, seed())
    answers = check(world)
    assert min(counts.values()) > 15
    assert answers > 100
    sys.stdout.write(f"{counts}: {len(world.acknowledged)} acknowledged, {answers} kept\n")
    tried(sum(counts.values()), "kills while a person labels in a browser")
