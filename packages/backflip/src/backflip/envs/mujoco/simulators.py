"""Many simulators of one MuJoCo model, stepped together on several threads."""

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
SHARE = 4  # fewer simulators than this are not worth waking a thread for

# What the bindings give is only partly typed.
_mujoco: Any = mujoco


@final
class Simulators:
    """N simulators of one model, each with its own data.

    `mj_step` lets other threads run meanwhile, and no simulator knows of another: the states do not
    depend on how many threads there are.

    Args:
        file: the model, by its name among Gymnasium's assets.
        count: N.
        frame_skip: simulator steps in an env step.
        contacts: whether the forces of contacts are wanted, which takes a further pass.
    """

    def __init__(self, file: str, count: int, frame_skip: int, contacts: bool) -> None:
        with _quiet():
            self.model: Any = _mujoco.MjModel.from_xml_path(str(ASSETS / file))
        self.data: list[Any] = [_mujoco.MjData(self.model) for _ in range(count)]
        self._frame_skip, self._contacts = frame_skip, contacts
        self._controls = [data.ctrl for data in self.data]
        self._views: dict[str, list[Any]] = {}
        self._threads = max(1, min(usable_cores(), count // SHARE))
        self._pool: ThreadPoolExecutor | None = None

    @property
    def seconds(self) -> float:
        """How long an env step lasts in the simulators' time."""
        return self.model.opt.timestep * self._frame_skip

    def step(self, rows: Sequence[int], controls: Float[np.ndarray, "N A"]) -> None:
        """Advance the simulators of some rows by an env step."""
        for row in rows:
            self._controls[row][:] = controls[row]
        waiting = iter(rows)  # whichever thread is free takes the next: one that woke late, fewer
        others = [self._workers().submit(self._advance, waiting) for _ in range(self._threads - 1)]
        try:
            self._advance(waiting)
        finally:
            for other in others:
                other.result()

    def place(
        self, row: int, positions: Float[np.ndarray, " Q"], velocities: Float[np.ndarray, " V"]
    ) -> None:
        """Put one simulator at the start of time, at given positions and velocities."""
        data = self.data[row]
        _mujoco.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:] = positions, velocities
        _mujoco.mj_forward(self.model, data)

    def read(self, field: str) -> Shaped[np.ndarray, "N ..."]:
        """Return a copy of one field of every simulator's data."""
        if field not in self._views:  # they stay where they are as long as the data live
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
def _quiet() -> Generator[None]:
    """Keep MuJoCo from writing a file into the current folder about how old a model's words are."""
    _mujoco.set_mju_user_warning(_ignore)
    try:
        yield
    finally:
        _mujoco.set_mju_user_warning(None)


def _ignore(warning: str) -> None:
    del warning
