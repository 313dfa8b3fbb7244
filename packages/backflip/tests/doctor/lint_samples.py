"""Programs with and without the mistake of each rule: the cells of `lint_programs/RULE.py`.

A cell begins with `# %% mistake` or `# %% right`. `# here` marks the lines that a rule must find.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "lint_programs"
_CELL = re.compile(r"^# %% (mistake|right)\n", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """One program of a rule, and the place where it begins."""

    rule: str
    kind: Literal["mistake", "right"]
    line: int  # of its file
    text: str

    def __str__(self) -> str:
        return f"{self.rule}.py:{self.line}"

    @property
    def marked(self) -> list[int]:
        """The lines of the program that its rule must find."""
        return [at for at, line in enumerate(self.text.splitlines(), 1) if "# here" in line]


def _samples(path: Path) -> Iterator[Sample]:
    _, *cells = _CELL.split(whole := path.read_text())
    starts = [whole.count("\n", 0, match.end()) + 1 for match in _CELL.finditer(whole)]
    for kind, text, line in zip(cells[::2], cells[1::2], starts, strict=True):
        yield Sample(path.stem, kind, line, text.rstrip("\n") + "\n")


SAMPLES = [sample for path in sorted(FOLDER.glob("*.py")) for sample in _samples(path)]
MISTAKES = [sample for sample in SAMPLES if sample.kind == "mistake"]
RIGHT = [sample for sample in SAMPLES if sample.kind == "right"]
