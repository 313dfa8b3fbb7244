"""MuJoCo environments, Gymnasium's and dm_control's, drawn by MuJoCo in a process of its own.

MuJoCo decides how to draw when it is first imported, and by then the process that asks may have
imported it without any thought of pictures. A driver that crashes takes its process along, too. So
`backflip.envs.views.mujoco_worker` draws, one process for each view, and is asked over pipes.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from jaxtyping import Float, UInt8

from backflip.core.spec import EnvSpec
from backflip.envs.views.mujoco_worker import (
    ANSWER_FRAMES,
    ANSWER_MADE,
    ANSWER_UNDRAWABLE,
    ASK_DRAW,
    ASK_MAKE,
    Message,
    receive,
    send,
)
from backflip.envs.views.numbers import NumbersView
from backflip.envs.views.view import HEIGHT, WIDTH, View, mix
from runshelf.errors import UsageError, UserFacingError

ENTRY_POINT = "gymnasium.envs.mujoco."
WORKER = "backflip.envs.views.mujoco_worker"
# Seen on bare Debian 12: EGL wants both of these (without libgl1 PyOpenGL fails), OSMesa only its
# own libosmesa6, and each brings Mesa's drivers along.
PACKAGES = "apt-get install libegl1 libgl1, or libosmesa6"
START_SECONDS = 120.0  # the longest to wait for a first picture
FRAME_SECONDS = 10.0  # the longest to wait for each later one


def is_mujoco(name: str) -> bool:
    """Return whether a Gymnasium id is one of Gymnasium's own MuJoCo environments."""
    import gymnasium  # noqa: PLC0415  (takes a second to import)

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(ENTRY_POINT)


@dataclass(frozen=True)
class Model:
    """What the simulator says of a model.

    Attributes:
        seconds: how long an env step lasts.
        numbers: how many a scene has.
        quaternions: where in it each turn in space begins.
    """

    seconds: float
    numbers: int
    quaternions: list[int]


@final
class MujocoView:
    """Poses are the simulator's positions and velocities.

    Nothing is started before the first picture, or the first question of how long a step lasts.

    Args:
        spec: the environment's public facts.
        name: Gymnasium's id, or `dm_control:` and a task.
        env_args: what it is made with.
    """

    def __init__(self, spec: EnvSpec, name: str, env_args: Mapping[str, Any]) -> None:
        self._spec, self._name, self._env_args = spec, name, dict(env_args)
        self._worker: _Worker | None = None
        self._lock = threading.Lock()  # pages are served by several threads

    def step_seconds(self) -> float:
        """Return how long an env step lasts in the simulator's time."""
        return self._model.seconds

    @property
    def interpolates(self) -> bool:
        """There are poses between poses."""
        return True

    @property
    def pixelated(self) -> bool:
        """Frames are smooth."""
        return False

    @property
    def fallback(self) -> View:
        """Bars."""
        return NumbersView(self._spec)

    @property
    def started(self) -> bool:
        """Whether there is a drawing process."""
        return self._worker is not None and self._worker.alive

    @property
    def library(self) -> str:
        """What MuJoCo draws with, as MUJOCO_GL names it."""
        with self._lock:
            return self._started().library

    def poses(
        self,
        obs: Float[np.ndarray, "n ..."],
        next_obs: Float[np.ndarray, "n ..."],
        scene: Float[np.ndarray, "n S"],
    ) -> Float[np.ndarray, "n S"]:
        """Return the simulator's states as they were recorded; that after the last step was not."""
        del obs, next_obs
        return scene.astype(np.float64)

    def between(
        self,
        before: Float[np.ndarray, "F S"],
        after: Float[np.ndarray, "F S"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F S"]:
        """Return states on straight lines, where turns in space stay turns."""
        after = after.copy()
        places = [slice(start, start + 4) for start in self._model.quaternions]
        for place in places:  # q and -q are one turn; the nearer one is the short way round
            opposite = (before[:, place] * after[:, place]).sum(1, keepdims=True) < 0
            after[:, place] *= np.where(opposite, -1.0, 1.0)
        states = mix(before, after, share)
        for place in places:
            states[:, place] /= np.linalg.norm(states[:, place], axis=1, keepdims=True)
        return states

    def draw(self, poses: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return what the simulator draws.

        Raises:
            UsageError: nothing is installed that MuJoCo could draw with.
            UserFacingError: the drawing process failed.
        """
        if poses.shape[1] != self._model.numbers:
            raise UserFacingError(
                f"a scene of `{self._name}` has {poses.shape[1]} numbers, its model "
                f"{self._model.numbers}: was it recorded with other --env-arg?"
            )
        with self._lock:
            worker = self._started()
            return worker.draw(np.asarray(poses, np.float64, order="C"))

    def close(self) -> None:
        """End the drawing process; another picture starts a new one."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    @property
    def _model(self) -> Model:
        with self._lock:
            return self._started().model

    def _started(self) -> "_Worker":
        """Return the drawing process, started with whatever it can draw with."""
        if self._worker is not None and self._worker.alive:
            return self._worker
        reasons: list[str] = []
        for library in _libraries():
            try:
                self._worker = _Worker(self._name, self._env_args, library)
            except _CannotDrawError as error:
                reasons.append(f"{library}: {error}")
            else:
                return self._worker
        unset = ", or unset MUJOCO_GL" if os.environ.get("MUJOCO_GL") else ""
        raise UsageError(
            f"`{self._name}` cannot be drawn, MuJoCo finds nothing to draw with "
            f"({'; '.join(reasons)}); try: {PACKAGES}{unset}"
        )


def _libraries() -> list[str]:
    """Return what MUJOCO_GL may be, the person's own choice or else the better one first."""
    chosen = os.environ.get("MUJOCO_GL")
    if chosen:
        return [chosen]
    return ["egl", "osmesa"] if sys.platform == "linux" else ["glfw"]


class _CannotDrawError(Exception):
    """MuJoCo cannot draw with this library."""


@final
class _Worker:
    """One drawing process.

    Args:
        name: Gymnasium's id, or `dm_control:` and a task.
        env_args: what the environment is made with.
        library: what MuJoCo is to draw with.

    Raises:
        _CannotDrawError: it cannot, or the process crashed trying.
        UserFacingError: the environment cannot be made.
    """

    def __init__(self, name: str, env_args: Mapping[str, Any], library: str) -> None:
        self._name, self.library = name, library
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (kept open)
        self._process = subprocess.Popen(
            # -P: no module of the folder we are in may stand in for one of ours.
            [sys.executable, "-P", "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=_surroundings(library),
            bufsize=0,
        )
        # However the view ends, the process does: with it, or with the interpreter.
        self._end = weakref.finalize(self, _end, self._process, self._complaints)
        wanted = {"name": name, "args": _absolute(env_args), "width": WIDTH, "height": HEIGHT}
        try:
            answer = self._ask(Message(ASK_MAKE, json.dumps(wanted).encode()), START_SECONDS)
        except UserFacingError as error:
            raise _CannotDrawError(str(error)) from error
        text = answer.content.decode()
        if answer.kind != ANSWER_MADE:
            self.close()
            if answer.kind == ANSWER_UNDRAWABLE:
                raise _CannotDrawError(text)
            raise UserFacingError(f"`{name}` cannot be made to be drawn: {text}")
        self.model = Model(**json.loads(text))

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def draw(self, states: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return a frame of each state."""
        patience = START_SECONDS + FRAME_SECONDS * len(states)
        answer = self._ask(Message(ASK_DRAW, states.tobytes()), patience)
        if answer.kind != ANSWER_FRAMES:
            raise UserFacingError(f"`{self._name}` cannot be drawn: {answer.content.decode()}")
        frames = np.frombuffer(answer.content, np.uint8)
        return frames.reshape(len(states), HEIGHT, WIDTH, 3)

    def close(self) -> None:
        """End the process."""
        self._end()

    def _ask(self, message: Message, seconds: float) -> Message:
        """Return the answer to a message.

        Raises:
            UserFacingError: there was none; the process is gone.
        """
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        try:
            send(asking.fileno(), message)
            return receive(answering.fileno(), seconds)
        except TimeoutError as error:
            what = f"said nothing for {seconds:.0f} s"
            cause: Exception = error
        except (EOFError, OSError) as error:
            what = f"ended with status {_status(self._process)}{self._last_words()}"
            cause = error
        self.close()
        raise UserFacingError(f"the process that draws `{self._name}` {what}") from cause

    def _last_words(self) -> str:
        """Return the last line it wrote to its standard error, after a colon, or nothing."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1][:120]}" if said else ""


def _surroundings(library: str) -> dict[str, str]:
    """Return the environment variables of a process in which MuJoCo draws with `library`."""
    # PYOPENGL_PLATFORM: importing mujoco sets it, to what this process would have drawn with.
    kept = {k: v for k, v in os.environ.items() if k != "PYOPENGL_PLATFORM"}
    return kept | {"MUJOCO_GL": library}


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status of a process that has closed its pipes; None if it does not end."""
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout, complaints):
        if file is not None:
            file.close()


def _absolute(env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the paths among them, as Gymnasium tells them, made absolute."""
    return {
        name: str(Path(value).resolve())
        if isinstance(value, str) and value.startswith(".")
        else value
        for name, value in env_args.items()
    }
