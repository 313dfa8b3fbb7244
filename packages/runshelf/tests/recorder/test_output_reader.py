"""Tests of reading a run's output, including what a killed recorder did not copy."""

import os
import signal
import sys
import time

import pytest

from runshelf.index.run_index import open_index
from runshelf.recorder.output_log import OutputWriter
from runshelf.recorder.output_reader import read_output, read_part, recorded_up_to
from runshelf.recorder.spool import Spool
from runshelf.recorder.spooled_output import SpooledOutput
from runshelf.store.liveness import is_alive, read_heartbeat

WAITS = """
import os, sys, time
print("waits", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
for n in range(1000):
    print(n)
print("no end", end="", file=sys.stderr)
"""
DEADLINE_SECONDS = 30


def until(holds):
    end = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


@pytest.fixture
def lost(bench):
    """A run whose recorder was killed before it copied a thousand lines of an ended program."""
    recorder = bench.start("run", "--", sys.executable, "-c", WAITS)
    until(lambda: bench.runs() and bench.output())
    until(lambda: (beat := read_heartbeat(bench.last.folder)) and beat.program)
    program = read_heartbeat(bench.last.folder).program
    os.kill(recorder.pid, signal.SIGSTOP)
    bench.write("go", "")
    until(lambda: not is_alive(program))
    assert bench.output() == [("out", "waits")], "a live recorder copies the rest itself"
    recorder.kill()
    recorder.communicate()
    return bench.last.folder


def content_of(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in (folder, *folder.rglob("*"))}


@pytest.mark.medium
def test_uncopied_output_is_read_by_position_without_writing(bench, lost):
    before = content_of(lost)
    lines = read_output(lost)
    texts = [("out", "waits"), *(("out", str(n)) for n in range(1000)), ("err", "no end")]
    assert [(line.stream, line.text) for line in lines] == texts
    for place in (0, 1, 500, 1000):
        assert read_output(lost, lines[place].end) == lines[place + 1 :]
    data, size = read_part(lost, 0, 10**9)
    assert len(data) == size == lines[-1].end
    assert read_part(lost, 5, 3000) == (data[5:3005], size)
    assert content_of(lost) == before


@pytest.mark.medium
def test_refreshing_the_index_writes_nothing_into_a_lost_run(bench, lost):
    before = content_of(lost)
    with open_index(bench.home) as index:
        index.refresh()
        assert [row.state for row in index.runs().rows] == ["lost"]
    assert content_of(lost) == before


def test_an_incomplete_line_is_read_from_the_spool(tmp_path):
    spool = Spool(tmp_path)
    with spool.path("out").open("ab") as file:
        file.write(b"one\ntwo\nthree\n")
    (tmp_path / "output.log").write_bytes(b"0.1\tout\t4\tone\n0.1\tout\t8\ttw")
    assert [line.text for line in read_output(tmp_path)] == ["one", "two", "three"]
    assert recorded_up_to(tmp_path) == {"out": 4, "err": 0}


def test_copied_output_is_not_read_again_from_the_spool(tmp_path):
    spool, log = Spool(tmp_path), OutputWriter(tmp_path)
    printed = SpooledOutput(spool)
    with spool.path("out").open("ab", buffering=0) as file:
        for number in range(3):
            file.write((b"%d" % number) * (2 << 20) + b"\n")
            while printed.read(lambda lines, _: log.write(0.0, lines)):
                pass
        blocks = spool.path("out").stat().st_blocks * 512
        file.write(b"last\n")
    assert blocks < 3 << 20, "the disk space of copied output must be free"
    log.close()
    printed.close()
    whole = "".join(line.text for line in read_output(tmp_path) if line.stream == "out")
    assert whole == "".join(str(n) * (2 << 20) for n in range(3)) + "last"


def test_a_run_without_a_spool(tmp_path):
    assert read_output(tmp_path) == []
    assert read_part(tmp_path, 0, 10) == (b"", 0)
    (tmp_path / "spool").mkdir()
    os.mkfifo(tmp_path / "spool" / "started")
    assert read_output(tmp_path) == []


def test_freeing_and_reserving_disk_space_keeps_the_order_of_streams(tmp_path):
    spool, order = Spool(tmp_path), []
    printed = SpooledOutput(spool)
    streams = [spool.open_for_program(stream) for stream in ("out", "err")]
    for number in range(60):
        for place in range(40):
            os.write(
                streams[(number + place) % 2], b"%d %d " % (number, place) + b"x" * 1000 + b"\n"
            )
        while printed.read(lambda lines, _: order.extend(line.text.split()[:2] for line in lines)):
            pass
    assert order == [[b"%d" % n, b"%d" % p] for n in range(60) for p in range(40)]
    for descriptor in streams:
        os.close(descriptor)
    printed.close()


class Late:
    """A watch that reports the newest write only after some calls, as on a busy machine."""

    def __init__(self, watch, calls):
        self.watch, self.calls, self.held = watch, calls, []

    def read(self):
        """Return the reports, but for the newest one."""
        self.held += self.watch.read()
        self.calls -= 1
        count = len(self.held) if self.calls <= 0 else max(len(self.held) - 1, 0)
        found, self.held = self.held[:count], self.held[count:]
        return found

    def close(self):
        """Stop watching."""
        self.watch.close()


def read_late(folder, calls, writes=(b"0\n", b"1\n", b"2\n", b"3\n")):
    """Return what was written to both streams in turn, and how often reports were read."""
    spool = Spool(folder)
    printed = SpooledOutput(spool)
    watch = printed._watch = Late(printed._watch, calls)
    streams = [spool.open_for_program(stream) for stream in ("out", "err")]
    for number, text in enumerate(writes):
        os.write(streams[number % 2], text)
    lines = []
    printed.read(lambda new, _: lines.extend(new))
    for descriptor in streams:
        os.close(descriptor)
    printed.close()
    return [line.text for line in lines], calls - watch.calls


def test_a_write_that_is_reported_late_keeps_its_place(tmp_path):
    assert read_late(tmp_path, calls=8)[0] == [b"0", b"1", b"2", b"3"]


def test_writes_of_many_lines_are_not_waited_for(tmp_path):
    """A program that floods both streams was read six times as slowly."""
    lines, reads = read_late(tmp_path, 0, (b"0\n1\n2\n", b"3\n4\n"))
    assert sorted(lines) == [b"0", b"1", b"2", b"3", b"4"]
    assert reads <= 4


def test_a_write_that_is_not_reported_is_shown_all_the_same(tmp_path):
    """Several writes in a row may have one report, so that nothing waits for long."""
    assert sorted(read_late(tmp_path, calls=10_000)[0]) == [b"0", b"1", b"2", b"3"]
