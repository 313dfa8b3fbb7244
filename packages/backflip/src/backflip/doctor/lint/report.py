"""Findings as text and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backflip.doctor.lint.files import Linted, lines_of, read
from backflip.doctor.lint.rule import Finding, Rule
from runshelf.errors import UserFacingError


def in_words(linted: Linted) -> str:
    """Return the findings as text; what a rule means comes with its first finding."""
    parts, said = list[str](), set[str]()
    for one in linted.findings:
        parts.append("\n".join(_finding(one, explain=one.rule.id not in said)))
        said.add(one.rule.id)
    parts += [f"not checked: {why}" for why in linted.unread]
    return "\n\n".join([*parts, _summary(linted)])


def _finding(one: Finding, *, explain: bool) -> list[str]:
    lines = [f"{one.path}:{one.line}:{one.column}: {one.rule.id} {one.rule.title}"]
    code = _line(one.path, one.line)
    lines += [f"    {code}"] if code else []
    lines.append(f"  seen: {one.seen}")
    if "rl: ignore" in code:
        lines.append(f"  note: to leave this out, write `# rl: ignore[{one.rule.id}]` and a reason")
    if explain:
        lines += [f"  why:  {one.rule.why}", f"  fix:  {one.rule.fix}"]
        lines.append(f"  from: {one.rule.origin}")
    return lines


def _line(path: Path, number: int) -> str:
    try:
        lines = lines_of(read(path))
    except UserFacingError:  # it changed since
        return ""
    return lines[number - 1].strip()[:90] if number <= len(lines) else ""


def _summary(linted: Linted) -> str:
    count, files = len(linted.findings), linted.files
    what = "no mistake found" if not count else f"{count} finding{'s' * (count > 1)}"
    return f"{what} in {files} program{'s' * (files != 1)}"


def to_json(linted: Linted) -> dict[str, Any]:
    """Return the findings as a JSON document."""
    return {
        "findings": [
            {
                "rule": one.rule.id,
                "title": one.rule.title,
                "file": str(one.path),
                "line": one.line,
                "column": one.column,
                "seen": one.seen,
                "why": one.rule.why,
                "fix": one.rule.fix,
            }
            for one in linted.findings
        ],
        "files": linted.files,
        "unread": list(linted.unread),
    }


def rules_in_words(rules: Sequence[Rule]) -> str:
    """Return one line for each rule."""
    return "\n".join(f"{rule.id}  {rule.title}" for rule in rules)
