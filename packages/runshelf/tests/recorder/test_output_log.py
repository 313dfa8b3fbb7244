"""Tests of `output.log`: writing, reading, incomplete lines, and a full disk."""

import errno
import os

import pytest

from runshelf.recorder.lines import Line
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.output_reader import read_output, recorded_up_to

NOTHING = {"out": 0, "err": 0}


def line(text, end, stream="out", is_cut=False):
    return Line(stream, end, text, text + b"\n", is_cut)


def test_written_lines_are_read(tmp_path):
    writer = OutputWriter(tmp_path)
    writer.write(0.0126, [line(b"a\tb", 4), line(b"\xff\x00", 3, "err")])
    writer.write(2.0, [line(b"x" * 10, 14, is_cut=True), line(b"", 15)])
    writer.close()
    assert (tmp_path / "output.log").read_bytes() == (
        b"0.013\tout\t4\ta\tb\n0.013\terr\t3\t\xff\x00\n2.000\tout+\t14\txxxxxxxxxx\n2.000\tout\t15\t\n"
    )
    lines = read_output(tmp_path)
    assert [(one.seconds, one.stream, one.text, one.is_cut) for one in lines] == [
        (0.013, "out", "a\tb", False),
        (0.013, "err", "\ufffd\x00", False),
        (2.0, "out", "xxxxxxxxxx", True),
        (2.0, "out", "", False),
    ]
    assert read_output(tmp_path, lines[1].end) == lines[2:]
    assert read_output(tmp_path, 0, lines[1].end) == lines[:2]
    assert read_output(tmp_path, 10**9) == []
    assert read_output(tmp_path / "absent") == []
    assert recorded_up_to(tmp_path) == {"out": 15, "err": 3}


HOSTILE = (
    b"\x00\xff\n\t\t\t\nx\tout\t1\ty\n1.0\tin\t1\ty\n1.0\tout\n"
    b"1\tout\t9\tgood\nnan\terr\t7\tfine\ntorn"
)


def test_lines_in_another_format_are_skipped(tmp_path):
    (tmp_path / "output.log").write_bytes(HOSTILE)
    assert [one.text for one in read_output(tmp_path)] == ["good", "fine"]


def test_an_incomplete_last_line_is_removed_by_the_next_writer_only(tmp_path):
    data = b"0.1\terr\t5\tonce\n" + b"".join(b"0.2\tout\t%d\tx\n" % n for n in range(300))
    log = tmp_path / "output.log"
    for whole in (data, data * 100, b""):
        log.write_bytes(whole + b"0.3\tout\t9")
        assert recorded_up_to(tmp_path) == ({"out": 299, "err": 5} if whole else NOTHING)
        assert log.read_bytes() == whole + b"0.3\tout\t9", "reading must write nothing"
        OutputWriter(tmp_path).close()
        assert log.read_bytes() == whole
        assert recorded_up_to(tmp_path) == ({"out": 299, "err": 5} if whole else NOTHING)


def test_lines_that_a_full_disk_refuses_are_written_later_in_order(tmp_path, monkeypatch):
    writer, write, room = OutputWriter(tmp_path), os.write, [20]

    def full(descriptor, data):
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(descriptor, bytes(data)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", full)
    writer.write(0.0, [line(b"one", 4)])
    writer.write(1.0, [line(b"two", 8)])
    writer.write(2.0, [line(b"three", 14)])
    assert (tmp_path / "output.log").read_bytes() == b"0.000\tout\t4\tone\n", "no incomplete line"
    assert (writer.waiting_lines, writer.lost_lines) == (2, 0)
    room[0] = 10**6
    writer.write(3.0, [])
    assert [one.text for one in read_output(tmp_path)] == ["one", "two", "three"]
    room[0] = 0
    writer.write(4.0, [line(b"four", 19)])
    writer.close()
    assert writer.lost_lines == 1
    assert writer.problem == "No space left on device"


def test_waiting_lines_are_limited(tmp_path, monkeypatch):
    writer = OutputWriter(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for index in range(100):
        writer.write(0.0, [line(b"x" * 100_000, index)])
    assert writer.lost_lines + writer.waiting_lines == 100
    assert 35 < writer.waiting_lines < 45


@pytest.mark.parametrize("start", [-5, 0])
def test_a_negative_start_means_the_beginning(tmp_path, start):
    (tmp_path / "output.log").write_bytes(b"1\tout\t1\tx\n")
    assert len(read_output(tmp_path, start)) == 1
