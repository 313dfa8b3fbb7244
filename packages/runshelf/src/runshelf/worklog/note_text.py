"""The form of notes: a heading with time, id, run and commit, then Markdown as a person writes it.

    ## 2026-11-26 10:12:05 +01:00 · k3f9q2 · run 7QK4D1M2 · commit a1b2c3d4e5f6

    The text.

    Next: what is expected next.

A line of a text that looks like such a heading is written with a backslash before it. People may
change everything by hand: only a level-two heading with a date begins a note, and each part of it
after the date may be missing.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, final

SEPARATOR = " · "
_HEADING = re.compile(
    r"## (?P<date>\d{4}-\d\d-\d\d)(?:[ T]+(?P<clock>\d\d:\d\d(?::\d\d)?))?"
    r"(?: *(?P<offset>Z|[+-]\d\d:?\d\d))?(?P<parts>(?: *·.*)?) *"
)
_ESCAPABLE = re.compile(r"(?m)^(\\*## )")
_ESCAPED = re.compile(r"(?m)^\\(\\*## )")
_ID = re.compile(r"[0-9a-z]{6}")
_NEXT = re.compile(r"(?im)^next:[ \t]*(?P<expected>(?:.|\n(?!\s*\n))*)")
# Direction overrides and isolates, which disguise text.
_DISGUISES = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@final
class Note(NamedTuple):
    """One note.

    Attributes:
        log: the log that it is in: work, runs, ideas or confusions.
        id: its id, six letters and digits; of a note written by hand, a hash of its text.
        time: when it was written, in Unix seconds; None without a date.
        text: its text.
        expected: what it says after `Next:`; empty if it says nothing.
        run: the short form of the id of its run; empty without one.
        commit: the beginning of the git commit at that time; empty without one.
        answers: the id of the note, or the short form of the id of the run, that it answers;
            empty if it answers none.
    """

    log: str
    id: str
    time: float | None
    text: str
    expected: str = ""
    run: str = ""
    commit: str = ""
    answers: str = ""


def as_markdown(note: Note, moment: datetime) -> str:
    """Return a note as it is written to the file of its log.

    Args:
        note: the note.
        moment: its time, with an offset from UTC.
    """
    named = {"run": note.run, "commit": note.commit, "answers": note.answers}
    parts = [moment.isoformat(" ", "seconds").replace("+", " +", 1), note.id]
    if moment.utcoffset() is not None and "+" not in parts[0]:
        parts[0] = f"{parts[0][:-6]} {parts[0][-6:]}"  # an offset west of Greenwich
    parts += [f"{name} {value}" for name, value in named.items() if value]
    text = _ESCAPABLE.sub(r"\\\1", note.text)
    return f"## {SEPARATOR.join(parts)}\n\n{text}\n"


def read_markdown(log: str, markdown: str) -> list[Note]:
    """Return the notes in the file of a log, in their order.

    What stands before the first heading with a date is a note without a time, but for the title.
    """
    return [note for heading, text in _split(markdown) if (note := _note(log, heading, text))]


def without_controls(text: str) -> str:
    r"""Return text for a file: line breaks as `\n`, other control characters escaped."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if _is_plain(c) else c.encode("unicode_escape").decode() for c in lines)


def _is_plain(character: str) -> bool:
    if character in "\n\t":
        return True
    kind = unicodedata.category(character)
    return kind not in ("Cc", "Cs", "Zl", "Zp") and character not in _DISGUISES


def _split(markdown: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Yield the heading and the text of each note."""
    heading, lines = None, list[str]()
    for number, line in enumerate(markdown.lstrip("\ufeff").replace("\r\n", "\n").split("\n")):
        found = _HEADING.fullmatch(line)
        if found:
            yield heading, "\n".join(lines)
            heading, lines = found, []
        elif number or not line.startswith("# "):
            lines.append(line)
    yield heading, "\n".join(lines)


def _note(log: str, heading: re.Match[str] | None, text: str) -> Note | None:
    text = _ESCAPED.sub(r"\1", text.strip())
    if heading is None and not text:
        return None
    moment = _moment(heading) if heading else None
    parts = [part.strip() for part in heading["parts"].split("·")] if heading else []
    named = dict(part.split(" ", 1) for part in parts if " " in part)
    id = next((part for part in parts if _ID.fullmatch(part)), "")
    expected = _NEXT.search(text)
    return Note(
        log=log,
        id=id or _hash_of(f"{heading[0] if heading else ''}\n{text}"),
        time=moment,
        text=text,
        expected=" ".join(expected["expected"].split()) if expected else "",
        run=named.get("run", "").strip(),
        commit=named.get("commit", "").strip(),
        answers=named.get("answers", "").strip(),
    )


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


def _moment(heading: re.Match[str]) -> float | None:
    """Return the time of a heading, local time without an offset; None if it is not a time."""
    try:
        moment = datetime.fromisoformat(f"{heading['date']} {heading['clock'] or '00:00'}")
        if heading["offset"]:
            moment = moment.replace(tzinfo=_zone(heading["offset"]))
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _zone(offset: str) -> timezone:
    if offset == "Z":
        return timezone(timedelta(0))
    hours, minutes = int(offset[:3]), int(offset[0] + offset[-2:])
    return timezone(timedelta(hours=hours, minutes=minutes))
