"""A batch of simulators of one MuJoCo model, stepped on several threads."""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

import gymnasium
import mujoco
import numpy as np
from jaxtyping import Float, Shaped

from runshelf.cores import usable_cores

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
SHARE = 4  # least number of simulators per thread

# MuJoCo's bindings are only partly typed.
_mujoco: Any = mujoco


@final
class Simulators:
    """N independent simulators of one model.

    `mj_step` releases Python's global lock. States do not depend on the number of threads.

    Args:
        file: the model's file name in Gymnasium's assets.
        count: N.
        frame_skip: simulator steps per env step.
        contacts: whether to compute contact forces, which needs an additional pass.
    """

    def __init__(self, file: str, count: int, frame_skip: int, contacts: bool) -> None:
        with quiet():
            self.model: Any = _mujoco.MjModel.from_xml_path(str(ASSETS / file))
        self.data: list[Any] = [_mujoco.MjData(self.model) for _ in range(count)]
        self._frame_skip, self._contacts = frame_skip, contacts
        self._controls = [data.ctrl for data in self.data]
        self._views: dict[str, list[Any]] = {}
        self._threads = max(1, min(usable_cores(), count // SHARE))
        self._pool: ThreadPoolExecutor | None = None

    @property
    def seconds(self) -> float:
        """The duration of an env step in simulated time."""
        return self.model.opt.timestep * self._frame_skip

    def step(self, rows: Sequence[int], controls: Float[np.ndarray, "N A"]) -> None:
        """Advance the simulators of `rows` by one env step."""
        for row in rows:
            self._controls[row][:] = controls[row]
        waiting = iter(rows)  # shared by the threads, so that each takes the next row when free
        others = [self._workers().submit(self._advance, waiting) for _ in range(self._threads - 1)]
        try:
            self._advance(waiting)
        finally:
            for other in others:
                other.result()

    def place(
        self, row: int, positions: Float[np.ndarray, " Q"], velocities: Float[np.ndarray, " V"]
    ) -> None:
        """Reset one simulator to time 0 with the given positions and velocities."""
        data = self.data[row]
        _mujoco.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:] = positions, velocities
        _mujoco.mj_forward(self.model, data)

    def read(self, field: str) -> Shaped[np.ndarray, "N ..."]:
        """Return a copy of one field of every simulator's data."""
        if field not in self._views:  # views stay valid as long as the data
            self._views[field] = [getattr(data, field) for data in self.data]
        views = self._views[field]
        return np.concatenate(views).reshape(len(views), *views[0].shape)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _advance(self, rows: Iterator[int]) -> None:
        for row in rows:
            _mujoco.mj_step(self.model, self.data[row], self._frame_skip)
            if self._contacts:
                _mujoco.mj_rnePostConstraint(self.model, self.data[row])

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1, thread_name_prefix="mujoco")
        return self._pool


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Keep MuJoCo from writing warnings about outdated model syntax into the current folder."""
    _mujoco.set_mju_user_warning(_ignore)
    try:
        yield
    finally:
        _mujoco.set_mju_user_warning(None)


def _ignore(warning: str) -> None:
    del warning
