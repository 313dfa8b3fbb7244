"""Tests of `backflip.preferences.labels`: storage, refusals, kills, damage."""

import random
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from backflip.preferences import label_file, label_inserts, label_schema
from backflip.preferences.label_records import ANSWERS, Counts, NewLabel, NewQuery
from backflip.preferences.labels import LabelStore
from runshelf.errors import DamagedFile, UsageError, UserFacingError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels.sqlite"


@pytest.fixture
def store(path):
    with LabelStore.open(path) as store:
        yield store


def clip(value, length=5):
    return {"obs": np.full((length, 2), value, np.float32), "action": np.arange(length)}


def ask(store, count=1, seed=0):
    return store.add_queries(
        [NewQuery(seed, clip(2 * n), clip(2 * n + 1), 100 * n) for n in range(count)]
    )


def same(left, right):
    return left.keys() == right.keys() and all(
        left[k].dtype == right[k].dtype and left[k].tobytes() == right[k].tobytes() for k in left
    )


def test_a_labelled_pair_has_the_clips_and_the_answer(store):
    query = store.add_query(7, clip(1), clip(2), env_steps=640)
    label = store.add_label(query, "right", "human", 3.5)
    (pair,) = store.labelled(7)
    assert (pair.query, pair.label, pair.answer) == (query, label, "right")
    assert (pair.env_steps, pair.who) == (640, "human")
    assert same(pair.left, clip(1))
    assert same(pair.right, clip(2))


@pytest.mark.medium
@given(
    clips=st.tuples(
        *[
            st.dictionaries(
                st.sampled_from("abc"),
                st.sampled_from(["uint8", "bool", "uint32", "float32", "int64"]).flatmap(
                    lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
                ),
            )
        ]
        * 2
    )
)
def test_clips_round_trip_bit_for_bit(tmp_path_factory, clips):
    with LabelStore.open(tmp_path_factory.mktemp("labels") / "x") as store:
        query = store.add_query(0, *clips, env_steps=0)
        assert all(map(same, store.clips(query), clips))
        assert [c[k].shape for c in store.clips(query) for k in sorted(c)] == [
            c[k].shape for c in clips for k in sorted(c)
        ]


def test_the_schema_of_the_file(store, path):
    query, *_ = ask(store)
    store.add_label(query, "tie", "me", 2)
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store.file._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store.file._connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert other.execute("PRAGMA user_version").fetchone() == (label_schema.SCHEMA,)
    (row,) = other.execute("SELECT query, answer, undoes, who, seconds, at FROM labels").fetchall()
    assert row[:5] == (query, "tie", None, "me", 2.0)
    assert row[5].endswith("+00:00")
    other.close()


def version_1(path):
    """Return a label file of version 1 with one answered query."""
    other = sqlite3.connect(path, isolation_level=None)
    statement = ""
    for line in label_schema.MIGRATIONS[0].splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            other.execute(statement)
            statement = ""
    other.execute(f"PRAGMA application_id = {label_schema.APPLICATION_ID}")
    other.execute("PRAGMA user_version = 1")
    arrays = label_inserts.packed_clip(clip(3))
    for number in (1, 2):
        other.execute("INSERT INTO clips VALUES (?, 0, 0, ?)", (number, arrays))
    other.execute("INSERT INTO queries VALUES (1, 0, 1, 2, '2026-01-01T00:00:00.000+00:00')")
    other.execute("INSERT INTO labels VALUES (1, 1, 'left', NULL, 'me', '2026-01-01', 1.5)")
    other.close()


def test_a_file_of_version_1_is_migrated_with_all_records(path):
    version_1(path)
    for _ in range(2):  # and stays so
        with LabelStore.open(path) as store:
            (pair,) = store.labelled(0)
            assert (pair.answer, pair.who) == ("left", "me")
            assert same(pair.left, clip(3))
            assert store.counts().labels == 1
            ask(store, seed=5)
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA user_version").fetchone() == (label_schema.SCHEMA,)
    other.close()


def test_a_kill_during_a_migration_leaves_the_old_file(path, monkeypatch):
    version_1(path)
    torn = label_schema.MIGRATIONS[1] + "CREATE TABLE clips (x);\n"  # fails after all the rest
    monkeypatch.setattr(label_schema, "MIGRATIONS", (label_schema.MIGRATIONS[0], torn))
    with pytest.raises(UserFacingError, match="clips already exists"):
        LabelStore.open(path)
    monkeypatch.undo()
    with LabelStore.open(path) as store:
        assert store.counts().labels == 1


def test_repeats_are_neither_counted_nor_trained_on(store):
    first, second = ask(store, 2)
    store.add_label(first, "left", "me", 1)
    with store.file.transaction() as connection:
        connection.execute(
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, repeats)"
            " SELECT seed, right_clip, left_clip, asked_at, id FROM queries WHERE id = ?",
            (first,),
        )
    assert [q.id for q in store.pending()] == [second]
    store.add_label(3, "right", "me", 1)
    assert [p.query for p in store.labelled(0)] == [first]
    assert store.counts() == Counts(2, 1, 1, 0, 0, 0)
    assert store.count_queries(0, 0) == 1


def test_imported_queries_are_not_counted_as_made_here(store):
    (query,) = store.add_queries([NewQuery(0, clip(1), clip(2), 640, origin="elsewhere")])
    store.add_label(query, "tie", "me", 1)
    assert store.count_queries(0, 640) == 0
    assert store.labelled(0)[0].env_steps == 0, "known from the start"


def test_opinions_round_trip_or_are_none(store):
    opinion = {"left": np.ones((2, 5), np.float32)}
    queries = store.add_queries(
        [NewQuery(0, clip(1), clip(2), 0), NewQuery(0, clip(1), clip(2), 0, opinion=opinion)]
    )
    assert store.opinion(queries[0]) is None
    assert same(store.opinion(queries[1]), opinion)
    assert store.opinion(99) is None


def test_pending_queries_have_no_answer(store):
    first, second, third = ask(store, 3)
    (other,) = ask(store, seed=1)
    label = store.add_label(first, "left", "me", 1)
    store.add_label(second, "skip", "me", 1)
    assert [q.id for q in store.pending()] == [third, other]
    assert [q.id for q in store.pending(0)] == [third]
    assert store.pending(0)[0].env_steps == 200
    assert store.pending(1)[0].seed == 1
    assert store.pending(2) == []
    store.undo(label, "me")
    assert [q.id for q in store.pending(0)] == [first, third]


def test_labelled_is_in_the_order_of_answering_without_skips_and_other_seeds(store):
    queries = ask(store, 4)
    ask(store, 2, seed=1)
    for query, answer in zip(reversed(queries), ["left", "skip", "tie", "right"], strict=True):
        store.add_label(query, answer, "me", 1)
    pairs = store.labelled(0)
    assert [p.answer for p in pairs] == ["left", "tie", "right"]
    assert [p.query for p in pairs] == [queries[3], queries[1], queries[0]]
    assert store.labelled(1) == []


def test_counts(store):
    queries = ask(store, 6)
    for query, answer in zip(queries, ["left", "right", "right", "tie", "skip"], strict=False):
        store.add_label(query, answer, "me", 1)
    assert store.counts(0) == Counts(queries=6, pending=1, left=1, right=2, tie=1, skip=1)
    assert store.counts(0).labels == 5
    assert store.counts(9) == Counts(0, 0, 0, 0, 0, 0)
    ask(store, 2, seed=1)
    assert store.counts().queries == 8


def test_an_answer_to_an_earlier_query_is_a_new_record(store):
    """Of two people, one may answer a query of a later round first."""
    first, later = ask(store, 2)
    store.add_label(later, "left", "a", 1.0)
    before = store.count_records(100)
    store.add_label(first, "left", "b", 1.0)
    assert store.count_records(0) == 1, "the later query is left out"
    assert store.count_records(100) == before + 1


def test_an_undone_answer_can_be_given_again_and_both_are_kept(store, path):
    (query,) = ask(store)
    for answer in ("left", "right"):
        label = store.add_label(query, answer, "me", 1)
        undo = store.undo(label, "you")
        assert undo > label
        assert store.labelled(0) == []
        with pytest.raises(
            UsageError, match=f"label {label} is not an answer, or it was undone before"
        ):
            store.undo(label, "me")
        with pytest.raises(
            UsageError, match=f"label {undo} is not an answer, or it was undone before"
        ):
            store.undo(undo, "me")
    store.add_label(query, "tie", "me", 1)
    assert [p.answer for p in store.labelled(0)] == ["tie"]
    rows = sqlite3.connect(path).execute("SELECT answer, undoes, who FROM labels").fetchall()
    assert rows == [
        *(("left", None, "me"), (None, 1, "you")),
        *(("right", None, "me"), (None, 3, "you")),
        ("tie", None, "me"),
    ]


@pytest.mark.parametrize(
    ("label", "match"),
    [
        (NewLabel(1, "lefft", "me", 1), "`lefft` is not an answer .*did you mean `left`"),
        (NewLabel(1, "", "me", 1), "`` is not an answer"),
        (NewLabel(1, "LEFT", "me", 1), "did you mean `left`"),
        (NewLabel(99, "left", "me", 1), "no query 99"),
        (NewLabel(2, "left", "me", 1), r"query 2 is answered \(`tie`\): undo"),
        (NewLabel(1, "left", "me", -1), "`seconds` must be .* got -1"),
        (NewLabel(1, "left", "me", float("nan")), "`seconds` must be .* got nan"),
        (NewLabel(1, "left", "me", float("inf")), "`seconds` must be .* got inf"),
    ],
)
def test_wrong_labels_are_refused_and_none_of_their_batch_is_kept(store, label, match):
    queries = ask(store, 3)
    store.add_label(queries[1], "tie", "me", 1)
    with pytest.raises(UsageError, match=match):
        store.add_labels([NewLabel(queries[2], "left", "me", 1), label])
    assert store.counts(0).labels == 1
    store.add_label(queries[0], "left", "me", 1)


def test_one_query_cannot_be_answered_twice_in_one_batch(store):
    (query,) = ask(store)
    with pytest.raises(UsageError, match="is answered"):
        store.add_labels([NewLabel(query, "left", "me", 1)] * 2)
    assert store.counts().labels == 0


def test_a_batch_with_a_bad_clip_is_refused_whole(store):
    bad = {"x": np.array(["text"])}
    with pytest.raises(UsageError, match="`x`"):
        store.add_queries([NewQuery(0, clip(1), clip(2), 0), NewQuery(0, clip(1), bad, 0)])
    assert store.counts().queries == 0
    assert store.add_queries([]) == []


def test_clips_of_an_unknown_query(store):
    with pytest.raises(UsageError, match="no query 5"):
        store.clips(5)


@pytest.mark.parametrize("table", ["clips", "queries", "labels"])
@pytest.mark.parametrize("kind", ["update", "delete", "replace"])
def test_tables_are_append_only(store, path, table, kind):
    (query,) = ask(store)
    store.add_label(query, "left", "me", 1)
    statement = {
        "update": f"UPDATE {table} SET id = id + 10",
        "delete": f"DELETE FROM {table}",
        "replace": f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    }[kind]
    other = sqlite3.connect(path)
    before = other.execute(f"SELECT * FROM {table}").fetchall()
    with pytest.raises(sqlite3.IntegrityError, match=f"{table} are append-only"):
        other.execute(statement)
    assert other.execute(f"SELECT * FROM {table}").fetchall() == before
    other.close()


@pytest.mark.parametrize(
    "columns",
    [
        "(query, answer, who, at, seconds) VALUES (1, 'maybe', '', '', 0)",
        "(query, answer, who, at, seconds) VALUES (9, 'left', '', '', 0)",
        "(query, who, at, seconds) VALUES (1, '', '', 0)",
        "(query, answer, undoes, who, at, seconds) VALUES (1, 'left', 1, '', '', 0)",
    ],
)
def test_constraints_refuse_invalid_rows(store, columns):
    (query,) = ask(store)
    store.add_label(query, "left", "me", 1)
    with pytest.raises(sqlite3.IntegrityError):
        store.file._connection.execute(f"INSERT INTO labels {columns}")


def test_records_persist_after_closing(path):
    with LabelStore.open(path) as store:
        ask(store, 2)
        store.add_label(1, "left", "me", 1)
    with LabelStore.open(path) as store:
        assert store.counts() == Counts(2, 1, 1, 0, 0, 0)


def test_a_commit_is_seen_by_another_process_before_the_call_returns(store, path):
    (query,) = ask(store)
    with LabelStore.open(path) as page:
        page.add_label(query, "left", "human", 1)
        assert len(store.labelled(0)) == 1
        with pytest.raises(UsageError, match="is answered"):
            store.add_label(query, "right", "oracle", 1)


TOGETHER = """
import sys
from contextlib import closing
from pathlib import Path
import numpy as np
from backflip.preferences.labels import LabelStore
from runshelf.errors import UsageError

sys.stdin.readline()
with LabelStore.open(Path(sys.argv[1])) as store:
    clip = {"x": np.zeros(3)}
    for n in range(10):
        store.add_query(int(sys.argv[2]), clip, clip, n)
    for query in range(1, 11):
        try:
            store.add_label(query, "left", sys.argv[2], 0)
        except UsageError as error:
            assert "is answered" in str(error) or "no query" in str(error), error
"""


@pytest.mark.slow
def test_processes_that_make_and_fill_the_store_at_once(path):
    command = [sys.executable, "-c", TOGETHER, str(path)]
    children = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    errors = [child.communicate(timeout=60)[1].decode() for child in children]
    assert errors == [""] * 4
    with LabelStore.open(path) as store:
        assert [store.counts(seed).queries for seed in range(4)] == [10] * 4
        assert store.counts().labels == 10, "each query has one answer, the first"


KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from backflip.preferences.label_records import NewLabel, NewQuery
from backflip.preferences.labels import LabelStore

path, chance = Path(sys.argv[1]), random.Random(0)

def child(pipe, generation):
    with LabelStore.open(path) as store:
        while True:
            clip = {"x": np.full((500, 10), generation, np.uint32)}
            queries = store.add_queries([NewQuery(generation, clip, clip, 0)] * 3)
            os.write(pipe, b"".join(b"query %d\\n" % query for query in queries))
            labels = store.add_labels([NewLabel(query, "left", "me", 0) for query in queries])
            os.write(pipe, b"".join(b"label %d\\n" % label for label in labels))

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
    sys.stdout.write("".join(lines) + pipe.read())
"""


@pytest.mark.medium
@pytest.mark.attack
def test_kill_9_at_random_moments(path, tried):
    command = [sys.executable, "-c", KILLED_AT_RANDOM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    acknowledged = [line.split() for line in done.stdout.splitlines()]
    queries = {int(number) for kind, number in acknowledged if kind == "query"}
    labels = [int(number) for kind, number in acknowledged if kind == "label"]
    assert len(labels) > 25
    with LabelStore.open(path) as store:
        pairs = [pair for seed in range(25) for pair in store.labelled(seed)]
        found = [pair.label for pair in pairs]
        assert len(found) == len(set(found))
        assert set(labels) <= set(found), "acknowledged, but lost"
        assert queries <= {p.query for p in pairs} | {q.id for q in store.pending()}
        assert store.counts().queries % 3 == 0, "a batch is kept whole or not at all"
        assert len(found) % 3 == 0
        assert len(found) <= len(labels) + 3 * 25
    tried(25, "kills while labels are written")


def test_a_kill_while_the_store_is_made_leaves_one_that_opens(path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    monkeypatch.setattr(label_file, "migrate", killed)
    with pytest.raises(Killed):
        LabelStore.open(path)
    monkeypatch.undo()
    with LabelStore.open(path) as store:
        ask(store)
    path.with_name("empty").write_bytes(b"")
    with LabelStore.open(path.with_name("empty")) as store:
        ask(store)


@pytest.fixture
def filled(path):
    """A store of several pages, closed, so that everything is in the one file."""
    rng = np.random.default_rng(0)
    noise = {"x": rng.integers(0, 256, 5000, np.uint8)}
    with LabelStore.open(path) as store:
        queries = store.add_queries([NewQuery(0, noise, noise, 0)] * 20)
        store.add_labels([NewLabel(query, "left", "me", 1) for query in queries])
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return path


def read_everything(path):
    with LabelStore.open(path) as store:
        return len(store.labelled(0)), store.counts(), len(store.pending())


@pytest.mark.medium
def test_every_truncation_is_noticed(filled):
    whole = filled.read_bytes()
    # SQLite takes a file of no or one byte for a new one.
    for size in [2, 50, 100, *range(1000, len(whole), 3001), len(whole) - 1]:
        filled.write_bytes(whole[:size])
        # A part of the last page may be a clip's, which only decoding it can miss.
        notice = LabelStore.open if size <= len(whole) - 4096 else read_everything
        with pytest.raises(DamagedFile, match=r"labels.sqlite`.*\.recover") as caught:
            notice(filled)
        assert "\n" not in str(caught.value)


def flip_bits(file, places, count):
    """Flip one bit after the other, of bytes at random places; return the messages of refusals.

    What can be read must be what was stored.
    """
    whole, good, chance, messages = file.read_bytes(), read_everything(file), random.Random(0), []
    for _ in range(count):
        damaged = bytearray(whole)
        damaged[chance.choice(places)] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        try:
            assert read_everything(file) == good
        except DamagedFile as error:
            messages.append(str(error))
    assert not any("\n" in message for message in messages)
    return messages


@pytest.mark.medium
def test_flipped_bits_are_noticed_or_harmless_never_a_traceback(filled):
    messages = flip_bits(filled, range(filled.stat().st_size), 300)
    assert len(messages) > 200, "nearly all of the file is clips; a flipped clip does not decode"


@pytest.mark.slow
def test_flipped_bits_in_small_tables_indexes_and_statements_hide_no_label(filled):
    """SQLite's `quick_check` misses changed indexes, and references to rows that are missing."""
    with closing(sqlite3.connect(filled)) as connection:
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        select = "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND name <> 'clips'"
        pages = [1, *(page for (page,) in connection.execute(select))]
    whole = filled.read_bytes()
    used = [at for page in pages for at in range((page - 1) * size, page * size) if whole[at]]
    assert len(flip_bits(filled, used, 600)) > 200, "others change a name or a time"


SET_STATEMENT = "UPDATE sqlite_schema SET sql ="


@pytest.mark.medium
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE queries SET right_clip = 99 WHERE id = 3", "row 3 of queries refers to a row of"),
        ("UPDATE labels SET undoes = 99, answer = NULL WHERE id = 4", "row 4 of labels refers to"),
        (f"{SET_STATEMENT} CAST(sql || '--' AS BLOB) WHERE name = 'takes'", "its tables are not"),
        (f"{SET_STATEMENT} sql || CAST(X'2d2dff' AS TEXT) WHERE name = 'takes'", "its tables are"),
    ],
)
def test_damage_that_no_check_of_sqlite_reports_is_one_line(filled, change, said):
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        triggers = triggers.fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for _, statement in triggers:
            if "_no_update" not in statement:
                connection.execute(statement)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(change)
    with pytest.raises(DamagedFile) as caught:
        LabelStore.open(filled)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_invalid_stored_answer_is_damage(filled):
    other = sqlite3.connect(filled)
    other.execute("PRAGMA ignore_check_constraints = ON")
    other.execute(
        "INSERT INTO labels (query, answer, who, at, seconds) VALUES (1, 'lefu', '', '', 0)"
    )
    other.commit()
    other.close()
    with pytest.raises(DamagedFile, match="CHECK constraint failed in labels"):
        LabelStore.open(filled)


def test_extended_error_codes_are_handled_as_their_kind(path):
    error = sqlite3.DatabaseError("index")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT_INDEX
    assert isinstance(label_file._explained(error, path), DamagedFile)


def test_the_error_of_an_automatic_rollback_is_kept(store):
    def fail(connection):
        connection.execute("ROLLBACK")
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"), store.file.transaction() as connection:
        fail(connection)


def test_a_clip_that_decodes_to_nothing_is_damage(store, monkeypatch):
    monkeypatch.setattr(label_inserts.zlib, "compress", lambda *_: b"nothing")
    (query,) = ask(store)
    with pytest.raises(DamagedFile, match=r"a clip (cannot be decompressed|is not safetensors)"):
        store.clips(query)
    monkeypatch.undo()
    monkeypatch.setattr(label_inserts, "to_safetensors", lambda *_: b"nothing")
    (query,) = ask(store)
    with pytest.raises(DamagedFile, match=r"a clip (cannot be decompressed|is not safetensors)"):
        store.clips(query)


@pytest.mark.parametrize("version", [0, 1])
def test_a_foreign_database_is_refused_and_not_touched(path, version):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.execute(f"PRAGMA user_version = {version}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(DamagedFile, match="is not a label store of backflip"):
        LabelStore.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_touched(path):
    path.write_bytes(b"obs,answer\n" * 100)
    with pytest.raises(DamagedFile, match=r"labels.sqlite` is damaged \(file is not a database\)"):
        LabelStore.open(path)
    assert path.read_bytes() == b"obs,answer\n" * 100


def test_a_store_of_a_later_version_is_refused(filled):
    other = sqlite3.connect(filled)
    other.execute(f"PRAGMA user_version = {label_schema.SCHEMA + 1}")
    other.close()
    with pytest.raises(
        DamagedFile,
        match=f"of version {label_schema.SCHEMA + 1}, this backflip reads {label_schema.SCHEMA}",
    ):
        LabelStore.open(filled)


def test_a_missing_folder_is_one_line(tmp_path):
    with pytest.raises(UserFacingError, match=r"absent/labels`: unable to open"):
        LabelStore.open(tmp_path / "absent" / "labels")


def test_a_full_disk_is_one_line_and_keeps_what_was_committed(store):
    ask(store, 3)
    (pages,) = store.file._connection.execute("PRAGMA page_count").fetchone()
    store.file._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = {"x": np.random.default_rng(0).random(10_000)}
    with pytest.raises(UserFacingError, match=r"no space left.*labels.sqlite`") as caught:
        store.add_query(0, big, big, 0)
    assert not isinstance(caught.value, DamagedFile | UsageError)
    assert store.counts().queries == 3
    store.file._connection.execute("PRAGMA max_page_count = 100000")
    store.add_query(0, big, big, 0)
    assert store.counts().queries == 4


@pytest.mark.medium
def test_a_real_limit_on_the_file_size_keeps_what_was_committed(store):
    ask(store, 3)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    big = {"x": np.random.default_rng(0).random(100_000)}
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(UserFacingError, match=r"labels.sqlite`"):
            store.add_query(0, big, big, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.counts().queries == 3
    store.add_query(0, big, big, 0)
    assert store.counts().queries == 4


def test_a_lock_of_another_process_is_reported(store, path, monkeypatch):
    monkeypatch.setattr(label_file, "_BUSY_SECONDS", 0.05)
    store.file._connection.execute("BEGIN IMMEDIATE")
    with (
        LabelStore.open(path) as other,
        pytest.raises(UserFacingError, match=r"another process locks `.*` \(waited 0.05 s\)"),
    ):
        ask(other)
    store.file._connection.execute("ROLLBACK")


def test_a_value_sqlite_cannot_bind_is_an_error_of_one_line(store):
    with pytest.raises(UserFacingError, match=r"cannot read or write"):
        store.file.rows("SELECT ?", (object(),))


def test_the_answers(store):
    assert ANSWERS == ("left", "right", "tie", "skip")


def test_opening_twice_changes_nothing(filled):
    before = filled.read_bytes()
    for _ in range(2):
        read_everything(filled)
    assert filled.read_bytes() == before


def test_adding_an_answer_is_fast(store):
    """An answer must not scan all labels, because a page must respond within 50 ms."""
    queries = ask(store, 300)
    assert len(store.add_labels([NewLabel(q, "left", "me", 0) for q in queries])) == 300
    plan = store.file._connection.execute(
        "EXPLAIN QUERY PLAN SELECT 1 FROM effective e WHERE e.query = 1"
    ).fetchall()
    assert any("labels_of_query" in row[3] for row in plan)
