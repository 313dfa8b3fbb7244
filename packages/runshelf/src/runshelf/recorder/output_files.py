"""Lists the files that a program wrote to `$RUNSHELF_OUTPUT`, with their hashes."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from runshelf.snapshot.object_store import NotAFileError, hash_file
from runshelf.store.trees import files_below
from runshelf.store.writing import replace_file

FOLDER = "outputs"
LIST = "outputs.json"


def list_outputs(run: Path) -> list[dict[str, Any]]:
    """Write `outputs.json` into a run's folder, and return its content.

    Links are listed with their target and not followed.

    Raises:
        UserFacingError: the list cannot be written.
    """
    root = run / FOLDER
    files: list[dict[str, Any]] = []
    for path in sorted(files_below(root)):
        name = str(path.relative_to(root))
        with suppress(OSError, NotAFileError):
            if path.is_symlink():
                files.append({"path": name, "link": str(path.readlink())})
            else:
                sha256, size = hash_file(path)
                files.append({"path": name, "bytes": size, "sha256": sha256})
    lines = ",\n".join(f"  {json.dumps(file)}" for file in files)
    replace_file(run, LIST, f"[\n{lines}\n]\n".encode() if files else b"[]\n")
    return files
