"""How JAX is set up for a run, and where the run belongs."""

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax

from runshelf.cores import usable_cores

SHORTEST_CACHED_SECONDS = 0.1
M_ARENA_MAX = -8  # of glibc's malloc.h


def prepare() -> None:
    """Let seeds run on all cores and compiled programs outlive the process.

    One CPU device per usable core, unless a number is set or JAX has been used already; compiled
    programs go to `$XDG_CACHE_HOME/backflip/jax`, unless JAX_COMPILATION_CACHE_DIR names a place.
    """
    config: Any = jax.config  # its options are no declared attributes
    if config.jax_num_cpu_devices < 1:
        with contextlib.suppress(RuntimeError):  # JAX has been used already: what it has stays
            jax.config.update("jax_num_cpu_devices", usable_cores())
    _prepare_cache()
    _share_free_memory()


def default_home() -> Path:
    """Return the folder whose `runs/` holds runs: $BACKFLIP_HOME, or the current one."""
    return Path(os.environ.get("BACKFLIP_HOME") or ".")


class Place(NamedTuple):
    """Where a run belongs, whatever folder its environment makes the current one.

    Attributes:
        home: the folder whose `runs/` holds runs.
        cwd: the folder that the command was typed in, whose code is kept.
    """

    home: Path
    cwd: Path


def place_of(home: Path | str | None) -> Place:
    """Return where a run belongs that begins now, in `home` or the default one."""
    cwd = Path.cwd()
    return Place(cwd / (default_home() if home is None else home), cwd)


def peak_memory_mib() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _share_free_memory() -> None:
    """Let the threads of this process share what they free, where the C library is glibc's.

    It keeps a pool for every thread otherwise: 500 MiB more for four seeds of `teach dot`.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def _prepare_cache() -> None:
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(caches / "backflip" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_CACHED_SECONDS)
