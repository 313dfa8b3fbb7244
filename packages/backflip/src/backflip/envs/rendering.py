"""Pictures that Gymnasium environments draw of themselves, with their own `render()`.

An environment is made again with a `render_mode` before it is drawn, because many choose how to
draw in the constructor. Only the rows of a batch that are drawn are made again: the others, and all
of a run that shows nothing, never start a graphics library. The state of the random generators is
restored after each picture, so that drawing does not change how an environment steps.
"""

import contextlib
import functools
import inspect
import io
import os
import random
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from typing import Any, final

import gymnasium
import numpy as np

from backflip.envs.pictures import NONE, NoPictureError, encoded, frame_of
from runshelf.errors import one_line

MODES = ("rgb_array", "rgb_array_list")  # in the order in which they are tried
# No window, no sound and no greeting of pygame, which many environments draw with.
QUIET = {
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",
}

Make = Callable[..., Any]  # (render_mode=...) -> a new `gymnasium.Env`


@final
class OwnRender:
    """Draws the environments of a batch with their own `render()`.

    Args:
        make: returns a new environment; may refuse the argument `render_mode`.

    Attributes:
        problem: why `render()` gives no pictures; empty if it does, or if there is no render.
        pictures: how many pictures were drawn.
        seconds: how long that took in all.
        size: height and width of the first frame, before it is scaled down; None before it.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._mode: str | None = None
        self.problem = ""
        self.pictures, self.seconds = 0, 0.0
        self.size: tuple[int, int] | None = None

    @property
    def works(self) -> bool:
        """Whether `find_mode` found a render mode and no picture has failed since."""
        return self._mode is not None and not self.problem

    def find_mode(self, plain: Any) -> None:
        """Choose the first render mode that gives a picture of a new environment.

        Args:
            plain: an environment of the batch.
        """
        problems: list[str] = []
        for mode in _declared_modes(plain):
            try:
                with _unseen(), _errors_named():
                    self._try(mode)
            except _CannotDrawError as error:
                problems.append(str(error))
            else:
                self._mode = mode
                return
        self.problem = next(iter(problems), "")

    def made(self) -> Any:
        """Return a new environment that can be drawn, or None and state the problem."""
        assert self._mode is not None
        try:
            with _unseen(), _errors_named():
                return self._made(self._mode)
        except _CannotDrawError as error:
            self.problem = str(error)
            return None

    def picture(self, env: Any) -> bytes:
        """Return a picture of the current state, or none once `render()` has failed."""
        if not self.works:
            return NONE
        began = time.perf_counter()
        try:
            with _unseen(), _random_numbers_kept(env), _errors_named():
                frame = frame_of(_drawn(env, self._mode))
        except _CannotDrawError as error:
            self.problem = str(error)
            return NONE
        self.size = self.size or frame.shape[:2]
        picture = encoded(frame)
        self.pictures += 1
        self.seconds += time.perf_counter() - began
        return picture

    def _try(self, mode: str) -> None:
        """Draw a new environment in a mode."""
        env = self._made(mode)
        try:
            env.reset(seed=0)
            frame_of(_drawn(env, mode))
        finally:
            with contextlib.suppress(Exception, SystemExit):
                env.close()

    def _made(self, mode: str) -> Any:
        """Return a new environment in a mode, also if its constructor takes no `render_mode`."""
        try:
            with _errors_named():
                env = self._make(render_mode=mode)
        except _CannotDrawError:
            env = self._make()
        if env.unwrapped.render_mode != mode:
            with contextlib.suppress(AttributeError):  # a property without a setter
                env.unwrapped.render_mode = mode
        return env


class _CannotDrawError(Exception):
    """An environment cannot be drawn; the message says why."""


def _declared_modes(env: Any) -> list[str]:
    """Return the modes of `MODES` that an environment has; without a declaration, the first."""
    metadata: Any = env.metadata if isinstance(env.metadata, Mapping) else {}
    declared = metadata.get("render_modes") or metadata.get("render.modes")
    if declared:
        return [mode for mode in MODES if mode in declared]
    draws = type(env.unwrapped).render is not gymnasium.Env.render
    return [MODES[0]] if draws else []


def _drawn(env: Any, mode: str | None) -> Any:
    """Return the result of `render()`, which takes a mode in environments written for Gym."""
    takes_mode = "mode" in inspect.signature(env.unwrapped.render).parameters
    return env.unwrapped.render(mode=mode) if takes_mode else env.render()


@contextlib.contextmanager
def _errors_named() -> Generator[None]:
    """Run code of an environment.

    Raises:
        _CannotDrawError: the code raised anything but an interrupt, also SystemExit.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        told = isinstance(error, NoPictureError)
        why = str(error) if told else f"raised {one_line(error)}"
        raise _CannotDrawError(f"its `render()` {why}") from error


@contextlib.contextmanager
def _unseen() -> Generator[None]:
    """Run code of an environment without windows, sound, output, warnings or random numbers.

    The random numbers are those of Python and NumPy that the whole process shares.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  (restored below)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


@contextlib.contextmanager
def _random_numbers_kept(env: Any) -> Generator[None]:
    """Put back the environment's own random generators, whatever `render()` draws from them."""
    owned = [kept for one in vars(env.unwrapped).values() if (kept := _kept(one)) is not None]
    try:
        yield
    finally:
        for put_back in owned:
            put_back()


def _kept(one: object) -> Callable[[], None] | None:
    """Return a function that puts back the state of a random generator; None for other objects."""
    if isinstance(one, random.Random):
        return functools.partial(one.setstate, one.getstate())
    if isinstance(one, np.random.Generator | np.random.RandomState):
        bits: Any = getattr(one, "bit_generator", None) or getattr(one, "_bit_generator")  # noqa: B009
        return functools.partial(setattr, bits, "state", bits.state)
    return None
