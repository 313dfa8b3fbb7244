"""What a rule is, and what it finds."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from backflip.doctor.lint.source import Source


class Hit(NamedTuple):
    """A place where a rule is broken.

    Attributes:
        node: the code.
        seen: what was seen there, as one sentence.
    """

    node: ast.AST
    seen: str


@dataclass(frozen=True)
class Rule:
    """One mistake that can be seen in a program.

    Attributes:
        id: its number, `L01` and so on; also what `# rl: ignore[L01] reason` names.
        title: the mistake.
        why: what it does to learning.
        fix: what to write instead.
        origin: where it was seen, or who warns of it.
        find: yields the places in a file where it is.
    """

    id: str
    title: str
    why: str
    fix: str
    origin: str
    find: Callable[[Source], Iterator[Hit]]


class Finding(NamedTuple):
    """A rule that is broken at a place of a file; lines and columns count from 1."""

    rule: Rule
    path: Path
    line: int
    column: int
    seen: str
