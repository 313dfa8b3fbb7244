"""Pure functions for the labelling terminal: keys, pictures as text, words, layout, playback.

A character cell is about twice as high as wide, so the upper half block in one colour on another
background shows two square pixels. Nothing here reads, writes or asks for the time.
"""

import io
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from backflip.labelling.status import Status
from backflip.labelling.tally import Tally
from backflip.preferences.films import Film
from runshelf.durations import duration
from runshelf.errors import DamagedFile
from runshelf.formatting import plural
from runshelf.terminal_text import harmless

PAUSE_SECONDS = 0.5  # at the end of a clip before it repeats, at speed 1
LARGEST_ZOOM = 4  # of small frames
MARGIN = 1  # columns left and right
GAP = 3  # columns between two clips
FEWEST_BARS = 12  # in a sparkline with words around it

RESET = "\x1b[0m"
BOLD, DIM, REVERSE = "\x1b[1m", "\x1b[2m", "\x1b[7m"

_UPPER_HALF = "▀"
_LEVELS = "▁▂▃▄▅▆▇█"
_CUBE = np.array([0, 95, 135, 175, 215, 255])  # levels of xterm's 6 × 6 × 6 cube


# Keys.

_NAMED = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x15": "clear",
    b"\x1b": "escape",
}
# A control sequence (CSI), a single-shift sequence (SS3, keypad), or Alt and a letter.
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O\x1b])")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
PASTE = "paste:"  # prefix of pasted text
_PASTE, _PASTED = b"\x1b[200~", b"\x1b[201~"


def parse_keys(data: bytes, *, more: bool = False) -> tuple[list[str], bytes]:
    """Return the names of the pressed keys and the bytes of an incomplete last key.

    The name of a character key is the character; others are `left`, `enter`, .... Unknown keys are
    left out. Pasted text is one name, `paste:` and the text, so that it does not act as keys.

    Args:
        data: bytes from the terminal.
        more: more bytes may follow. If false, a single escape byte is the key Esc.
    """
    keys: list[str] = []
    while data:
        taken, key = _first_key(data, more)
        if not taken:
            return keys, data
        keys += [key] if key else []
        data = data[taken:]
    return keys, b""


def _first_key(data: bytes, more: bool) -> tuple[int, str]:
    """Return the number of bytes of the first key, 0 if it is incomplete, and its name."""
    if data.startswith(_PASTE):
        end = data.find(_PASTED)
        text = data[len(_PASTE) : end].decode(errors="ignore")
        return (0, "") if end < 0 else (end + len(_PASTED), f"{PASTE}{text}")
    sequence = _SEQUENCE.match(data)
    if sequence:
        return sequence.end(), _NAMED.get(sequence.group(), "")
    if data[:1] == b"\x1b":
        waits = more and _UNFINISHED.match(data)
        return (0, "") if waits else (1, "escape")
    if data[:1] in _NAMED:
        return 1, _NAMED[data[:1]]
    return _first_character(data, more)


def _first_character(data: bytes, more: bool) -> tuple[int, str]:
    length = next((n for lead, n in ((0xF0, 4), (0xE0, 3), (0xC0, 2)) if data[0] >= lead), 1)
    if more and len(data) < length:
        return 0, ""
    try:
        text = data[:length].decode()
    except UnicodeDecodeError:
        return 1, ""
    return length, text if text.isprintable() else ""


# Pictures.


class Size(NamedTuple):
    """The size of a frame in pixels, or of a terminal in cells."""

    width: int
    height: int


def fitted(frame: Size, room: Size) -> Size:
    """Return the largest size with the frame's aspect ratio that fits; all in pixels.

    Small frames are enlarged by whole factors only, so that each pixel stays a square.
    """
    zoom = min(room.width / frame.width, room.height / frame.height)
    if zoom >= 1:
        zoom = min(int(zoom), LARGEST_ZOOM)
    return Size(max(1, int(frame.width * zoom)), max(1, int(frame.height * zoom)))


def scaled_frames(strip: bytes, film: Film, size: Size) -> UInt8[np.ndarray, "F H W 3"]:
    """Return a film's frames scaled to `size` by area averaging."""
    try:
        picture = Image.open(io.BytesIO(strip), formats=["WEBP"]).convert("RGB")
    except Exception as error:
        raise DamagedFile(f"the film `{film.file}` is not a picture") from error
    rows = -(-film.frames // film.columns)
    if (film.columns * film.width, rows * film.height) != picture.size:
        raise DamagedFile(f"the film `{film.file}` has another size")
    frames = np.empty((film.frames, size.height, size.width, 3), np.uint8)
    for number in range(film.frames):
        row, column = divmod(number, film.columns)
        left, top = column * film.width, row * film.height
        box = (left, top, left + film.width, top + film.height)
        frames[number] = np.asarray(picture.resize(size, Image.Resampling.BOX, box))
    return frames


def half_blocks(frame: UInt8[np.ndarray, "H W 3"], *, true_colour: bool) -> list[str]:
    """Return a frame as lines of text with two rows of pixels each."""
    colours = _packed(frame) if true_colour else nearest_of_256(frame)
    tops, bottoms = colours[::2], colours[1::2]
    if len(bottoms) < len(tops):  # odd number of rows
        bottoms = np.concatenate([bottoms, np.full_like(tops[:1], -1)])
    return [_line(top, bottom, true_colour) for top, bottom in zip(tops, bottoms, strict=True)]


def nearest_of_256(frame: UInt8[np.ndarray, "H W 3"]) -> Int[np.ndarray, "H W"]:
    """Return the nearest of xterm's 256 colours (cube or greys) for each pixel."""
    wide = frame.astype(int)
    level = np.abs(wide[..., None] - _CUBE).argmin(-1)
    grey = np.clip((wide.mean(-1) - 8 + 5) // 10, 0, 23).astype(int)
    off_cube = ((_CUBE[level] - wide) ** 2).sum(-1)
    off_grey = ((8 + 10 * grey[..., None] - wide) ** 2).sum(-1)
    return np.where(off_grey < off_cube, 232 + grey, 16 + level @ np.array([36, 6, 1]))


def _packed(frame: UInt8[np.ndarray, "H W 3"]) -> Int[np.ndarray, "H W"]:
    return frame.astype(int) @ np.array([65536, 256, 1])


def _line(top: Int[np.ndarray, " W"], bottom: Int[np.ndarray, " W"], true_colour: bool) -> str:
    """Return a line of cells; neighbours with equal colours share one escape sequence."""
    changes = np.flatnonzero((np.diff(top) != 0) | (np.diff(bottom) != 0)) + 1
    starts = [0, *changes.tolist(), len(top)]
    runs = [
        f"\x1b[{_colour(38, int(top[a]), true_colour)};{_colour(48, int(bottom[a]), true_colour)}m"
        f"{_UPPER_HALF * (b - a)}"
        for a, b in itertools.pairwise(starts)
    ]
    return "".join(runs) + RESET


def _colour(plane: int, colour: int, true_colour: bool) -> str:
    if colour < 0:
        return str(plane + 1)  # the terminal's default
    if not true_colour:
        return f"{plane};5;{colour}"
    return f"{plane};2;{colour >> 16};{colour >> 8 & 255};{colour & 255}"


def sparkline(values: Float[np.ndarray, " L"], low: float, high: float, width: int) -> str:
    """Return values as at most `width` bars on a scale from `low` to `high`."""
    width = min(width, len(values))
    size = max(abs(low), abs(high), 1.0)  # sums and the span of numbers near 1e308 would overflow
    low, high = low / size, high / size
    means = [part.mean() for part in np.array_split(values / size, width)]
    share = [(mean - low) / (high - low) if high > low else 0.5 for mean in means]
    return "".join(_LEVELS[min(max(int(s * len(_LEVELS)), 0), len(_LEVELS) - 1)] for s in share)


# Text.


def clean(text: str) -> str:
    """Return a person's text in one line, control characters escaped."""
    return harmless(" ".join(text.split()))


def width_of(text: str) -> int:
    """Return the number of cells that plain text takes."""
    return sum(_width(character) for character in text)


def shortened(text: str, width: int) -> str:
    """Return plain text cut to at most `width` cells."""
    if width_of(text) <= width:
        return text
    sums = itertools.accumulate(map(_width, text))
    return "".join(c for c, so_far in zip(text, sums, strict=True) if so_far < width) + "…"


def end_of(text: str, width: int) -> str:
    """Return the end of plain text, at most `width` cells."""
    return shortened(text[::-1], width)[::-1]


def centred(text: str, width: int) -> str:
    """Return plain text centred in `width` cells, cut if it is longer."""
    text = shortened(text, width)
    left = (width - width_of(text)) // 2
    return " " * left + text + " " * (width - width_of(text) - left)


def joined(parts: Sequence[str], width: int, between: str = " · ") -> str:
    """Return the first parts, as many as fit into one line."""
    line = ""
    for part in parts:
        longer = f"{line}{between}{part}" if line else part
        if width_of(longer) > width:
            break
        line = longer
    return line or shortened(parts[0], width)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# Words.


def waiting_lines(status: Status, now: float) -> list[str]:
    """Return lines that say what the person waits for; `now` is in seconds since 1970."""
    what = {
        "setting up": f"setting up {clean(status.env)}".rstrip(),
        "drawing": "drawing the next clips",
        "learning": f"the agent is learning from your answers{_phase(status)}",
        "waiting": "other people hold the open pairs",
        "evaluating": "no more answers are needed: rating the agent",
    }
    spent = max(0.0, now - status.since)
    about = f" of about {duration(status.expected_seconds)}" if status.expected_seconds else ""
    return [what.get(status.doing, status.doing), f"for {duration(spent)}{about}"]


def _phase(status: Status) -> str:
    phase = min(status.phase + 1, status.phases)
    return f", training phase {phase} of {status.phases}" if status.phases else ""


def progress_parts(tally: Tally, status: Status) -> list[str]:
    """Return the progress of labelling in short phrases, the most important first."""
    of = f"{tally.labels} of {status.budget} answers" if status.budget else ""
    parts = [of or plural(tally.labels, "answer")]
    if (needed := status.needed_labels) is not None and needed > tally.labels:
        given = max(0, tally.labels - status.learned_labels)
        parts.append(f"{given} of {given + needed - tally.labels} until the agent learns")
    if status.doing == "stopped":
        parts.append("training has stopped")
    if tally.per_minute:
        parts.append(f"{tally.per_minute:.1f} a minute")
        if status.budget > tally.labels:
            to_go = 60 * (status.budget - tally.labels) / tally.per_minute
            parts.append(f"about {duration(to_go)} to go")
    if tally.self_agreement is not None:
        parts.append(f"same answer to {tally.self_agreement:.0%} of {tally.repeated} repeats")
    if tally.agreement is not None:
        parts.append(f"same as others {tally.agreement:.0%} of {tally.shared}")
    if tally.careless:
        parts.append(f"please take care: {tally.careless}")
    if status.doing == "learning":
        parts.append(f"learning{_phase(status)}")
    return parts


def opinion_line(opinion: Mapping[str, np.ndarray], width: int) -> str:
    """Return one line with the predicted reward of two clips over time.

    Args:
        opinion: `left` and `right`, each (2, L): mean and standard deviation per env step.
        width: of the line, in cells.
    """
    sides = [(side, opinion[side][0], float(opinion[side][1].mean())) for side in ("left", "right")]
    both = np.concatenate([mean for _, mean, _ in sides])
    prefix, spread_width = "predicted reward: ", len(" ± 0.00")
    bars = (width - len(f"{prefix}left    right ") - 2 * spread_width) // 2
    if bars < FEWEST_BARS:
        prefix, spread_width = "", 0
        bars = max(1, (width - len("left    right ")) // 2)
    parts = [
        f"{side} {sparkline(mean, float(both.min()), float(both.max()), bars)}"
        + (f" ± {spread:.2f}" if spread_width else "")
        for side, mean, spread in sides
    ]
    return shortened(f"{prefix}{'   '.join(parts)}", width)


# Layout.

ABOVE, BELOW = 3, 5  # lines above and below the clips
SMALLEST = Size(40, ABOVE + BELOW + 4)


class Grid(NamedTuple):
    """How clips are arranged."""

    rows: int
    columns: int


def grid_of(clips: int) -> Grid:
    """Return the arrangement of so many clips; two stand side by side."""
    rows = 1 if clips <= 3 else 2 if clips <= 6 else 3
    return Grid(rows, -(-clips // rows))


def clip_width(terminal: Size, columns: int) -> int:
    """Return the number of terminal columns for each clip."""
    return (terminal.width - 2 * MARGIN - (columns - 1) * GAP) // columns


def room_for_clip(terminal: Size, clips: int) -> Size:
    """Return the number of pixels for each of so many clips."""
    rows, columns = grid_of(clips)
    height = (terminal.height - ABOVE - BELOW) // rows - (1 if rows > 1 else 0)
    return Size(clip_width(terminal, columns), 2 * height)


def titles_line(titles: Sequence[str], terminal: Size, columns: int) -> str:
    """Return a line with a title above each clip of a row."""
    width = clip_width(terminal, columns)
    return (" " * GAP).join(centred(title, width) for title in titles)


def arranged(
    clips: Sequence[Sequence[str]], titles: Sequence[str], size: Size, terminal: Size
) -> list[str]:
    """Return the lines of clips side by side, in as many rows as they need.

    Args:
        clips: the lines of each clip.
        titles: of each clip; the first row's are left out, they stand above all clips.
        size: of each clip, in pixels.
        terminal: in cells.
    """
    rows, columns = grid_of(len(clips))
    lines: list[str] = []
    for row in range(rows):
        now = slice(row * columns, (row + 1) * columns)
        if row:
            lines.append(f" {DIM}{titles_line(titles[now], terminal, columns)}{RESET}")
        lines += _side_by_side(clips[now], size, clip_width(terminal, columns))
    height = terminal.height - ABOVE - BELOW
    above = (height - len(lines)) // 2 if rows == 1 else 0
    return ([""] * above + lines + [""] * (height - len(lines) - above))[:height]


def _side_by_side(clips: Sequence[Sequence[str]], size: Size, width: int) -> list[str]:
    """Return the lines of one row of clips, each centred in its columns."""
    before = (width - size.width) // 2
    between = " " * (width - size.width + GAP)
    start = " " * (MARGIN + before)
    return [f"{start}{between.join(line)}" for line in zip(*clips, strict=True)]


def centred_block(lines: Sequence[str], terminal: Size) -> list[str]:
    """Return plain lines centred in the area of the clips."""
    height = terminal.height - ABOVE - BELOW
    shown = [f" {centred(line, terminal.width - 2 * MARGIN)}" for line in lines[:height]]
    above = (height - len(shown)) // 2
    return [""] * above + shown + [""] * (height - len(shown) - above)


def position_bar(share: float, width: int) -> str:
    """Return a bar of `width` cells, `share` of it filled."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return "━" * filled + f"{DIM}{'─' * (width - filled)}{RESET}"


# Playback.


@final
class Playback:
    """The common clock of two clips that play in a loop.

    Args:
        frames: number of frames of the longer clip.
        fps: frames per second at speed 1.
        now: the time in seconds.
        speed: playback speed.
    """

    def __init__(self, frames: int, fps: float, now: float, speed: float = 1.0) -> None:
        self._frames, self._fps = frames, fps
        self._played, self._since, self._speed = 0.0, now, speed
        self.paused = False

    def frame(self, now: float) -> int:
        """Return the index of the current frame."""
        return min(int(self._in_loop(now) * self._fps), self._frames - 1)

    def share(self, now: float) -> float:
        """Return the share of the clip that has been played, from 0 to 1."""
        return min(self._in_loop(now) * self._fps / self._frames, 1.0)

    def until_next(self, now: float, shortest: float = 0.0) -> float:
        """Return the seconds until the next frame; infinity while paused.

        At least `shortest` if frames are faster than that: some frames are skipped.
        """
        if self.paused:
            return float("inf")
        if 1 / self._fps / self._speed < shortest:
            return shortest
        at = self._in_loop(now) * self._fps
        frame = int(at)
        ends = frame + 1 if frame + 1 < self._frames else self._frames + PAUSE_SECONDS * self._fps
        return (ends - at) / self._fps / self._speed

    def toggle(self, now: float) -> None:
        """Pause or continue."""
        self._played, self._since = self._at(now), now
        self.paused = not self.paused

    def set_speed(self, speed: float, now: float) -> None:
        """Continue at another speed."""
        self._played, self._since = self._at(now), now
        self._speed = speed

    def _at(self, now: float) -> float:
        """Return the played time at speed 1, over all loops."""
        return self._played + (0.0 if self.paused else (now - self._since) * self._speed)

    def _in_loop(self, now: float) -> float:
        return self._at(now) % (self._frames / self._fps + PAUSE_SECONDS)
