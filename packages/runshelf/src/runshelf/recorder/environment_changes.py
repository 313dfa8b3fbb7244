"""Differences of machine, packages and lock files between a recorded run and now."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from runshelf.snapshot.lock_files import find_lock_files

_MAX_NAMED = 8


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line per difference.

    Args:
        then: the manifest of the recorded run.
        now: today's `python` and `hardware`, as a manifest has them.
    """
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


def _packages(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = sorted({*then, *now}, key=str.lower)
    changed = [
        f"{name} {then.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in names
        if then.get(name) != now.get(name)
    ]
    more = len(changed) - _MAX_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return [f"packages differ: {', '.join(changed[:_MAX_NAMED])}{rest}"] if changed else []


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
