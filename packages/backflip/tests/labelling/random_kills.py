"""Victims that write labels: the server of the labelling page, and the trainer."""

import http.client
import json
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from packages.backflip.tests.labelling.page.prepared_run import add_pairs, set_status
from tests.random_kills import Figures, Fork, main
from tests.server_client import Server

from backflip import teaching_api
from backflip.core.checkpoint import load_arrays
from backflip.labelling import page, page_server  # noqa: F401  (imported before the forks)
from backflip.preferences.kept_labels import LabelHash, refuse_lost_labels
from backflip.preferences.labels import LabelStore
from backflip.training.teaching import loop  # noqa: F401  (as above)
from runshelf.store.finding import list_runs
from runshelf.store.metrics import read_metrics
from runshelf.store.run import Run, open_run

PAIRS_AT_ONCE = 300
KILLS_OF_RUN = 10
GONE = (OSError, http.client.HTTPException, ValueError, AssertionError)


class Person:
    """Answers pairs until the server is gone; repeats then what was not acknowledged."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.acknowledged: dict[str, int] = {}  # attempt: label
        self._open: tuple[int, str] | None = None  # query and attempt, without an acknowledgement

    def work(self, server: Server) -> None:
        """Answer until the server is killed."""
        try:
            while True:
                self._answer_one(server)
        except GONE:
            return

    def _answer_one(self, server: Server) -> None:
        if self._open is None:
            pairs = server.take()
            if not pairs:
                add_pairs(server.folder, PAIRS_AT_ONCE)
                return
            attempt = f"{self._chance.getrandbits(64):016x}"
            self._open = (pairs[0]["query"], attempt)
        query, attempt = self._open
        response = server.answer(query, attempt=attempt)
        assert response.status == 200, response.body
        self.acknowledged[attempt] = response.json["label"]
        self._open = None


def kill_pages(home: Path, kills: int, chance: random.Random) -> Figures:
    """Kill the server of a page while a person answers."""
    set_status(home)
    add_pairs(home, PAIRS_AT_ONCE)
    person = Person(chance)
    for _ in range(kills):
        victim = Fork(lambda: page.main([str(home), "--port", "0"]), home / "errors")
        told = json.loads(victim.output.readline())
        process: Any = victim
        server = Server(home, process, told["address"], told["port"])
        worker = threading.Thread(target=person.work, args=(server,))
        worker.start()
        time.sleep(chance.uniform(0, 0.15))
        victim.kill()
        worker.join(60)
        assert not worker.is_alive()
        victim.rest()
    return _figures_of_page(home, kills, person.acknowledged)


def _figures_of_page(home: Path, kills: int, told: dict[str, int]) -> Figures:
    with LabelStore.open_existing(home / "labels.sqlite") as store:
        rows = store.file.rows("SELECT attempt, id FROM labels WHERE answer IS NOT NULL")
        per_query = store.file.rows("SELECT count(*) FROM labels GROUP BY query")
    kept, count = dict(rows), Counter(attempt for attempt, _ in rows)
    lost = sum(1 for attempt, label in told.items() if kept.get(attempt) != label)
    doubled = sum(1 for one in count.values() if one > 1) + sum(1 for (n,) in per_query if n > 1)
    assert len(kept) <= len(told) + 1
    return Figures(kills, len(told), lost, doubled)


SETTINGS = {
    "num_envs": 2,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
    "phases": 12,
    "clip_length": 5,
    "clip_envs": 2,
    "random_envs": 4,
    "random_env_steps": 30,
}


def _teach(home: Path) -> None:
    """Start the run of a home, or resume it."""
    runs = list_runs(home)
    if runs:
        teaching_api.resume_teach(open_run(home / "runs" / runs[-1]))
    else:
        options = {"labels": 16, "env_steps": 2 * 16 * 12, "argv": ["backflip"]}
        teaching_api.teach("probe:action", settings=SETTINGS, home=home, **options)


def kill_trainers(home: Path, kills: int, chance: random.Random) -> Figures:
    """Kill trainers; each run ends with the same bits as one that was never killed."""
    never = _finished(home / "never", home)
    usual, answered, left, number = _seconds_of(home), 0, kills, 0
    while left:
        number += 1
        place = home / str(number)
        done = _kill_one_run(place, home, min(KILLS_OF_RUN, left), usual, chance)
        left -= done
        answered += _check_same(_finished(place, home), never)
    return Figures(kills, answered, 0, 0)  # `_check_same` fails if anything is lost or doubled


def _seconds_of(home: Path) -> float:
    """Return how long a trainer takes from its start to its end."""
    began = time.monotonic()
    _finished(home / "timed", home)
    return time.monotonic() - began


def _kill_one_run(place: Path, home: Path, most: int, usual: float, chance: random.Random) -> int:
    """Kill the trainers of one run, until it has finished; return the number of kills."""
    for kill in range(most):
        victim = Fork(lambda: _teach(place), home / "errors")
        if victim.ends_within(chance.uniform(0.2, 1.0) * usual):
            assert victim.wait() == 0, (home / "errors").read_text()[-2000:]
            return kill
        victim.kill()
        victim.rest()
        for name in list_runs(place):
            refuse_lost_labels(place / "runs" / name)  # a kill is not a loss
    return most


def _finished(place: Path, home: Path) -> Run:
    """Return the run of a home, at its end."""
    victim = Fork(lambda: _teach(place), home / "errors")
    assert victim.wait() == 0, (home / "errors").read_text()[-2000:]
    victim.rest()
    (name,) = list_runs(place)
    return open_run(place / "runs" / name)


def _check_same(run: Run, never: Run) -> int:
    """Check that two runs have the same bits, labels and metrics; return the number of labels."""
    one, other = (
        load_arrays(each.folder / "checkpoint.safetensors").arrays for each in (run, never)
    )
    assert one.keys() == other.keys()
    assert all(array.tobytes() == other[name].tobytes() for name, array in one.items())
    assert _labels(run) == _labels(never)
    for writer in ("train", "evaluation"):
        ours, theirs = (read_metrics(each.folder, writer).records for each in (run, never))
        assert [r["updates"] for r in ours] == [r["updates"] for r in theirs]
    assert [e["status"] for e in run.events()].count("finished") == 1
    with LabelStore.open_existing(run.folder / "labels.sqlite") as store:
        return LabelHash(store.file).first().answers


def _labels(run: Run) -> list[Any]:
    with LabelStore.open_existing(run.folder / "labels.sqlite") as store:
        return store.file.rows(
            "SELECT q.id, l.env_steps, l.arrays, r.arrays, a.answer FROM queries q"
            " JOIN clips l ON l.id = q.left_clip JOIN clips r ON r.id = q.right_clip"
            " LEFT JOIN labels a ON a.query = q.id ORDER BY q.id, a.id"
        )


if __name__ == "__main__":
    main({"page": kill_pages, "trainer": kill_trainers})
