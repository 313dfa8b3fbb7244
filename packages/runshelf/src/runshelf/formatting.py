"""Formats numbers, sizes, times and names for pages and for the terminal."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TOKEN = re.compile(r"[^\W_]+|[\W_]")  # a word, or one other character
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def number(value: object) -> str:
    """Return a number with four significant digits; any other value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 100_000:
        return str(value)
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    try:
        return _float(float(value))
    except OverflowError:
        return f"{str(value)[:5]}... ({len(str(abs(value)))} digits)"


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == round(value) and size < 1e15:
        text = count(round(value)) if size >= 100_000 else f"{value:.0f}"
        return text.replace("-", "−")
    return _power(f"{value:.4g}")


def count(many: int) -> str:
    """Return an integer with spaces between thousands."""
    return f"{many:,}".replace(",", " ")


def brief(value: int | float) -> str:
    """Return a number with three significant digits."""
    if not math.isfinite(value):
        return _float(value)
    size = abs(value)
    return _power(f"{value:.0f}" if 1000 <= size < 1e5 else f"{value:.3g}")


def short(value: int | float) -> str:
    """Return a number for an axis: `20 k`, `1.5 M`, `0.05`."""
    size = abs(value)
    for factor, letter in _SI:
        if size >= factor:
            return f"{value / factor:.4g} {letter}".replace("-", "−")
    if size and size < 1e-3:
        return _power(f"{value:.0e}")
    return f"{value:.4g}".replace("-", "−")


def _power(text: str) -> str:
    """Return `1.2e−4` for `1.2e-04`."""
    digits, e, power = text.partition("e")
    return (f"{digits}e{int(power)}" if e else digits).replace("-", "−")


def roughly(seconds: int | float) -> str:
    """Return an estimated duration in one unit: `about 12 minutes`."""
    if seconds < 45:
        return "less than a minute"
    if seconds < 90 * _MINUTE:
        return f"about {plural(max(1, round(seconds / _MINUTE)), 'minute')}"
    if seconds < 48 * _HOUR:
        return f"about {round(seconds / _HOUR)} hours"
    return f"about {round(seconds / _DAY)} days"


def ago(seconds: int | float) -> str:
    """Return an age in its largest unit: `2 hours ago`, `just now`."""
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= unit:
            return f"{plural(int(seconds // unit), name)} ago"
    return "just now"


def size(many: int | float | None) -> str:
    """Return a number of bytes in binary units; an empty string for None."""
    if many is None:
        return ""
    if many < 1000:
        return f"{many:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        many /= 1024
        if many < 1000:
            return f"{many:.1f} {unit}"
    return f"{many / 1024:.1f} TiB"


def moment(unix: int | float | None) -> str:
    """Return a Unix time as UTC to the minute; an empty string if it is out of range."""
    try:
        return datetime.fromtimestamp(unix or 0.0, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return ""


def plural(many: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{count(many)} {noun}{'' if many == 1 else 's'}"


def shortened(texts: Sequence[str], most: int) -> list[str]:
    """Return texts of at most `most` characters; different texts stay different.

    What all texts have in common at the beginning and at the end is cut first, farthest from where
    they differ, then the middle of single texts.
    """
    distinct = list(dict.fromkeys(texts))
    if all(len(text) <= most for text in distinct):
        return list(texts)
    parts = distinct
    by_word = [_TOKEN.findall(text) for text in distinct]
    by_letter = [[*text] for text in distinct]
    for split in (by_word, by_letter) if len(distinct) > 1 else ():
        parts = _without_common(distinct, split, most)
        if all(len(part) <= most for part in parts):
            break
    heads = dict.fromkeys([(most - 1) // 2, *range(most - 1, -1, -1)])
    cuts = ([_middle_cut(part, most, head) for part in parts] for head in heads)
    found = next((cut for cut in cuts if len({*cut}) == len(cut)), None)
    if found is None:
        found = [
            part if len(part) <= most else f"{cut(part, most - len(mark))}{mark}"
            for part, mark in zip(parts, (f"·{n}" for n in range(1, len(parts) + 1)), strict=True)
        ]
    by_text = dict(zip(distinct, found, strict=True))
    return [by_text[text] for text in texts]


def _without_common(texts: Sequence[str], words: Sequence[Sequence[str]], most: int) -> list[str]:
    """Return texts without the words that all have at the beginning and at the end.

    As many of these words as there is room for are kept, nearest to the difference.

    Args:
        texts: the texts.
        words: the words of each text, or its characters.
        most: the most characters of a text.
    """
    first = _alike(words)
    last = _alike([of[first:][::-1] for of in words])
    middles = [of[first : len(of) - last] for of in words]
    room = most - 2 - max(len("".join(middle)) for middle in middles)
    before, room = _fitting(words[0][:first][::-1], room)
    after, _ = _fitting(words[0][len(words[0]) - last :], room)
    start = ("…" if len(before) < first else "") + "".join(before[::-1])
    end = "".join(after) + ("…" if len(after) < last else "")
    return [
        text if len(text) <= most else f"{start}{''.join(middle)}{end}"
        for text, middle in zip(texts, middles, strict=True)
    ]


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """Return how many items all lists have in common at the beginning."""
    count = 0
    for items in zip(*lists, strict=False):
        if len({*items}) > 1:
            break
        count += 1
    return count


def _fitting(words: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return the first words that fit into a number of characters, and the characters left."""
    kept: list[str] = []
    for word in words:
        if len(word) > room:
            break
        kept.append(word)
        room -= len(word)
    return kept, room


def _middle_cut(text: str, most: int, head: int) -> str:
    """Return a text of at most `most` characters, of which `head` are its beginning."""
    if len(text) <= most:
        return text
    tail = most - 1 - head
    return f"{text[:head]}…{text[-tail:] if tail else ''}"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, cut in the middle."""
    return _middle_cut(text, most, (most - 1) // 2)
