"""Where clips and text stand on the screen."""

from collections.abc import Sequence
from typing import NamedTuple

from backflip.labelling.terminal.text import DIM, RESET, centred

LARGEST_ZOOM = 4  # of small frames
MARGIN = 1  # columns left and right
GAP = 3  # columns between two clips
ABOVE, BELOW = 3, 5  # lines above and below the clips


class Size(NamedTuple):
    """The size of a frame in pixels, or of a terminal in cells."""

    width: int
    height: int


SMALLEST = Size(40, ABOVE + BELOW + 4)


def fitted(frame: Size, room: Size) -> Size:
    """Return the largest size with the frame's aspect ratio that fits; all in pixels.

    Small frames are enlarged by whole factors only, so that each pixel stays a square.
    """
    zoom = min(room.width / frame.width, room.height / frame.height)
    if zoom >= 1:
        zoom = min(int(zoom), LARGEST_ZOOM)
    return Size(max(1, int(frame.width * zoom)), max(1, int(frame.height * zoom)))


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
