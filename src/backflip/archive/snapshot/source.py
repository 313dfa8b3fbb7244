"""The code of backflip itself, as a fingerprint: few snapshots have it, since it is installed."""

import hashlib
from contextlib import suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


def source_fingerprint(package: Path = PACKAGE) -> str:
    """Return the SHA-256 over the relative paths and the bytes of a package's Python files."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        with suppress(OSError):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(package)}\0{len(data)}\0".encode(errors="replace"))
            digest.update(data)
    return digest.hexdigest()
