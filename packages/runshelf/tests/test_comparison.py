"""Comparison of two runs: settings, code, and the step until which metrics are identical."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from packages.runshelf.tests.index.homes import make_run

from runshelf.comparison.code import Bounds, diff_code
from runshelf.comparison.metrics import diff_metrics
from runshelf.comparison.runs import changes, compare
from runshelf.comparison.settings import flat, side_by_side
from runshelf.snapshot.object_store import object_path, store
from runshelf.store.home import shared
from runshelf.store.run import open_run


def metrics_of(home: Path, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> Any:
    folders = [make_run(home, n, records=r) for n, r in enumerate((one, other))]
    return diff_metrics(*folders)


def steps(*values: object, **more: object) -> list[dict[str, Any]]:
    return [{"step": 10 * n, "loss": value, **more} for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("one", "other", "until", "differs", "never"),
    [
        (steps(1.0, 2.0, 3.0), steps(1.0, 2.0, 3.0), 20, False, True),
        (steps(1.0, 2.0, 3.0), steps(1.0, 2.0, 3.0000000000000004), 10, True, False),
        (steps(1.0, 2.0, 3.0), steps(1.0, 2.5, 3.0), 0, True, False),
        (steps(1.0), steps(2.0), None, True, False),
        (steps(1.0, 2.0, 3.0), steps(1.0, 2.0), 10, False, True),
        (steps("NaN", "Infinity"), steps("NaN", "Infinity"), 10, False, True),
        (steps(0.0), steps(-0.0), None, True, False),
        (steps("NaN"), steps(1.0), None, True, False),
        (steps(1.0, seed=1), steps(1.0, seed=2), None, True, False),
        (
            steps(1.0, 2.0, seed=1) + steps(5.0, 6.0, 7.0, seed=2),
            steps(1.0, 2.0, seed=1) + steps(5.0, 6.0, 8.0, seed=2),
            *(10, True, False),
        ),
        (
            steps(1.0, 2.0, seed=1) + steps(5.0, 6.0, 7.0, seed=2),
            steps(1.0, 3.0, seed=1) + steps(5.0, 6.0, 8.0, seed=2),
            *(0, True, False),
        ),
        (
            steps(1.0, 2.0, seed=1) + steps(5.0, 6.0, 7.0, seed=2),
            steps(3.0, 2.0, seed=1) + steps(5.0, 6.0, 8.0, seed=2),
            *(None, True, False),
        ),
    ],
)
def test_the_last_identical_step_of_a_metric(
    tmp_path: Path,
    one: list[dict[str, Any]],
    other: list[dict[str, Any]],
    until: float | None,
    differs: bool,
    never: bool,
) -> None:
    found = metrics_of(tmp_path, one, other)
    (metric,) = found.metrics
    assert (metric.identical_until, metric.differs) == (until, differs)
    assert found.never_differed is never
    assert found.identical_until == until


def test_the_last_identical_step_of_all_metrics(
    tmp_path: Path,
) -> None:
    one = [{"step": n, "a": n, "b": n, "time_taken": 0.5, "mine": 1} for n in range(5)]
    other = [
        {"step": n, "a": n if n < 4 else 9, "b": n if n < 2 else 9, "time_taken": 0.6, "theirs": 1}
        for n in range(5)
    ]
    found = metrics_of(tmp_path, one, other)
    assert {metric.name: metric.identical_until for metric in found.metrics} == {
        "a": 3,
        "b": 1,
        "time_taken": None,
    }
    assert (found.identical_until, found.never_differed) == (1, False)
    assert (found.from_the_start, found.only) == (["time_taken"], (["mine"], ["theirs"]))


def test_the_first_metrics_to_differ_are_named_within_a_limit(tmp_path: Path) -> None:
    names = ("a", "b", "c", "never", "start")
    one = [{"step": n, **dict.fromkeys(names, float(n))} for n in range(4)]
    other = [{**record} for record in one]
    for n, name in ((2, "a"), (2, "b"), (3, "c"), (0, "start")):
        other[n][name] = -1.0
    folders = [make_run(tmp_path, n, records=r) for n, r in enumerate((one, other))]
    found = diff_metrics(*folders)
    assert (found.identical_until, found.first_apart, found.left_out) == (1, ["a", "b"], 0)
    bounded = diff_metrics(*folders, 3)
    assert ([metric.name for metric in bounded.metrics], bounded.left_out) == (["a", "b", "c"], 2)


def test_metrics_of_the_machine_are_not_compared(tmp_path: Path) -> None:
    names = (
        "cpu_percent",
        "load_per_core",
        "cores",
        "memory_bytes",
        "memory_mib",
        "processes",
        "disk_free_bytes",
    )
    names = (*names, "gpu1/memory_bytes", "env_steps_per_second", "update/seconds")
    one = [{"step": 0, "loss": 1.0, **dict.fromkeys(names, 1.0)}]
    other = [{"step": 0, "loss": 1.0, **dict.fromkeys(names[1:], 2.0), "frames/second": 3.0}]
    found = metrics_of(tmp_path, one, other)
    assert [metric.name for metric in found.metrics] == ["loss"]
    assert (found.only, found.never_differed, found.from_the_start) == (([], []), True, [])
    assert found.of_machine == len(names) + 1


def test_runs_without_metrics_have_nothing_in_common(tmp_path: Path) -> None:
    found = metrics_of(tmp_path, [], steps(1.0))
    assert (found.metrics, found.identical_until, found.never_differed) == ([], None, False)


def test_changes_are_named_with_dots() -> None:
    one = {"lr": 1, "same": [1], "net": {"width": 64, "deep": {"on": True}}, "gone": None, "n": 1}
    other = {"lr": 1.0, "same": [1], "net": {"width": 32, "deep": {"on": 1}}, "new": {}, "n": True}
    assert {change.key: (change.one, change.other) for change in changes(one, other)} == {
        "lr": (1, 1.0),
        "net.width": (64, 32),
        "net.deep.on": (True, 1),
        "gone": (None, None),
        "new": (None, {}),
        "n": (1, True),
    }
    assert changes(None, None) == changes({}, None) == []
    assert changes({"a": 1}, None) == [("a", 1, None)]
    nan = {"x": math.nan}
    assert changes(nan, dict(nan)) == []


def snapshot(home: Path, number: int, files: dict[str, bytes | str], mode: int = 0o644) -> Path:
    """Make a run with this code; text values are link targets."""
    entries: list[dict[str, object]] = []
    for path, content in files.items():
        if isinstance(content, str):
            entries.append({"path": path, "sha256": "", "bytes": 0, "mode": 0, "link": content})
            continue
        source = home.parent / "source"
        source.write_bytes(content)
        kept = store(home, source)
        entries.append({"path": path, "sha256": kept.sha256, "bytes": kept.bytes, "mode": mode})
    folder = make_run(home, number)
    code = {"root": "/x", "cwd": ".", "files": entries, "left_out": []}
    (folder / "code.json").write_text(json.dumps(code))
    return folder


def test_code_is_compared_file_by_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    same = {"same.py": b"x\n", "link": "same.py"}
    one = snapshot(
        home,
        1,
        {**same, "a.py": b"1\n2\n", "gone.py": b"g\n", "b.bin": b"\0", "big": b"a" * 1001}
        | {"moved": "here"},
    )
    other = snapshot(
        home,
        2,
        {**same, "a.py": b"1\n3\n", "new.py": b"n", "b.bin": b"\1\0", "big": b"b" * 1001}
        | {"moved": "there"},
    )
    found = diff_code(home, one, other, Bounds(bytes=1000))
    assert (found.same, found.left_out, found.note) == (2, 0, "")
    by_path = {file.path: file for file in found.files}
    assert by_path["a.py"].lines == [
        "--- a/a.py",
        "+++ b/a.py",
        "@@ -1,2 +1,2 @@",
        " 1",
        "-2",
        "+3",
    ]
    assert {path: file.change for path, file in by_path.items()} == {
        "a.py": "changed",
        "gone.py": "removed",
        "new.py": "added",
        "b.bin": "changed",
        "big": "changed",
        "moved": "changed",
    }
    assert by_path["new.py"].lines[-1] == "+n"
    assert by_path["moved"].lines[-2:] == ["-link to here", "+link to there"]
    for path in ("b.bin", "big"):
        assert by_path[path].lines == []
        assert "binary, or too large" in by_path[path].note


def test_files_beyond_the_limits_are_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one = snapshot(home, 1, {"a": b"1\n" * 9, "b": b"1\n" * 11, "c": b"1\n"})
    other = snapshot(home, 2, {"a": b"2\n" * 9, "b": b"2\n" * 11, "c": b"2\n"})
    found = diff_code(home, one, other, Bounds(lines=10, files=2))
    assert found.left_out == 1
    first, second = found.files
    assert len(first.lines) == 10
    assert first.note == "the first 10 of 21 lines"
    assert (second.lines, second.note) == ([], "binary, or too large to compare by lines")
    for file in diff_code(home, one, other, Bounds(seconds=-1)).files:
        assert (file.lines, file.note) == ([], "not compared by lines: the time limit was reached")


def test_different_modes_and_missing_objects_are_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one, other = snapshot(home, 1, {"a": b"1"}), snapshot(home, 2, {"a": b"1"}, mode=0o755)
    assert [file.note for file in diff_code(home, one, other).files] == ["mode 644 -> 755"]
    third = snapshot(home, 3, {"a": b"2"})
    for folder in (shared(home, "objects") / "sha256").iterdir():
        for path in folder.iterdir():
            path.unlink()
    (file,) = diff_code(home, one, third).files
    assert file.note
    assert file.lines == []


def test_missing_or_invalid_snapshots_are_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one, other = snapshot(home, 1, {"a": b"1"}), make_run(home, 2)
    assert "its code was not archived" in diff_code(home, one, other).note
    evil = {"path": "../../etc", "sha256": "../../../etc/passwd", "bytes": 1, "mode": 0o644}
    code = {"root": "/", "cwd": ".", "files": [evil], "left_out": []}
    (other / "code.json").write_text(json.dumps(code))
    found = diff_code(home, one, other)
    assert found.note or all(not file.lines for file in found.files)


def test_a_comparison_has_all_parts(tmp_path: Path) -> None:
    one = make_run(
        tmp_path,
        1,
        config={"lr": 1},
        seeds=[1],
        git={"commit": "a", "dirty": False},
        python={"version": "3.11", "packages": {"numpy": "2.0", "gone": "1"}},
        hardware={"cpu": "Z80", "gpus": []},
    )
    other = make_run(
        tmp_path,
        2,
        config={"lr": 2},
        seeds=[2],
        git=None,
        argv=["python", "y.py"],
        python={"version": "3.12", "packages": {"numpy": "2.1", "new": "1"}},
        hardware={"cpu": "6502", "gpus": []},
    )
    found = compare(tmp_path, open_run(one), open_run(other))
    assert [change.key for change in found.config] == ["lr"]
    assert [change.key for change in found.command] == ["argv", "seeds"]
    assert [tuple(change) for change in found.packages] == [
        *(("python", "3.11", "3.12"), ("numpy", "2.0", "2.1"), ("gone", "1", None)),
        ("new", None, "1"),
    ]
    assert [change.key for change in found.hardware] == ["cpu"]
    assert [change.key for change in found.git] == ["commit", "dirty"]
    assert object_path(tmp_path, "0" * 64).parent.name == "00"


def test_settings_are_compared_by_value() -> None:
    different, same = side_by_side(
        [flat({"a": {"b": 1}, "c": 0.1, "d": 1, "e": {}}), flat({"a": {"b": 1.0}, "c": 0.1}), {}]
    )
    assert [tuple(row) for row in different] == [
        *(("a.b", [1, 1.0, None]), ("c", [0.1, 0.1, None]), ("d", [1, None, None])),
        ("e", [{}, None, None]),
    ]
    assert same == []
    assert side_by_side([{"c": [1]}, {"c": [1]}]) == ([], [("c", [[1], [1]])])


def test_flattening_stops_at_a_maximum_depth() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    ((key, value),) = flat(deep).items()
    assert key == ".".join("a" * 20)
    assert isinstance(value, dict)
