"""Sanitizes text of runs: removes escape sequences, makes control characters visible.

The templates escape text for HTML; this module does not.
"""

import re

LONGEST = 4_000

# Colours and cursor movements (CSI), titles and hyperlinks (OSC), other strings, single escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
# Direction overrides and isolates, which make text look like other text.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return text without escape sequences; control and direction characters are made visible."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("�", text)
    return _BIDI.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def shown(value: object, longest: int = LONGEST) -> str:
    """Return any value as sanitized text, cut to a length that fits a page."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    return cut(
        plain(text[: 2 * longest]) if len(text) > 2 * longest else plain(text), longest, len(text)
    )


def cut(text: str, longest: int, whole: int | None = None) -> str:
    """Return text; if it is too long, the end is replaced by the number of characters left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({(whole or len(text)) - longest:,} more characters)"


def decoded(data: bytes) -> str:
    """Return bytes as text; invalid bytes become replacement characters."""
    return data.decode("utf-8", "replace")
