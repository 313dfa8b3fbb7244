"""Received runs whose files are mutated: every command and page shows the sound parts."""

import json
import random
import shutil
import time
from pathlib import Path

import pytest
from packages.runshelf.tests.attacks.commands import problem_of, problems_of_pages, said_by
from packages.runshelf.tests.attacks.mutations import mutations
from packages.runshelf.tests.web.runs import begin, finish, log, print_to
from tests.attack_figures import Tried

from runshelf.cli.main import main
from runshelf.store.compacting import compact
from runshelf.store.run_ids import new_ulid

SEED = 20261123
FILES = (
    *("run.json", "events.jsonl", "heartbeat.json", "summary.json", "outputs.json", "code.json"),
    *("metrics-train.npz", "metrics-log-1-a.jsonl", "output.log", "status.json"),
)
PAGES = ("", "/code", "/output", "/files", "/environment", "/file?path=run.json")


def a_run(home: Path) -> Path:
    """Return the folder of a run that has each kind of file."""
    code = {"root": "/x", "cwd": ".", "files": [], "left_out": [{"path": "a", "why": "b"}]}
    writer = begin(home, config={"lr": 0.1, "hidden": [8, 8], "deep": {"a": {"b": True}}})
    log(writer, 60)
    compact(writer.folder)
    print_to(writer.folder, [("out", "hello"), ("err", "oops")])
    lines = ({"step": n, "time": 1.7e9 + n, "loss": 1 / (n + 1), "note": "x"} for n in range(40))
    (writer.folder / "metrics-log-1-a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    outputs = [{"path": "model.bin", "bytes": 3, "sha256": "0" * 64}]
    (writer.folder / "outputs.json").write_text(json.dumps(outputs))
    (writer.folder / "code.json").write_text(json.dumps(code))
    (writer.folder / "status.json").write_text(json.dumps({"doing": "learning"}))
    return finish(writer)


def mutated_copies(run: Path, count: int, seed: int) -> dict[str, str]:
    """Copy a run `count` times, and mutate one file of each; return how, by the copies' ids."""
    rng, found = random.Random(seed), dict[str, str]()
    for _ in range(count):
        ulid, name = new_ulid(), rng.choice(FILES)
        copy = shutil.copytree(run, run.with_name(ulid))
        manifest = copy / "run.json"
        manifest.write_bytes(manifest.read_bytes().replace(run.name.encode(), ulid.encode()))
        mutation = next(mutations((copy / name).read_bytes(), name, rng))
        (copy / name).write_bytes(mutation.data)
        found[ulid] = f"{name}: {mutation.how}"
    return found


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize(
    "count",
    [pytest.param(20, marks=pytest.mark.medium), pytest.param(400, marks=pytest.mark.slow)],
)
def test_mutated_files_spoil_nothing_else(tmp_path: Path, tried: Tried, count: int) -> None:
    run = a_run(tmp_path)
    mutated = mutated_copies(run, count, SEED + count)
    home = ("--home", str(tmp_path))
    status, out, err = said_by(main, "runs", "--all", "--json", *home)
    assert status == 0, err
    listed = {row["run"] for row in json.loads(out)["runs"]}
    assert run.name in listed
    lost = {how for ulid, how in mutated.items() if ulid not in listed}
    assert not [how for how in lost if not how.startswith(("run.json", "metrics-train.npz"))]
    problems = [
        problem_of(main, *line, *home) for ulid in mutated for line in _lines(run, ulid, tmp_path)
    ]
    problems += [problem_of(main, *line.split(), *home) for line in ("runs --groups", "du", "gc")]
    addresses = [f"/runs/{ulid}{page}" for ulid in mutated for page in PAGES]
    addresses += [f"/compare?run={run.name}&run={ulid}" for ulid in mutated]
    addresses += [f"/chart?metric=loss&axis=time&run={ulid}" for ulid in mutated]
    problems += problems_of_pages(tmp_path, ["/", *addresses])
    problems += [problem_of(main, *line.split(), *home) for line in ("gc --yes", "reindex")]
    found = [problem for problem in problems if problem]
    assert not found, (found[:5], [mutated.get(u) for u in mutated if u in str(found[:5])])
    tried(count, "files of received runs with a mutation, each read by all commands and pages")


def _lines(run: Path, ulid: str, folder: Path) -> list[list[str]]:
    export = str(folder / f"export-{ulid}-{time.monotonic_ns()}")
    return [
        ["show", ulid],
        ["show", ulid, "--json"],
        ["show", ulid, "--output"],
        ["show", ulid, "--code"],
        ["show", ulid, "--packages"],
        ["diff", run.name, ulid],
        ["export", ulid, f"{export}.csv"],
        ["export", ulid, export],
    ]
