"""What a program says is wrong with a run: `doctor.json` in the run's folder."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.received_json import parse_record
from runshelf.store import opening
from runshelf.store.writing import replace_file

FILE = "doctor.json"
_LARGEST = 2**16


@final
class Diagnosis(NamedTuple):
    """What is wrong with a run.

    Attributes:
        findings: the number of seeds that show each finding, by its name.
        in_words: all of them in one line.
    """

    findings: dict[str, int]
    in_words: str


def write_diagnosis(folder: Path, findings: Mapping[str, int], in_words: str) -> None:
    """Write what is wrong with the run in `folder`, in the place of what was written before.

    Nothing happens if it cannot be written: the caller shows it, too.
    """
    fields = {"findings": dict(findings), "in_words": in_words}
    with suppress(UserFacingError):
        replace_file(folder, FILE, json.dumps(fields).encode() + b"\n", synced=False)


def read_diagnosis(folder: Path) -> Diagnosis | None:
    """Return what is wrong with the run in `folder`; None without a diagnosis."""
    try:
        fields = parse_record(opening.read(folder, FILE, _LARGEST))
    except (opening.NoFile, UserFacingError, ValueError):
        return None
    findings, words = fields.get("findings"), fields.get("in_words")
    if not isinstance(findings, dict) or not isinstance(words, str):
        return None
    counts = {str(name): n for name, n in findings.items() if isinstance(n, int)}
    return Diagnosis(counts, words)
