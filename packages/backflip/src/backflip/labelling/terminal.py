"""The labelling terminal: two clips side by side as text, answered with the keys of the page.

`python -m backflip.labelling.terminal RUN_FOLDER [--who NAME]` takes over the terminal
and gives it back as it was, whichever way it ends. Exit status: 0 the person left, or training
has finished; 1 training has stopped; 2 no terminal, or wrong usage; 130 Ctrl-C; 128 + n signal n.
It shares only files with the trainer, as the page does. No JAX here.
"""

import argparse
import getpass
import os
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, final

from backflip.labelling.label_queue import AHEAD, LabelQueue, Pair, Refused, checked_name
from backflip.labelling.status import Status, read_status
from backflip.labelling.terminal_device import Left, Terminal, has_terminal
from backflip.labelling.terminal_view import (
    BOLD,
    DIM,
    GAP,
    MARGIN,
    PASTE,
    RESET,
    REVERSE,
    SMALLEST,
    Playback,
    Size,
    beside,
    centred,
    clean,
    end_of,
    fitted,
    half_blocks,
    in_the_middle,
    opinion_line,
    position_bar,
    room_for_clip,
    scaled_frames,
    shortened,
    side_width,
    standing,
    waiting_for,
    width_of,
    wrapped,
)
from backflip.preferences.films import FILMS, Film, Which, read_film
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import Answer, LabelStore, StoredClip
from runshelf.errors import DamagedFile, UsageError, UserFacingError

FASTEST = 1 / 20  # seconds between two drawings
LOADING = 0.02  # seconds between two looks whether a pair's pictures are ready
IDLE = 0.25  # seconds between two looks at what else has changed
SHORTEST_LOOK = 0.15  # seconds; nobody judges two clips sooner
HELD_DOWN = 0.12  # seconds between two equal keys; nobody presses one so fast
AWAY = 60.0  # seconds without a key; then no more pairs are held for the person
DRAWN_ANEW = 5.0  # seconds until a missing film may be there again
START = 10.0  # seconds in which the trainer may not yet have said what it does

ANSWERS: dict[str, Answer] = {"left": "left", "right": "right", "up": "tie", "down": "skip"}
SPEEDS = {"1": 0.5, "2": 1.0, "3": 2.0}
IN_WORDS: dict[Answer, str] = {
    "left": "← left is better",
    "right": "→ right is better",
    "tie": "↑ equally good",
    "skip": "↓ can't tell",
}
HINTS = ["← → better", "↑ equal", "↓ can't tell", "? keys", "q quit", "u undo", "space pause"]
HELP = [
    "←  →    the left, the right one is better",
    "↑       both are equally good",
    "↓       can't tell",
    "u       take the last answer back, again and again",
    "space   pause, go on",
    "1 2 3   half, normal, double speed",
    "v       what the agent sees, what you see",
    "g       say what you want to see",
    "?       these keys",
    "q       leave; nothing is lost",
]


class _Key(NamedTuple):
    """Of what a pair's pictures depend on."""

    query: int
    view: Which
    terminal: Size


@final
class Screening:
    """A pair's pictures, in the size they are shown in; text is made of each when it is needed."""

    def __init__(self, folder: Path, films: tuple[Film, Film], terminal: Size) -> None:
        """Read both films.

        Args:
            folder: where they are.
            films: of the left and the right clip.
            terminal: in cells.

        Raises:
            DamagedFile: one is missing or damaged.
        """
        first = films[0]
        self._terminal = terminal
        self._size = fitted(Size(first.width, first.height), room_for_clip(terminal))
        self._frames = [
            scaled_frames(read_film(folder, film.file), film, self._size) for film in films
        ]
        self._lines: dict[int, list[str]] = {}
        self.fps = first.fps
        self.frames = max(film.frames for film in films)

    def lines(self, number: int, *, true_colour: bool) -> list[str]:
        """Return both clips at frame `number`; a clip that is shorter stands still at its end."""
        if number not in self._lines:
            now = [frames[min(number, len(frames) - 1)] for frames in self._frames]
            left, right = (half_blocks(frame, true_colour=true_colour) for frame in now)
            self._lines[number] = beside(left, right, self._size, self._terminal)
        return self._lines[number]


@final
class Cinema:
    """Has pictures ready, read and scaled on a thread of its own, so that nothing stutters."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._ready: dict[_Key, Future[Screening]] = {}

    def expect(self, pairs: Sequence[Pair], view: Which, terminal: Size) -> None:
        """Get ready what will be shown, in that order, and forget the rest."""
        wanted = {_Key(pair.query, view, terminal): _films(pair, view) for pair in pairs}
        for key in self._ready.keys() - wanted.keys():
            self._ready.pop(key).cancel()
        for key, films in wanted.items():
            if key not in self._ready:
                self._ready[key] = self._thread.submit(Screening, self._folder, films, terminal)

    def screening(self, pair: Pair, view: Which, terminal: Size) -> Screening | None:
        """Return a pair's pictures, None while they are not ready.

        Raises:
            DamagedFile: one is missing or damaged; it is looked for anew when expected again.
        """
        key = _Key(pair.query, view, terminal)
        ready = self._ready.get(key)
        if ready is None or not ready.done():
            return None
        if ready.exception():
            del self._ready[key]
        return ready.result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)


def _films(pair: Pair, view: Which) -> tuple[Film, Film]:
    """Return a pair's films; of the person's view where there are none of the agent's."""
    have = view if view in pair.left and view in pair.right else "person"
    other: Which = "agent"
    sides = (pair.left, pair.right)
    left, right = (side.get(have) or side[other] for side in sides)
    return left, right


class _Shown(NamedTuple):
    """The pair on the screen, since when, and where its clips are."""

    query: int
    since: float
    playback: Playback


@final
class Labeller:
    """What the keys do, and what is on the screen.

    Args:
        queue: where pairs come from and answers go.
        folder: the run's.
        who: the person's name.
        true_colour: the terminal knows 24-bit colours.
    """

    def __init__(self, queue: LabelQueue, folder: Path, who: str, *, true_colour: bool) -> None:
        self._queue, self._folder, self._who = queue, folder, who
        self._true_colour = true_colour
        self._cinema = Cinema(folder / FILMS)
        self._pairs: list[Pair] = []  # the first one is on the screen
        self._broken: dict[int, float] = {}  # pairs without a film, and when to look again
        self._shown: _Shown | None = None
        self._view: Which = "person"
        self._speed = 1.0
        self._said = ""  # about the last key
        self._opinion: StoredClip | None = None
        self._draft: str | None = None  # the goal while it is edited
        self._helping = False
        self._last_key = ("", time.monotonic())
        self._began = time.monotonic()
        self._next_look = self._next_take = 0.0
        self._status = Status("setting up", time.time())
        self._tally = queue.tally(who)
        self._goal = queue.goal()

    def close(self) -> None:
        """Stop getting pictures ready."""
        self._cinema.close()

    # Keys.

    def press(self, key: str, now: float) -> None:
        """Do what a key is for.

        Raises:
            Left: the person wants to leave.
        """
        (last, at), self._last_key = self._last_key, (key, now)
        held_down = key == last and now - at < HELD_DOWN
        if self._draft is not None:
            self._draft = self._edited(self._draft, key)
        elif self._helping:
            self._helping = False
        elif key in ANSWERS and not held_down:
            self._answer(ANSWERS[key], now)
        elif key == "u" and not held_down:
            self._undo(now)
        else:
            self._control(key, now)

    def _control(self, key: str, now: float) -> None:
        if key == "q":
            raise Left(0, "your labels are kept")
        if key == "?":
            self._helping = True
        elif key == "g":
            self._draft = self._goal
        elif key == "v":
            self._view = "agent" if self._view == "person" else "person"
        elif key in SPEEDS:
            self._speed = SPEEDS[key]
            if self._shown:
                self._shown.playback.set_speed(self._speed, now)
        elif key == " " and self._shown:
            self._shown.playback.toggle(now)

    def _answer(self, answer: Answer, now: float) -> None:
        shown = self._shown
        if shown is None or now - shown.since < SHORTEST_LOOK:
            return
        attempt = secrets.token_hex(16)
        try:
            answered = self._queue.answer(
                shown.query, answer, self._who, now - shown.since, attempt
            )
        except Refused as error:
            self._said, self._opinion = clean(str(error)), None
        else:
            self._said, self._opinion = IN_WORDS[answer], answered.opinion
        self._pairs = [pair for pair in self._pairs if pair.query != shown.query]
        self._shown = None
        self._next_look = self._next_take = now

    def _undo(self, now: float) -> None:
        try:
            pair = self._queue.undo(self._who, secrets.token_hex(16))
        except Refused as error:
            self._said = clean(str(error))
            return
        self._pairs = [pair, *(other for other in self._pairs if other.query != pair.query)]
        self._shown = None
        self._said, self._opinion = "taken back: what is better here?", None
        self._next_look = now

    def _edited(self, draft: str, key: str) -> str | None:
        """Return the goal as a key leaves it, None if that ends it."""
        if key in ("enter", "escape"):
            if key == "enter":
                self._keep_goal(draft)
            return None
        if key == "backspace":
            return draft[:-1]
        if key == "clear":
            return ""
        if key.startswith(PASTE):
            return draft + "".join(c if c.isprintable() else " " for c in key[len(PASTE) :])
        return draft + key if len(key) == 1 else draft

    def _keep_goal(self, draft: str) -> None:
        try:
            self._goal = self._queue.set_goal(draft, self._who)
        except Refused as error:
            self._said = clean(str(error))

    # What changes by itself.

    def look(self, now: float) -> bool:
        """See what the trainer does, and take new pairs; return whether anything is new.

        Raises:
            Left: training has finished or stopped.
        """
        if now < self._next_look:
            return False
        before = (self._status, self._tally, self._pairs, self._goal)
        self._next_look = now + IDLE
        self._status = self._status_now(now)
        if now >= self._next_take:
            self._take(now)
        self._tally = self._queue.tally(self._who)
        self._goal = self._queue.goal()
        self._leave_if_over()
        return before != (self._status, self._tally, self._pairs, self._goal)

    def wait(self, now: float) -> float:
        """Return the seconds until something on the screen changes by itself."""
        if self._pairs and self._shown is None:
            return LOADING
        until = self._shown.playback.until_next(now, FASTEST) if self._shown else IDLE
        return min(until, IDLE)

    def _status_now(self, now: float) -> Status:
        status = read_status(self._folder)
        unsaid = status.doing == "stopped" and not status.pid
        return self._status if unsaid and now - self._began < START else status

    def _leave_if_over(self) -> None:
        if self._status.doing == "finished":
            raise Left(0, clean(self._status.result) or "training has finished")
        if self._status.doing == "stopped" and not self._pairs:
            why = f" ({clean(self._status.result)})" if self._status.result else ""
            raise Left(
                1, f"training has stopped{why}: `backflip resume {self._folder.name}` goes on"
            )

    def _take(self, now: float) -> None:
        """Have pairs ready; the one on the screen stays there as long as it is the person's."""
        away = now - self._last_key[1] > AWAY
        if self._pairs and (away or len(self._pairs) >= AHEAD):
            return
        self._next_take = now + 1.0
        without = {query for query, until in self._broken.items() if now < until}
        pairs = {pair.query: pair for pair in self._queue.take(self._who, without)}
        first = [pair for pair in self._pairs[:1] if pairs.pop(pair.query, None)]
        self._pairs = first + list(pairs.values())

    # What is shown.

    def lines(self, terminal: Size, now: float) -> list[str]:
        """Return the lines of the whole screen, from the top."""
        if terminal.width < SMALLEST.width or terminal.height < SMALLEST.height:
            small = f"at least {SMALLEST.width} × {SMALLEST.height}, please"
            return [shortened(small, terminal.width - 1)]
        middle = self._help(terminal) or self._clips(terminal, now) or self._waiting(terminal)
        return [*self._above(terminal), *middle, *self._below(terminal, now)]

    def _screening(self, terminal: Size, now: float) -> Screening | None:
        """Return the pictures of the first pair that has any, None while they are not ready."""
        self._cinema.expect(self._pairs, self._view, terminal)
        while self._pairs:
            pair = self._pairs[0]
            try:
                screening = self._cinema.screening(pair, self._view, terminal)
            except DamagedFile:
                self._broken[pair.query] = now + DRAWN_ANEW
                self._pairs, self._next_take = self._pairs[1:], now
                continue
            if screening and (self._shown is None or self._shown.query != pair.query):
                playback = Playback(screening.frames, screening.fps, now, self._speed)
                self._shown = _Shown(pair.query, now, playback)
            return screening
        self._shown = None
        return None

    def _help(self, terminal: Size) -> list[str]:
        if not self._helping:
            return []
        width = max(len(line) for line in HELP)
        return in_the_middle([line.ljust(width) for line in HELP], terminal)

    def _clips(self, terminal: Size, now: float) -> list[str]:
        screening = self._screening(terminal, now)
        if screening is None or self._shown is None:
            return []
        number = self._shown.playback.frame(now)
        return screening.lines(number, true_colour=self._true_colour)

    def _waiting(self, terminal: Size) -> list[str]:
        told = ["one moment"] if self._pairs else waiting_for(self._status, time.time())
        return in_the_middle(told, terminal)

    def _above(self, terminal: Size) -> list[str]:
        width = terminal.width - 2 * MARGIN
        if self._draft is not None:
            goal = f"{BOLD}Goal: {end_of(self._draft, width - 7)}{RESET}{REVERSE} {RESET}"
        else:
            said = f"Goal: {clean(self._goal)}" if self._goal else "Which one is better?"
            goal = f"{BOLD}{shortened(said, width)}{RESET}"
        half = side_width(terminal)
        as_seen = " (agent's view)" if self._view == "agent" else ""
        sides = [f"← left{as_seen}", f"right{as_seen} →"]
        names = (" " * GAP).join(centred(side, half) for side in sides)
        playing = self._shown is not None and not self._helping
        return [f" {goal}", "", f" {DIM}{names}{RESET}" if playing else ""]

    def _below(self, terminal: Size, now: float) -> list[str]:
        width = terminal.width - 2 * MARGIN
        bar = ""
        if self._shown and not self._helping:
            bar = position_bar(self._shown.playback.share(now), width)
        hints = ["enter keeps it", "esc leaves it as it was"] if self._draft is not None else HINTS
        return [
            f" {bar}",
            f" {self._about_the_last(width)}",
            "",
            f" {wrapped(standing(self._tally, self._status), width)}",
            f" {DIM}{wrapped(hints, width)}{RESET}",
        ]

    def _about_the_last(self, width: int) -> str:
        if self._shown and self._shown.playback.paused:
            return f"{REVERSE} paused {RESET}"
        said = f"{REVERSE} {shortened(self._said, width - 2)} {RESET}" if self._said else ""
        room = width - width_of(self._said) - 4
        if self._opinion is None or room < SMALLEST.width // 2:
            return said
        return f"{said}  {DIM}{opinion_line(self._opinion, room)}{RESET}"


def main(argv: Sequence[str] | None = None) -> int:
    """Let a person label a run in this terminal; return the exit status."""
    options = _options(argv)
    try:
        _label(options.folder, options.who or _user())
    except Left as left:
        if str(left):
            print(f"backflip: {left}", file=sys.stderr)  # noqa: T201  (a program of its own)
        return left.status
    except UserFacingError as error:
        print(f"backflip: error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_status
    return 0


class _Options(argparse.Namespace):
    folder: Path
    who: str | None


def _options(argv: Sequence[str] | None) -> _Options:
    parser = argparse.ArgumentParser("backflip.labelling.terminal", description=__doc__)
    parser.add_argument("folder", metavar="RUN_FOLDER", type=Path)
    parser.add_argument("--who", metavar="NAME", help="your name, beside your labels")
    return parser.parse_args(argv, _Options())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return "me"


def _label(folder: Path, who: str) -> None:
    """Show pairs and take answers until it is over.

    Raises:
        Left: always, in the end.
        UsageError: there is no terminal, or no run.
    """
    who = checked_name(who)
    if not has_terminal():
        raise UsageError("labelling needs a terminal: start it in one, or use --teacher human")
    if not (folder / LABELS).is_file():
        raise UsageError(f"`{folder}` is not the folder of a run with labels: it has no `{LABELS}`")
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    with LabelStore.open(folder / LABELS) as store, Terminal(0, 1) as terminal:
        labeller = Labeller(LabelQueue(store), folder, who, true_colour=true_colour)
        try:
            _go_on(labeller, terminal)
        finally:
            labeller.close()


def _go_on(labeller: Labeller, terminal: Terminal) -> None:
    while True:
        now, size = time.monotonic(), terminal.size()
        terminal.draw(labeller.lines(size, now), size)
        seconds = 0.0 if labeller.look(now) else labeller.wait(time.monotonic())
        for key in terminal.keys(seconds):
            labeller.press(key, time.monotonic())


if __name__ == "__main__":
    sys.exit(main())
