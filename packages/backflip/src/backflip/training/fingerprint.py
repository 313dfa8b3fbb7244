"""The fingerprint of a run's configuration, to detect changes before a resume."""

import hashlib
import json
from typing import Any

from runshelf.store.run import Run


def resolved(run: Run) -> dict[str, Any]:
    """Return the entries of the manifest that determine the results of a run."""
    keys = ("command", "env", "algorithm", "seeds", "config")
    return {key: run.manifest.get(key) for key in keys}


def fingerprint(run: Run) -> str:
    """Return the SHA-256 of `resolved`."""
    text = json.dumps(resolved(run), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(saved: Any, now: Any, path: str = "") -> list[str]:
    """Return one line for each key that differs between two nested configurations."""
    if isinstance(saved, dict) and isinstance(now, dict):
        return [
            line
            for key in sorted({*saved, *now})
            for line in differences(
                saved.get(key, "nothing"), now.get(key, "nothing"), f"{path}.{key}".strip(".")
            )
        ]
    return [] if saved == now else [f"`{path}` was {saved}, is {now}"]
