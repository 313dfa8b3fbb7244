"""Reports what differs between a recorded run and a rerun of it, one line per difference.

A rerun maps an argument that is a path into the clean folder. Paths to the old code folder inside a
longer argument, in a file or in a link stay as they are, and are reported too.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from runshelf.snapshot.code_snapshot import Snapshot
from runshelf.snapshot.lock_files import find_lock_files

_MAX_PACKAGES = 8
_MAX_NAMED = 3
_MAX_BYTES = 1_000_000


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between a run's manifest and today's `python` and `hardware`."""
    python_then, python_now = _fields(then.get("python")), _fields(now.get("python"))
    lines: list[str] = []
    if python_then:
        lines += _changed("Python", python_then.get("version"), python_now.get("version"))
        packages = _fields(python_then.get("packages")), _fields(python_now.get("packages"))
        lines += _packages(*packages)
    machine_then, machine_now = _fields(then.get("hardware")), _fields(now.get("hardware"))
    for field, name in (("cpu", "the processor"), ("cores", "cores"), ("gpus", "GPUs")):
        if field in machine_then:
            lines += _changed(name, _shown(machine_then[field]), _shown(machine_now.get(field)))
    return lines


def changed_lock_files(then: Mapping[str, Any], root: Path) -> list[str]:
    """Return a line that names the lock files below `root` that changed since the run."""
    recorded = then.get("lock_files")
    files = [_fields(entry) for entry in cast("list[Any]", recorded or [])]
    now = {file["path"]: file["sha256"] for file in find_lock_files(root)}
    changed = [str(f.get("path")) for f in files if now.get(str(f.get("path"))) != f.get("sha256")]
    return [f"changed or removed since, in `{root}`: {', '.join(changed)}"] if changed else []


def imports_outside(then: Mapping[str, Any], roots: Sequence[str]) -> list[str]:
    """Return a line if Python imported from folders outside `roots`, the snapshot's folders."""
    paths = [
        str(path) for path in cast("list[Any]", _fields(then.get("python")).get("outside") or [])
    ]
    outside = [p for p in paths if not any(p == r or p.startswith(f"{r}/") for r in roots)]
    named = ", ".join(f"`{path}`" for path in outside)
    return [f"not archived: Python also imports from {named}"] if outside else []


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
    lines: list[str] = []
    for kind, found in (("argument", arguments), ("archived file", files)):
        noun, verb = (f"{kind}s", "name") if len(found) > 1 else (kind, "names")
        shown = _shortened(found, _MAX_NAMED)
        lines += [f"{noun} {shown} {verb} `{root}`, which holds today's code"] if found else []
    return lines


def _names(pattern: re.Pattern[bytes], path: Path, link: str | None) -> bool:
    """Return whether a text file or the target of a link names the root."""
    if link is not None:
        return pattern.match(os.fsencode(link)) is not None
    with suppress(OSError):
        if path.stat().st_size < _MAX_BYTES:
            data = path.read_bytes()
            return b"\0" not in data and pattern.search(data) is not None
    return False


def _shortened(items: Sequence[str], most: int) -> str:
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")


def _packages(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = sorted({*then, *now}, key=str.lower)
    changed = [
        f"{name} {then.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in names
        if then.get(name) != now.get(name)
    ]
    return [f"packages differ: {_shortened(changed, _MAX_PACKAGES)}"] if changed else []


def _changed(name: str, then: object, now: object) -> list[str]:
    return [] if then == now else [f"{name} then: {then or 'none'}; now: {now or 'none'}"]


def _shown(value: Any) -> object:
    """Return GPUs as text; return any other value unchanged."""
    if not isinstance(value, list):
        return value
    gpus = [_fields(gpu) for gpu in cast("list[Any]", value)]
    return ", ".join(f"{gpu.get('name')} (driver {gpu.get('driver')})" for gpu in gpus)


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
