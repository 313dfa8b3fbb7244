"""Cleans text of runs for pages: removes escape sequences, makes control characters visible.

The templates escape HTML; this module does not.
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
# Direction overrides and isolates, which disguise text.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def sanitize(text: str) -> str:
    """Return text without escape sequences and with visible control and direction characters."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("�", text)
    return _BIDI.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def clean(value: object, longest: int = LONGEST) -> str:
    """Return any value as sanitized text of about `longest` characters at most; None is empty.

    A cut text ends with the number of characters left out.
    """
    whole = value if isinstance(value, str) else "" if value is None else str(value)
    text = sanitize(whole[: 2 * longest])
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … ({len(whole) - longest:,} more characters)"


def decode(data: bytes) -> str:
    """Return bytes as text; invalid bytes become replacement characters."""
    return data.decode("utf-8", "replace")
