"""Draws films of clips into a run's folder, for queries that people answer."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import UInt8

from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.envs.pictures import are_pictures
from backflip.envs.views.choose import view_of
from backflip.envs.views.film import Movie, agent_film, film, stills
from backflip.envs.views.view import View
from backflip.preferences.clips import Clip, Window, cut, from_arrays
from backflip.preferences.films import FILMS, Film, has_film, write_film
from backflip.preferences.label_records import Films
from backflip.preferences.labels import LabelStore
from runshelf.store.writing import remove_file

LATEST = 64  # largest number of env steps shown of the agent's latest episode


@final
class Drawer:
    """Draws the clips of one environment.

    Args:
        run_folder: the run's folder; films are saved in its `films/`.
        env_id: the environment's id.
        env_args: arguments of the environment's constructor.
        spec: the environment's spec.

    Attributes:
        spec: the environment's spec.
    """

    def __init__(
        self, run_folder: Path, env_id: str, env_args: Mapping[str, Any], spec: EnvSpec
    ) -> None:
        self._folder, self.spec = run_folder / FILMS, spec
        self._env_id, self._env_args = env_id, env_args
        self._latest: Film | None = None
        self._kept = {path.name for path in self._folder.glob("*.webp")}  # never deleted

    @cached_property
    def _view(self) -> View:
        """The view, made on first use because it may import Gymnasium."""
        return view_of(self._env_id, self.spec, self._env_args)

    def frames(self, clip: Clip) -> UInt8[np.ndarray, "L H W 3"]:
        """Return one picture for each env step of a clip, as people see it."""
        return stills(self._view, clip.obs, clip.next_obs, clip.scene, clip.alive)

    def movie(self, clip: Clip) -> Movie:
        """Return a clip as a person sees it.

        Raises:
            UserFacingError: the simulator cannot draw on this machine.
        """
        return film(self._view, clip.obs, clip.next_obs, clip.scene, clip.alive)

    def films(self, clip: Clip) -> Films:
        """Write and return the films of a clip: as people see it, and as the agent sees it.

        Raises:
            UserFacingError: the disk is full, or the simulator cannot draw on this machine.
        """
        movie = self.movie(clip)
        seen = agent_film(self.spec, clip.obs, clip.alive, movie)
        films: Films = {"person": self._write(movie), "agent": self._write(seen)}
        self._kept |= {film.file for film in films.values()}
        return films

    def latest(self, record: Transition) -> Film | None:
        """Return a film of the agent's latest env steps in a record; the previous one is deleted.

        It stays if a query has the same film: a clip may be the whole latest episode.

        If the record (T', M) has no two consecutive steps of one episode at its end, the previous
        film is returned.
        """
        record = _drawn_envs(record)
        window, length = _longest_ending(record)
        if length < 2:
            return self._latest
        clip = cut(record, window, length)
        shown = self._write(self.movie(clip))
        before, self._latest = self._latest, shown
        if before is not None and before.file not in {shown.file, *self._kept}:
            remove_file(self._folder, before.file)
        return shown

    def redraw_missing(self, store: LabelStore) -> None:
        """Draw missing films of open queries again."""
        for query in store.pending():
            films = store.films(query.id)
            if any(not has_film(self._folder, film) for side in films for film in side.values()):
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


def _drawn_envs(record: Transition) -> Transition:
    """Return the record of the first environments, as many as have pictures at its end.

    If none has, or no pictures are needed, that is the whole record.
    """
    count = sum(map(bool, record.scene[-1])) if are_pictures(record.scene) else 0
    if not count:
        return record
    first = {name: x[:, :count] for name, x in record._asdict().items() if name != "extra"}
    return record._replace(**first)


def _longest_ending(record: Transition) -> tuple[Window, int]:
    """Return start and length of the longest part of one episode that reaches the record's end.

    Invalid rows, on which an environment was only reset, separate episodes.
    """
    over = record.terminated | record.truncated | ~record.valid
    horizon, envs = over.shape
    starts = [int(np.max(np.flatnonzero(over[:-1, env]), initial=-1)) + 1 for env in range(envs)]
    env = int(np.argmin(starts))
    start = max(starts[env], horizon - LATEST)
    return Window(start, env), horizon - start
