"""The one way by which text reaches a terminal.

A run, a home or a repository may come from an untrusted source. Control characters in a text could
move the cursor, hide a line, name a false link or turn the order of letters around.
"""

import sys
from typing import Protocol, runtime_checkable


@runtime_checkable
class Stream(Protocol):
    """What text is printed on."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...

    def flush(self) -> None:
        """Pass on what was written."""
        ...


def harmless(text: object, *, tabs: bool = False) -> str:
    r"""Return text with all control characters escaped: `\x1b`, `\u202e`; tabs kept if `tabs`."""
    kept = "\t" if tabs else ""
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in str(text))


def put(
    text: object = "", *, file: Stream | None = None, end: str = "\n", flush: bool = False
) -> None:
    """Print text of one or more lines on stdout or `file`, with control characters escaped."""
    safe = "\n".join(harmless(line, tabs=True) for line in str(text).split("\n"))
    print(safe, file=file or sys.stdout, end=end, flush=flush)


def _escaped(character: str) -> str:
    if character in "\n\r\t\xa0":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\xa0": " "}[character]
    return character.encode("unicode_escape").decode()
