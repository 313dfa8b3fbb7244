"""Paths in messages."""

from pathlib import Path


def from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it lies inside, else unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
