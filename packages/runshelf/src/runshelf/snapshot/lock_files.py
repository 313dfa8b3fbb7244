"""Finds lock files, which pin the packages of a project."""

from contextlib import suppress
from pathlib import Path

from runshelf.snapshot.object_store import NotAFileError, hash_file

_PATTERNS = (
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pixi.lock",
    "pylock*.toml",
    "Pipfile.lock",
    "requirements*.txt",
    "requirements/*.txt",
    "environment*.yml",
    "environment*.yaml",
    "conda*.yml",
    "conda*.yaml",
    "conda-lock.yml",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "Cargo.lock",
    "go.sum",
    "Gemfile.lock",
    "flake.lock",
    "Manifest.toml",
)


def find_lock_files(root: Path) -> list[dict[str, str]]:
    """Return the manifest's `lock_files`: paths relative to `root`, with their SHA-256."""
    found: set[Path] = set()
    for pattern in _PATTERNS:
        with suppress(OSError):
            found.update(root.glob(pattern))
    files: list[dict[str, str]] = []
    for path in sorted(found):
        with suppress(OSError, NotAFileError):
            sha256, _ = hash_file(path)
            files.append({"path": str(path.relative_to(root)), "sha256": sha256})
    return files
