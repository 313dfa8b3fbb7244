"""The process that draws MuJoCo's pictures: `python -m backflip.envs.views.mujoco_worker`.

Messages on standard input and output have one byte for the kind, eight for the length, and the
content. A request to make an environment (JSON) is answered with the model's facts (JSON). A
request to draw states (float64) is answered with frames (uint8). Either may be answered with an
error message.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import struct
import tempfile
import time
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, UInt8

from backflip.envs.ids import CONTROL_PREFIX

ASK_MAKE, ASK_DRAW = b"M", b"D"
ANSWER_MADE, ANSWER_FRAMES, ANSWER_FAILED, ANSWER_UNDRAWABLE = b"m", b"d", b"f", b"u"
HEADER = struct.Struct("<cQ")
BALL_JOINT, FREE_JOINT = 1, 0  # MuJoCo's mjtJoint
TRACKING = "track"  # name of the camera that follows the body, if the model has one
CAMERA_ARGS = {"camera_id", "camera_name"}


class Message(NamedTuple):
    """A message: one of the kinds above, and the content."""

    kind: bytes
    content: bytes


def send(pipe: int, message: Message) -> None:
    """Write a whole message."""
    data = memoryview(HEADER.pack(message.kind, len(message.content)) + message.content)
    while data:
        data = data[os.write(pipe, data) :]


def receive(pipe: int, seconds: float | None = None) -> Message:
    """Read a message.

    Raises:
        EOFError: the other side closed the pipe.
        TimeoutError: the message was not complete within `seconds`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    kind, length = HEADER.unpack(_read(pipe, HEADER.size, deadline))
    return Message(kind, _read(pipe, length, deadline))


def _read(pipe: int, count: int, deadline: float | None) -> bytes:
    parts: list[bytes] = []
    while count:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        if not select.select([pipe], [], [], left)[0]:
            raise TimeoutError
        parts.append(os.read(pipe, min(count, 1 << 20)))
        if not parts[-1]:
            raise EOFError
        count -= len(parts[-1])
    return b"".join(parts)


class _NothingToDrawWith(Exception):
    """MuJoCo cannot draw with the library that the environment variable MUJOCO_GL names."""


def _serve(requests: int, answers: int) -> NoReturn:
    """Answer requests until the other side closes the pipe."""
    picture: Any = None
    while True:
        asked = receive(requests)
        try:
            if asked.kind == ASK_MAKE:
                picture, facts = _made(json.loads(asked.content))
                answer = Message(ANSWER_MADE, json.dumps(facts).encode())
            else:
                answer = Message(ANSWER_FRAMES, _drawn(picture, asked.content).tobytes())
        except _NothingToDrawWith as error:
            answer = Message(ANSWER_UNDRAWABLE, str(error).encode())
        except Exception as error:  # noqa: BLE001  (sent to the other process)
            answer = Message(ANSWER_FAILED, _one_line(error).encode())
        send(answers, answer)


@runtime_checkable
class _Picture(Protocol):
    """Draws states of one model.

    Attributes:
        model: MuJoCo's model.
        seconds: duration of an env step.
        start: an initial state, which shows how many numbers a state has.
    """

    model: Any
    seconds: float
    start: Float[np.ndarray, " S"]

    def draw(self, state: Float[np.ndarray, " S"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return a picture of a state."""
        ...


class _GymnasiumPicture:
    """Draws positions and velocities of one of Gymnasium's MuJoCo environments."""

    def __init__(self, name: str, args: dict[str, Any], size: dict[str, int]) -> None:
        mujoco: Any = importlib.import_module("mujoco")
        make: Any = importlib.import_module("gymnasium").make
        env = make(name, render_mode="rgb_array", disable_env_checker=True, **(args | size))
        self._env: Any = env.unwrapped
        self.model: Any = self._env.model
        self.seconds = float(self._env.dt)
        camera = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_CAMERA, TRACKING)
        if camera >= 0 and not CAMERA_ARGS & args.keys():
            # Gymnasium's default camera does not move, so a running robot leaves the picture.
            self._env.mujoco_renderer.camera_id = camera
        # The default camera looks at the position of the first picture.
        self.start = np.concatenate([self._env.init_qpos, self._env.init_qvel])

    def draw(self, state: Float[np.ndarray, " S"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return a picture of a state of positions and velocities."""
        positions = int(self.model.nq)
        self._env.set_state(state[:positions], state[positions:])
        return self._env.render()


class _ControlPicture:
    """Draws states of a task of dm_control."""

    def __init__(self, name: str, args: dict[str, Any], size: dict[str, int]) -> None:
        del args  # only a time limit
        self._task: Any = importlib.import_module("backflip.envs.dm_control").ControlTask(name)
        self._size = size
        self.model: Any = self._task.physics.model
        self.seconds: float = self._task.seconds
        self.start: np.ndarray = self._task.drawing_state()

    def draw(self, state: Float[np.ndarray, " S"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return a picture of a state of positions, velocities and target positions."""
        return self._task.draw(state, **self._size)


def _made(wanted: dict[str, Any]) -> tuple[_Picture, dict[str, Any]]:
    """Return an object that can draw, tested with a first picture, and its model's facts."""
    try:
        importlib.import_module("mujoco")  # the import chooses the drawing library
    except ModuleNotFoundError:
        raise
    except Exception as error:  # a broken library may raise any exception
        raise _NothingToDrawWith(_one_line(error)) from error
    # JSON has turned tuples into lists.
    args = {k: tuple(v) if isinstance(v, list) else v for k, v in wanted["args"].items()}
    size = {"width": wanted["width"], "height": wanted["height"]}
    name = wanted["name"]
    kind = _ControlPicture if name.startswith(CONTROL_PREFIX) else _GymnasiumPicture
    picture = kind(name.removeprefix(CONTROL_PREFIX), args, size)
    try:
        picture.draw(picture.start)
    except Exception as error:
        raise _NothingToDrawWith(_one_line(error)) from error
    return picture, _facts(picture)


def _facts(picture: _Picture) -> dict[str, Any]:
    """Return the fields of `backflip.envs.views.mujoco.Model`."""
    model = picture.model
    joints = zip(model.jnt_type.tolist(), model.jnt_qposadr.tolist(), strict=True)
    # A free joint has a position and a quaternion; a ball joint has a quaternion.
    quaternions = [
        at + 3 * (kind == FREE_JOINT) for kind, at in joints if kind in (FREE_JOINT, BALL_JOINT)
    ]
    return {"seconds": picture.seconds, "numbers": picture.start.size, "quaternions": quaternions}


def _drawn(picture: _Picture, states: bytes) -> UInt8[np.ndarray, "F H W 3"]:
    """Return one frame per state."""
    rows = np.frombuffer(states, np.float64).reshape(-1, picture.start.size)
    return np.stack([picture.draw(row) for row in rows])


def _one_line(error: BaseException) -> str:
    """Return kind and message of an error as one line of at most 120 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def main() -> None:
    """Serve requests on standard input and output until the other process closes them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the other process
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # keeps output of libraries separate from the answers
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # MuJoCo writes a log of its warnings into the current folder
        with contextlib.suppress(EOFError, BrokenPipeError):
            _serve(requests, answers)


if __name__ == "__main__":
    main()
