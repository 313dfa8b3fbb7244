"""Compaction of lines into columns: exact values, kills, and malicious files."""

import contextlib
import fcntl
import io
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runshelf.errors import DamagedFile
from runshelf.store import columns, compacting, packed
from runshelf.store.metrics import MetricsWriter, broken_lines, read_metrics
from runshelf.store.records import from_json, to_json
from runshelf.store.summary import kept_as_lines, summarise

ROOT = Path(__file__).parents[4]


def line(record) -> bytes:
    return json.dumps(to_json(record)).encode() + b"\n"


def lines_of(folder: Path, writer: str, *records) -> Path:
    path = folder / f"metrics-{writer}.jsonl"
    with path.open("ab") as file:
        file.write(b"".join(map(line, records)))
    return path


def rows(count: int, seed: int = 0) -> list[dict]:
    chance = random.Random(seed)
    return [{"step": n, "time": 1.7e9 + n, "loss": chance.random()} for n in range(count)]


def plain(value):
    """Return a form to compare: 1, 1.0 and True are equal, NaN equals NaN, 0.0 is not -0.0."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, int | float) and abs(value) <= columns.EXACT:
        return repr(float(value))
    return repr(value)


def same(a, b) -> bool:
    return plain(a) == plain(b)


NUMBERS = (
    st.floats()
    | st.integers()
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([-0.0, 0.1, 0.5, 1e22, 2.0**53, 8796093022207.999, 1e-320, 2**63, -(2**63)])
    | st.booleans()
)
ODD = st.text() | st.none() | st.lists(st.integers()) | st.dictionaries(st.text(), NUMBERS)
KEYS = st.sampled_from(["step", "time", "loss", "é\n", "a/b"])
RECORDS = st.lists(
    st.one_of(
        st.dictionaries(KEYS, NUMBERS),
        st.fixed_dictionaries({"step": st.integers(0, 9), "loss": st.floats()}),
        st.dictionaries(KEYS, NUMBERS | ODD),
    ),
    max_size=60,
)


@pytest.mark.medium
@given(batches=st.lists(RECORDS, min_size=1, max_size=3), repeat=st.integers(1, 10))
def test_compacting_keeps_all_records(tmp_path_factory, batches, repeat):
    folder = tmp_path_factory.mktemp("run")
    for records in batches:
        lines_of(folder, "x", *records * repeat)
        before = read_metrics(folder)
        compacting.compact(folder)
        assert same(read_metrics(folder), before)
    every = [record for records in batches for record in records * repeat]
    assert same(before.records, [from_json(json.loads(line(record))) for record in every])


@pytest.mark.medium
@given(
    st.lists(
        st.floats(allow_nan=False)
        | st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
        | st.integers(-(10**15), 10**15).map(lambda n: n / 10**6),
        min_size=8,
        max_size=40,
    )
)
@example([-0.0] * 8)
@example([0.5, -0.0] * 4)
@example([1e300] * 8)
@example([2.0**43] * 8)
@example([math.inf] * 8)
def test_floats_keep_every_bit(tmp_path_factory, values):
    batch = columns.tabulate([line({"x": value})[:-1] for value in values])
    data = packed.to_npz(columns.concatenate([batch] * 4), b"")
    path = tmp_path_factory.getbasetemp() / "bits.npz"
    path.write_bytes(data)
    read = packed.read_npz(path).batch.columns["x"].values
    assert read.tobytes() == np.array(values * 4, np.float64).tobytes()


def test_numpy_load_returns_the_values(tmp_path):
    text = {"step": 3, "note": "text"}
    sparse = [{"step": n, "extra": n / 8} for n in range(40)]
    lines_of(tmp_path, "train", *rows(100), text, *sparse)
    compacting.compact(tmp_path)
    with np.load(tmp_path / "metrics-train.npz", allow_pickle=False) as file:
        assert file["loss"].tolist() == [row["loss"] for row in rows(100)]
        assert file["loss@rows"].tolist() == list(range(100))
        assert file["step"].tolist() == [*range(100), *range(40)]
        assert file["extra"].tolist() == [n / 8 for n in range(40)]
        assert file["extra@rows"].tolist() == list(range(101, 141))
        assert json.loads(file["@lines"].tobytes()) == text
        assert file["@lines@rows"].tolist() == [100]
        assert json.loads(str(file["@about"]))["records"] == 141


def test_the_example_of_the_documentation_works(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "logging.md").read_text()
    example = next(part for part in text.split("```")[1::2] if "numpy.load" in part)
    lines_of(tmp_path, "log-1-a", *rows(100))
    compacting.compact(tmp_path)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(example.removeprefix("python\n"), found)
    assert found["loss"].tolist() == [row["loss"] for row in rows(100)]
    assert found["step"].tolist() == list(range(100))


def test_format_1_is_read_and_replaced_on_compacting(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "data" / "metrics-coded.npz", tmp_path)
    old = []
    for n in range(40):
        time = 1.7e9 + n / 1000
        old.append({"step": n, "time": time, "loss": math.ldexp(n * n + 1, -40), "done": not n % 2})
        earned = math.nan if n == 7 else -n / 4
        old.append({"step": n, "seed": n % 3, "updates": -n, "return": earned})
        if n % 10 == 0:
            old.append({"step": n, "note": f"text {n}", "loss": n})
    old.append({"step": 2**70, "huge": 1})
    assert same(read_metrics(tmp_path).records, old)
    lines_of(tmp_path, "coded", *rows(50))
    compacting.compact(tmp_path)
    assert same(read_metrics(tmp_path).records, old + rows(50))
    with np.load(tmp_path / "metrics-coded.npz", allow_pickle=False) as file:
        assert json.loads(str(file["@about"]))["format"] == packed.FORMAT


@pytest.mark.medium
@pytest.mark.parametrize(
    ("names", "most"), [(["loss"], 18), ([f"metric/{n}" for n in range(10)], 9)]
)
def test_a_point_of_random_doubles_takes_few_bytes(tmp_path, names, most):
    """A point is one value with its share of step and time."""
    chance = random.Random(0)
    time = 1.7e9
    records = []
    for step in range(5000):
        time = round(time + chance.expovariate(50), 6)
        records.append({"step": step, "time": time, **{n: chance.random() for n in names}})
    path = lines_of(tmp_path, "log-1-a", *records)
    compacting.compact(tmp_path)
    assert not path.exists()
    size = (tmp_path / "metrics-log-1-a.npz").stat().st_size
    assert size / (5000 * len(names)) <= most


def test_records_after_a_resume_are_read_after_the_columns(tmp_path):
    first, second = rows(20, 1), rows(20, 2)
    for records in (first, second):
        with MetricsWriter(tmp_path, "train") as writer:
            for record in records:
                writer.write(record)
        assert read_metrics(tmp_path).records[-20:] == records
        compacting.compact(tmp_path)
    assert read_metrics(tmp_path).records == first + second
    assert read_metrics(tmp_path, "train").torn == 0


@pytest.mark.medium
def test_repeated_lines_are_not_taken_for_compacted_ones(tmp_path):
    for times in range(1, 5):
        lines_of(tmp_path, "train", *rows(20))
        compacting.compact(tmp_path)
        lines_of(tmp_path, "train", *rows(20))
        assert len(read_metrics(tmp_path).records) == 20 * (2 * times)
        compacting.compact(tmp_path)
        assert len(read_metrics(tmp_path).records) == 20 * (2 * times)


def test_compacting_again_changes_nothing(tmp_path):
    lines_of(tmp_path, "train", *rows(20))
    compacting.compact(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    compacting.compact(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_kill_during_compacting_neither_loses_nor_doubles_records(tmp_path, monkeypatch):
    path = lines_of(tmp_path, "train", *rows(20))
    monkeypatch.setattr(compacting, "_remove_lines", lambda *_: None)
    compacting.compact(tmp_path)
    assert path.stat().st_size > 100
    assert read_metrics(tmp_path).records == rows(20)
    lines_of(tmp_path, "train", *rows(5, 9))
    assert read_metrics(tmp_path).records == rows(20) + rows(5, 9)
    monkeypatch.undo()
    compacting.compact(tmp_path)
    assert path.stat().st_size <= 2
    assert read_metrics(tmp_path).records == rows(20) + rows(5, 9)


KILLED = """
import sys
from pathlib import Path
from runshelf.store import compacting
print("ready", flush=True)
while True:
    compacting.compact(Path(sys.argv[1]))
    print(flush=True)
    if not sys.stdin.readline():
        break
"""


@pytest.mark.slow
def test_kill_9_at_random_moments_of_compacting(tmp_path):
    chance = random.Random(0)
    written = []
    for generation in range(15):
        more = rows(3000, generation)
        lines_of(tmp_path, "train", *more)
        written += more
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            process.stdout.readline()
            try:
                process.wait(chance.uniform(0, 0.1))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        assert read_metrics(tmp_path) == (written, 0)


def test_a_file_open_for_writing_is_not_compacted(tmp_path):
    path = lines_of(tmp_path, "log-1-a", *rows(20))
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        compacting.compact(tmp_path)
        assert not list(tmp_path.glob("*.npz"))
        file.write(line({"loss": 1.0}))
    compacting.compact(tmp_path)
    assert not path.exists()
    assert len(read_metrics(tmp_path).records) == 21


def test_an_open_writer_is_not_compacted(tmp_path):
    with MetricsWriter(tmp_path, "train") as first:
        first.write({"x": 1})
        compacting.compact(tmp_path)
        first.write({"x": 2})
    assert [r["x"] for r in read_metrics(tmp_path).records] == [1, 2]


def test_broken_lines_are_reported_and_their_file_is_unchanged(tmp_path):
    lines_of(tmp_path, "whole", *rows(10))
    path = lines_of(tmp_path, "train", *rows(10))
    with path.open("ab") as file:
        file.write(b'{"loss": 0.\n\n[1]\n\xff\n')
    lines_of(tmp_path, "train", *rows(10))
    path.write_bytes(path.read_bytes()[:-5])
    before = path.read_bytes()
    for _ in range(2):
        assert read_metrics(tmp_path).torn == 4
        assert read_metrics(tmp_path).torn == 4
        found = broken_lines(tmp_path)
        assert [(broken.path, broken.line) for broken in found] == [
            (path, number) for number in (11, 12, 13, 23)
        ]
        assert compacting.compact(tmp_path) == [(path, 11)] == kept_as_lines(tmp_path)
        assert path.read_bytes() == before
        assert not path.with_suffix(".npz").exists()
        assert (tmp_path / "metrics-whole.npz").exists()
    with path.open("ab") as file:
        file.write(b"\n[2]\n")
    assert [broken.line for broken in broken_lines(tmp_path)] == [11, 12, 13, 23, 24]
    assert kept_as_lines(tmp_path) == [], "the file has changed"


def test_broken_lines_are_numbered_from_the_first_record(tmp_path):
    path = lines_of(tmp_path, "train", *rows(10))
    compacting.compact(tmp_path)
    with path.open("ab") as file:
        file.write(b'{"loss": 1}\n[2]\n')
    assert compacting.compact(tmp_path) == [(path, 12)] == broken_lines(tmp_path)
    assert len(read_metrics(tmp_path).records) == 11


def test_a_record_may_have_no_number(tmp_path):
    lines_of(tmp_path, "train", {"step": "x", "loss": {}}, *rows(9))
    assert compacting.compact(tmp_path) == broken_lines(tmp_path) == []
    assert read_metrics(tmp_path).records[0] == {"step": "x", "loss": {}}
    assert summarise(tmp_path)["loss"].count == 9


def test_broken_lines_of_events_are_reported(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(b'{"status": "started"}\n\nnull\n{"status":')
    found = broken_lines(tmp_path)
    assert found == [(tmp_path / "events.jsonl", line) for line in (2, 3)]


def test_reading_is_the_same_after_compacting(tmp_path):
    repeated = [{"seed": s, "updates": u, "x": x} for x in (1, 2) for u in range(9) for s in (0, 1)]
    lines_of(tmp_path, "train", *repeated)
    lines_of(tmp_path, "log-1-a", *repeated)
    before = [read_metrics(tmp_path, writer) for writer in (None, "train", "log-1-a", "absent")]
    assert [len(lines.records) for lines in before] == [18 + 36, 18, 36, 0]
    compacting.compact(tmp_path)
    after = [read_metrics(tmp_path, writer) for writer in (None, "train", "log-1-a", "absent")]
    assert same(after, before)


@pytest.mark.medium
def test_rare_keys_stay_lines(tmp_path):
    lines_of(tmp_path, "x", *({f"m{n}": n, "step": n} for n in range(300)), *rows(40))
    before = read_metrics(tmp_path)
    compacting.compact(tmp_path)
    with np.load(tmp_path / "metrics-x.npz") as file:
        assert {name for name in file.files if name[0] != "@"} == {"step", "time", "loss"} | {
            f"{name}@rows" for name in ("step", "time", "loss")
        }
    assert same(read_metrics(tmp_path), before)


@pytest.mark.parametrize(
    "key", ["file", "allow_pickle", "@about", "x@rows", "x.npy", "", "a\0", "\ud800"]
)
def test_keys_that_cannot_name_an_array_stay_lines(tmp_path, key):
    lines_of(tmp_path, "x", *({key: n, "step": n} for n in range(40)), *rows(40))
    before = read_metrics(tmp_path)
    compacting.compact(tmp_path)
    assert same(read_metrics(tmp_path), before)
    read = key.encode(errors="replace").decode().replace("?", "\ufffd")
    assert before.records[39] == {read: 39, "step": 39}


def npz(**members) -> bytes:
    data = io.BytesIO()
    np.savez_compressed(data, **members)
    return data.getvalue()


def about(**fields) -> np.ndarray:
    covers = {"bytes": 0, "sha256": ""}
    return np.array(json.dumps({"format": 2, "records": 8, "covers": covers} | fields))


def old(**fields) -> np.ndarray:
    covers = {"bytes": 0, "sha256": ""}
    whole = {"format": 1, "order": 1, "lines": 0, "tables": [], "covers": covers} | fields
    return np.frombuffer(json.dumps(whole).encode(), np.uint8)


NONE = {"@lines": np.zeros(0, np.uint8), "@lines@rows": np.zeros(0, np.int64)}
EMPTY = np.zeros(0, np.uint8)
ONES = np.ones(8, np.uint8)
TABLE = {"keys": ["x"], "kinds": "f", "rows": 8, "scales": [0]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 not a zip",
        npz(),
        npz(**NONE),
        npz(**{"@about": about(format=3)}, **NONE),
        npz(**{"@about": np.zeros(3)}, **NONE),
        npz(**{"@about": about(covers={})}, **NONE),
        npz(**{"@about": about(records=-1)}, **NONE),
        npz(**{"@about": about()}),
        npz(**{"@about": about()} | NONE | {"@lines@rows": np.array([8]), "@lines": ONES}),
        npz(**{"@about": about(), "x": np.zeros(7)}, **NONE),
        npz(**{"@about": about(), "x": np.zeros(1), "x@rows": np.array([8])}, **NONE),
        npz(**{"@about": about(), "x": np.zeros(1), "x@rows": np.array([-1])}, **NONE),
        npz(**{"@about": about(), "x": np.zeros(2), "x@rows": np.array([1, 1])}, **NONE),
        npz(**{"@about": about(), "x": np.zeros((8, 2))}, **NONE),
        npz(**{"@about": about(), "x": np.array(["a"] * 8)}, **NONE),
        npz(about=old(), order=np.array([3], np.uint8), lines=EMPTY),
        npz(about=old(order=4), order=np.full(4, 255, np.uint8), lines=EMPTY),
        npz(about=old(tables=[TABLE]), order=EMPTY, lines=EMPTY),
        npz(about=old(tables=[TABLE | {"rows": -1}]), order=EMPTY, lines=EMPTY),
        npz(about=old(tables=3), order=EMPTY, lines=EMPTY),
        npz(about=old(tables=[TABLE | {"kinds": "O"}]), order=ONES, lines=EMPTY),
        npz(about=old(tables=[TABLE]), order=ONES, lines=EMPTY),
        npz(
            about=old(tables=[TABLE]),
            order=ONES,
            lines=EMPTY,
            **{"0/0": np.zeros(63, np.uint8)},
        ),
    ],
)
def test_invalid_and_damaged_files_raise(tmp_path, data):
    (tmp_path / "metrics-x.npz").write_bytes(data)
    with pytest.raises(DamagedFile, match=r"metrics-x\.npz"):
        read_metrics(tmp_path)


@pytest.mark.medium
def test_a_flipped_byte_is_detected_or_harmless(tmp_path):
    path = lines_of(tmp_path, "log-1-x", *rows(30)).with_suffix(".npz")
    compacting.compact(tmp_path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(DamagedFile):
            assert read_metrics(tmp_path).records == rows(30)


def test_a_pickle_in_the_file_is_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    data = io.BytesIO()
    np.savez(data, **{"@about": np.array([Bomb()], object)}, **NONE, allow_pickle=True)
    (tmp_path / "metrics-x.npz").write_bytes(data.getvalue())
    with pytest.raises(DamagedFile):
        read_metrics(tmp_path)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.medium
def test_a_zip_bomb_is_refused_before_decompression(tmp_path, monkeypatch):
    data = io.BytesIO()
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("about.npy", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(2**20))
    (tmp_path / "metrics-x.npz").write_bytes(data.getvalue())
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("inflated"))
    with pytest.raises(DamagedFile, match="too large"):
        read_metrics(tmp_path)


def test_very_compressible_records_stay_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "_LARGE_BYTES", 1000)
    monkeypatch.setattr(packed, "_LARGER", 3)
    lines_of(tmp_path, "x", *({"a": 1.0, "b": 2.0} for _ in range(1000)))
    compacting.compact(tmp_path)
    assert not (tmp_path / "metrics-x.npz").exists()
    assert len(read_metrics(tmp_path).records) == 1000


def test_a_full_disk_leaves_the_lines(tmp_path, monkeypatch):
    path = lines_of(tmp_path, "x", *rows(20))
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Exception, match="no space left"):
        compacting.compact(tmp_path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert math.isclose(read_metrics(tmp_path).records[0]["loss"], rows(1)[0]["loss"])
