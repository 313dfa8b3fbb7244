"""The frames of the clips of a pair, read and scaled to the terminal ahead of time."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, final

from backflip.labelling.prompts import Prompt
from backflip.labelling.terminal.layout import Size, arranged, fitted, room_for_clip
from backflip.labelling.terminal.pictures import half_blocks, scaled_frames
from backflip.preferences.films import Film, Which, read_film


class _Key(NamedTuple):
    """What the loaded frames of a pair depend on; `clip` is that on the screen, of those rated."""

    query: int
    clip: int
    view: Which
    terminal: Size


@final
class PairFrames:
    """The frames of a pair, scaled to the terminal; each becomes text when it is first shown."""

    def __init__(self, folder: Path, films: Sequence[Film], terminal: Size) -> None:
        """Read the films.

        Args:
            folder: the folder of films.
            films: of the clips that are shown together.
            terminal: size of the terminal, in cells.

        Raises:
            DamagedFile: a film is missing or damaged.
        """
        first = films[0]
        self._terminal = terminal
        self._size = fitted(Size(first.width, first.height), room_for_clip(terminal, len(films)))
        self._frames = [
            scaled_frames(read_film(folder, film.file), film, self._size) for film in films
        ]
        self._clips: dict[int, list[list[str]]] = {}
        self.fps = first.fps
        self.count = max(film.frames for film in films)

    def lines(self, number: int, titles: Sequence[str], *, true_colour: bool) -> list[str]:
        """Return the clips at frame `number`; a shorter clip keeps its last frame."""
        if number not in self._clips:
            now = [frames[min(number, len(frames) - 1)] for frames in self._frames]
            self._clips[number] = [half_blocks(frame, true_colour=true_colour) for frame in now]
        return arranged(self._clips[number], titles, self._size, self._terminal)


@final
class FrameLoader:
    """Reads and scales frames ahead of time, in a thread, so that playback does not stutter."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._ready: dict[_Key, Future[PairFrames]] = {}

    def preload(self, pairs: Sequence[Prompt], view: Which, terminal: Size) -> None:
        """Load these pairs in this order; drop all others."""
        wanted = {
            _Key(pair.query, clip, view, terminal): _films(pair, clip, view)
            for pair in pairs
            for clip in range(len(pair.clips) if pair.kind == "rate" else 1)
        }
        for key in self._ready.keys() - wanted.keys():
            self._ready.pop(key).cancel()
        for key, films in wanted.items():
            if key not in self._ready:
                self._ready[key] = self._thread.submit(PairFrames, self._folder, films, terminal)

    def get(self, pair: Prompt, view: Which, terminal: Size) -> PairFrames | None:
        """Return the frames of a pair; None while they load.

        Raises:
            DamagedFile: a film is missing or damaged. The next `preload` tries again.
        """
        key = _Key(pair.query, clip_of(pair), view, terminal)
        ready = self._ready.get(key)
        if ready is None or not ready.done():
            return None
        if ready.exception():
            del self._ready[key]
        return ready.result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)


def clip_of(pair: Prompt) -> int:
    """Return the clip that is rated now; 0 if all clips are shown together."""
    return len(pair.marks) if pair.kind == "rate" else 0


def _films(pair: Prompt, clip: int, view: Which) -> list[Film]:
    """Return the films that are shown together, in `view`, or in the other view if there are none.

    Args:
        pair: the prompt.
        clip: of clips that are rated, the one that is shown.
        view: the view.
    """
    shown = pair.clips[clip : clip + 1] if pair.kind == "rate" else pair.clips
    have = view if all(view in films for films in shown) else "person"
    other: Which = "agent"
    return [films.get(have) or films[other] for films in shown]
