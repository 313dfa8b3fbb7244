"""Settings of all tests: strict JAX, two CPU devices, a compilation cache, bounded memory.

JAX reads its settings from the environment when it is first imported. They are set here, not by
`jax.config.update`, so that tests without JAX avoid its second of start-up, and so that the
settings reach the processes that tests start.
"""

import ctypes
import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

if "jax" in sys.modules:
    raise RuntimeError("jax was imported before tests/conftest.py could configure it")

# A shell starts background jobs with Ctrl-C ignored, nohup with hang-ups ignored, and programs that
# tests start inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

pytest_plugins = ["tests.attack_figures", "tests.browser", "tests.type_checks"]

cache = Path(__file__).parent / ".cache" / "jax-tests"

# Servers keep their secrets in the user's cache folder, and the key of trusted runs is in the state
# folder: those of the tests end with them.
user_folders = tempfile.TemporaryDirectory(prefix="backflip-tests-", ignore_cleanup_errors=True)
os.environ["XDG_CACHE_HOME"] = str(Path(user_folders.name) / "cache")
os.environ["XDG_STATE_HOME"] = str(Path(user_folders.name) / "state")

os.environ["JAX_PLATFORMS"] = os.environ.get("BACKFLIP_TEST_PLATFORM", "cpu")  # or "cuda,cpu"
if os.environ["JAX_PLATFORMS"] != "cpu":
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "float32"  # as in runs
os.environ["JAX_NUM_CPU_DEVICES"] = "2"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)
# Cache small programs, too: there are thousands, and reading one takes a tenth of compiling it.
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# A tenth of the compilation is for the lines of Python that each instruction comes from.
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"

# No deadline: the time of one example varies on shared cores. The default profile repeats the same
# examples, so that a commit that passes once passes again; `nightly` draws new ones.
hypothesis.settings.register_profile("backflip", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "backflip"))

gc.set_threshold(20_000, 20, 20)


def in_one_chunk(call: Callable[[], object]) -> object:
    """Return `call()`, with room on the stack of Python's frames."""
    return call()


# CPython keeps frames in chunks of 16 KiB, and maps and unmaps one at each call that crosses the
# end of the last: in a loop at that depth, a third of the time. A large frame gets a chunk of twice
# its size, whose rest is enough for the frames of a test.
in_one_chunk.__code__ = in_one_chunk.__code__.replace(co_stacksize=2**16)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Run a test and its fixtures as pytest does."""
    runner = item.config.pluginmanager.get_plugin("runner")
    assert runner is not None
    return in_one_chunk(lambda: runner.pytest_runtest_protocol(item, nextitem))


@pytest.hookimpl(trylast=True)  # after `-m` has left out tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules with the most long tests first, so that all workers end together."""
    longs = Counter(item.path for item in items if _is_long(item))
    items.sort(key=lambda item: -longs[item.path])


def _is_long(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("medium", "slow"))


# Bytes of a worker, above which it drops its compiled programs: an eighth of this machine's, or
# 1 GiB. And bytes by which it grows before it drops them again.
MOST_MEMORY = max(2**30, psutil.virtual_memory().total // 8)
MOST_GROWTH = MOST_MEMORY // 2


class CompiledPrograms:
    """JAX keeps every compiled program: gigabytes in millions of objects by the end.

    Not all memory is returned when they are dropped. To drop them after each module, because a
    worker stays above the limit, took a tenth of the time of all tests.
    """

    def __init__(self) -> None:
        self.limit = MOST_MEMORY

    def drop_above_the_limit(self) -> None:
        """Drop all programs if the worker is too large; set the next limit."""
        memory = psutil.Process().memory_info
        if "jax" in sys.modules and memory().rss > self.limit:
            gc.unfreeze()
            sys.modules["jax"].clear_caches()
            gc.collect()
            _return_freed_memory()
            self.limit = max(MOST_MEMORY, memory().rss + MOST_GROWTH)


@pytest.fixture(scope="session")
def compiled_programs() -> CompiledPrograms:
    return CompiledPrograms()


@pytest.fixture(scope="module", autouse=True)
def bounded_memory(compiled_programs: CompiledPrograms) -> Iterator[None]:
    """Bound the memory of a worker, and exclude what stays from garbage collection.

    Scanning all objects took a tenth of the time even in the first few modules.
    """
    yield
    compiled_programs.drop_above_the_limit()
    gc.collect()
    gc.freeze()


def _return_freed_memory() -> None:
    """Return freed memory to the system; glibc keeps nearly all of it otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
