"""Environment variables of runshelf: `RUNSHELF_NAME`, or `BACKFLIP_NAME` where that is not set.

backflip has all commands of runshelf, so its users find the variables under its name, too.
"""

import os
from collections.abc import Mapping

PREFIXES = ("RUNSHELF_", "BACKFLIP_")


def variable(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the first value set under one of the prefixes; None if there is none.

    Args:
        name: the variable's name without its prefix, such as `HOME`.
        environ: the environment; this process's by default.
    """
    found = os.environ if environ is None else environ
    values = (found.get(prefix + name) for prefix in PREFIXES)
    return next((value for value in values if value), None)


def exported(values: Mapping[str, str]) -> dict[str, str]:
    """Return variables for a program to be started: each value under every prefix."""
    return {prefix + name: value for name, value in values.items() for prefix in PREFIXES}
