"""What determines what a run computes, and what of it has changed since."""

import hashlib
import json
from typing import Any

from runshelf.store.run import Run


def resolved(run: Run) -> dict[str, Any]:
    """Return everything that determines what a run computes."""
    keys = ("command", "env", "algorithm", "seeds", "config")
    return {key: run.manifest.get(key) for key in keys}


def fingerprint(run: Run) -> str:
    """Return the SHA-256 of what determines a run."""
    text = json.dumps(resolved(run), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(saved: Any, now: Any, path: str = "") -> list[str]:
    """Return which keys differ between two nested configurations."""
    if isinstance(saved, dict) and isinstance(now, dict):
        return [
            line
            for key in sorted({*saved, *now})
            for line in differences(
                saved.get(key, "nothing"), now.get(key, "nothing"), f"{path}.{key}".strip(".")
            )
        ]
    return [] if saved == now else [f"`{path}` was {saved}, is {now}"]
