"""A prepared run for tests of the pages: pairs of clips with films of a moving square."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
from tests.server_client import Server

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.leases import RENEW_SECONDS
from backflip.labelling.status import Status, write_status
from backflip.preferences.clip_sets import NewSet, add_sets
from backflip.preferences.films import FILMS, Film, write_film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore

FRAMES = 30
SIDE = 48


def square_frames(colour: tuple[int, int, int], frames: int = FRAMES, side: int = SIDE):
    """Return frames in which a coloured square moves from left to right."""
    drawn = np.full((frames, side, side, 3), 24, np.uint8)
    for frame in range(frames):
        left = round(frame * (side - 12) / max(1, frames - 1))
        drawn[frame, side // 2 - 6 : side // 2 + 6, left : left + 12] = colour
    return drawn


def colour_of(clip: int) -> tuple[int, int, int]:
    """Return a colour that no clip of a neighbouring pair has."""
    clip %= 48
    return (40 + clip * 37 % 216, 40 + clip * 91 % 216, 40 + clip * 151 % 216)


@functools.cache
def film_of(folder: Path, clip: int, **looks: Any) -> dict[str, Film]:
    colour = colour_of(clip)
    person = write_film(folder / FILMS, square_frames(colour, **looks), fps=30.0)
    grey = np.repeat(square_frames(colour, side=16).mean(-1, keepdims=True), 3, -1)
    agent = write_film(folder / FILMS, grey.astype(np.uint8), fps=30.0, pixelated=True)
    return {"person": person, "agent": agent}


def opinion_of(pair: int) -> dict[str, np.ndarray]:
    """Return an opinion whose numbers no other pair has."""
    steps = np.arange(10)
    return {
        "left": np.stack([np.sin(steps / 3) + pair, np.full(10, 0.25)]).astype(np.float32),
        "right": np.stack([np.cos(steps / 3) - pair, np.full(10, 0.5)]).astype(np.float32),
    }


def add_pairs(
    folder: Path, pairs: int, first: int = 0, opinions: bool = True, **looks: Any
) -> list[int]:
    """Add pairs with films to the run in `folder`."""
    clip = {"obs": np.zeros((10, 2), np.float32)}
    queries = [
        NewQuery(
            seed=0,
            left=clip,
            right=clip,
            env_steps=100,
            films=(
                film_of(folder, 2 * n % 48, **looks),
                film_of(folder, (2 * n + 1) % 48, **looks),
            ),
            opinion=opinion_of(n) if opinions else None,
        )
        for n in range(first, first + pairs)
    ]
    with LabelStore.open(folder / "labels.sqlite") as store:
        return store.add_queries(queries)


def add_clip_sets(folder: Path, kind: Any, sets: int, clips: int) -> None:
    """Add sets with films to the run in `folder`."""
    arrays = [{"obs": np.full((10, 2), place, np.float32)} for place in range(clips)]
    films = [film_of(folder, clip) for clip in range(clips)]
    with LabelStore.open(folder / "labels.sqlite") as store:
        add_sets(store, [NewSet(0, kind, arrays, 100, films)] * sets)


def set_status(folder: Path, doing: Any = "waiting", **more: Any) -> None:
    """Write the trainer's status, with this process as trainer."""
    more = {"env": "dot", "budget": 100, "phases": 20, "pid": os.getpid()} | more
    write_status(folder, Status(doing, more.pop("since", time.time()), **more))


@contextlib.contextmanager
def holding(folder: Path, who: str, *queries: int) -> Generator[None, None, None]:
    """Let a person who is present hold some queries, even if another person held them."""
    left = threading.Event()

    def stay() -> None:
        with LabelStore.open(folder / "labels.sqlite") as store:
            queue = LabelQueue(store)
            while not left.wait(RENEW_SECONDS / 4):
                queue.leases.renew(who, "elsewhere")
            queue.leases.end(who, "elsewhere")

    with LabelStore.open(folder / "labels.sqlite") as store:
        LabelQueue(store).leases.renew(who, "elsewhere")
        with store.file.transaction() as records:
            for query in queries:
                records.execute("INSERT INTO takes (query, who, at) VALUES (?, ?, 0)", (query, who))
    thread = threading.Thread(target=stay)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def start(folder: Path, *options: str, stdin: int = subprocess.DEVNULL) -> Server:
    """Start a server process and wait until it listens."""
    LabelStore.open(folder / "labels.sqlite").close()  # a run of teach has one, at least empty
    process = subprocess.Popen(
        [sys.executable, "-m", "backflip.labelling.page", str(folder), *options],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr and process.stderr.read()
    told = json.loads(line)
    return Server(folder, process, told["address"], told["port"])


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Generator[Server, None, None]:
    """Run a server process; check at the end that its stderr is empty."""
    server = start(folder, *(options or ("--port", "0")))
    try:
        yield server
    finally:
        server.process.kill()
        _, errors = server.process.communicate(timeout=20)
    assert not errors, f"stderr of the server: {errors}"
