"""Where a rerun would meet today's code although the archived one is there: names of the old root.

What is a path of its own in the command line is led into the clean folder. A path within a longer
argument, in a file or behind a link is left as it is, and said.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from runshelf.snapshot.code_snapshot import Snapshot

_LARGEST = 1_000_000
_NAMED_AT_MOST = 3


def names_of_root(snapshot: Snapshot, words: Sequence[str], target: Path) -> list[str]:
    """Return up to one line each on the arguments and the files that name the old root.

    Args:
        snapshot: the archived code; its root is the one looked for.
        words: the arguments, those that are paths led into `target` already.
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
    return [*_said("argument", arguments, root), *_said("archived file", files, root)]


def _said(kind: str, found: Sequence[str], root: str) -> list[str]:
    if not found:
        return []
    more = len(found) - _NAMED_AT_MOST
    rest = f" and {more} more" if more > 0 else ""
    named, plural = ", ".join(found[:_NAMED_AT_MOST]), "s" if len(found) > 1 else ""
    verb = "name" if len(found) > 1 else "names"
    return [f"{kind}{plural} {named}{rest} {verb} `{root}`, where today's code lies"]


def _names(pattern: re.Pattern[bytes], path: Path, link: str | None) -> bool:
    """Return whether a text file, or what a link points at, names the root."""
    if link is not None:
        return pattern.match(os.fsencode(link)) is not None
    with suppress(OSError):
        if path.stat().st_size < _LARGEST:
            data = path.read_bytes()
            return b"\0" not in data and pattern.search(data) is not None
    return False
