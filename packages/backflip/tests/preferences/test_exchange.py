"""Tests of `backflip.preferences.exchange`: export, import, invalid files, kills."""

import base64
import csv
import hashlib
import io
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from backflip.labelling.label_queue import LabelQueue
from backflip.preferences import label_file, label_lines, label_schema, packed_clips
from backflip.preferences.exchange import (
    check_fits,
    export_labels,
    import_labels,
    importable,
    labels_of_run,
    read_labels,
)
from backflip.preferences.label_records import ANSWERS, NewLabel, NewQuery
from backflip.preferences.labels import LabelStore
from backflip.training.queries.initial_labels import find_start
from runshelf.errors import DamagedFile, UsageError, UserFacingError

HEADER = "seed,env_steps,answer,who,at,seconds,repeats,query,origin,left_clip,right_clip,left,right"


@pytest.fixture
def store(tmp_path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


@pytest.fixture
def other(tmp_path):
    (tmp_path / "other").mkdir()
    with LabelStore.open(tmp_path / "other" / "labels.sqlite") as store:
        yield store


def clip(value, length=4):
    return {
        "obs": np.full((length, 3), value, np.float32),
        "action": np.arange(length),
        "lived": np.ones(length, bool),
        "scene": np.zeros(0, np.float32),
    }


def answered(store, answers=ANSWERS, seed=0, who="me"):
    queries = store.add_queries(
        [NewQuery(seed, clip(2 * n), clip(2 * n + 1), 100 * n) for n in range(len(answers))]
    )
    store.add_labels([NewLabel(q, a, who, 1.5) for q, a in zip(queries, answers, strict=True)])
    return queries


def same(left, right):
    return left.keys() == right.keys() and all(
        (left[k].dtype, left[k].shape, left[k].tobytes())
        == (right[k].dtype, right[k].shape, right[k].tobytes())
        for k in left
    )


def everything(store):
    return [store.file.rows(f"SELECT * FROM {t} ORDER BY id") for t in ("clips", "queries")] + [
        store.file.rows("SELECT * FROM labels ORDER BY id")
    ]


def test_labels_that_several_seeds_have_are_counted_once(store, other, tmp_path):
    """As the labels that a new run gets from a run of two seeds with imported labels."""
    answered(other, ["left", "left", "tie"])
    export_labels(other, tmp_path / "first.jsonl")
    assert import_labels(store, read_labels(tmp_path / "first.jsonl"), [4, 5], "first") == 6
    answered(store, ["right"], seed=5)
    export_labels(store, tmp_path / "again.jsonl")
    labels = read_labels(tmp_path / "again.jsonl")
    with LabelStore.open(tmp_path / "new.sqlite") as new:
        assert import_labels(new, labels, [7], "again") == importable(labels) == 4
    assert find_start(tmp_path, str(tmp_path / "again.jsonl"), None).labels == 4


both = pytest.mark.parametrize(
    "suffix", [".jsonl", ".csv", pytest.param(".CSV", marks=pytest.mark.slow)]
)


@both
def test_a_file_has_a_line_for_each_answer(store, tmp_path, suffix):
    queries = answered(store)
    store.undo(1, "me")
    path = tmp_path / f"x{suffix}"
    assert export_labels(store, path) == 3
    labels = read_labels(path)
    assert [label.answer for label in labels] == ["right", "tie", "skip"]
    assert [label.query for label in labels] == queries[1:]
    first = labels[0]
    assert (first.seed, first.env_steps, first.who, first.seconds) == (0, 100, "me", 1.5)
    assert (first.repeats, first.origin) == (None, None)
    assert first.at.endswith("+00:00")
    assert same(first.left, clip(2))
    assert same(first.right, clip(3))
    assert first.shapes["obs"] == ((4, 3), np.dtype(np.float32))


def test_the_fields_have_a_stable_order(store, tmp_path):
    answered(store, ["tie"])
    export_labels(store, tmp_path / "x.jsonl")
    export_labels(store, tmp_path / "x.csv")
    (line,) = (tmp_path / "x.jsonl").read_text().splitlines()
    assert ",".join(json.loads(line)) == HEADER
    assert (tmp_path / "x.csv").read_bytes().startswith(f"{HEADER}\r\n".encode())
    assert all(f"    {name} " in label_lines.__doc__ for name in HEADER.split(","))


def test_a_line_can_be_read_without_backflip(store, tmp_path):
    answered(store, ["left"])
    export_labels(store, tmp_path / "x.jsonl")
    line = json.loads((tmp_path / "x.jsonl").read_text())
    content = zlib.decompress(base64.b64decode(line["left"]))
    assert hashlib.sha256(content).hexdigest() == line["left_clip"]
    assert same(safetensors.numpy.load(content), clip(0))


NAMES = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from('",\r\n\u2028\ufeff\0 \\;|=')),
    max_size=20,
)


@pytest.mark.medium
@both
@settings(max_examples=25)
@given(
    who=NAMES.filter(str.isprintable),
    origin=st.none() | NAMES.filter(bool),
    seconds=st.floats(0, 1e6),
    numbers=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1),
)
def test_round_trips(tmp_path_factory, suffix, who, origin, seconds, numbers):
    folder = tmp_path_factory.mktemp("round")
    arrays = {"x": np.array(numbers, np.float32)}
    with LabelStore.open(folder / "labels.sqlite") as store:
        (query,) = store.add_queries([NewQuery(3, arrays, arrays, 7, origin=origin)])
        store.add_label(query, "left", who, seconds)
        export_labels(store, folder / f"x{suffix}")
        (label,) = read_labels(folder / f"x{suffix}")
        assert (label.who, label.origin, label.seconds) == (who, origin, seconds)
        assert same(label.left, arrays)
        assert [label] == labels_of_run(folder)
        assert import_labels(store, [label], [9], "again") == 1
        export_labels(store, folder / f"y{suffix}")
        again = read_labels(folder / f"y{suffix}")[1]
        assert (again.who, again.at, again.packed) == (who, label.at, label.packed)


def test_a_file_name_of_another_format_is_refused(store, tmp_path):
    for path in (tmp_path / "x.json", tmp_path / "x"):
        with pytest.raises(UsageError, match=r"`\.jsonl` \(JSON Lines\) or `\.csv`"):
            export_labels(store, path)
        with pytest.raises(UsageError, match=r"`\.jsonl` \(JSON Lines\) or `\.csv`"):
            read_labels(path)
        assert not path.exists()


def test_every_seed_is_trained_on_imported_labels(store, other):
    answered(store)
    labels = labels_of_run(store.file.path.parent)
    assert import_labels(other, labels, [5, 6], "run A") == 8
    for seed in (5, 6):
        pairs = other.labelled(seed)
        assert [pair.answer for pair in pairs] == ["left", "right", "tie"]
        assert [pair.who for pair in pairs] == ["me"] * 3
        assert same(pairs[1].left, clip(2))
        assert same(pairs[1].right, clip(3))
    rows = other.file.rows(
        "SELECT DISTINCT q.origin, e.at, e.seconds FROM effective e JOIN queries q ON q.id=e.query"
    )
    assert sorted(rows) == sorted({("run A", label.at, 1.5) for label in labels})
    assert other.counts().labels == 8
    assert other.file.rows("SELECT count(*) FROM clips") == [(8,)], "seeds share the clips"
    assert other.pending() == []


def test_imported_labels_are_not_in_the_label_queue(store, other):
    answered(store)
    import_labels(other, labels_of_run(store.file.path.parent), [0], "run A")
    queue = LabelQueue(other)
    assert queue.take("me") == []
    with pytest.raises(UsageError, match="no answer to undo"):
        queue.undo("me", "attempt-1")


def test_the_same_import_again_adds_nothing_but_a_new_seed_gets_all(store, other):
    answered(store)
    labels = labels_of_run(store.file.path.parent)
    assert import_labels(other, labels, [0], "a") == 4
    before = everything(other)
    assert import_labels(other, labels, [0, 0], "a") == 0
    assert import_labels(other, labels * 2, [0], "by another name") == 0
    assert everything(other) == before
    assert import_labels(other, labels, [0, 1], "a") == 4
    assert [len(other.labelled(seed)) for seed in (0, 1)] == [3, 3]


def test_the_same_label_with_another_answer_is_refused(store, other):
    answered(store, ["left", "right"])
    labels = labels_of_run(store.file.path.parent)
    changed = [labels[0], replace(labels[1], answer="left")]
    says = r"label 2 \(query 2\) is `left`, and the same label is already there as `right`"
    with pytest.raises(UsageError, match=says):
        import_labels(store, changed, [0], "a")
    with pytest.raises(UsageError, match=r"label 4 .* is `left`, and the same label"):
        import_labels(other, labels + changed, [0], "a")
    assert other.counts().labels == 0


def test_an_imported_label_that_was_undone_stays_undone(store, other):
    answered(store, ["left", "right"])
    labels = labels_of_run(store.file.path.parent)
    import_labels(other, labels, [0], "a")
    other.undo(1, "me")
    assert import_labels(other, labels, [0], "a") == 0
    assert [pair.answer for pair in other.labelled(0)] == ["right"]


def test_labels_differ_by_clip_person_and_time(store, other):
    first, *_ = answered(store, ["left"])
    store.undo(1, "me")
    store.add_label(first, "left", "you", 1)
    (label,) = labels_of_run(store.file.path.parent)
    import_labels(other, [label], [0], "a")
    changed = [
        {"who": "me"},
        {"at": "2026-01-31T12:00:00+00:00"},
        {"left_clip": "0" * 64},
        {"right_clip": "0" * 64},
    ]
    for number, change in enumerate(changed, 2):
        fields = {name: getattr(label, name) for name in label.__dataclass_fields__}
        assert import_labels(other, [type(label)(**(fields | change))], [0], "a") == 1
        assert other.counts().labels == number


def test_labels_of_all_seeds_of_one_run_are_pooled_once(store, other):
    answered(store)
    source = labels_of_run(store.file.path.parent)
    import_labels(other, source, [0, 1, 2], "first")
    assert len(labels_of_run(other.file.path.parent)) == 12
    assert import_labels(store, labels_of_run(other.file.path.parent), [7], "second") == 4


def test_repeats_are_exported_marked_and_not_imported(store, other, tmp_path):
    (query,) = answered(store, ["left"])
    with store.file.transaction() as connection:
        connection.execute(
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, repeats)"
            " SELECT seed, right_clip, left_clip, asked_at, id FROM queries"
        )
    store.add_label(query + 1, "right", "me", 1)
    for name in ("x.jsonl", "x.csv"):
        assert export_labels(store, tmp_path / name) == 2
        labels = read_labels(tmp_path / name)
        assert [label.repeats for label in labels] == [None, query]
    assert import_labels(other, labels, [0], "a") == 1


# Invalid files. Each has a valid first line, which must not be imported.


@pytest.fixture
def lines(store, tmp_path):
    answered(store, ["left", "right"])
    export_labels(store, tmp_path / "x.jsonl")
    return [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]


def as_json(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def as_csv(lines):
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, HEADER.split(","))
    table.writeheader()
    table.writerows(lines)
    return text.getvalue()


def packed(content):
    return {
        "left": base64.b64encode(zlib.compress(content)).decode(),
        "left_clip": hashlib.sha256(content).hexdigest(),
    }


def tensors(**arrays):
    return packed(safetensors.numpy.save(arrays))


X = np.zeros(4)
BF16 = b'{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
BAD_VALUES = [
    ({"answer": "lefft"}, "answer", "got `lefft`, expected one of left.*did you mean `left`"),
    ({"answer": ""}, "answer", "got ``, expected one of left, right, tie, skip"),
    ({"answer": "Left"}, "answer", "got `Left`"),
    ({"seconds": -1}, "seconds", "got `-1(.0)?`, expected a number of seconds, 0 or more"),
    ({"seconds": float("nan")}, "seconds", "got `[nN]a[nN]`"),
    ({"seconds": float("inf")}, "seconds", "got `[iI]nf"),
    ({"seconds": "soon"}, "seconds", "got `soon`"),
    ({"seconds": 10**400}, "seconds", "expected a number of seconds"),
    ({"seed": -1}, "seed", "got `-1`, expected a whole number, 0 or more"),
    ({"seed": 1.5}, "seed", "got `1.5`"),
    ({"seed": 10**19}, "seed", "got `10000000000000000000`"),
    ({"seed": ""}, "seed", "got ``"),
    ({"env_steps": "many"}, "env_steps", "got `many`"),
    ({"query": None}, "query", "got `(null)?`, expected a query's number"),
    ({"repeats": "no"}, "repeats", "got `no`, expected a query's number, or nothing"),
    ({"at": "yesterday"}, "at", "got `yesterday`, expected a time with its zone"),
    ({"at": "2026-01-31T12:00:00"}, "at", "expected a time with its zone"),
    ({"left_clip": "abc"}, "left_clip", "got `abc`, expected a SHA-256"),
    ({"left_clip": "0" * 64}, "left_clip", "got `0+`, expected `[0-9a-f]{64}`, the SHA-256 of"),
    ({"left": "é"}, "left", "not base64"),
    ({"left": "abc"}, "left", "not base64"),
    ({"left": "AAAA AAAA"}, "left", "not base64"),
    ({"left": "AAAA"}, "left", "the clip cannot be decompressed"),
    ({"left": ""}, "left", "wrong length"),
    ({"left": base64.b64encode(zlib.compress(b"x") + b"y").decode()}, "left", "wrong length"),
    ({"left": base64.b64encode(zlib.compress(b"xyz")[:-2]).decode()}, "left", "wrong length"),
    (packed(b"not safetensors"), "left", "the clip is not safetensors"),
    (packed(len(BF16).to_bytes(8, "little") + BF16 + b"\0\0"), "left", "is not safetensors"),
    (tensors(), "left", "must have arrays of equal length, has none"),
    (tensors(x=X, y=np.zeros(5)), "left", r"arrays of equal length, has `x` \(4,\), `y` \(5,\)"),
    (tensors(x=np.zeros(())), "left", r"arrays of equal length, has `x` \(\)"),
    (tensors(x=np.array([np.nan])), "left", "NaN or infinity in `x`"),
    (tensors(x=np.array([1, np.inf], np.float16)), "left", "NaN or infinity in `x`"),
    (tensors(x=X), "right", r"expected the same as `left`: `x` float64 \(4,\)"),
]


def refused(store, path, text, line, column, match):
    before = everything(store)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=match) as caught:
        import_labels(store, read_labels(path), [0], "x")
    said = str(caught.value)
    where = f"line {line}" + (f", column {column}" if column else "")
    assert said.startswith(f"`{path}` {where}: "), said
    assert "\n" not in said
    assert len(said) < 600
    assert everything(store) == before


@pytest.mark.medium
@pytest.mark.parametrize(("change", "column", "match"), BAD_VALUES)
def test_invalid_values_are_refused(store, tmp_path, lines, change, column, match):
    bad = [lines[0], lines[1] | change]
    refused(store, tmp_path / "y.jsonl", as_json(bad), 2, f"`{column}`", match)
    refused(store, tmp_path / "y.csv", as_csv(bad), 3, f"`{column}`", match)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"seed": True}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"seconds": "1"}, "seconds"),
        ({"seconds": False}, "seconds"),
        ({"answer": ["left"]}, "answer"),
        ({"answer": None}, "answer"),
        ({"who": 7}, "who"),
        ({"who": None}, "who"),
        ({"who": "\ud800"}, "who"),
        ({"who": "\x1b[31mred"}, "who"),
        ({"who": "two\nlines"}, "who"),
        ({"origin": 7}, "origin"),
        ({"at": 7}, "at"),
        ({"left_clip": 7}, "left_clip"),
        ({"left": 7}, "left"),
        ({"left": {"x": [[[]]]}}, "left"),
    ],
)
def test_json_of_a_wrong_kind(store, tmp_path, lines, change, column):
    bad = as_json([lines[0], lines[1] | change])
    refused(store, tmp_path / "y.jsonl", bad, 2, f"`{column}`", "got .*, expected")


def test_invalid_field_names_are_refused(store, tmp_path, lines):
    unknown = [lines[0], lines[1] | {"anwser": "left"}]
    match = "unknown, did you mean `answer`"
    refused(store, tmp_path / "y.jsonl", as_json(unknown), 2, "`anwser`", match)
    head, rest = as_csv(lines).split("\r\n", 1)
    renamed = head.replace("answer", "anwser") + "\r\n" + rest
    refused(store, tmp_path / "y.csv", renamed, 1, "`anwser`", match)
    refused(store, tmp_path / "y.csv", f"7,8\r\n{rest}", 1, "`7`", f"expected {HEADER[:4]}")
    for name in HEADER.split(","):
        missing = [lines[0], {k: v for k, v in lines[1].items() if k != name}]
        refused(store, tmp_path / "y.jsonl", as_json(missing), 2, f"`{name}`", "missing, expected")
        names = ",".join(n for n in HEADER.split(",") if n != name)
        refused(store, tmp_path / "y.csv", names, 1, f"`{name}`", "missing, expected")
    twice = as_json([lines[0]]) + as_json([lines[1]])[:-2] + ', "who": "you"}'
    refused(store, tmp_path / "y.jsonl", twice, 2, "`who`", "appears twice")
    refused(store, tmp_path / "y.csv", HEADER + ",who", 1, "`who`", "appears twice")


def test_rows_with_too_few_or_too_many_cells_are_refused(store, tmp_path, lines):
    good = as_csv(lines)
    refused(
        store, tmp_path / "y.csv", good + "1,2,left\r\n", 4, "`who`", "has 3 cells, expected 13"
    )
    longer = good[:-2] + ",more\r\n"
    refused(store, tmp_path / "y.csv", longer, 3, "14", "has 14 cells, expected 13")


def test_errors_name_the_first_line_of_a_row(store, tmp_path, lines):
    rows = [lines[0] | {"origin": 'two\nlines, \r\nand "more"'}, lines[1] | {"answer": "maybe"}]
    refused(store, tmp_path / "y.csv", as_csv(rows), 5, "`answer`", "got `maybe`")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("text", "column", "match"),
    [
        ('{"seed": 1', 11, "not JSON"),
        ('{"seed": 1,}', 12, "not JSON"),
        ("seed", 1, "not JSON"),
        ("[" * 100_000, None, "too deep"),
        ('{"seed": ' + "1" * 5000 + "}", None, "too long a number"),
        ("[1, 2]", None, r"got `\[1, 2\]`, expected an object"),
        ("null", None, "got `null`, expected an object with seed"),
        ('"' + "x" * 10_000 + '"', None, r"x\.\.\.`, expected an object"),
    ],
)
def test_invalid_json_objects_are_refused(store, tmp_path, lines, text, column, match):
    refused(store, tmp_path / "y.jsonl", as_json(lines[:1]) + text, 2, column, match)


def test_invalid_csv_is_refused(store, tmp_path, lines):
    refused(store, tmp_path / "y.csv", as_csv(lines) + '"open', 4, None, "not CSV")


def test_invalid_text_is_refused(store, tmp_path, lines):
    for name, text in (("y.jsonl", as_json(lines)), ("y.csv", as_csv(lines))):
        bad = text.encode() + b'{"who": "\xff"}\n'
        line = text.count("\n") + 1
        refused(store, tmp_path / name, bad, line, 10, "byte 0xff is not UTF-8, expected text")


def test_files_without_labels_are_refused(tmp_path):
    for name, text in (("x.jsonl", ""), ("x.jsonl", "\n \r\n"), ("x.csv", ""), ("x.csv", HEADER)):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match="has no labels: expected one line for each"):
            read_labels(tmp_path / name)
    with pytest.raises(UsageError, match="there is no file"):
        read_labels(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="there is no file"):
        read_labels(tmp_path / "folder.csv")


def test_marks_blank_lines_and_line_ends_are_tolerated(tmp_path, lines):
    for name, text in (("y.jsonl", as_json(lines)), ("y.csv", as_csv(lines))):
        plain = text.replace("\r\n", "\n")
        (tmp_path / name).write_bytes(plain.encode())
        expected = read_labels(tmp_path / name)
        assert len(expected) == 2
        odd = "\ufeff\n" + plain.replace("\n", "\r\n\r\n")
        (tmp_path / name).write_bytes(odd.encode())
        assert read_labels(tmp_path / name) == expected


def test_columns_of_a_csv_may_have_any_order(tmp_path, lines):
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, HEADER.split(",")[::-1])
    table.writeheader()
    table.writerows(lines)
    (tmp_path / "y.csv").write_text(text.getvalue())
    assert read_labels(tmp_path / "y.csv") == read_labels(tmp_path / "x.jsonl")


def test_a_decompression_bomb_is_refused(store, tmp_path, lines, monkeypatch):
    monkeypatch.setattr(packed_clips, "LARGEST_CLIP", 1000)
    bomb = [lines[0] | packed(b"\0" * 100_000)]
    match = "the clip is larger than 1000 bytes"
    refused(store, tmp_path / "y.jsonl", as_json(bomb), 1, "`left`", match)
    monkeypatch.undo()
    assert packed_clips.LARGEST_CLIP < 2**30


def test_the_limit_of_csv_cells_is_restored(tmp_path, lines):
    before = csv.field_size_limit()
    (tmp_path / "y.csv").write_text(as_csv(lines) + "x" * 200_000)
    with pytest.raises(UsageError, match="has 1 cells"):
        read_labels(tmp_path / "y.csv")
    assert csv.field_size_limit() == before


@pytest.mark.medium
@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files_never_raise_a_traceback(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    with LabelStore.open(folder / "labels.sqlite") as store:
        answered(store, ["left"])
        path = folder / data.draw(st.sampled_from(["x.csv", "x.jsonl"]))
        export_labels(store, path)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    path.write_bytes(whole)
    try:
        said = str(read_labels(path)[0].answer)
    except UsageError as error:
        said = str(error)
    assert "\n" not in said


# Other runs.


def test_labels_of_a_run_that_is_being_written(store, tmp_path):
    answered(store)
    with store.file.transaction():
        assert len(labels_of_run(tmp_path)) == 4
    answered(store, seed=1)
    assert len(labels_of_run(tmp_path)) == 8
    before = everything(store)
    assert everything(store) == before


@both
def test_a_run_does_not_import_its_own_labels_again(store, tmp_path, suffix):
    answered(store)
    path = tmp_path / f"own{suffix}"
    count = export_labels(store, path)
    before = everything(store)
    assert import_labels(store, read_labels(path), [0], "own") == 0
    assert everything(store) == before
    assert import_labels(store, read_labels(path), [0, 7], "own") == count, "seed 7 has none yet"


def test_labels_of_another_environment_or_length_are_not_imported(store, tmp_path):
    answered(store)
    with LabelStore.open(tmp_path / "other") as other:
        for key, value in (("obs", np.zeros((4, 5), np.float32)), ("lived", np.ones(3, bool))):
            odd = clip(0) | {key: value}
            if key == "lived":
                odd = clip(0, length=3)
            other.add_label(other.add_query(0, odd, odd, 0), "left", "me", 1.0)
    labels = labels_of_run_at(tmp_path / "other")
    before = everything(store)
    for label in labels:
        with pytest.raises(UsageError, match=r"(from another environment|have another length): in"):
            import_labels(store, [label], [0], "other")
    assert everything(store) == before


def labels_of_run_at(path):
    with LabelStore.open(path) as store:
        export_labels(store, path.with_suffix(".jsonl"))
    return read_labels(path.with_suffix(".jsonl"))


TRAINER = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from backflip.preferences.label_records import NewLabel, NewQuery
from backflip.preferences.labels import LabelStore

store = LabelStore.open(Path(sys.argv[1]) / "labels.sqlite")
clip = {"obs": np.zeros((4, 3), np.float32)}
queries = store.add_queries([NewQuery(0, clip, clip, 0)] * 4)
store.add_labels([NewLabel(query, "left", "me", 1.5) for query in queries])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.medium
def test_labels_of_a_run_whose_trainer_was_killed(tmp_path):
    trainer = subprocess.run([sys.executable, "-c", TRAINER, str(tmp_path)], check=False)
    assert trainer.returncode == -signal.SIGKILL
    assert (tmp_path / "labels.sqlite-wal").stat().st_size > 0
    assert len(labels_of_run(tmp_path)) == 4


def test_labels_of_an_old_run_are_read_without_migration(tmp_path):
    path = tmp_path / "labels.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_schema, "MIGRATIONS", label_schema.MIGRATIONS[:1])
        patch.setattr(label_schema, "SCHEMA", 1)
        with label_file.LabelFile.open(path) as file, file.transaction() as connection:
            content = zlib.compress(safetensors.numpy.save(clip(1)))
            connection.execute("INSERT INTO clips VALUES (1, 0, 5, ?)", (content,))
            connection.execute("INSERT INTO queries VALUES (1, 0, 1, 1, '')")
            connection.execute(
                "INSERT INTO labels VALUES (1, 1, 'left', NULL, 'me', '2026-01-31T12:00Z', 1)"
            )
    before = path.read_bytes()
    (label,) = labels_of_run(tmp_path)
    assert (label.answer, label.repeats, label.origin) == ("left", None, None)
    assert path.read_bytes() == before


def test_a_run_without_labels_or_with_damaged_ones_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"has no `labels.sqlite`: choose a run") as caught:
        labels_of_run(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()
    path = tmp_path / "labels.sqlite"
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(DamagedFile, match=r"labels.sqlite` is damaged") as caught:
        labels_of_run(tmp_path)
    assert "\n" not in str(caught.value)
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE theirs (x)").connection.close()
    with pytest.raises(DamagedFile, match="is not a label store of backflip"):
        labels_of_run(tmp_path)


def test_a_damaged_clip_of_a_run_is_one_line_and_nothing_is_written(store, tmp_path, monkeypatch):
    answered(store, ["left"])
    with store.file.transaction() as connection:
        connection.execute("DROP TRIGGER clips_no_update")
        connection.execute("UPDATE clips SET arrays = x'00'")
    with pytest.raises(DamagedFile, match="a clip of query 1 cannot be decompressed"):
        labels_of_run(tmp_path)
    with pytest.raises(DamagedFile, match="a clip of query 1 cannot be decompressed"):
        export_labels(store, tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


def test_a_file_opened_to_read_cannot_be_written(store):
    with (
        label_file.LabelFile.open_to_read(store.file.path) as file,
        pytest.raises(UserFacingError, match="readonly"),
        file.transaction() as connection,
    ):
        connection.execute("DELETE FROM labels")


# Labels that do not fit.


def test_labels_of_another_environment_are_refused(store, tmp_path):
    answered(store, ["left", "tie"])
    labels = labels_of_run(tmp_path)
    fits = {"obs": ((3,), np.dtype("float32")), "action": ((), np.dtype("int64"))}
    check_fits(labels, fits)
    check_fits(labels, fits, length=4)
    check_fits([], fits)
    for shapes, length, match in [
        ({"obs": ((4,), "float32")}, None, r"`obs` is float32 \(4, 3\), expected float32 \(4, 4\)"),
        ({"obs": ((3,), "uint8")}, None, r"`obs` is float32 \(4, 3\), expected uint8 \(4, 3\)"),
        ({"obs": ((3,), "float32")}, 25, r"is float32 \(4, 3\), expected float32 \(25, 3\)"),
        (fits | {"next_obs": ((3,), "float32")}, None, r"`next_obs` is missing"),
    ]:
        expected = {key: (shape, np.dtype(dtype)) for key, (shape, dtype) in shapes.items()}
        with pytest.raises(UsageError, match=match) as caught:
            check_fits(labels, expected, length)
        assert "in label 1 (query 1)" in str(caught.value)
        assert ("another length" if length else "another environment") in str(caught.value)


def test_clips_of_two_lengths_are_refused(store, tmp_path):
    for length in (4, 5):
        query = store.add_query(0, clip(1, length), clip(2, length), 0)
        store.add_label(query, "left", "me", 1)
    with pytest.raises(UsageError, match=r"in label 2 .* is float32 \(5, 3\), expected .*\(4, 3\)"):
        check_fits(labels_of_run(tmp_path), {"obs": ((3,), np.dtype("float32"))})


# Kills, and how long it takes.

IMPORT = """
import sys
from pathlib import Path
from backflip.preferences.exchange import import_labels, read_labels
from backflip.preferences.labels import LabelStore

labels = read_labels(Path(sys.argv[1]))
with LabelStore.open(Path(sys.argv[2])) as store:
    print("ready", flush=True)
    print(import_labels(store, labels, range(20), "x"), flush=True)
"""


@pytest.mark.slow
def test_kill_9_while_importing_leaves_all_or_nothing(store, tmp_path):
    answered(store, ["left", "right", "tie"] * 50)
    export_labels(store, tmp_path / "x.jsonl")
    chance, found = random.Random(0), []
    for number in range(8):
        path = tmp_path / f"{number}.sqlite"
        command = [sys.executable, "-c", IMPORT, str(tmp_path / "x.jsonl"), str(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0, 0.12))
        child.kill()
        said = child.stdout.read()
        child.wait()
        child.stdout.close()
        with LabelStore.open(path) as other:
            counts = [other.counts(seed).labels for seed in range(20)]
            assert counts in ([0] * 20, [150] * 20)
            found.append(sum(counts))
            assert found[-1] == 3000 or not said, "acknowledged, but lost"
            assert import_labels(other, read_labels(tmp_path / "x.jsonl"), range(20), "x") == (
                3000 - found[-1]
            )
            assert other.counts().labels == 3000
    assert 0 in found


def with_pictures(number):
    """Return a query with clips as large as those of dot, whose pictures hardly change."""
    frames = np.zeros((2, 25, 84, 84, 1), np.uint8)
    frames[0, :, number % 80, number // 80 : number // 80 + 4] = 255
    frames[1, :, number // 80 : number // 80 + 4, number % 80] = 255
    left, right = ({"obs": one, "next_obs": one} for one in frames)
    return NewQuery(0, left, right, number)


@pytest.mark.slow
def test_a_thousand_labels_with_pictures_take_seconds(store, other, tmp_path):
    for start in range(0, 1000, 100):
        ids = store.add_queries([with_pictures(n) for n in range(start, start + 100)])
        store.add_labels([NewLabel(query, "left", "me", 1) for query in ids])
    for name in ("x.jsonl", "x.csv"):
        began = time.monotonic()
        export_labels(store, tmp_path / name)
        labels = read_labels(tmp_path / name)
        assert time.monotonic() - began < 60
    began = time.monotonic()
    assert import_labels(other, labels, range(10), "x") == 10_000
    assert time.monotonic() - began < 30
