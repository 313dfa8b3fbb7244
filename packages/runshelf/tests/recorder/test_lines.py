"""Tests of lines: cutting, carriage returns, positions, and the order of two streams."""

import random
from collections import deque

import pytest

from runshelf.recorder.lines import LONGEST, Line, Splitter, fold, in_order


def split(data, sizes):
    splitter, lines, start = Splitter("out"), [], 0
    for size in sizes:
        lines += splitter.feed(data[start : start + size])[0]
        start += size
    lines += splitter.feed(data[start:])[0]
    return lines + splitter.flush()


def texts(lines):
    return [(line.text, line.is_cut, line.end) for line in lines]


DATA = b"one\ntwo\r\n\n10%\r20%\r30%\nx\r\r\nlast\rpart"


def test_line_ends_and_folded_carriage_returns():
    assert texts(split(DATA, [])) == [
        (b"one", False, 4),
        (b"two", False, 9),
        (b"", False, 10),
        (b"30%", False, 22),
        (b"x", False, 26),
        (b"part", False, 35),
    ]


def test_lines_do_not_depend_on_how_the_data_is_split():
    chance = random.Random(0)
    for _ in range(300):
        sizes = [chance.randrange(1, 6) for _ in range(9)]
        assert texts(split(DATA, sizes)) == texts(split(DATA, [])), sizes


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"a", b"a"),
        (b"a\rb", b"b"),
        (b"a\r", b"a"),
        (b"a\r\r", b"a"),
        (b"\r", b""),
        (b"a\r\rb", b"b"),
    ],
)
def test_fold(text, kept):
    assert fold(text) == kept


def test_a_long_line_is_cut_without_loss():
    data = bytes(random.Random(1).choices(b"abc", k=3 * LONGEST + 17)) + b"\nnext\n"
    for sizes in ([], [LONGEST // 2] * 6, [100_000], [7, LONGEST]):
        lines = split(data, sizes)
        long, last = lines[:-1], lines[-1]
        assert b"".join(line.text for line in long) + b"\n" == data[:-5]
        assert [line.is_cut for line in long] == [True] * (len(long) - 1) + [False]
        assert all(len(line.text) <= LONGEST for line in long)
        assert [line.end for line in long[:-1]] == [LONGEST * n for n in range(1, len(long))], (
            "each piece has its own end"
        )
        assert (last.text, last.end) == (b"next", len(data))


def test_a_long_progress_bar_takes_no_memory():
    splitter = Splitter("err")
    for step in range(10_000):
        splitter.feed(b"\r%d %%" % step)
    assert len(splitter._pending) < 20
    assert splitter.pending_start > 60_000
    (line,), _ = splitter.feed(b"\n")
    assert line.text == b"9999 %"


def test_every_byte_is_shown_once():
    chance = random.Random(2)
    for _ in range(200):
        splitter, shown, start = Splitter("out"), b"", 0
        while start < len(DATA):
            size = chance.randrange(1, 12)
            lines, rest = splitter.feed(DATA[start : start + size])
            shown += b"".join(line.raw for line in lines) + rest
            start += size
        assert shown == DATA


def lines_of(stream, *names):
    return [Line(stream, 0, name.encode(), b"") for name in names]


@pytest.mark.parametrize(
    ("out", "err", "writes", "order"),
    [
        ("abc", "xyz", [0, 1, 0, 1, 0, 1], "axbycz"),
        ("abc", "xyz", [1, 0, 1, 0, 1, 0], "xaybzc"),
        ("abc", "x", [0, 1], "abcx"),
        ("abc", "x", [1, 0], "xabc"),
        ("abcd", "x", [0, 1, 0], "axbcd"),
        ("ab", "x", [0, 0, 0, 1], "abx"),
        ("a", "x", [], "ax"),
        ("", "xy", [0, 1], "xy"),
    ],
)
def test_the_order_of_two_streams(out, err, writes, order):
    queues = [deque(lines_of("out", *out)), deque(lines_of("err", *err))]
    lines, done = in_order(queues, writes, len(writes))
    assert b"".join(line.text for line in lines).decode() == order
    assert (done, any(queues)) == (len(writes), False)


def test_a_line_waits_for_an_earlier_line_of_the_other_stream():
    """Between the reads of `out` and `err`, a line was written to `out`, then one to `err`."""
    queues = [deque(lines_of("out", "a")), deque(lines_of("err", "x", "y"))]
    lines, done = in_order(queues, [0, 1, 0, 1], 2)
    assert b"".join(line.text for line in lines) == b"ax"
    assert done == 2
    queues[0] += lines_of("out", "b")
    lines, done = in_order(queues, [0, 1], 2)
    assert (b"".join(line.text for line in lines), done) == (b"by", 2)
