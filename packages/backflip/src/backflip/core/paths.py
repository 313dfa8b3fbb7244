"""The home of runs, and paths in messages."""

from pathlib import Path

from runshelf.environment import variable


def default_home() -> Path:
    """Return the folder that has `runs/`: $RUNSHELF_HOME, $BACKFLIP_HOME, or the current one."""
    return Path(variable("HOME") or ".")


def from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it lies inside, else unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
