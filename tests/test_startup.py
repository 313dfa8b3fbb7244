"""Starting is fast because heavy packages are imported only where they are used."""

import json
import resource
import subprocess
import sys

import pytest

HEAVY = {"jax", "jaxlib", "optax", "gymnasium", "numpy", "PIL", "rich", "mujoco"}


def imported_after(statement: str) -> set[str]:
    """The top-level modules in `sys.modules` after a fresh interpreter has run `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}


@pytest.mark.medium
def test_the_list_can_be_caught() -> None:
    assert "numpy" in imported_after("import numpy")


@pytest.mark.medium
@pytest.mark.parametrize(
    "module", ["backflip", "backflip.cli.main", "runshelf", "runshelf.cli.main"]
)
def test_importing_stays_light(module: str) -> None:
    assert not imported_after(f"import {module}") & HEAVY


@pytest.mark.medium
@pytest.mark.parametrize("package", ["backflip", "runshelf"])
def test_help_stays_light(package: str) -> None:
    statement = (
        "import contextlib, io\n"
        f"from {package}.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])\n"
    )
    assert not imported_after(statement) & {"jax", "jaxlib", "optax", "gymnasium", "numpy"}


@pytest.mark.medium
@pytest.mark.parametrize(
    "module",
    [
        "backflip.algorithms.registry",
        "backflip.labelling.page",
        "backflip.preferences.labels",
        "backflip.preferences.queries",
        "runshelf.web.app",
    ],
)
def test_what_pages_and_the_command_line_read_starts_without_jax(module: str) -> None:
    assert not imported_after(f"import {module}") & {"jax", "jaxlib", "optax"}


@pytest.mark.medium
def test_help_is_fast() -> None:
    """Under 0.3 s of CPU time: the best of five."""
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
    """CPU seconds of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
