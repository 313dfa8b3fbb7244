"""View of MuJoCo environments of Gymnasium and dm_control, drawn by MuJoCo in a worker process.

MuJoCo chooses its drawing library when it is first imported, which may have happened already in
this process, and a crashing graphics driver ends its process. So each view starts a process of
`backflip.envs.views.mujoco_worker` and communicates with it over pipes.
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
from backflip.envs.views.recorded_states import RecordedStates
from backflip.envs.views.view import HEIGHT, WIDTH, View, mix
from runshelf.errors import UsageError, UserFacingError

ENTRY_POINT = "gymnasium.envs.mujoco."
WORKER = "backflip.envs.views.mujoco_worker"
# Tested on a minimal Debian 12: EGL needs both packages (PyOpenGL fails without libgl1), OSMesa
# needs only libosmesa6. Mesa's drivers are installed as dependencies.
PACKAGES = "apt-get install libegl1 libgl1, or libosmesa6"
START_SECONDS = 120.0  # timeout of the first picture
FRAME_SECONDS = 10.0  # additional timeout of each picture


def is_mujoco(name: str) -> bool:
    """Return whether an id is one of Gymnasium's MuJoCo environments."""
    import gymnasium  # noqa: PLC0415  (takes a second to import)

    spec = gymnasium.registry.get(name)
    return spec is not None and str(spec.entry_point).startswith(ENTRY_POINT)


@dataclass(frozen=True)
class Model:
    """Facts about a MuJoCo model.

    Attributes:
        seconds: duration of an env step.
        numbers: how many numbers a scene has.
        quaternions: index of the first number of each quaternion in a scene.
    """

    seconds: float
    numbers: int
    quaternions: list[int]


@final
class MujocoView(RecordedStates):
    """Poses are the simulator's positions and velocities.

    The process starts with the first call of `draw` or `step_seconds`.

    Args:
        spec: the environment's specification.
        name: Gymnasium's id, or `dm_control:` and a task.
        env_args: the environment's constructor arguments.
    """

    def __init__(self, spec: EnvSpec, name: str, env_args: Mapping[str, Any]) -> None:
        self._spec, self._name, self._env_args = spec, name, dict(env_args)
        self._worker: _Worker | None = None
        self._lock = threading.Lock()  # web pages call this from several threads
        self.pixelated = False
        self.fallback: View = NumbersView(spec)

    def step_seconds(self) -> float:
        """Return the duration of an env step in the simulator's time."""
        return self._model.seconds

    @property
    def started(self) -> bool:
        """Whether the drawing process is running."""
        return self._worker is not None and self._worker.alive

    @property
    def library(self) -> str:
        """The library that MuJoCo draws with, as in MUJOCO_GL."""
        with self._lock:
            return self._started().library

    def between(
        self,
        before: Float[np.ndarray, "F S"],
        after: Float[np.ndarray, "F S"],
        share: Float[np.ndarray, " F"],
    ) -> Float[np.ndarray, "F S"]:
        """Return linear interpolations with normalised quaternions."""
        after = after.copy()
        places = [slice(start, start + 4) for start in self._model.quaternions]
        for place in places:  # q and -q are the same rotation; the nearer one is the shorter turn
            opposite = (before[:, place] * after[:, place]).sum(1, keepdims=True) < 0
            after[:, place] *= np.where(opposite, -1.0, 1.0)
        states = mix(before, after, share)
        for place in places:
            states[:, place] /= np.linalg.norm(states[:, place], axis=1, keepdims=True)
        return states

    def draw(self, poses: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per pose, drawn by MuJoCo.

        Raises:
            UsageError: no library is installed that MuJoCo can draw with.
            UserFacingError: the drawing process failed.
        """
        refuse_other_model(self._name, poses.shape[1], self._model.numbers)
        with self._lock:
            worker = self._started()
            return worker.draw(np.asarray(poses, np.float64, order="C"))

    def close(self) -> None:
        """End the drawing process; the next picture starts a new one."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    @property
    def _model(self) -> Model:
        with self._lock:
            return self._started().model

    def _started(self) -> "_Worker":
        """Return the drawing process; start it with the first library that works."""
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
            f"`{self._name}` cannot be drawn: MuJoCo finds no graphics library "
            f"({'; '.join(reasons)}); try: {PACKAGES}{unset}"
        )


def refuse_other_model(name: str, numbers: int, expected: int) -> None:
    """Refuse scenes that have another count of numbers than the model of an environment.

    Raises:
        UserFacingError: they have.
    """
    if numbers != expected:
        raise UserFacingError(
            f"a scene of `{name}` has {numbers} numbers, but its model has {expected}: was it "
            "recorded with other --env-arg?"
        )


def _libraries() -> list[str]:
    """Return the values of MUJOCO_GL to try: the user's own choice, or the defaults in order."""
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
        env_args: the environment's constructor arguments.
        library: the library that MuJoCo should draw with.

    Raises:
        _CannotDrawError: MuJoCo cannot draw with it, or the process crashed.
        UserFacingError: the environment cannot be created.
    """

    def __init__(self, name: str, env_args: Mapping[str, Any], library: str) -> None:
        self._name, self.library = name, library
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (kept open)
        self._process = subprocess.Popen(
            # -P: modules in the current folder must not shadow installed ones.
            [sys.executable, "-P", "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_worker_environ(library),
            bufsize=0,
        )
        # Ends the process with this object or with the interpreter.
        self._end = weakref.finalize(self, _end, self._process, self._stderr)
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
            raise UserFacingError(f"`{name}` cannot be created for drawing: {text}")
        self.model = Model(**json.loads(text))

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def draw(self, states: Float[np.ndarray, "F S"]) -> UInt8[np.ndarray, "F H W 3"]:
        """Return one frame per state."""
        timeout = START_SECONDS + FRAME_SECONDS * len(states)
        answer = self._ask(Message(ASK_DRAW, states.tobytes()), timeout)
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
            UserFacingError: the process gave no answer and was ended.
        """
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        try:
            send(asking.fileno(), message)
            return receive(answering.fileno(), seconds)
        except TimeoutError as error:
            what = f"gave no answer for {seconds:.0f} s"
            cause: Exception = error
        except (EOFError, OSError) as error:
            what = f"ended with status {_status(self._process)}{self._last_error()}"
            cause = error
        self.close()
        raise UserFacingError(f"the process that draws `{self._name}` {what}") from cause

    def _last_error(self) -> str:
        """Return the last line of the process's standard error after a colon, or nothing."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        return f": {written[-1][:120]}" if written else ""


def _worker_environ(library: str) -> dict[str, str]:
    """Return the environment variables of a process in which MuJoCo draws with `library`."""
    # Importing mujoco sets PYOPENGL_PLATFORM to the library of this process.
    kept = {k: v for k, v in os.environ.items() if k != "PYOPENGL_PLATFORM"}
    return kept | {"MUJOCO_GL": library}


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status of a process that closed its pipes; None if it is still running."""
    try:
        return process.wait(5)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout, stderr):
        if file is not None:
            file.close()


def _absolute(env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with relative paths made absolute, if they start with `.`."""
    return {
        name: str(Path(value).resolve())
        if isinstance(value, str) and value.startswith(".")
        else value
        for name, value in env_args.items()
    }
