"""Reads recorded trajectories from a `.npz` file, which may come from another person.

Fields, with one row for each of N steps, in the order of their trajectories:

    observations        (N, ...) before the steps; or (N + E, ...) with the last observation of each
                        of the E trajectories, then without `next_observations`
    next_observations   (N, ...) after the steps
    actions             (N, ...)
    terminations        (N,) the step ended the episode by the task's own rule
    truncations         (N,) something else ended it, such as a time limit
    rewards             (N,) optional; the true rewards, which oracles compare
    environment         () optional; the id of the environment, as text

Observations and actions are in the environment's own spaces; those of Dict and Tuple spaces are
flattened. Other fields are ignored. Nothing is unpickled.
"""

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from numpy.lib import format as npy

from backflip.core.spec import EnvSpec
from backflip.preferences.trajectories import (
    Trajectories,
    joined,
    seen_as_learned,
    taken_as_learned,
)
from runshelf.errors import UsageError, UserFacingError, did_you_mean, one_line
from runshelf.store.paths import exists, is_file

SUFFIX = ".npz"
NEEDED = ("observations", "actions", "terminations", "truncations")
OPTIONAL = ("next_observations", "rewards")
ENVIRONMENT = "environment"
LONGEST_ID = 1_000  # characters
MIB = 2**20
ROW_BYTES = 32  # of a step, without its observations: indices, reward, flags
SHARE = 0.8  # of the free memory
# What reading a damaged archive raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_trajectories(path: Path, spec: EnvSpec, option: str = "--clips") -> Trajectories:
    """Return the trajectories of a file, checked against an environment.

    Args:
        path: the file.
        spec: the environment's spec.
        option: the option that names the file, for messages.

    Raises:
        UsageError: the file is missing, damaged, incomplete or too large, or its data does not fit
            the environment.
    """
    if path.suffix != SUFFIX or not is_file(path):
        raise UsageError(
            f"{option} must be a `{SUFFIX}` file of trajectories or minari:ID, got `{path}`"
            + ("" if exists(path) else ", which does not exist")
        )
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, spec)
    except UserFacingError as error:
        raise UsageError(f"`{path}`: {error}") from error
    except _DAMAGE as error:
        raise UsageError(f"`{path}` cannot be read: {one_line(error)}") from error


def refuse_too_large(rows: int, spec: EnvSpec, raw: int) -> None:
    """Refuse observations that do not fit into memory, before it is taken.

    Args:
        rows: the number of observations.
        spec: the environment's spec.
        raw: bytes of the largest array as it is stored.

    Raises:
        UsageError: they need more than 80 % of the free memory.
    """
    box = spec.observation
    frame = math.prod(box.shape) // spec.frame_stack * box.dtype.itemsize
    need = raw + rows * (frame + ROW_BYTES)
    free = psutil.virtual_memory().available
    if need > SHARE * free:
        raise UsageError(
            f"{rows:,} recorded observations need {need / MIB:,.0f} MiB, and {free / MIB:,.0f} MiB "
            "are free: record fewer steps, or cut the data"
        )


def _read(archive: zipfile.ZipFile, spec: EnvSpec) -> Trajectories:
    headers = _headers(archive)
    _refuse_other_environment(archive, spec)
    _refuse_other_lengths(headers)
    rows = sum(headers[name].shape[0] for name in headers if name.endswith("observations"))
    refuse_too_large(rows, spec, max(header.bytes for header in headers.values()))

    def load(name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as file:
            return npy.read_array(file, allow_pickle=False)

    terminated, truncated = (flags(load(name), name) for name in NEEDED[2:])
    reward = rewards(load("rewards")) if "rewards" in headers else None
    action = taken_as_learned(spec, load("actions"), "actions")
    obs = seen_as_learned(spec, load("observations"), "observations")
    after = None
    if "next_observations" in headers:
        after = seen_as_learned(spec, load("next_observations"), "next_observations")
    return joined(obs, after, action, reward, terminated, truncated)


def flags(array: np.ndarray, name: str) -> np.ndarray:
    """Return flags as booleans.

    Raises:
        UsageError: a value is neither 0 nor 1.
    """
    if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise UsageError(f"`{name}` must be one flag for each step, 0 or 1")
    return array.astype(bool)


def rewards(array: np.ndarray) -> np.ndarray:
    """Return rewards as float32.

    Raises:
        UsageError: they are not finite numbers, one for each step.
    """
    if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise UsageError("`rewards` must be one finite number for each step")
    with np.errstate(over="ignore"):
        found = array.astype(np.float32)
    if not np.isfinite(found).all():
        raise UsageError("`rewards` has numbers that are too large")
    return found


def _headers(archive: zipfile.ZipFile) -> dict[str, _Header]:
    """Return shape and dtype of each known field, without reading the data.

    Raises:
        UsageError: a field is missing, has objects, or is not as long as its header says.
    """
    names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if missing := [name for name in NEEDED if name not in names]:
        others = [name for name in names if name not in (*NEEDED, *OPTIONAL)]
        hint = did_you_mean(missing[0], others)
        listed = ", ".join(names[:10]) or "nothing"
        raise UsageError(f"`{missing[0]}` is missing{hint}; the file has {listed}")
    return {name: _header(archive, name) for name in (*NEEDED, *OPTIONAL) if name in names}


def _refuse_other_environment(archive: zipfile.ZipFile, spec: EnvSpec) -> None:
    """Refuse a file whose `environment` is another one; other contents of the field are ignored.

    Raises:
        UsageError: it is such a file.
    """
    member = f"{ENVIRONMENT}.npy"
    if member not in archive.namelist() or archive.getinfo(member).file_size > 5 * LONGEST_ID:
        return
    with archive.open(member) as file:
        header = _parsed(file)
    if header is None or header.dtype.kind != "U" or header.shape:
        return
    with archive.open(member) as file:
        recorded = str(npy.read_array(file, allow_pickle=False))
    if recorded != spec.id:
        raise UsageError(f"it was recorded in `{recorded}`, not in `{spec.id}`")


def _header(archive: zipfile.ZipFile, name: str) -> _Header:
    member = f"{name}.npy"
    with archive.open(member) as file:
        header = _parsed(file)
        begins = file.tell()
    if header is None or header.dtype.kind not in "biuf":
        got = "records" if header is None or header.dtype.names else header.dtype
        raise UsageError(f"`{name}` must be an array of numbers, got {got}")
    if not header.shape:
        raise UsageError(f"`{name}` must have one row for each step, got a single number")
    if min(header.shape) < 0 or archive.getinfo(member).file_size != begins + header.bytes:
        raise UsageError(f"`{name}` is damaged: it is not as long as its header says")
    return header


def _parsed(file: Any) -> _Header | None:
    """Return the header of an array; None if its format is one for objects only."""
    readers: Mapping[tuple[int, int], Any] = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
    }
    reader = readers.get(npy.read_magic(file))
    if reader is None:
        return None
    shape, _, dtype = reader(file)
    return _Header(tuple(shape), dtype)


def _refuse_other_lengths(headers: Mapping[str, _Header]) -> None:
    """Refuse fields that do not have one row for each step, and files without steps.

    Raises:
        UsageError: it is such a file.
    """
    steps = headers["actions"].shape[0]
    if steps < 1:
        raise UsageError("there are no steps: `actions` is empty")
    for name in headers:
        rows = headers[name].shape[0]
        if rows != steps and (name != "observations" or rows < steps):
            raise UsageError(f"`{name}` has {rows} rows, and `actions` has {steps}")
