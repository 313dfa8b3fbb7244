"""Environment variables of runshelf: `RUNSHELF_NAME`, else `BACKFLIP_NAME`.

backflip offers all commands of runshelf, so each variable also works under backflip's prefix.
"""

import os
from collections.abc import Mapping

PREFIXES = ("RUNSHELF_", "BACKFLIP_")


def variable(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the first non-empty value under one of the prefixes, or None.

    Args:
        name: the variable's name without its prefix, such as `HOME`.
        environ: the environment; by default that of this process.
    """
    found = os.environ if environ is None else environ
    values = (found.get(prefix + name) for prefix in PREFIXES)
    return next((value for value in values if value), None)


def exported(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to pass to a child process: each value under every prefix."""
    return {prefix + name: value for name, value in values.items() for prefix in PREFIXES}
