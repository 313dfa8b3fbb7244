"""The home of runs, and paths in messages."""

import os
from pathlib import Path


def default_home() -> Path:
    """Return the folder that has `runs/`: $BACKFLIP_HOME, or the current folder."""
    return Path(os.environ.get("BACKFLIP_HOME") or ".")


def from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it lies inside, else unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
