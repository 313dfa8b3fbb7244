"""Paths as they are said."""

from pathlib import Path


def from_here(path: Path) -> Path:
    """Return a path as seen from the current folder if it lies in there, else as it is."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
