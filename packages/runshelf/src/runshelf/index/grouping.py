"""Groups: runs with the same configuration and different seeds."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# The runs of a group may differ in these settings.
SEED_KEYS = frozenset({"seed", "seeds", "first_seed", "random_seed", "rng_seed"})

_LONGEST = 60


def group_of(manifest: Mapping[str, Any]) -> str:
    """Return the name of a run's group.

    This is the group in the manifest, else the run's name, else the algorithm and environment (or
    the command line) with a hash of four digits of the configuration without its seeds.
    """
    given = manifest.get("group") or manifest.get("name")
    if given:
        return str(given)
    config = _without_seeds(manifest.get("config") or {})
    words = [str(word) for word in manifest.get("argv") or ()]
    argv = [] if manifest.get("env") else _argv_without_seeds(words)
    parts = (manifest.get("command"), manifest.get("algorithm"), manifest.get("env"), config, argv)
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
    return f"{_title(manifest, argv)} {digest[:4]}"


def _title(manifest: Mapping[str, Any], argv: Sequence[str]) -> str:
    """Return the algorithm and environment, or the command line, shortened."""
    if manifest.get("env"):
        return f"{manifest.get('algorithm') or manifest['command']} {manifest['env']}"
    words = " ".join(argv) or str(manifest.get("command") or "run")
    words = re.sub(r"\s+", " ", words)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def _without_seeds(config: Any) -> Any:
    if not isinstance(config, Mapping):
        return config
    return {
        key: _without_seeds(value)
        for key, value in config.items()
        if str(key).lower() not in SEED_KEYS
    }


def _argv_without_seeds(argv: Sequence[str]) -> list[str]:
    """Return a command line without `--seed 3`, `--seed=3` and `seed=3`."""
    kept: list[str] = []
    skips = False
    for word in argv:
        key, equals, _ = word.lstrip("-").partition("=")
        is_seed = key.lower().replace("-", "_") in SEED_KEYS
        if skips:
            skips = False
        elif is_seed and (equals or word.startswith("-")):
            skips = not equals
        else:
            kept.append(word)
    return kept
