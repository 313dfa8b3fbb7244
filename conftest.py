"""What every test runs under: strict JAX, two CPU devices, a compilation cache, bounded memory.

JAX reads its settings from the environment when it is first imported. Setting them here, instead of
calling `jax.config.update`, leaves tests that do not need JAX without its second of start-up, and
reaches the programs that tests start as processes.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

if "jax" in sys.modules:
    raise RuntimeError("jax was imported before tests/conftest.py could configure it")

# Who runs the tests in the background of a shell has Ctrl-C ignored, and so have the programs that
# tests start, until somebody heeds it again.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.browser"]

cache = Path(__file__).parent / ".cache" / "jax-tests"

os.environ["JAX_PLATFORMS"] = os.environ.get("BACKFLIP_TEST_PLATFORM", "cpu")
os.environ["JAX_NUM_CPU_DEVICES"] = "2"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)
# Small programs, too: the suite compiles thousands, and reading one takes a tenth of compiling it.
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

# JAX on two shared cores makes any time limit on one example a coin toss.
# The same examples every time, so that what one commit passes the next one passes; `nightly` draws.
hypothesis.settings.register_profile("backflip", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "backflip"))

gc.set_threshold(20_000, 20, 20)


MOST_MEMORY = 2**30  # bytes of a worker, above which it forgets the programs compiled so far


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Iterator[None]:
    """Keep a worker below about 2 GiB, and what is kept out of garbage collection.

    JAX keeps every compiled program, gigabytes of them by the end, in millions of objects. Looking
    through these again and again took a tenth of the time already in the first few modules.
    """
    yield
    if "jax" in sys.modules and psutil.Process().memory_info().rss > MOST_MEMORY:
        gc.unfreeze()
        sys.modules["jax"].clear_caches()
        gc.collect()
        _return_freed_memory()
    gc.collect()
    gc.freeze()


def _return_freed_memory() -> None:
    """Return freed memory to the system: glibc by itself keeps nearly all of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
