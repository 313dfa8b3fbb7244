"""Tests of `runshelf export`: written files are read back and compared."""

import csv
import json
import math

import numpy as np
import pytest

from runshelf.cli.main import main
from runshelf.errors import UsageError, UserFacingError
from runshelf.interop import export_run as module
from runshelf.interop.event_files import Pictures, read_entries
from runshelf.interop.export_run import export_run
from runshelf.interop.tfrecord import Damage
from runshelf.store import series
from runshelf.store.media import save_image
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import create_run, open_run


@pytest.fixture
def run(tmp_path):
    with create_run(tmp_path / "home", command="script", config={}, argv=["x"]) as writer:
        folder = writer.folder
    with MetricsWriter(folder, "log-1-a") as metrics:
        for n in range(5):
            metrics.write({"step": n, "time": 1.6e9 + n, "loss": n / 3, "=cmd()": n})
        metrics.write({"step": 5, "time": 1.6e9 + 5, "loss": math.nan, "note": "=HYPERLINK(1)"})
        picture = save_image(str(folder), np.zeros((4, 5), np.uint8))
        metrics.write({"step": 6, "picture": picture, "note": "-1", "list": [1]})
        for seed in (0, 1):
            metrics.write({"seed": seed, "env_steps": 100, "seconds": 2.0, "loss": 1.0 + seed})
    return open_run(folder)


def test_json_lines_are_the_records(run, tmp_path):
    path = tmp_path / "out.jsonl"
    assert export_run(run, path) == 9
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[1] == {"step": 1, "time": 1.6e9 + 1, "loss": 1 / 3, "=cmd()": 1}
    assert lines[5]["loss"] == "NaN"


def test_text_that_looks_like_a_formula_is_quoted_in_csv(run, tmp_path):
    path = tmp_path / "out.csv"
    export_run(run, path)
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    assert names[:5] == ["step", "time", "loss", "'=cmd()", "note"]
    assert rows[5][4] == "'=HYPERLINK(1)"
    assert rows[6][4] == "-1"  # a number, which is no formula
    assert [float(row[2]) for row in rows[:5]] == [n / 3 for n in range(5)]
    assert not [c for row in rows for c in row if c.startswith(("=", "+", "@"))]


def test_a_negative_number_stays_a_number(tmp_path):
    with create_run(tmp_path / "home", command="script", config={}, argv=["x"]) as writer:
        with MetricsWriter(writer.folder, "log-1-a") as metrics:
            metrics.write({"loss": -1.5})
        export_run(writer.run, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "loss\n-1.5\n"


def test_a_logdir_has_a_folder_for_each_seed(run, tmp_path):
    export_run(run, tmp_path / "logs")
    files = {path.parent.name: path for path in (tmp_path / "logs").rglob("*tfevents*")}
    assert set(files) == {"logs", "seed_0", "seed_1"}
    found = list(read_entries(files["logs"], Damage()))
    losses = [(e.step, e.time, e.content) for e in found if e.tag == "loss"]
    assert losses[:5] == [(n, 1.6e9 + n, float(np.float32(n / 3))) for n in range(5)]
    assert math.isnan(losses[5][2])
    assert isinstance(next(e.content for e in found if e.tag == "picture"), Pictures)
    (entry,) = read_entries(files["seed_1"], Damage())
    assert (entry.step, entry.tag) == (100, "loss")
    begun = json.loads((run.folder / "run.json").read_text())["created"]
    assert begun


def test_the_step_of_an_event_is_the_env_steps_where_they_were_logged(tmp_path):
    with create_run(tmp_path / "home", command="script", config={}, argv=["x"]) as writer:
        with MetricsWriter(writer.folder, "log-1-a") as metrics:
            for n in range(3):
                metrics.write({"step": n, "env_steps": 100 * n, "updates": 5, "loss": 1.0})
                metrics.write({"step": n, "entropy": 1.0})
                # Some records have env steps and some do not: steps of two axes are not mixed.
                metrics.write({"step": n, "mixed": 1.0, **({"env_steps": 900} if n else {})})
                metrics.write({"env_steps": math.nan, "updates": n + 7, "nan": 1.0})
                metrics.write({"bare": 1.0})
        export_run(writer.run, tmp_path / "logs")
    (path,) = (tmp_path / "logs").rglob("*tfevents*")
    steps = {}
    for entry in read_entries(path, Damage()):
        steps.setdefault(entry.tag, []).append(entry.step)
    assert steps == {
        "loss": [0, 100, 200],
        "entropy": [0, 1, 2],
        "mixed": [0, 1, 2],
        "nan": [7, 8, 9],
        "bare": [4, 9, 14],
    }


def test_an_exported_logdir_can_be_imported(run, tmp_path):
    assert main(["export", run.ulid, str(tmp_path / "logs"), "--home", str(tmp_path / "home")]) == 0
    assert main(["import", str(tmp_path / "logs"), "--home", str(tmp_path / "other")]) == 0
    runs = sorted((tmp_path / "other").glob("runs/0*"))
    assert len(runs) == 3
    found = series.read_series(runs[0], ["loss"], "step")["loss"][None]
    np.testing.assert_array_equal(found.y[:5], np.float32(np.arange(5) / 3))


def test_nothing_is_overwritten(run, tmp_path):
    for name in ("out.csv", "logs"):
        export_run(run, tmp_path / name)
        with pytest.raises(UsageError, match="already"):
            export_run(run, tmp_path / name)


def test_a_run_without_metrics(tmp_path):
    with create_run(tmp_path / "home", command="script", config={}, argv=["x"]) as writer:
        for name in ("a.csv", "b.jsonl", "c"):
            assert export_run(writer.run, tmp_path / name) == 0


HOSTILE = [
    {"step": 0, "note": "\ud800", "a\udc80": 1.0, "big": 10**400, "seed": "../../x"},
    {"step": math.nan, "big": -(10**400), "seed": [1]},
    {"step": 10**400, "time": "soon", "seconds": None, "loss": 1.0},
    {"step": "x", "updates": 7, "loss": 2.0},
]


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "logs"])
def test_odd_values_are_written_and_reported(tmp_path, name):
    with create_run(tmp_path / "home", command="script", config={}, argv=["x"]) as writer:
        folder = writer.folder
    lines = "".join(json.dumps(record) + "\n" for record in HOSTILE).replace("NaN", '"NaN"')
    (folder / "metrics-log-1-a.jsonl").write_text(lines)
    (tmp_path / "out").mkdir()
    assert export_run(open_run(folder), tmp_path / "out" / name) == 4
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / name]
    assert len(list(tmp_path.iterdir())) == 2
    if name == "logs":
        (path,) = (tmp_path / "out" / name).iterdir()
        found = [(entry.step, entry.tag, entry.content) for entry in read_entries(path, Damage())]
        assert found == [
            *[(0, "a\ufffd", 1.0), (0, "big", math.inf), (1, "big", -math.inf)],
            *[(2, "loss", 1.0), (7, "loss", 2.0)],
        ]


@pytest.mark.parametrize("name", ["out.csv", "logs", "empty"])
def test_an_export_that_fails_leaves_nothing(run, tmp_path, monkeypatch, name):
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(module, "csv_cell", None)
    (picture,) = (run.folder / "media").iterdir()
    picture.unlink()
    with pytest.raises((UserFacingError, TypeError)):
        export_run(run, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert not list((tmp_path / "empty").iterdir())


def test_an_empty_target_folder_is_accepted(run, tmp_path):
    (tmp_path / "logs").mkdir()
    export_run(run, tmp_path / "logs")
    assert len(list((tmp_path / "logs").iterdir())) == 3
