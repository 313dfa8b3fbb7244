"""Films of clips into a run's folder: only of those that a person will be asked about."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import UInt8

from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.envs.views.choose import view_of
from backflip.envs.views.film import Movie, agent_film, film, stills
from backflip.envs.views.view import View
from backflip.preferences.clips import Clip, Window, cut, from_arrays
from backflip.preferences.films import FILMS, Film, has_film, write_film
from backflip.preferences.labels import Films, LabelStore

LATEST = 64  # env steps of the agent's latest episode that are shown, at most


@final
class Drawer:
    """Draws the clips of one environment.

    Args:
        run_folder: whose `films/` keeps the strips.
        env_id: the name a person typed.
        env_args: what the environment is made with.
        spec: its public facts.
    """

    def __init__(
        self, run_folder: Path, env_id: str, env_args: Mapping[str, Any], spec: EnvSpec
    ) -> None:
        self._folder, self._spec = run_folder / FILMS, spec
        self._env_id, self._env_args = env_id, env_args
        self._latest: Film | None = None

    @cached_property
    def _view(self) -> View:
        """The view; made when the first clip is drawn, because it may have to import Gymnasium."""
        return view_of(self._env_id, self._spec, self._env_args)

    def frames(self, clip: Clip) -> UInt8[np.ndarray, "L H W 3"]:
        """Return one picture for each env step of a clip, as a person would see it."""
        return stills(self._view, clip.obs, clip.next_obs, clip.scene, clip.alive)

    def films(self, clip: Clip) -> Films:
        """Return the films of a clip, for a person and as the agent sees it; they are on disk.

        Raises:
            UserFacingError: the disk is full, or what draws cannot draw here.
        """
        movie = film(self._view, clip.obs, clip.next_obs, clip.scene, clip.alive)
        seen = agent_film(self._spec, clip.obs, clip.alive, movie)
        return {"person": self._write(movie), "agent": self._write(seen)}

    def latest(self, record: Transition) -> Film | None:
        """Return a film of what one agent did last in a record (T', M); the one before goes."""
        window, length = _longest_ending(record)
        if length < 2:
            return self._latest
        clip = cut(record, window, length)
        shown = self._write(film(self._view, clip.obs, clip.next_obs, clip.scene, clip.alive))
        before, self._latest = self._latest, shown
        if before is not None and before.file != shown.file:
            (self._folder / before.file).unlink(missing_ok=True)
        return shown

    def redraw_missing(self, store: LabelStore) -> None:
        """Draw again what is lost of the films of open questions."""
        for query in store.pending():
            films = store.films(query.id)
            lost = [not has_film(self._folder, film) for side in films for film in side.values()]
            if any(lost):
                left, right = (self.films(from_arrays(clip)) for clip in store.clips(query.id))
                store.set_films(query.id, left, right)

    def _write(self, movie: Movie) -> Film:
        return write_film(
            self._folder,
            movie.frames,
            fps=movie.fps,
            slowdown=movie.slowdown,
            pixelated=movie.pixelated,
        )


def _longest_ending(record: Transition) -> tuple[Window, int]:
    """Return where the record's longest stretch of one episode up to its end begins, and how long.

    Invalid rows, on which an environment only reset, end a stretch as an episode's end does.
    """
    over = record.terminated | record.truncated | ~record.valid
    horizon, envs = over.shape
    starts = [int(np.max(np.flatnonzero(over[:-1, env]), initial=-1)) + 1 for env in range(envs)]
    env = int(np.argmin(starts))
    start = max(starts[env], horizon - LATEST)
    return Window(start, env), horizon - start
