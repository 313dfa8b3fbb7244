"""The home of runs, and paths in messages."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from runshelf.environment import variable

if TYPE_CHECKING:  # `--help` must not import NumPy
    from runshelf.store.run import Run


def default_home() -> Path:
    """Return the folder that has `runs/`: $RUNSHELF_HOME, $BACKFLIP_HOME, or the current one."""
    return Path(variable("HOME") or ".")


def from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it lies inside, else unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def name_on_command_line(run: "Run") -> str:
    """Return a run's short id, or its folder if it is not in the default home."""
    folder = run.folder.resolve()
    default = default_home().resolve() / "runs"
    return run.short if folder.parent == default else shlex.quote(str(folder))
