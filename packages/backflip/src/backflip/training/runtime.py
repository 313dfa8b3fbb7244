"""Configuration of JAX for a run, and the folders of a run."""

import contextlib
import ctypes
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax

from backflip.core.paths import default_home
from runshelf.cores import usable_cores

SHORTEST_CACHED_SECONDS = 0.1
M_ARENA_MAX = -8  # of glibc's malloc.h


def prepare() -> None:
    """Configure JAX to use all cores, to cache compiled programs on disk, and for a GPU.

    There is one CPU device for each usable core, unless a number is set or JAX was used before.
    The cache is `$XDG_CACHE_HOME/backflip/jax`, or JAX_COMPILATION_CACHE_DIR if set. Where it holds
    an unfinished entry, the program is compiled without a warning. A GPU computes in float32, and
    gives memory as it is needed, unless JAX_DEFAULT_MATMUL_PRECISION or
    XLA_PYTHON_CLIENT_PREALLOCATE says otherwise.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    config: Any = jax.config  # pyright does not know its options
    if config.jax_num_cpu_devices < 1:
        with contextlib.suppress(RuntimeError):  # JAX was used before
            jax.config.update("jax_num_cpu_devices", usable_cores())
    _prepare_cache()
    _expect_unfinished_entries()
    _share_free_memory()
    _compute_in_float32()


class Place(NamedTuple):
    """The folders of a run, fixed before its environment may change the current folder.

    Attributes:
        home: the folder that has `runs/`.
        cwd: the current folder at the start, whose code is saved.
    """

    home: Path
    cwd: Path


def place_of(home: Path | str | None) -> Place:
    """Return the folders of a new run, in `home` or the default home."""
    cwd = Path.cwd()
    return Place(cwd / (default_home() if home is None else home), cwd)


def peak_memory_mib() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _share_free_memory() -> None:
    """Limit glibc to two memory pools shared by all threads.

    With a pool for each thread, four seeds of `teach dot` need 500 MiB more.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def _compute_in_float32() -> None:
    """Multiply matrices of float32 in float32, on a GPU, too.

    JAX rounds their entries to the 10 bits of TF32 there. Then what is computed in two ways differs
    by thousandths, and the doctor compares such numbers (docs/log.md, 2026-11-27, a GPU).
    """
    config: Any = jax.config
    if config.jax_default_matmul_precision is None and jax.default_backend() != "cpu":
        jax.config.update("jax_default_matmul_precision", "float32")


def _prepare_cache() -> None:
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(caches / "backflip" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_CACHED_SECONDS)


def _expect_unfinished_entries() -> None:
    """Ignore JAX's warning about an entry that another process still writes, or was killed writing.

    JAX writes entries in place, so runs that start at the same moment read parts of them.
    """
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry")
