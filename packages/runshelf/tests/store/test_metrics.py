"""Tests of `runshelf.store.metrics`: values, torn lines, kills, full disks."""

import errno
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.metrics import MetricsWriter, read_metrics
from runshelf.store.records import LinesWriter, from_json, read_lines, to_json


def write(folder, *records, writer="train"):
    with MetricsWriter(folder, writer) as metrics:
        for record in records:
            metrics.write(record)
    return metrics.path


def same(left, right):
    """Return whether two values are equal, also in type and sign of zero; NaN equals NaN."""
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(same(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and repr(left) == repr(right)


texts = st.text(max_size=8).filter(lambda text: text not in ("NaN", "Infinity", "-Infinity"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.medium
@given(record=st.dictionaries(st.text(max_size=8), values, max_size=5))
def test_json_values_round_trip(tmp_path_factory, record):
    folder = tmp_path_factory.mktemp("metrics")
    path = write(folder, record)
    (read,) = read_metrics(folder).records
    assert same(record, read)
    assert path.read_bytes().count(b"\n") == 1


def test_non_finite_floats_are_strings_in_the_file_and_floats_again_when_read(tmp_path):
    path = write(
        tmp_path, {"a": math.nan, "b": [math.inf, np.float32("-inf")], "c": {"d": math.nan}}
    )
    text = path.read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": "NaN",
        "b": ["Infinity", "-Infinity"],
        "c": {"d": "NaN"},
    }
    assert same(
        read_metrics(tmp_path).records[0],
        {"a": math.nan, "b": [math.inf, -math.inf], "c": {"d": math.nan}},
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(2**63), 2**63),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(2.5), 2.5),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([np.nan, 1.0], np.float16), [math.nan, 1.0]),
        (np.array([1.5], np.longdouble), [1.5]),
        (np.array([True, False]), [True, False]),
        (np.array(["a", None], object), ["a", None]),
        (np.zeros((0, 2)), []),
        ((1, (2.0, "x")), [1, [2.0, "x"]]),
    ],
)
def test_numpy_values(value, expected):
    assert same(from_json(json.loads(json.dumps(to_json(value)))), expected)


def test_arrays_of_other_libraries_are_converted():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 2])

    assert to_json(Foreign()) == [1, 2]


@pytest.mark.parametrize(
    "value", [object(), b"x", {1, 2}, 1j, np.array([1j]), np.array(["2020"], "M8[D]"), {1: 2}]
)
def test_values_without_json_form_are_refused(tmp_path, value):
    with MetricsWriter(tmp_path, "train") as metrics, pytest.raises(UsageError, match="recorded"):
        metrics.write({"x": value})
    assert metrics.path.read_bytes() == b""


def test_a_record_is_one_write_of_one_line(tmp_path, monkeypatch):
    written = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(bytes(data)) or real(fd, data))
    write(tmp_path, {"a": 1}, {"b": "line\nbreak"})
    assert written == [b'{"a": 1}\n', b'{"b": "line\\nbreak"}\n']


def test_a_record_is_in_the_file_before_anything_is_closed(tmp_path):
    metrics = MetricsWriter(tmp_path, "train")
    metrics.write({"a": 1})
    assert read_metrics(tmp_path).records == [{"a": 1}]
    metrics.sync()
    metrics.close()


def test_a_torn_last_line_is_skipped_and_counted(tmp_path):
    path = write(tmp_path, {"seed": 0, "updates": 1}, {"seed": 0, "updates": 2, "é": "\U0001f600"})
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        path.write_bytes(whole[:cut])
        records, torn = read_metrics(tmp_path)
        complete = cut == len(whole) - 1  # only the newline is missing
        assert len(records) == 1 + complete
        assert torn == (first < cut and not complete)


def test_a_resumed_writer_closes_a_torn_tail_first(tmp_path):
    path = write(tmp_path, {"seed": 0, "updates": 1})
    path.write_bytes(path.read_bytes() + b'{"seed": 0, "upd')
    write(tmp_path, {"seed": 0, "updates": 2}, {"seed": 0, "updates": 3})
    assert read_metrics(tmp_path) == ([{"seed": 0, "updates": n} for n in (1, 2, 3)], 1)


def test_invalid_lines_are_counted(tmp_path):
    path = write(tmp_path, {"a": 1})
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n[1]\n\n" + b"[" * 100_000 + b"\n3\n")
    assert read_metrics(tmp_path) == ([{"a": 1}], 4)


def test_after_a_resume_the_last_record_replaces_the_first(tmp_path):
    write(tmp_path, *({"seed": s, "updates": u, "x": "old"} for u in (1, 2) for s in (0, 1)))
    path = write(
        tmp_path, {"seed": 0, "updates": 2, "x": "new"}, {"seed": 0, "updates": 3, "x": "new"}
    )
    read = [(r["updates"], r["seed"], r["x"]) for r in read_metrics(tmp_path).records]
    assert read == [(1, 0, "old"), (1, 1, "old"), (2, 0, "new"), (2, 1, "old"), (3, 0, "new")]
    assert len(read_lines(path).records) == 6, "both stay in the file"


def test_records_without_the_key_are_all_kept(tmp_path):
    records = [{"seed": 0, "x": 1}, {"seed": 0, "x": 2}, {"updates": 1}, {"updates": 1}]
    write(tmp_path, *records)
    assert read_metrics(tmp_path).records == records


def test_writers_do_not_replace_each_others_records(tmp_path):
    write(tmp_path, {"seed": 0, "updates": 1, "x": 1}, writer="b")
    write(tmp_path, {"seed": 0, "updates": 1, "y": 2}, writer="a")
    assert [len(r) for r in read_metrics(tmp_path).records] == [3, 3]
    assert read_metrics(tmp_path, "a").records == [{"seed": 0, "updates": 1, "y": 2}]
    assert read_metrics(tmp_path, "absent") == ([], 0)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b", "a\n"])
def test_invalid_writer_names_are_refused(tmp_path, name):
    with pytest.raises(UsageError, match="not a name"):
        MetricsWriter(tmp_path, name)


def test_a_missing_folder_raises_one_line(tmp_path):
    with pytest.raises(UserFacingError, match=r"absent/metrics-train.jsonl`: No such file"):
        MetricsWriter(tmp_path / "absent", "train")


def test_a_full_disk_tears_one_line_and_the_next_record_is_whole(tmp_path, monkeypatch):
    """The disk accepts half a line, then nothing, then has space again."""
    real = os.write
    with MetricsWriter(tmp_path, "train") as metrics:
        metrics.write({"x": 1})
        answers = iter([lambda fd, data: real(fd, data[:4]), "full"])

        def filling(fd, data):
            answer = next(answers)
            if answer == "full":
                raise OSError(errno.ENOSPC, "No space left on device")
            return answer(fd, data)

        monkeypatch.setattr(os, "write", filling)
        with pytest.raises(UserFacingError, match=r"no space left.*metrics-train.jsonl"):
            metrics.write({"x": 2})
        monkeypatch.undo()
        metrics.write({"x": 3})
        metrics.write({"x": 4})
    assert read_metrics(tmp_path) == ([{"x": 1}, {"x": 3}, {"x": 4}], 1)
    assert metrics.path.read_bytes().endswith(b'{"x": 3}\n{"x": 4}\n')


def test_a_write_cut_short_is_completed(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    write(tmp_path, {"x": 1}, {"x": 2})
    assert read_lines(tmp_path / "metrics-train.jsonl") == ([{"x": 1}, {"x": 2}], 0)


KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from pathlib import Path
from runshelf.store.metrics import MetricsWriter

folder, chance, filler = Path(sys.argv[1]), random.Random(0), "x" * 20_000

def child(pipe, generation):
    metrics, updates = MetricsWriter(folder, "train"), 0
    while True:
        metrics.write({"seed": generation, "updates": updates, "filler": filler})
        os.write(pipe, b"%d %d\\n" % (generation, updates))
        updates += 1

for generation in range(25):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(writer, generation)
    os.close(writer)
    pipe = os.fdopen(reader)
    lines = [pipe.readline() for _ in range(chance.randrange(6))]
    time.sleep(chance.uniform(0, 0.004))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with (folder / "metrics-train.jsonl").open("ab") as file:
        file.write(b'{"seed": 0, "torn')  # a kill rarely tears a line by itself
    sys.stdout.write("".join(lines) + pipe.read())
"""


@pytest.mark.medium
def test_kill_9_at_random_moments(tmp_path):
    command = [sys.executable, "-c", KILLED_AT_RANDOM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    acknowledged = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(acknowledged) > 25
    lines = read_lines(tmp_path / "metrics-train.jsonl")
    found = [(record["seed"], record["updates"]) for record in lines.records]
    assert len(found) == len(set(found)), "written twice"
    assert set(acknowledged) <= set(found), "acknowledged, but lost"
    assert len(found) <= len(acknowledged) + 25, "at most one unacknowledged record per kill"


def test_the_file_can_be_read_while_a_line_is_being_written(tmp_path):
    with LinesWriter(tmp_path / "x") as lines:
        lines.write({"a": 1})
        os.write(lines._file.number, b'{"a":')
        assert read_lines(tmp_path / "x") == ([{"a": 1}], 1)
