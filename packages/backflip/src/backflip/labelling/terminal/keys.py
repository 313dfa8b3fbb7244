"""The names of the keys in what a terminal sends."""

import re

_NAMED = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x15": "clear",
    b"\x1b": "escape",
}
# A control sequence (CSI), a single-shift sequence (SS3, keypad), or Alt and a letter.
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O\x1b])")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
PASTE = "paste:"  # prefix of pasted text
_PASTE, _PASTED = b"\x1b[200~", b"\x1b[201~"


def parse_keys(data: bytes, *, more: bool = False) -> tuple[list[str], bytes]:
    """Return the names of the pressed keys and the bytes of an incomplete last key.

    The name of a character key is the character; others are `left`, `enter`, .... Unknown keys are
    left out. Pasted text is one name, `paste:` and the text, so that it does not act as keys.

    Args:
        data: bytes from the terminal.
        more: more bytes may follow. If false, a single escape byte is the key Esc.
    """
    keys: list[str] = []
    while data:
        taken, key = _first_key(data, more)
        if not taken:
            return keys, data
        keys += [key] if key else []
        data = data[taken:]
    return keys, b""


def _first_key(data: bytes, more: bool) -> tuple[int, str]:
    """Return the number of bytes of the first key, 0 if it is incomplete, and its name."""
    if data.startswith(_PASTE):
        end = data.find(_PASTED)
        text = data[len(_PASTE) : end].decode(errors="ignore")
        return (0, "") if end < 0 else (end + len(_PASTED), f"{PASTE}{text}")
    sequence = _SEQUENCE.match(data)
    if sequence:
        return sequence.end(), _NAMED.get(sequence.group(), "")
    if data[:1] == b"\x1b":
        waits = more and _UNFINISHED.match(data)
        return (0, "") if waits else (1, "escape")
    if data[:1] in _NAMED:
        return 1, _NAMED[data[:1]]
    return _first_character(data, more)


def _first_character(data: bytes, more: bool) -> tuple[int, str]:
    length = next((n for lead, n in ((0xF0, 4), (0xE0, 3), (0xC0, 2)) if data[0] >= lead), 1)
    if more and len(data) < length:
        return 0, ""
    try:
        text = data[:length].decode()
    except UnicodeDecodeError:
        return 1, ""
    return length, text if text.isprintable() else ""
