"""Tests of the labelling terminal: its functions, and the whole program in a pseudo-terminal."""

import fcntl
import math
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.status import Status, write_status
from backflip.labelling.tally import Tally
from backflip.labelling.terminal import labeller as module
from backflip.labelling.terminal.__main__ import main
from backflip.labelling.terminal.keys import parse_keys
from backflip.labelling.terminal.labeller import Labeller
from backflip.labelling.terminal.layout import (
    ABOVE,
    BELOW,
    Size,
    arranged,
    centred_block,
    fitted,
    position_bar,
    room_for_clip,
)
from backflip.labelling.terminal.pictures import half_blocks, nearest_of_256, scaled_frames
from backflip.labelling.terminal.playback import Playback
from backflip.labelling.terminal.text import (
    centred,
    clean,
    end_of,
    joined,
    shortened,
    width_of,
)
from backflip.labelling.terminal.words import opinion_line, progress_parts, waiting_lines
from backflip.preferences.clip_sets import NewSet, add_sets
from backflip.preferences.films import FILMS, write_film
from backflip.preferences.label_file import LABELS
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore

RED, GREEN, BLUE, BLACK = [255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]


def picture(*rows):
    return np.array(rows, np.uint8)


# Pictures.


def test_half_block_shows_two_pixels():
    assert half_blocks(picture([RED], [GREEN]), true_colour=True) == [
        "\x1b[38;2;255;0;0;48;2;0;255;0m▀\x1b[0m"
    ]


def test_odd_last_row_has_the_default_background():
    frame = picture([RED], [RED], [[1, 2, 3]])
    assert half_blocks(frame, true_colour=True) == [
        "\x1b[38;2;255;0;0;48;2;255;0;0m▀\x1b[0m",
        "\x1b[38;2;1;2;3;49m▀\x1b[0m",
    ]


def test_equal_neighbours_share_one_escape_sequence():
    frame = picture([RED, RED, BLUE, BLUE], [BLUE, BLUE, BLUE, RED])
    assert half_blocks(frame, true_colour=True) == [
        "\x1b[38;2;255;0;0;48;2;0;0;255m▀▀"
        "\x1b[38;2;0;0;255;48;2;0;0;255m▀"
        "\x1b[38;2;0;0;255;48;2;255;0;0m▀\x1b[0m"
    ]


def test_256_colours_by_hand():
    frame = picture([RED, GREEN, BLUE, BLACK, [255] * 3, [128] * 3, [8] * 3, [90, 140, 210]])
    assert nearest_of_256(frame).tolist() == [[196, 46, 21, 16, 231, 244, 232, 68]]
    assert half_blocks(picture([RED], [BLACK]), true_colour=False) == [
        "\x1b[38;5;196;48;5;16m▀\x1b[0m"
    ]


@given(colour=st.tuples(*[st.integers(0, 255)] * 3))
def test_256_colours_are_the_nearest(colour):
    levels = [0, 95, 135, 175, 215, 255]
    known = {
        16 + 36 * r + 6 * g + b: (levels[r], levels[g], levels[b])
        for r, g, b in np.ndindex(6, 6, 6)
    } | {232 + n: (8 + 10 * n,) * 3 for n in range(24)}
    off = {n: sum((a - b) ** 2 for a, b in zip(c, colour, strict=True)) for n, c in known.items()}
    chosen = int(nearest_of_256(picture([colour]))[0, 0])
    assert off[chosen] == min(off.values())


def test_frames_are_scaled_by_area_averaging(tmp_path):
    grey = np.array([[0, 4, 100, 100], [8, 12, 100, 104]], np.uint8)
    frames = np.stack([grey, grey + 50, 255 - grey])[..., None].repeat(3, -1)
    film = write_film(tmp_path, frames, fps=1.0)
    assert film.columns < 3, "the strip has two rows"
    scaled = scaled_frames((tmp_path / film.file).read_bytes(), film, Size(2, 1))
    assert scaled[..., 0].tolist() == [[[6, 101]], [[56, 151]], [[249, 154]]]
    whole = scaled_frames((tmp_path / film.file).read_bytes(), film, Size(4, 2))
    assert (whole == frames).all()


def test_frames_keep_their_aspect_ratio():
    assert fitted(Size(160, 210), Size(60, 66)) == Size(50, 66)
    assert fitted(Size(600, 400), Size(60, 66)) == Size(60, 40)
    assert fitted(Size(20, 20), Size(50, 70)) == Size(40, 40), "whole pixels only"
    assert fitted(Size(2, 2), Size(100, 100)) == Size(8, 8)
    assert fitted(Size(1000, 1), Size(10, 10)) == Size(10, 1)


# Keys.


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"\x1b[D\x1b[C\x1b[A\x1b[B", ["left", "right", "up", "down"]),
        (b"\x1bOD\x1bOC\x1bOA\x1bOB", ["left", "right", "up", "down"]),
        (b"u?1 q", ["u", "?", "1", " ", "q"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b[D", ["escape", "left"]),
        (b"\x1b[1;5D\x1b[3~\x1b[<0;3;4M\x1bOP\x1bx", []),
        (b"\r\n\x7f\x08\x15", ["enter", "enter", "backspace", "backspace", "clear"]),
        ("é漢🎈".encode(), ["é", "漢", "🎈"]),
        (b"\xff\x80u\x00", ["u"]),
        (b"\x1b[200~uq\x1b[D\r\x1b[201~v", ["paste:uq\x1b[D\r", "v"]),
        (b"", []),
    ],
)
def test_keys(sent, keys):
    assert parse_keys(sent) == (keys, b"")
    assert parse_keys(sent, more=True) == ((keys, b"") if sent != b"\x1b" else ([], b"\x1b"))


KEYS = [
    b"\x1b[D",
    b"\x1bOC",
    b"u",
    "é".encode(),
    "🎈".encode(),
    b"\x1b[1;5A",
    b"\x1b[200~q\x1b[201~",
]


@pytest.mark.medium
@given(keys=st.lists(st.sampled_from(KEYS), max_size=6), data=st.data())
def test_keys_cut_anywhere_are_the_same_keys(keys, data):
    sent = b"".join(keys)
    cut = data.draw(st.integers(0, len(sent)))
    first, rest = parse_keys(sent[:cut], more=True)
    then, nothing = parse_keys(rest + sent[cut:], more=True)
    assert (first + then, nothing) == parse_keys(sent)


@given(sent=st.binary(max_size=30), more=st.booleans())
def test_any_bytes_are_parsed(sent, more):
    keys, rest = parse_keys(sent, more=more)
    assert all(key.isprintable() or key.startswith("paste:") for key in keys)
    assert sent.endswith(rest)


def test_incomplete_paste_never_acts_as_keys():
    assert parse_keys(b"\x1b[200~uuu") == ([], b"\x1b[200~uuu")


# Text and layout.


def test_typed_text_cannot_control_the_terminal():
    assert clean("a\x1b[2Jb\x07\n\tc\u202e \x9bd") == r"a\x1b[2Jb\x07 c\u202e \x9bd"


def test_text_is_cut_by_cells():
    assert width_of("aé漢") == 4
    assert width_of("e\u0301") == 1
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
    assert shortened("漢漢漢", 5) == "漢漢…"
    assert shortened("漢漢漢", 4) == "漢…"
    assert end_of("漢ab", 3) == "…ab"
    assert centred("ab", 5) == " ab  "
    assert joined(["aa", "bb", "cc"], 7) == "aa · bb"
    assert joined(["aaaaaa"], 4) == "aaa…"


def plain(line):
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


@given(
    terminal=st.builds(Size, st.integers(40, 250), st.integers(12, 80)),
    frame=st.builds(Size, st.integers(1, 700), st.integers(1, 700)),
)
def test_two_clips_fit_side_by_side(terminal, frame):
    size = fitted(frame, room_for_clip(terminal, 2))
    assert size.width <= room_for_clip(terminal, 2).width
    lines = ["x" * size.width] * -(-size.height // 2)
    shown = arranged([lines, lines], [], size, terminal)
    assert len(shown) == terminal.height - ABOVE - BELOW
    assert max(map(len, shown)) < terminal.width
    with_clips = [line for line in shown if line]
    assert len(with_clips) == len(lines)
    left, right = re.findall("x+", with_clips[0])
    assert left == right == lines[0]


def test_centred_block():
    assert centred_block(["ab", "c"], Size(10, ABOVE + BELOW + 4)) == [
        "",
        "    ab   ",
        "    c    ",
        "",
    ]


def test_position_bar():
    assert plain(position_bar(0.5, 4)) == "━━──"
    assert plain(position_bar(7.0, 4)) == "━━━━"


def test_opinion_line():
    opinion = {
        "left": np.array([[0.0] * 20, [0.5] * 20]),
        "right": np.array([[1.0] * 20, [0.25] * 20]),
    }
    wide = opinion_line(opinion, 120)
    left, right = "▁" * 20, "█" * 20
    assert wide == f"predicted reward: left {left} ± 0.50   right {right} ± 0.25"
    assert opinion_line(opinion, 50) == f"left {left[:18]}   right {right[:18]}"
    for width in range(15, 120):
        assert width_of(opinion_line(opinion, width)) <= width


def test_waiting_lines():
    def said(doing, **fields):
        return waiting_lines(Status(doing, 100.0, env="dot", **fields), 112.4)

    assert said("setting up") == ["setting up dot", "for 12 s"]
    assert said("learning", phase=1, phases=5, expected_seconds=40.0) == [
        "the agent is learning from your answers, training phase 2 of 5",
        "for 12 s of about 40 s",
    ]
    assert said("learning", phase=5, phases=5)[0].endswith("phase 5 of 5")
    assert said("evaluating")[0] == "no more answers are needed: rating the agent"
    assert said("drawing")[0] == "drawing the next clips"
    assert said("waiting")[0] == "waiting for the next pair"


def test_progress_parts():
    none = Tally(0, 0, 3, None, 0, None, 0, None, False)
    assert progress_parts(none, Status("drawing", 0)) == ["0 answers"]
    tally = Tally(40, 38, 3, 10.0, 4, 0.75, 5, 0.6, False)
    assert progress_parts(tally, Status("learning", 0, budget=100, phase=2, phases=9)) == [
        "40 of 100 answers",
        "10.0 a minute",
        "about 6 min to go",
        "same answer to 75% of 4 repeats",
        "same as others 60% of 5",
        "learning, training phase 3 of 9",
    ]
    careless = none._replace(careless="`left` is 30 of the last 30 answers")
    told = progress_parts(careless, Status("drawing", 0))
    assert told[1] == "please take care: `left` is 30 of the last 30 answers"
    assert "training has stopped" in progress_parts(none, Status("stopped", 0))
    waiting = Status("waiting", 0, budget=100, learned_labels=13, needed_labels=43)
    assert progress_parts(tally, waiting)[1] == "27 of 30 until the agent learns"
    assert "until" not in "".join(progress_parts(tally, waiting._replace(needed_labels=40)))


# Playback.


def test_loop_pauses_at_its_end():
    playback = Playback(frames=4, fps=2.0, now=10.0)
    times = [10.0, 10.4, 10.5, 11.6, 12.0, 12.4, 12.5, 13.0]
    assert [playback.frame(t) for t in times] == [0, 0, 1, 3, 3, 3, 0, 1]
    assert [round(playback.share(t), 2) for t in times] == [0, 0.2, 0.25, 0.8, 1, 1, 0, 0.25]
    assert playback.until_next(10.4) == pytest.approx(0.1)
    assert playback.until_next(11.6) == pytest.approx(0.9), "the last frame and the pause"
    assert playback.until_next(10.4, shortest=0.6) == 0.6


def test_speed_and_pause_keep_the_position():
    playback = Playback(frames=10, fps=1.0, now=0.0, speed=2.0)
    assert playback.frame(2.0) == 4
    assert playback.until_next(2.2) == pytest.approx(0.3)
    playback.set_speed(0.5, 2.0)
    assert [playback.frame(t) for t in (2.0, 4.0)] == [4, 5]
    playback.toggle(4.0)
    assert [playback.frame(t) for t in (4.0, 400.0)] == [5, 5]
    assert playback.until_next(400.0) == float("inf")
    playback.set_speed(1.0, 400.0)
    playback.toggle(400.0)
    assert [playback.frame(t) for t in (400.0, 401.0)] == [5, 6]


# What the keys do, without a terminal.

BARE = {"obs": np.zeros((6, 2), np.float32)}
OPINION = {"left": np.ones((2, 6)), "right": np.zeros((2, 6))}


def add_pairs(folder, count, first=0, fps=30.0):
    """Add pairs with distinct films; return the ids of the queries."""
    with LabelStore.open(folder / LABELS) as store:
        queries = []
        for number in range(first, first + count):
            frames = np.full((6, 40, 30, 3), number % 200, np.uint8)
            for at in range(6):
                frames[at, at * 5 : at * 5 + 5, :10] = [255, 128, 0]
            films = tuple(
                {
                    "person": write_film(folder / FILMS, frames + side, fps=fps),
                    "agent": write_film(folder / FILMS, frames[:, ::2, ::2] + side, fps=fps),
                }
                for side in (0, 1)
            )
            queries.append(NewQuery(0, BARE, BARE, 0, films=films, opinion=OPINION))
        return store.add_queries(queries)


def answers(folder):
    with LabelStore.open(folder / LABELS) as store:
        return store.file.rows("SELECT query, answer, who FROM effective ORDER BY id")


@pytest.fixture
def run(tmp_path):
    """The folder of a run whose trainer is this process."""
    folder = tmp_path / "01RUN"
    folder.mkdir()
    add_pairs(folder, 8)
    write_status(folder, Status("waiting", time.time(), budget=50, env="dot", pid=os.getpid()))
    return folder


TERMINAL = Size(80, 24)


class Seat:
    """A labeller without a terminal, with a simulated clock."""

    def __init__(self, folder):
        self.store = LabelStore.open(folder / LABELS)
        self.labeller = Labeller(LabelQueue(self.store), folder, "me", true_colour=True)
        self.now = time.monotonic()

    def shown(self, size=TERMINAL):
        """Return the lines of the screen when the clips are shown."""
        self.labeller.poll(self.now)
        for _ in range(500):
            lines = self.labeller.lines(size, self.now)
            if any("▀" in line for line in lines):
                return lines
            time.sleep(0.01)
        raise AssertionError("no pictures")

    def press(self, *keys, after=1.0):
        """Press each key `after` this many seconds."""
        for key in keys:
            self.shown()
            self.now += after
            self.labeller.press(key, self.now)

    def close(self):
        """Close the labeller and the store."""
        self.labeller.close()
        self.store.close()


@pytest.fixture
def seat(run):
    seat = Seat(run)
    yield seat
    seat.close()


@pytest.mark.medium
def test_four_answers_with_their_seconds(run, seat):
    seat.press("left", "right", "up", "down", after=2.5)
    assert answers(run) == [
        (1, "left", "me"),
        (2, "right", "me"),
        (3, "tie", "me"),
        (4, "skip", "me"),
    ]
    seconds = seat.store.file.rows("SELECT seconds FROM labels")
    assert seconds == [(pytest.approx(2.5),)] * 4


@pytest.mark.medium
def test_undo_returns_the_newest_pair_first(run, seat):
    seat.press("left", "left", "u", "u", "right", "up")
    assert answers(run) == [(1, "right", "me"), (2, "tie", "me")]
    seat.press("u", "u", "u")
    assert answers(run) == []
    assert "no answer to undo" in "".join(seat.shown())


@pytest.mark.medium
def test_redo_restores_the_undone_answers(run, seat):
    seat.press("left", "right", "u", "u", "r", "r")
    assert answers(run) == [(1, "left", "me"), (2, "right", "me")]
    assert "restored: → right is better" in "".join(seat.shown())
    seat.press("r")
    assert "no undone answer" in "".join(seat.shown())
    seat.press("up")
    assert answers(run)[-1] == (3, "tie", "me")


def test_undo_of_a_correction_keeps_the_pair_on_the_screen(run, seat):
    seat.press("left")
    seat.labeller._queue.correct(1, "tie", "me", "corrected")
    seat.press("u")
    assert "correction undone: again ← left is better" in "".join(seat.shown())
    seat.press("right")
    assert answers(run) == [(1, "left", "me"), (2, "right", "me")]


def test_key_too_early_or_held_down_does_not_answer(run, seat):
    seat.press("left", after=0.1)
    assert answers(run) == []
    seat.press("right", after=1)
    assert len(answers(run)) == 1
    seat.shown()
    for _ in range(20):
        seat.now += 0.033
        seat.labeller.press("right", seat.now)
        seat.shown()
    assert len(answers(run)) == 1


def test_opinion_is_shown_only_after_the_answer(seat):
    assert "▁" not in "".join(seat.shown())
    seat.press("left")
    assert "left ██████" in plain("".join(seat.shown()))


def test_key_that_closes_the_help_does_not_answer(run, seat):
    seat.press("?")
    assert "undo the last answer" in "".join(seat.labeller.lines(TERMINAL, seat.now))
    seat.now += 1
    seat.labeller.press("left", seat.now)
    assert answers(run) == []
    seat.press("left")
    assert len(answers(run)) == 1


def test_view_of_the_agent(seat):
    before = seat.shown()
    seat.press("v")
    after = seat.shown()
    assert "agent's view" in "".join(after)
    assert after != before
    seat.press("v")
    assert seat.shown()[2] == before[2]


@pytest.mark.medium
def test_goal_is_edited_stored_and_cleaned(run, seat):
    seat.press("g", *"stand", " ", "q", "backspace", "paste:on one\n\x1b[31mleg")
    assert "Goal: stand on one  [31mleg" in plain("".join(seat.shown()))
    seat.press("enter")
    assert LabelQueue(seat.store).goal() == "stand on one [31mleg"
    seat.press("g", "clear", "x", "left", "escape")
    assert LabelQueue(seat.store).goal() == "stand on one [31mleg"
    assert answers(run) == []
    seat.press("g", "paste:" + "x" * 300)
    assert f"Goal: …{'x' * 70}" in plain(seat.shown()[0])
    seat.press("enter")
    assert "the goal has 320 characters" in "".join(seat.shown())


def test_pair_answered_by_another_person_is_reported(run, seat):
    seat.shown()
    other = LabelQueue(seat.store, clock=lambda: time.time() + 1000)
    other.take("you")
    other.answer(1, "left", "you", 1.0, "attempt-1")
    seat.press("right")
    assert answers(run)[0] == (1, "left", "you")
    assert "answered by you" in "".join(seat.shown())
    assert len(answers(run)) == 1


@pytest.mark.medium
def test_pair_with_a_damaged_film_waits_until_the_film_is_restored(run, seat):
    film = LabelQueue(seat.store).take("me")[0].clips[0]["person"]
    kept = (run / FILMS / film.file).read_bytes()
    (run / FILMS / film.file).write_bytes(b"damaged")
    seat.press("left")
    assert answers(run)[0][0] == 2
    (run / FILMS / film.file).write_bytes(kept)
    seat.now += 2 * module.FILM_RETRY
    seat.press("left", "left", "left", "left")
    assert 1 in [query for query, *_ in answers(run)]


@pytest.mark.medium
def test_absent_person_takes_no_pairs(run, seat):
    seat.press(*["left", "right"] * 3)
    assert len(answers(run)) == 6, "so that fewer are left than one may hold"
    seat.now += 2 * module.RESTING
    takes = "SELECT count(*) FROM takes"
    seat.shown()
    before = seat.store.file.rows(takes)
    for _ in range(5):
        seat.now += 5
        seat.shown()
    assert seat.store.file.rows(takes) == before


@pytest.mark.medium
@settings(max_examples=20)
@given(
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    keys=st.lists(
        st.sampled_from(["left", "u", "v", "?", "g", "x", " ", "1", "3", "enter", "escape"]),
        max_size=6,
    ),
)
def test_screen_fits_into_the_terminal(tmp_path_factory, width, height, keys):
    folder = tmp_path_factory.mktemp("run")
    add_pairs(folder, 2)
    write_status(folder, Status("learning", time.time(), pid=os.getpid()))
    seat, size = Seat(folder), Size(width, height)
    for key in ["", *keys]:
        seat.labeller.poll(seat.now)
        seat.labeller.lines(size, seat.now)
        time.sleep(0.005)
        seat.now += 1
        seat.labeller.press(key, seat.now)
        lines = seat.labeller.lines(size, seat.now)
        assert len(lines) <= height
        assert max(width_of(plain(line)) for line in lines) < max(width, 2)
    seat.close()


# The real program in a real terminal.

# Makes the pseudo-terminal the controlling one, then runs the program. `preexec_fn` would do, but
# JAX, if another test has imported it, warns about every fork that runs Python code.
AT_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Real:
    """The program in a pseudo-terminal."""

    def __init__(self, arguments, columns=80, rows=24, program=None, **environ):
        self.master, self.slave = os.openpty()
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        command = ["-c", program] if program else ["-m", "backflip.labelling.terminal"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_THE_TERMINAL, *command, *map(str, arguments)],
            stdin=self.slave,
            stdout=self.slave,
            stderr=subprocess.PIPE,
            env=os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | environ,
            start_new_session=True,
        )
        self.output = b""

    def resize(self, columns, rows):
        """Change the terminal's size."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys):
        """Send bytes, as a keyboard does."""
        os.write(self.master, keys)

    def read(self, seconds=0.05):
        """Read what the program writes in the next `seconds`."""
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0.0, end - time.monotonic()))[0]:
            self.output += os.read(self.master, 65536)

    def until(self, condition, seconds=20.0):
        """Read output until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.output[-2000:]
            self.read()

    def says(self, text, after=0):
        """Read until the output contains `text` after the first `after` bytes."""
        self.until(lambda: text.encode() in self.output[after:])

    def end(self):
        """Return the exit status and stderr."""
        self.until(lambda: self.process.poll() is not None)
        self.read(0)
        assert self.process.stderr is not None
        return self.process.returncode, self.process.stderr.read().decode()

    def is_restored(self):
        """Return whether the terminal's modes and screen are restored."""
        ended = self.output.rsplit(b"\x1b[?1049h", 1)[-1]
        leave = [b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h", b"\x1b[?2004l", b"\x1b[0m"]
        return termios.tcgetattr(self.slave) == self.modes and all(code in ended for code in leave)

    def close(self):
        """End the program."""
        self.process.kill()
        self.process.communicate()
        for descriptor in (self.master, self.slave):
            if descriptor is not None:
                os.close(descriptor)


@pytest.fixture
def start():
    started = []

    def start(*arguments, **options):
        started.append(Real(arguments, **options))
        return started[-1]

    yield start
    for real in started:
        real.close()


def answer(real, run, key):
    """Press a key until its answer is in the label file."""
    before, pressed = len(answers(run)), -math.inf

    def is_answered():
        nonlocal pressed
        if time.monotonic() > pressed + 5:  # a key right after a new pair is ignored
            time.sleep(module.SHORTEST_VIEW + 0.15)
            real.send(key)
            pressed = time.monotonic()
        return len(answers(run)) > before

    real.until(is_answered)
    assert len(answers(run)) == before + 1


@pytest.mark.medium
def test_keys_become_labels_in_the_file(run, start):
    real = start(run, "--who", "Ann É.")
    real.says("▀")
    assert termios.tcgetattr(real.slave) != real.modes
    for key in (b"\x1b[D", b"\x1bOC", b"\x1b[A", b"\x1b[B"):
        answer(real, run, key)
    assert answers(run) == [
        (query, answer, "Ann É.")
        for query, answer in enumerate(["left", "right", "tie", "skip"], 1)
    ]
    time.sleep(0.2)
    real.send(b"u")
    real.until(lambda: len(answers(run)) == 3)
    answer(real, run, b"\x1b[D")
    assert answers(run)[-1] == (4, "left", "Ann É.")
    real.send(b"q")
    assert real.end() == (0, "backflip: your answers are kept\n")
    assert real.is_restored()


@pytest.mark.medium
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_signals_restore_the_terminal(run, start, number):
    real = start(run)
    real.says("▀")
    real.process.send_signal(number)
    assert real.end() == (128 + number, "")
    assert real.is_restored()


@pytest.mark.medium
def test_ctrl_c_restores_the_terminal(run, start):
    real = start(run)
    real.says("▀")
    real.send(b"\x03")
    assert real.end() == (130, "")
    assert real.is_restored()


@pytest.mark.slow
def test_suspend_and_flow_control_keys_are_disabled(run, start):
    """A suspended program would leave the terminal in full-screen mode; Ctrl-S would freeze it."""
    real = start(run)
    real.says("▀")
    modes = termios.tcgetattr(real.slave)
    assert modes[6][termios.VSUSP] == b"\0"
    assert not modes[0] & termios.IXON
    assert modes[3] & termios.ISIG, "Ctrl-C reaches the trainer, too"


BROKEN = """
import sys
from backflip.labelling.terminal import __main__ as terminal

def broken(*_):
    raise RuntimeError("broken on purpose")

setattr(terminal.Labeller, sys.argv.pop(), broken)
sys.exit(terminal.main(sys.argv[1:]))
"""


@pytest.mark.medium
@pytest.mark.parametrize("where", ["lines", pytest.param("press", marks=pytest.mark.slow)])
def test_exception_restores_the_terminal_and_is_reported(run, start, where):
    real = start(run, where, program=BROKEN)
    if where == "press":
        real.says("▀")
        real.send(b"x")
    status, said = real.end()
    assert status == 1
    assert "RuntimeError: broken on purpose" in said
    assert real.is_restored()


@pytest.mark.medium
def test_closed_terminal_ends_the_program(run, start):
    real = start(run)
    real.says("▀")
    os.close(real.slave)
    os.close(real.master)
    real.master = real.slave = None
    assert real.process.wait(60) == 128 + signal.SIGHUP


@pytest.mark.medium
def test_kill_9_loses_no_label(run, start):
    real = start(run)
    real.says("▀")
    answer(real, run, b"\x1b[D")
    real.process.kill()
    real.process.wait()
    real = start(run)
    real.says("1 of 50 answers")
    real.says("▀")
    answer(real, run, b"\x1b[C")
    assert [label[:2] for label in answers(run)] == [(1, "left"), (2, "right")]


@pytest.mark.slow
def test_waiting_for_pairs(tmp_path, start):
    LabelStore.open(tmp_path / LABELS).close()
    pid = os.getpid()
    write_status(tmp_path, Status("setting up", time.time(), env="dot", pid=pid))
    real = start(tmp_path)
    real.says("setting up dot")
    write_status(tmp_path, Status("learning", time.time(), 9.0, phase=0, phases=3, pid=pid))
    real.says("the agent is learning from your answers, training phase 1 of 3")
    add_pairs(tmp_path, 1)
    real.says("▀")
    answer(real, tmp_path, b"\x1b[D")
    write_status(tmp_path, Status("evaluating", time.time(), pid=pid))
    real.says("rating the agent")
    write_status(tmp_path, Status("finished", time.time(), result="return 21.4", pid=pid))
    assert real.end() == (0, "backflip: return 21.4\n")
    assert real.is_restored()


@pytest.mark.slow
def test_dead_trainer_is_reported_after_the_last_pair(run, start):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    write_status(run, Status("learning", time.time(), pid=dead.pid))
    real = start(run)
    real.says("training has stopped")
    real.says("▀")
    with LabelStore.open(run / LABELS) as store:
        queue = LabelQueue(store, clock=lambda: time.time() + 1000)
        while pairs := queue.take("you"):
            queue.answer(pairs[0].query, "left", "you", 1.0, f"attempt-{pairs[0].query}")
    time.sleep(0.3)
    real.send(b"\x1b[D")
    status, said = real.end()
    assert (status, said) == (
        1,
        "backflip: training has stopped: `backflip resume 01RUN` continues it\n",
    )
    assert real.is_restored()


@pytest.mark.slow
def test_resize_redraws_the_screen(run, start):
    real = start(run)
    real.says("▀")
    real.resize(30, 8)
    real.says("needs at least 40 × 12")
    mark = len(real.output)
    real.resize(100, 30)
    real.says("\x1b[30;1H", mark)
    real.says("▀", mark)
    assert b"\x1b[2J" in real.output[mark:], "a terminal may have wrapped what was there"
    assert b"\x1b[31;1H" not in real.output


@pytest.mark.slow
def test_colours_match_the_terminal(run, start):
    real = start(run, COLORTERM="")
    real.says("▀")
    assert b"38;5;" in real.output
    assert b"38;2;" not in real.output
    other = start(run, "--who", "other")
    other.says("▀")
    assert b"38;2;255;128;0" in other.output
    assert b"38;5;" not in other.output


@pytest.mark.slow
def test_unchanged_lines_are_not_written(run, start):
    real = start(run)
    real.says("▀")
    time.sleep(0.3)
    real.send(b" ")
    real.says("paused")
    real.read(0.5)
    mark = len(real.output)
    real.read(1.5)
    assert real.output[mark:] == b"", "nothing changes while paused"


@pytest.mark.slow
def test_next_pair_is_shown_at_once(run, start):
    """The bar for the page is 50 ms; this one allows for a loaded machine."""
    real = start(run)
    real.says("▀")
    took = []
    for _ in range(4):
        real.read(0.4)
        mark, began = len(real.output), time.monotonic()
        real.send(b"\x1b[D")
        real.says("left is better", mark) if not took else real.says("▀", mark)
        took.append(time.monotonic() - began)
    assert sorted(took)[1] < 0.5, took


@pytest.mark.slow
def test_no_terminal_is_a_one_line_error(run):
    command = [sys.executable, "-m", "backflip.labelling.terminal", str(run)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "backflip: error: labelling needs a terminal: start it in one, or use --teacher human\n"
    )
    assert done.stdout == ""


@pytest.mark.medium
@pytest.mark.parametrize(
    ("arguments", "environ", "match"),
    [
        (["absent"], {}, "`absent` is not the folder of a run with labels"),
        pytest.param(["."], {"TERM": "dumb"}, "labelling needs a terminal", marks=pytest.mark.slow),
        pytest.param(
            [".", "--who", " "], {}, "a name has 1 to 40 visible characters", marks=pytest.mark.slow
        ),
    ],
)
def test_wrong_usage_is_a_one_line_error(start, tmp_path, monkeypatch, arguments, environ, match):
    monkeypatch.chdir(tmp_path)
    real = start(*arguments, **environ)
    status, said = real.end()
    assert status == 2
    assert match in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "nothing is made"


@pytest.mark.medium
def test_damaged_labels_are_a_one_line_error(tmp_path, start):
    (tmp_path / LABELS).write_bytes(b"rubbish" * 100)
    real = start(tmp_path)
    status, said = real.end()
    assert status == 1
    assert re.fullmatch(r"backflip: error: .*is damaged .*\n", said)
    assert b"\x1b[?1049h" not in real.output


@pytest.mark.medium
def test_jax_is_not_imported():
    program = (
        "import sys, backflip.labelling.terminal.__main__, backflip.preferences.exchange;"
        "sys.exit(bool({'jax', 'optax', 'gymnasium'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_main_without_arguments_prints_the_usage(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "RUN_FOLDER" in capsys.readouterr().err


# Sets of clips.


def add_clip_set(folder, kind, clips):
    """Add a set whose clips have one colour each, and the trainer's status."""
    films = [
        {
            "person": write_film(
                folder / FILMS, np.full((4, 20, 30, 3), 60 * clip, np.uint8), fps=4.0
            )
        }
        for clip in range(clips)
    ]
    with LabelStore.open(folder / LABELS) as store:
        add_sets(store, [NewSet(0, kind, [BARE] * clips, 0, films)])
    write_status(folder, Status("waiting", time.time(), budget=50, env="dot", pid=os.getpid()))


@pytest.fixture
def seat_for(tmp_path):
    seats = []

    def seat_for(kind, clips):
        add_clip_set(tmp_path, kind, clips)
        seats.append(Seat(tmp_path))
        return seats[-1]

    yield seat_for
    for seat in seats:
        seat.close()


def in_force(seat):
    return [row[0] for row in seat.store.file.rows("SELECT answer FROM effective ORDER BY query")]


def test_number_keys_rank_a_set(seat_for):
    seat = seat_for("rank", 4)
    text = plain("\n".join(seat.shown()))
    assert "Rank the clips" in text
    assert len(re.findall(r"▀+", text.split("\n")[5])) == 2, "two rows of two clips"
    seat.press("2", "2", "9", "left", "4")
    shown = plain("\n".join(seat.shown()))
    assert "2 (place 1)" in shown
    assert "4 (place 2)" in shown
    seat.press("u", "1")
    assert in_force(seat) == []
    seat.press("up")
    assert in_force(seat) == ["right", "left", "left", "left", "left", "tie"]
    assert seat.store.file.rows("SELECT sum(seconds) > 6 FROM labels") == [(1,)]


def test_number_keys_rate_one_clip_after_the_other(seat_for):
    seat = seat_for("rate", 3)
    text = plain("\n".join(seat.shown()))
    assert "clip 1 of 3" in text
    assert "1 worst … 9 best" in text
    seat.press("7", "up", "right", "down")
    assert "clip 3 of 3" in plain("\n".join(seat.shown()))
    seat.press("9")
    assert in_force(seat) == ["skip", "right", "skip"]
    seat.labeller.press("u", seat.now)
    assert "clip 3 of 3" in plain("\n".join(seat.shown()))
    seat.press("u", "8", "3")
    assert in_force(seat) == ["right", "left", "left"]
    seat.labeller.press("u", seat.now + 1)
    seat.labeller.press("r", seat.now + 2)
    assert in_force(seat) == ["right", "left", "left"]


@given(terminal=st.builds(Size, st.integers(40, 250), st.integers(12, 80)), clips=st.integers(1, 9))
def test_clips_of_a_set_fit(terminal, clips):
    size = fitted(Size(40, 30), room_for_clip(terminal, clips))
    lines = ["x" * size.width] * -(-size.height // 2)
    shown = arranged([lines] * clips, ["1"] * clips, size, terminal)
    assert len(shown) == terminal.height - ABOVE - BELOW
    assert max(len(plain(line)) for line in shown) < terminal.width
    if terminal.height >= 24:
        assert sum(line.count("x") for line in shown) == clips * len(lines) * size.width
