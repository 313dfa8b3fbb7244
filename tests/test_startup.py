"""Starting is fast because what is heavy is imported only where it is used."""

import json
import resource
import subprocess
import sys

import pytest

HEAVY = ("jax", "jaxlib", "optax", "gymnasium", "numpy", "PIL", "rich", "mujoco")


def imported_after(statement: str) -> set[str]:
    """The top-level modules in `sys.modules` once a fresh interpreter has run `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}


def test_the_list_can_be_caught() -> None:
    assert "numpy" in imported_after("import numpy")


@pytest.mark.parametrize("module", ["backflip", "backflip.cli.main"])
def test_importing_stays_light(module: str) -> None:
    assert not imported_after(f"import {module}") & set(HEAVY)


def test_help_stays_light() -> None:
    statement = (
        "import contextlib, io\n"
        "from backflip.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])\n"
    )
    assert not imported_after(statement) & {"jax", "jaxlib", "optax", "gymnasium", "numpy"}


@pytest.mark.parametrize(
    "module",
    [
        "backflip.archive",
        "backflip.preferences.labels",
        "backflip.preferences.queries",
        "backflip.labelling.page",
    ],
)
def test_what_the_pages_read_starts_without_jax(module: str) -> None:
    assert not imported_after(f"import {module}") & {"jax", "jaxlib", "optax"}


def test_the_registry_of_algorithms_is_read_without_jax() -> None:
    """Names, which have a replay, settings with bounds and documentation: not even NumPy."""
    statement = (
        "from backflip.algorithms.registry import algorithms\n"
        "for entry in algorithms().values():\n"
        "    entry.has_replay, entry.page, entry.config.__doc__\n"
        "    assert entry.settings['env_steps'].bounds.low == 1\n"
    )
    assert not imported_after(statement) & set(HEAVY)


def test_help_is_fast() -> None:
    """Under 0.3 s of a core: the best of five, and no waiting for one that others use."""
    seconds: list[float] = []
    for _ in range(5):
        start = seconds_of_children()
        command = [sys.executable, "-c", "from backflip.cli.main import main; main(['--help'])"]
        result = subprocess.run(command, capture_output=True, check=False)
        seconds.append(seconds_of_children() - start)
        assert result.returncode == 0, result.stderr
        assert b"usage" in result.stdout.lower()
    assert min(seconds) < 0.3


def seconds_of_children() -> float:
    """What processes that this one waited for have used of the cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
