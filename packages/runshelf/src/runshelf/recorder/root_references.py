"""Finds references to the old code folder, through which a rerun would use today's code.

A rerun maps an argument that is a path into the clean folder. Paths inside a longer argument, in a
file or in a link stay as they are, and are reported.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from runshelf.snapshot.code_snapshot import Snapshot

_MAX_BYTES = 1_000_000
_MAX_NAMED = 3


def references_to_root(snapshot: Snapshot, words: Sequence[str], target: Path) -> list[str]:
    """Return at most one line on the arguments and one on the files that name the old root.

    Args:
        snapshot: the archived code and its root.
        words: the arguments, with paths mapped into `target`.
        target: the clean folder, with the code in it.
    """
    root = snapshot.root.rstrip("/")
    if not root:
        return []
    pattern = re.compile(re.escape(os.fsencode(root)) + rb"(?![\w-])")
    inside = os.fsencode(target)
    arguments = [
        str(place)
        for place, word in enumerate(words, 1)
        if pattern.search(os.fsencode(word).replace(inside, b""))
    ]
    files = [
        f"`{file.path}`"
        for file in snapshot.files
        if _names(pattern, target / file.path, file.link)
    ]
    return [*_line_on("argument", arguments, root), *_line_on("archived file", files, root)]


def _line_on(kind: str, found: Sequence[str], root: str) -> list[str]:
    if not found:
        return []
    more = len(found) - _MAX_NAMED
    rest = f" and {more} more" if more > 0 else ""
    named, plural = ", ".join(found[:_MAX_NAMED]), "s" if len(found) > 1 else ""
    verb = "name" if len(found) > 1 else "names"
    return [f"{kind}{plural} {named}{rest} {verb} `{root}`, which holds today's code"]


def _names(pattern: re.Pattern[bytes], path: Path, link: str | None) -> bool:
    """Return whether a text file or the target of a link names the root."""
    if link is not None:
        return pattern.match(os.fsencode(link)) is not None
    with suppress(OSError):
        if path.stat().st_size < _MAX_BYTES:
            data = path.read_bytes()
            return b"\0" not in data and pattern.search(data) is not None
    return False
