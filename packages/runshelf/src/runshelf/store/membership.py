"""What a run belongs to, as told by the program that started it: the block of a sweep.

A worker of a sweep sets the variable `RUNSHELF_SWEEP` of a program to a JSON object. The manifest
of every run that the program records has it as `sweep`:

    {"name": "lr", "id": ..., "purpose": "tuning" | "report", "block": ..., "configuration": 3,
     "tried": 16}

`tried` is the number of configurations that were tried to find the best one.
"""

import json
from collections.abc import Mapping
from typing import Any

from runshelf.environment import exported, variable
from runshelf.errors import UsageError
from runshelf.received_json import parse_record

SWEEP = "sweep"
_VARIABLE = "SWEEP"


def membership() -> dict[str, Any]:
    """Return the fields of the manifest of a run that this process begins.

    Raises:
        UsageError: the variable does not hold a JSON object.
    """
    text = variable(_VARIABLE)
    if text is None:
        return {}
    try:
        return {SWEEP: parse_record(text)}
    except ValueError:
        raise UsageError(
            f"RUNSHELF_SWEEP must hold a JSON object, got `{text[:60]}`; workers of a sweep set it"
        ) from None


def member_variables(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables to pass to a program of a sweep."""
    return exported({_VARIABLE: json.dumps(fields)})
