"""Tests of TensorBoard's event files: reading, damage, hostile content, writing."""

import io
import json
import math
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.runshelf.tests.attacks.commands import no_hang
from PIL import Image

from runshelf.errors import UserFacingError
from runshelf.interop import protobuf
from runshelf.interop.event_files import (
    Entry,
    Pictures,
    Settings,
    Unread,
    image_event,
    read_entries,
    scalar_event,
    version_event,
)
from runshelf.interop.protobuf import WireError, field, fields
from runshelf.interop.tfrecord import LARGEST_RECORD, Damage, frame, masked_crc, read_frames

PEERS = Path(__file__).parents[4] / ".cache" / "peers" / "loggers" / "bin" / "python"
# As tensorboardX 2.6.5 wrote it: `brain.Event:2` at second 1, then a=0.5 at step 3, second 2.
BY_HAND = bytes.fromhex(
    "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a"
    "1700000000000000e7cef81e09000000000000004010032a0a0a080a0161150000003f959aa0ce"
)


def entries(path: Path) -> tuple[list[Entry], str]:
    """The entries of a file, and what is wrong with its first damaged record."""
    damage = Damage()
    return list(read_entries(path, damage)), damage.first


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(records))
    return path


def value(tag, *parts: bytes) -> bytes:
    """An event with one value of a summary."""
    summary = field(1, field(1, tag) + b"".join(parts))
    return frame(field(1, 5.0) + field(2, 7) + field(5, summary))


def tensor(kind: int, *parts: bytes, plugin: str = "") -> bytes:
    about = field(9, field(1, field(1, plugin))) if plugin else b""
    return about + field(8, field(1, kind) + b"".join(parts))


def contents(path: Path, *records: bytes):
    found, said = entries(write(path, *records))
    assert said == ""
    return [entry.content for entry in found]


def test_the_checksum_is_that_of_the_standard():
    # RFC 3720, B.4: 32 bytes of zeros have CRC-32C 0x8a9136aa; masked as TensorFlow does.
    crc = 0x8A9136AA
    assert masked_crc(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_bytes_equal_those_of_tensorboardx(tmp_path):
    assert version_event(1.0) + scalar_event(2.0, 3, [("a", 0.5)]) == BY_HAND
    assert entries(write(tmp_path / "e", BY_HAND)) == ([Entry(2.0, 3, "a", 0.5)], "")


@pytest.mark.medium
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e10), st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(width=32)
        ),
        max_size=20,
    )
)
def test_written_scalars_are_read(tmp_path_factory, events):
    path = tmp_path_factory.getbasetemp() / "events"
    write(path, version_event(0.0), *(scalar_event(t, s, [(tag, x)]) for t, s, tag, x in events))
    found, said = entries(path)
    assert said == ""
    assert repr([tuple(entry) for entry in found]) == repr(events)


def test_a_number_beyond_32_bits_is_infinite(tmp_path):
    events = contents(tmp_path / "e", scalar_event(0.0, 0, [("a", 1e300), ("b", -1e300)]))
    assert events == [math.inf, -math.inf]


@pytest.mark.medium
def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path):
    records = [scalar_event(1.0, n, [("loss", n / 2)]) for n in range(3)]
    whole = b"".join(records)
    ends = [len(b"".join(records[: n + 1])) for n in range(3)]
    for cut in range(len(whole)):
        found, said = entries(write(tmp_path / "e", whole[:cut]))
        assert [entry.step for entry in found] == [n for n in range(3) if ends[n] <= cut]
        assert ("torn" in said) == (cut not in (0, *ends))


def test_only_a_damaged_record_is_skipped(tmp_path):
    records = [scalar_event(1.0, n, [("loss", n / 2)]) for n in range(3)]
    whole = bytearray(b"".join(records))
    for at in range(len(records[0]), len(records[0]) + len(records[1])):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        found, said = entries(write(tmp_path / "e", bytes(broken)))
        assert [entry.step for entry in found] == [0, 2]
        assert f"at byte {len(records[0])}" in said


@pytest.mark.medium
def test_the_search_for_a_sound_record_is_bounded(tmp_path):
    """Also where every byte may begin a record, and where each record has a damaged length."""
    sound = scalar_event(1.0, 7, [("loss", 1.0)])
    for junk in (bytes(2**21), b"\xff" * 2**21, (sound[:8] + b"bad " + sound[12:]) * 2**16):
        path = write(tmp_path / "e", sound, junk, sound)
        with no_hang():
            found, said = entries(path)
        assert len(found) in (1, 2)
        assert f"at byte {len(sound)}" in said
    near = write(tmp_path / "e", sound, bytes(20_000), sound, b"\xff" * 9_000, sound)
    assert len(entries(near)[0]) == 3


def test_a_sound_length_above_the_limit_is_skipped(tmp_path):
    header = struct.pack("<Q", LARGEST_RECORD + 1)
    large = header + struct.pack("<I", masked_crc(header))
    sound = scalar_event(1.0, 7, [("loss", 1.0)])
    found, said = entries(write(tmp_path / "e", large, b"x" * 50, sound))
    assert [entry.step for entry in found] == [7]
    assert "exceeds the limit" in said


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 2**28 + 1])
def test_a_length_beyond_the_file_is_refused(tmp_path, length):
    header = struct.pack("<Q", length)
    found, said = entries(
        write(tmp_path / "e", header, struct.pack("<I", masked_crc(header)), b"x" * 100)
    )
    assert found == []
    assert "at byte 0" in said


HOSTILE = [
    field(5, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),  # a value of 2⁶³ bytes
    b"\x80" * 11,  # a number without end
    b"\x80",
    b"\x0b" * 1000,  # groups within groups
    field(5, field(1, b"\x0a")),
    field(1, 3),  # a time that is no double
    field(5, 3),
    field(5, field(1, field(1, 5))),
    field(5, field(1, tensor(9, field(10, b"\x80" * 20)))),
]


@pytest.mark.parametrize("event", HOSTILE)
def test_a_complete_record_that_is_not_an_event_is_skipped(tmp_path, event):
    good = scalar_event(1.0, 0, [("a", 1.0)])
    found, said = entries(write(tmp_path / "e", good, frame(event), good))
    assert len(found) == 2
    assert f"damaged at byte {len(good)}" in said


@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_fields_or_an_error(data):
    try:
        list(fields(data))
    except WireError:
        return


@pytest.mark.medium
@given(st.binary(max_size=120))
def test_arbitrary_bytes_in_an_event_give_entries_or_an_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any"
    for event in (frame(data), value("a", field(8, data)), value("a", field(9, data)), data):
        entries(write(path, event))


def test_nested_messages_do_not_recurse(tmp_path):
    inner = b""
    for _ in range(3000):
        inner = field(1, inner)
    found, _ = entries(write(tmp_path / "e", frame(field(5, inner)), value("a", field(8, inner))))
    assert len(found) <= 2


@pytest.mark.parametrize(
    ("kind", "dtype", "number"), [(1, "<f4", 5), (2, "<f8", 6), (3, "<i4", 7), (9, "<i8", 10)]
)
def test_tensors_of_one_number_are_numbers(tmp_path, kind, dtype, number):
    one = np.array([3], dtype)
    packed = one.tobytes() if dtype[1] == "f" else b"\x03"
    forms = [field(4, one.tobytes()), field(number, packed)]
    if dtype[1] != "f":
        forms.append(field(number, 3))
    found = contents(tmp_path / "e", *(value("a", tensor(kind, form)) for form in forms))
    assert found == [3.0] * len(forms)
    several = [field(4, np.array([1, 2], dtype).tobytes()), field(number, packed * 2)]
    found = contents(tmp_path / "e", *(value("a", tensor(kind, form)) for form in several))
    assert found == [Unread("a tensor of several numbers")] * 2


def test_a_negative_number_is_read(tmp_path):
    assert contents(tmp_path / "e", value("a", tensor(3, field(7, -5)))) == [-5.0]


def test_histograms_are_statistics(tmp_path):
    numbers = [(1, 1.0), (2, 4.0), (3, 3.0), (4, 7.0), (5, 21.0)]
    histogram = field(5, b"".join(field(n, x) for n, x in numbers))
    statistics, empty = contents(tmp_path / "e", value("a", histogram), value("a", field(5, b"")))
    array = np.array([1.0, 2.0, 4.0])
    assert statistics["mean"] == pytest.approx(array.mean())
    assert statistics["std"] == pytest.approx(array.std())
    assert (statistics["min"], statistics["max"], statistics["n"]) == (1.0, 4.0, 3.0)
    assert empty == {"n": 0.0}


def test_texts_images_and_settings(tmp_path):
    png = io.BytesIO()
    Image.new("RGB", (3, 2)).save(png, "PNG")
    image = field(1, 2) + field(2, 3) + field(3, 3) + field(4, png.getvalue())
    strings = b"".join(field(8, text) for text in (b"3", b"2", png.getvalue(), png.getvalue()))
    pairs = {"lr": field(2, 0.5), "env": field(3, "dot"), "fast": field(4, 1), "none": field(1, 0)}
    start = b"".join(field(1, field(1, k) + field(2, v)) for k, v in pairs.items())
    hparams = field(9, field(1, field(1, "hparams") + field(2, field(3, start))))
    found = contents(
        tmp_path / "e",
        value("text", tensor(7, field(8, "é"), field(8, b"\xff"), plugin="text")),
        value("image", field(4, image)),
        value("images", tensor(7, strings, plugin="images")),
        value("_hparams_/session_start_info", hparams),
        value("sound", field(6, b"")),
        value("odd", tensor(20, b"")),
        value("pr", tensor(1, field(4, bytes(48)), plugin="pr_curves")),
    )
    assert found[0] == "é\n\ufffd"
    assert found[1] == Pictures([png.getvalue()])
    assert found[2] == Pictures([png.getvalue()] * 2)
    assert found[3] == Settings({"lr": 0.5, "env": "dot", "fast": True, "none": None})
    assert [type(content) for content in found[4:]] == [Unread] * 3


def test_links_and_pipes_are_not_opened(tmp_path):
    target = write(tmp_path / "target", version_event(0.0))
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(UserFacingError):
        list(read_frames(tmp_path / "link", Damage()))
    os.mkfifo(tmp_path / "pipe")
    assert list(read_frames(tmp_path / "pipe", Damage())) == []


@pytest.mark.medium
def test_tags_are_read_lazily(tmp_path):
    summary = b"".join(field(1, field(1, f"tag{n}") + b"\x15\0\0\0\0") for n in range(5000))
    path = write(tmp_path / "e", frame(field(5, summary)))
    assert next(read_entries(path, Damage())).tag == "tag0"
    assert sum(1 for _ in read_entries(path, Damage())) == 5000


READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "images": 0}).Reload()
tags, scalars, images = found.Tags(), found.Scalars, found.Images
print(json.dumps({
    "scalars": {t: [[e.wall_time, e.step, e.value] for e in scalars(t)] for t in tags["scalars"]},
    "images": {t: [[e.step, e.width, e.height] for e in images(t)] for t in tags["images"]},
}))
"""

WRITE = """
import sys
import numpy as np
from tensorboardX import SummaryWriter
writer = SummaryWriter(sys.argv[1])
for step in range(5):
    writer.add_scalar("loss/policy", step / 2, step, walltime=100.0 + step)
writer.add_text("note", "hello", 3)
writer.add_image("picture", np.zeros((3, 4, 5), np.uint8), 2)
writer.add_histogram("weights", np.arange(10.0), 1)
writer.close()
"""

with_peers = pytest.mark.skipif(
    not PEERS.exists(), reason="TensorBoard is not there: benchmarks/peers/install.py loggers"
)


@with_peers
@pytest.mark.medium
def test_tensorboard_reads_our_event_files(tmp_path):
    png = io.BytesIO()
    Image.new("RGB", (5, 4)).save(png, "PNG")
    write(
        tmp_path / "events.out.tfevents.1.host",
        version_event(1.0),
        *(scalar_event(100.0 + n, n, [("loss", n / 2), ("../<b>", -float(n))]) for n in range(5)),
        image_event(7.0, 3, "picture", png=png.getvalue(), height=4, width=5, channels=3),
    )
    done = subprocess.run([PEERS, "-c", READ, str(tmp_path)], capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert found["scalars"]["loss"] == [[100.0 + n, n, n / 2] for n in range(5)]
    assert [value for _, _, value in found["scalars"]["../<b>"]] == [-n for n in range(5)]
    assert found["images"] == {"picture": [[3, 5, 4]]}


@with_peers
@pytest.mark.medium
def test_event_files_of_tensorboardx_are_read(tmp_path):
    subprocess.run([PEERS, "-c", WRITE, str(tmp_path)], capture_output=True, check=True)
    (path,) = tmp_path.glob("*tfevents*")
    found, said = entries(path)
    assert said == ""
    scalars = [(e.time, e.step, e.content) for e in found if e.tag == "loss/policy"]
    assert scalars == [(100.0 + n, n, n / 2) for n in range(5)]
    by_tag = {entry.tag: entry.content for entry in found}
    assert by_tag["note/text_summary"] == "hello"
    assert isinstance(by_tag["picture"], Pictures)
    assert by_tag["weights"]["mean"] == pytest.approx(4.5)


def test_integers_are_read_as_written():
    for number in (0, 1, 127, 128, 300, 2**63 - 1, -1, -(2**63)):
        ((key, read),) = fields(field(4, number))
        assert (key, protobuf.signed(read)) == (4, number)
