"""Reads programs, and applies the rules to them.

`# rl: ignore[L01] reason` at the end of a line leaves a rule out there; the reason is required.
"""

import re
import sys
import tokenize
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backflip.doctor.lint.inlining import inlined, place_of
from backflip.doctor.lint.registry import BY_ID, RULES
from backflip.doctor.lint.rule import Finding, Rule
from backflip.doctor.lint.source import Source
from runshelf.errors import UsageError, UserFacingError, did_you_mean
from runshelf.store.paths import exists, is_file, is_folder

LARGEST_FILE = 4_000_000  # bytes
SKIPPED = ("__pycache__", "node_modules", "site-packages", ".git", ".venv", "venv", "build")
# Rules that also read a program with its short functions inlined. Others ask for the calls of a
# function, which are not there then.
ACROSS_FUNCTIONS = (
    *("L01", "L05", "L06", "L09", "L11", "L14", "L17", "L19", "L20"),
    *("L28", "L29", "L33", "L47", "L70"),
)
IGNORED = re.compile(r"#\s*rl:\s*ignore\[([^\]]*)\]\s*(\S?)")
_LINE_END = re.compile(r"\r\n|\r|\n")


class Linted(NamedTuple):
    """What was found.

    Attributes:
        findings: in the order of files and lines.
        files: the number of programs that were read.
        unread: programs that could not be read, each with why.
    """

    findings: list[Finding]
    files: int
    unread: list[str]


def lint(
    paths: Sequence[Path],
    rules: Iterable[Rule] = RULES,
    on_progress: Callable[[str, float], None] | None = None,
) -> Linted:
    """Return the findings about programs, and about all programs in folders.

    Args:
        paths: of programs and folders.
        rules: what is looked for.
        on_progress: receives what is done, and the share of programs that are done.

    Raises:
        UsageError: a path does not exist, is not a Python program, or has none in it.
    """
    findings, unread, files = list[Finding](), list[str](), 0
    chosen, found = tuple(rules), list(programs(paths))
    for number, path in enumerate(found):
        if on_progress is not None:
            on_progress("reading programs", number / len(found))
        try:
            findings += lint_text(path, read(path), chosen)
            files += 1
        except UserFacingError as error:
            unread.append(str(error))
    return Linted(findings, files, unread)


def lint_text(path: Path, text: str, rules: Iterable[Rule] = RULES) -> list[Finding]:
    """Return the findings about one program.

    Raises:
        UserFacingError: it is not Python that this version can read.
    """
    try:
        source = Source(path, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserFacingError(f"`{path}` is not Python that can be read{_why(error)}") from None
    chosen = tuple(rules)
    found = _findings(source, chosen)
    if (whole := inlined(source)) is not None:
        across = [one for one in chosen if one.id in ACROSS_FUNCTIONS]
        found |= _findings(whole, across, {(one.rule.id, one.line) for one in found})
    left_out = _ignored(text)
    kept = [one for one in found if one.rule.id not in left_out.get(one.line, ())]
    return sorted(kept, key=lambda one: (one.line, one.column, one.rule.id))


def _findings(
    source: Source, rules: Iterable[Rule], known: Container[tuple[str, int]] = ()
) -> set[Finding]:
    """Return what rules find, without what is known of the same lines.

    Code of an inlined function has two lines: its own, and that of the call.
    """
    return {
        Finding(rule, source.path, *place, hit.seen)
        for rule in rules
        for hit in rule.find(source)
        for place in [place_of(hit.node)]
        if (rule.id, place[0]) not in known
        and (rule.id, getattr(hit.node, "lineno", 1)) not in known
    }


def _why(error: Exception) -> str:
    """Return where a program is not valid Python, and why.

    Syntax that is newer than the running Python counts as an error.
    """
    if not isinstance(error, SyntaxError):
        return f": {error or 'too much is nested in it'}"
    if error.lineno is None:  # of the whole file: a null byte
        return f": {error.msg}"
    said = f", line {error.lineno}: {error.msg}"
    if isinstance(error, IndentationError):
        return said
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"{said}; this is Python {running}, and newer syntax may be the reason: for a program "
        "of a newer Python, install backflip there, and run backflip lint with it"
    )


def _ignored(text: str) -> dict[int, set[str]]:
    """Return the ids that each line leaves out; without a reason, none."""
    found: dict[int, set[str]] = {}
    for number, line in enumerate(lines_of(text), 1):
        match = IGNORED.search(line)
        if match and match[2]:
            found[number] = {word.strip() for word in match[1].split(",")}
    return found


def lines_of(text: str) -> list[str]:
    """Return the lines of a program as Python counts them.

    `str.splitlines` also ends a line at a form feed, which old programs have between functions.
    """
    return _LINE_END.split(text)


def programs(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the programs among paths and in folders, each once, in order.

    Raises:
        UsageError: a path does not exist, is not a Python program, or has none in it.
    """
    seen: set[Path] = set()
    for path in paths:
        if not exists(path):
            raise UsageError(f"`{path}` does not exist")
        for one in _programs_of(path):
            if one not in seen:
                seen.add(one)
                yield one


def _programs_of(path: Path) -> list[Path]:
    if is_folder(path):
        found = sorted(_inside(path))
        if not found:
            raise UsageError(
                f"`{path}` holds no Python program (.py) outside of virtual environments and "
                "builds; expected at least one"
            )
        return found
    if not is_file(path):
        raise UsageError(
            f"`{path}` is neither a file nor a folder, but a pipe, a socket or a device; "
            "write the program into a file, and type its name"
        )
    if path.suffix != ".py":
        raise UsageError(f"`{path}` is not a Python program (.py)")
    return [path]


def _inside(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if path.is_file() and not path.is_symlink() and not any(p in SKIPPED for p in parts):
            yield path


def read(path: Path) -> str:
    """Return a program's text.

    Raises:
        UserFacingError: it is too large, or cannot be read.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            most = LARGEST_FILE // 1_000_000
            raise UserFacingError(f"`{path}` is larger than {most} MB: leave it out, or split it")
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise UserFacingError(f"`{path}` cannot be read: {error}") from None


def chosen_rules(select: Sequence[str], ignore: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that are selected, all by default, without those that are ignored.

    Raises:
        UsageError: there is no such rule.
    """
    for name in (*select, *ignore):
        if name not in BY_ID:
            hint = did_you_mean(name, BY_ID)
            raise UsageError(f"there is no rule `{name}`{hint}; backflip lint --list has all")
    return tuple(
        rule for rule in RULES if (not select or rule.id in select) and rule.id not in ignore
    )
