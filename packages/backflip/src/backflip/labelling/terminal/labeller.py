"""The state of labelling in the terminal: what keys do, and the lines on the screen."""

import os
import secrets
import time
from pathlib import Path
from typing import NamedTuple, final

from backflip.labelling.label_queue import LabelQueue
from backflip.labelling.leases import RENEW_SECONDS
from backflip.labelling.prompts import Given, Marks, Prompt, after_key
from backflip.labelling.refused import Refused
from backflip.labelling.status import Status, read_status
from backflip.labelling.taking import AHEAD
from backflip.labelling.terminal.device import Quit
from backflip.labelling.terminal.frames import FrameLoader, PairFrames, clip_of
from backflip.labelling.terminal.keys import PASTE
from backflip.labelling.terminal.layout import (
    MARGIN,
    SMALLEST,
    Size,
    centred_block,
    grid_of,
    position_bar,
    titles_line,
)
from backflip.labelling.terminal.playback import Playback
from backflip.labelling.terminal.text import (
    BOLD,
    DIM,
    RESET,
    REVERSE,
    clean,
    end_of,
    joined,
    shortened,
    width_of,
)
from backflip.labelling.terminal.words import opinion_line, progress_parts, waiting_lines
from backflip.preferences.films import FILMS, Which
from backflip.preferences.label_records import Answer, StoredClip
from runshelf.errors import DamagedFile
from runshelf.store.run_ids import short_id

# All in seconds.
SHORTEST_FRAME = 1 / 20  # between two screen updates
LOADING_POLL = 0.02  # between two checks whether the frames of a pair are loaded
POLL = 0.25  # between two checks of the label file and the status
SHORTEST_VIEW = 0.15  # an answer sooner than this is a key meant for the pair before
HELD_DOWN = 0.12  # equal keys closer than this come from a key held down
RESTING = 60.0  # without a key; then the person gets no new pairs, and others get the unseen ones
AWAY = 1800.0  # without a key; then the pair on the screen becomes free, too
FILM_RETRY = 5.0  # until a pair with a missing film is requested again
START = 10.0  # until the trainer must have written its status

PLACE = f"terminal {os.getpid()}"  # identifies this program among the places of the person

ANSWERS: dict[str, Answer] = {"left": "left", "right": "right", "up": "tie", "down": "skip"}
SPEEDS = {"1": 0.5, "2": 1.0, "3": 2.0}
IN_WORDS: dict[Answer, str] = {
    "left": "← left is better",
    "right": "→ right is better",
    "tie": "↑ equally good",
    "skip": "↓ can't tell",
}
KEYS = {
    "compare": ["← → better", "↑ equal"],
    "rank": ["1 2 … next in the ranking", "↑ the rest are equal"],
    "rate": ["1 worst … 9 best"],
}
HINTS = ["↓ can't tell", "? keys", "q quit", "u undo", "r redo", "space pause"]
ASKING = {"compare": "Which clip is better?", "rank": "Rank the clips", "rate": "Rate the clip"}
# Before the first clips it is not known whether they are compared, ranked or rated.
NO_CLIPS = "Which clips are better?"
SAID = {"rank": "ranked", "rate": "rated"}
DIGITS = "123456789"
HELP = [
    "←  →    the left, the right clip is better",
    "↑       both are equally good",
    "↓       can't tell",
    "u       undo the last answer, repeatedly",
    "r       redo what was undone",
    "space   pause, play",
    "1 2 3   half, normal, double speed",
    "1 … 9   of a set: the next clip in the ranking, or the rating of the clip",
    "v       agent's view, your view",
    "g       edit the goal",
    "?       this help",
    "q       quit; your answers are kept",
]


class _Shown(NamedTuple):
    """What is on the screen.

    Attributes:
        query: the pair.
        clip: of clips that are rated, the one that is shown; else 0.
        began: when the pair was first shown.
        since: when what is on the screen was first shown.
        playback: of it.
    """

    query: int
    clip: int
    began: float
    since: float
    playback: Playback


@final
class Labeller:
    """The state of the program: reacts to keys and produces the lines of the screen.

    Args:
        queue: the run's label queue.
        folder: the run's folder.
        who: the person's name.
        true_colour: the terminal supports 24-bit colours.
    """

    def __init__(self, queue: LabelQueue, folder: Path, who: str, *, true_colour: bool) -> None:
        self._queue, self._folder, self._who = queue, folder, who
        self._true_colour = true_colour
        self._loader = FrameLoader(folder / FILMS)
        self._pairs: list[Prompt] = []  # the first one is on the screen
        self._broken: dict[int, float] = {}  # pairs without a film -> when to try again
        self._shown: _Shown | None = None
        self._view: Which = "person"
        self._speed = 1.0
        self._message = ""  # about the last key
        self._opinion: StoredClip | None = None
        self._draft: str | None = None  # the goal while it is edited
        self._helping = False
        self._last_key = ("", time.monotonic())
        self._began = time.monotonic()
        self._next_poll = self._next_take = self._next_stay = 0.0
        self._status = Status("setting up", time.time())
        self._tally = queue.tally(who)
        self._goal = queue.goal()

    def close(self) -> None:
        """Stop loading frames; the pairs become free."""
        self._loader.close()
        self._queue.leases.end(self._who, PLACE)

    # Keys.

    def press(self, key: str, now: float) -> None:
        """React to a key.

        Raises:
            Quit: the person leaves.
        """
        (last, at), self._last_key = self._last_key, (key, now)
        held_down = key == last and now - at < HELD_DOWN
        if self._draft is not None:
            self._draft = self._edited(self._draft, key)
        elif self._helping:
            self._helping = False
        elif self._is_set() and (key in ANSWERS or key in DIGITS):
            if not held_down:
                self._mark(int(key) if key in DIGITS else ANSWERS[key], now)
        elif key in ANSWERS and not held_down:
            self._answer(ANSWERS[key], IN_WORDS[ANSWERS[key]], now)
        elif key == "u" and not held_down:
            self._take_back(now)
        elif key == "r" and not held_down:
            self._redo(now)
        else:
            self._control(key, now)

    def _control(self, key: str, now: float) -> None:
        if key == "q":
            raise Quit(0, "your answers are kept")
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

    def _is_set(self) -> bool:
        """Return whether the pair on the screen is a set, which is ranked or rated."""
        if self._shown is None or not self._pairs:
            return False
        return self._pairs[0].query == self._shown.query and self._pairs[0].kind != "compare"

    def _mark(self, key: int | Answer, now: float) -> None:
        """Rank the clip with a number, or rate the clip on the screen; or give the last answer."""
        shown = self._shown
        if shown is None or key in ("left", "right") or now - shown.since < SHORTEST_VIEW:
            return
        if shown.clip != clip_of(self._pairs[0]):  # the clip that is rated next still loads
            return
        step = after_key(self._pairs[0], key)
        if step is None:
            return
        if step.answer is None:
            self._keep(step.marks)
        else:
            said = "can't tell" if step.answer == "skip" else SAID[self._pairs[0].kind]
            self._answer(step.answer, said, now)

    def _keep(self, marks: Marks) -> None:
        """Keep what has been said of the set on the screen so far."""
        query = self._pairs[0].query
        try:
            self._queue.mark(query, marks, self._who)
        except Refused as error:  # another person holds it now
            self._message, self._next_take = clean(str(error)), 0.0
            self._drop(query)
            return
        self._message, self._opinion = "", None
        self._pairs = [self._pairs[0]._replace(marks=marks), *self._pairs[1:]]

    def _take_back(self, now: float) -> None:
        """Undo the last key about the set on the screen, or the last answer."""
        if self._is_set() and self._pairs[0].marks:
            self._keep(self._pairs[0].marks[:-1])
        else:
            self._undo(now)

    def _answer(self, answer: Given, in_words: str, now: float) -> None:
        shown = self._shown
        if shown is None or now - shown.since < SHORTEST_VIEW:
            return
        attempt = secrets.token_hex(16)
        try:
            answered = self._queue.answer(
                shown.query, answer, self._who, now - shown.began, attempt
            )
        except Refused as error:
            self._message, self._opinion = clean(str(error)), None
        else:
            self._message, self._opinion = in_words, answered.opinion
        self._drop(shown.query)
        self._next_poll = self._next_take = now

    def _undo(self, now: float) -> None:
        try:
            undone = self._queue.undo(self._who, secrets.token_hex(16))
        except Refused as error:
            self._message = clean(str(error))
            return
        self._opinion, self._next_poll = None, now
        if undone.prompt is None:
            self._message = f"correction undone: again {IN_WORDS[undone.answer or 'skip']}"
            return
        self._put_first(undone.prompt)
        again = (
            "answer this pair again" if undone.prompt.kind == "compare" else "go on with this set"
        )
        self._message = f"undone: {again}"

    def _redo(self, now: float) -> None:
        try:
            redone = self._queue.redo(self._who, secrets.token_hex(16))
        except Refused as error:
            self._message = clean(str(error))
            return
        said = f": {IN_WORDS[redone.answer]}" if redone.answer else ""
        self._message, self._opinion = f"restored{said}", None
        self._drop(redone.query)
        self._next_poll = self._next_take = now

    def _put_first(self, pair: Prompt) -> None:
        self._pairs = [pair, *(other for other in self._pairs if other.query != pair.query)]
        self._shown = None

    def _drop(self, query: int) -> None:
        self._pairs = [pair for pair in self._pairs if pair.query != query]
        if self._shown and self._shown.query == query:
            self._shown = None

    def _edited(self, draft: str, key: str) -> str | None:
        """Return the edited goal after a key; None if the key ends editing."""
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
            self._message = clean(str(error))

    # Changes from outside.

    def poll(self, now: float) -> bool:
        """Read the status and take new pairs; return whether anything changed.

        Raises:
            Quit: training has finished or stopped.
        """
        if now < self._next_poll:
            return False
        before = (self._status, self._tally, self._pairs, self._goal)
        self._next_poll = now + POLL
        self._status = self._status_now(now)
        self._stay(now)
        if now >= self._next_take:
            self._take(now)
        self._tally = self._queue.tally(self._who)
        self._goal = self._queue.goal()
        self._leave_if_over()
        return before != (self._status, self._tally, self._pairs, self._goal)

    def until_change(self, now: float) -> float:
        """Return the seconds until the screen changes without a key."""
        if self._pairs and self._shown is None:
            return LOADING_POLL
        until = self._shown.playback.until_next(now, SHORTEST_FRAME) if self._shown else POLL
        return min(until, POLL)

    def _status_now(self, now: float) -> Status:
        status = read_status(self._folder)
        missing = status.doing == "stopped" and not status.pid
        return self._status if missing and now - self._began < START else status

    def _leave_if_over(self) -> None:
        if self._status.doing == "finished":
            raise Quit(0, clean(self._status.result) or "training has finished")
        if self._status.doing == "stopped" and not self._pairs:
            why = f" ({clean(self._status.result)})" if self._status.result else ""
            command = f"backflip resume {short_id(self._folder.name)}"
            raise Quit(1, f"training has stopped{why}: `{command}` continues it")

    def _stay(self, now: float) -> None:
        """Keep the pairs while the person is here; return the unseen ones while they rest."""
        idle = now - self._last_key[1]
        if now < self._next_stay or (self._pairs and idle > AWAY):
            return
        self._next_stay = now + RENEW_SECONDS
        self._queue.leases.renew(self._who, PLACE)
        if idle > RESTING and len(self._pairs) > 1 and self._queue.active_people() > 1:
            self._queue.give_back(self._who, [pair.query for pair in self._pairs[1:]])
            self._pairs = self._pairs[:1]

    def _take(self, now: float) -> None:
        """Take new pairs; the one on the screen stays if the person still holds it."""
        resting = now - self._last_key[1] > RESTING
        if self._pairs and (resting or len(self._pairs) >= AHEAD):
            return
        self._next_take = now + 1.0
        without = {query for query, until in self._broken.items() if now < until}
        pairs = {pair.query: pair for pair in self._queue.take(self._who, without, PLACE)}
        first = [pair for pair in self._pairs[:1] if pairs.pop(pair.query, None)]
        self._pairs = first + list(pairs.values())

    # The screen.

    def lines(self, terminal: Size, now: float) -> list[str]:
        """Return the lines of the whole screen, from the top."""
        if terminal.width < SMALLEST.width or terminal.height < SMALLEST.height:
            small = f"needs at least {SMALLEST.width} × {SMALLEST.height}"
            return [shortened(small, terminal.width - 1)]
        middle = self._help(terminal) or self._clips(terminal, now) or self._waiting(terminal)
        return [*self._above(terminal), *middle, *self._below(terminal, now)]

    def _frames(self, terminal: Size, now: float) -> PairFrames | None:
        """Return the frames of the first pair whose films are intact; None while they load."""
        self._loader.preload(self._pairs, self._view, terminal)
        while self._pairs:
            pair = self._pairs[0]
            try:
                frames = self._loader.get(pair, self._view, terminal)
            except DamagedFile:
                self._broken[pair.query] = now + FILM_RETRY
                self._pairs, self._next_take = self._pairs[1:], now
                continue
            clip = clip_of(pair)
            if frames and (self._shown is None or self._shown[:2] != (pair.query, clip)):
                same = self._shown is not None and self._shown.query == pair.query
                began = self._shown.began if same and self._shown else now
                playback = Playback(frames.count, frames.fps, now, self._speed)
                self._shown = _Shown(pair.query, clip, began, now, playback)
            return frames
        self._shown = None
        return None

    def _help(self, terminal: Size) -> list[str]:
        if not self._helping:
            return []
        width = max(len(line) for line in HELP)
        return centred_block([line.ljust(width) for line in HELP], terminal)

    def _clips(self, terminal: Size, now: float) -> list[str]:
        frames = self._frames(terminal, now)
        if frames is None or self._shown is None:
            return []
        number = self._shown.playback.frame(now)
        return frames.lines(number, self._titles(), true_colour=self._true_colour)

    def _waiting(self, terminal: Size) -> list[str]:
        lines = ["loading"] if self._pairs else waiting_lines(self._status, time.time())
        return centred_block(lines, terminal)

    def _above(self, terminal: Size) -> list[str]:
        width = terminal.width - 2 * MARGIN
        if self._draft is not None:
            goal = f"{BOLD}Goal: {end_of(self._draft, width - 7)}{RESET}{REVERSE} {RESET}"
        else:
            asking = ASKING[self._pairs[0].kind] if self._pairs else NO_CLIPS
            title = f"Goal: {clean(self._goal)}" if self._goal else asking
            goal = f"{BOLD}{shortened(title, width)}{RESET}"
        names = ""
        if self._shown is not None and not self._helping:
            titles = self._titles()
            columns = grid_of(len(titles)).columns
            names = f" {DIM}{titles_line(titles[:columns], terminal, columns)}{RESET}"
        return [f" {goal}", "", names]

    def _titles(self) -> list[str]:
        """Return a title for each clip on the screen."""
        pair, view = self._pairs[0], " (agent's view)" if self._view == "agent" else ""
        if pair.kind == "compare":
            return [f"← left{view}", f"right{view} →"]
        if pair.kind == "rate":
            return [f"clip {len(pair.marks) + 1} of {len(pair.clips)}{view}"]
        return [_numbered(pair, place) for place in range(len(pair.clips))]

    def _below(self, terminal: Size, now: float) -> list[str]:
        width = terminal.width - 2 * MARGIN
        bar = ""
        if self._shown and not self._helping:
            bar = position_bar(self._shown.playback.share(now), width)
        keys = KEYS[self._pairs[0].kind] if self._pairs else []
        hints = ["enter save", "esc cancel"] if self._draft is not None else [*keys, *HINTS]
        return [
            f" {bar}",
            f" {self._last_answer(width)}",
            "",
            f" {joined(progress_parts(self._tally, self._status), width)}",
            f" {DIM}{joined(hints, width)}{RESET}",
        ]

    def _last_answer(self, width: int) -> str:
        if self._shown and self._shown.playback.paused:
            return f"{REVERSE} paused {RESET}"
        message = self._message and f"{REVERSE} {shortened(self._message, width - 2)} {RESET}"
        room = width - width_of(self._message) - 4
        if self._opinion is None or room < SMALLEST.width // 2:
            return message
        return f"{message}  {DIM}{opinion_line(self._opinion, room)}{RESET}"


def _numbered(pair: Prompt, place: int) -> str:
    """Return the key of a clip that is ranked, and its place in the ranking so far."""
    rank = f" (place {pair.marks.index(place) + 1})" if place in pair.marks else ""
    return f"{place + 1}{rank}"
