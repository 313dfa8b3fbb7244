"""Event files as columns: the same values as one by one, whatever the records look like."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runshelf.interop import event_columns
from runshelf.interop.event_columns import Columns, read_columns
from runshelf.interop.event_files import Entry, read_entries, scalar_event, version_event
from runshelf.interop.protobuf import field, field_of_single
from runshelf.interop.tfrecord import Damage, frame, masked_crc, masked_crcs

TAGS = ("loss", "rollout/ep_rew_mean", "é")


def written(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(records))
    return path


def one_by_one(path: Path) -> tuple[dict[str, list[tuple[float, float, float]]], list[Entry]]:
    """The numbers by tag and the other values, as `read_entries` yields them."""
    numbers: dict[str, list[tuple[float, float, float]]] = {}
    others = list[Entry]()
    for entry in read_entries(path, Damage()):
        if isinstance(entry.content, float):
            row = entry.time, float(entry.step), entry.content
            numbers.setdefault(entry.tag, []).append(row)
        else:
            others.append(entry)
    return numbers, others


def rows_of(found: Columns) -> dict[str, list[tuple[float, float, float]]]:
    return {
        tag: [tuple(map(float, row)) for row in zip(*column, strict=True)]
        for tag, column in found.numbers.items()
    }


def are_equal(path: Path) -> bool:
    damage, other = Damage(), Damage()
    found = read_columns(path, damage)
    list(read_entries(path, other))
    numbers, others = one_by_one(path)
    same = repr(sorted(rows_of(found).items())) == repr(sorted(numbers.items()))
    return same and damage.count == other.count and repr(found.others) == repr(others)


def tensor_event(time: float, step: int, tag: str, number: float) -> bytes:
    """A scalar as TensorFlow 2 writes it."""
    tensor = field(8, field(1, 1) + field(5, struct.pack("<f", number)))
    return frame(field(1, time) + field(2, step) + field(5, field(1, field(1, tag) + tensor)))


# Steps of every width in bytes, also of the widths that are read one by one.
STEPS = st.integers(0, 70).flatmap(lambda bits: st.integers(0, min(2**bits, 2**63) - 1))
RECORD = st.one_of(
    st.builds(
        lambda time, step, tag, number, form: form(time, step, tag, number),
        st.floats(0, 1e10),
        STEPS,
        st.sampled_from(TAGS),
        st.floats(width=32),
        st.sampled_from(
            [lambda time, step, tag, x: scalar_event(time, step, [(tag, x)]), tensor_event]
        ),
    ),
    st.builds(
        lambda step, x: scalar_event(1.0, step, [("loss", x), ("other", x)]),
        st.integers(0, 9),
        st.floats(width=32),
    ),
    st.binary(max_size=40).map(frame),
)


@pytest.mark.medium
@given(st.lists(RECORD, min_size=20, max_size=120), st.randoms())
def test_columns_hold_what_is_read_one_by_one(tmp_path_factory, records, random):
    path = tmp_path_factory.getbasetemp() / "columns"
    assert are_equal(written(path, version_event(0.0), *records))
    broken = bytearray(b"".join(records))
    for _ in range(3):
        broken[random.randrange(len(broken))] ^= 1 << random.randrange(8)
    assert are_equal(written(path, bytes(broken)))


@pytest.mark.medium
def test_a_long_log_is_in_the_order_of_the_file(tmp_path):
    """Of several blocks; the steps of a tag go back, and have one to four bytes."""
    steps = [1, 200, 30_000, 4_000_000, 7] * 3_000
    records = [scalar_event(n / 3, step, [("a", n), ("b", -n)][n % 2 :][:1]) for n, step in
               enumerate(steps)]  # fmt: skip
    path = written(tmp_path / "e", version_event(0.0), *records)
    assert path.stat().st_size > 2**19
    found = read_columns(path, Damage()).numbers
    assert found["a"].steps.tolist() == steps[::2]
    np.testing.assert_array_equal(found["b"].values, -np.arange(1.0, len(steps), 2))
    np.testing.assert_array_equal(found["b"].times, np.arange(1, len(steps), 2) / 3)
    assert are_equal(path)


def test_equal_hashes_of_different_records_do_not_mix_them_up(tmp_path, monkeypatch):
    monkeypatch.setattr(event_columns, "hashes", lambda words: np.zeros(len(words)))
    records = [scalar_event(1.0, n + 1, [("ab"[n % 2], n)]) for n in range(60)]
    assert are_equal(written(tmp_path / "e", *records))


def double_step(n: int) -> bytes:
    """A step that is given twice: the last one counts."""
    value = field(5, field(1, field(1, "a") + field_of_single(2, n / 2)))
    return frame(field(1, 1.0) + field(2, n + 1) + field(2, 5) + value)


def hidden_value(n: int) -> bytes:
    """A number that ends in the middle: the last bytes are a part of another field."""
    value = field(1, field_of_single(2, 0.5) + field(1, f"a{n:04}"))
    return frame(field(1, 1.0) + field(2, n + 1) + field(5, value))


def late_time(n: int) -> bytes:
    """A time that is given again at the end."""
    value = field(5, field(1, field(1, "a") + field_of_single(2, 0.5)))
    return frame(field(1, 2.0) + field(2, n + 1) + value + field(1, n / 7))


@pytest.mark.parametrize("form", [double_step, hidden_value, late_time])
def test_records_that_only_look_like_scalars(tmp_path, form):
    assert are_equal(written(tmp_path / "e", *map(form, range(60))))


def test_a_record_larger_than_a_block_and_damage_before_it(tmp_path):
    few = [scalar_event(1.0, n, [("loss", n / 2)]) for n in range(100)]
    large = frame(field(1, 1.0) + field(5, field(1, field(1, "text") + field(6, bytes(2**18)))))
    broken = bytearray(few[0])
    broken[2] ^= 1
    path = written(tmp_path / "e", *few, bytes(broken), *few, large, *few)
    damage = Damage()
    found = read_columns(path, damage)
    assert len(found.numbers["loss"].steps) == 300
    assert [entry.tag for entry in found.others] == ["text"]
    assert (damage.count, f"at byte {len(b''.join(few))}" in damage.first) == (1, True)


@given(st.integers(0, 70), st.integers(1, 90))
def test_checksums_of_many_are_those_of_one(length, count):
    rows = np.random.default_rng(length).integers(256, size=(count, length), dtype=np.uint8)
    assert masked_crcs(rows).tolist() == [masked_crc(row.tobytes()) for row in rows]
