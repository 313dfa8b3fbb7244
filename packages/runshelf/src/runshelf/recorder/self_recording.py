"""Command lines of programs that record their own runs: `backflip train`, `backflip teach`."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

_PROGRAM = "backflip"
_COMMANDS = ("train", "teach")


@final
class SelfRecording(NamedTuple):
    """A command line that records its own run.

    Attributes:
        program: the words that start the program, such as `python -m backflip`.
        arguments: the words after them, such as `train dot`.
    """

    program: tuple[str, ...]
    arguments: tuple[str, ...]


def self_recording(words: Sequence[str]) -> SelfRecording | None:
    """Return the parts of a command line that records its own run; None for others.

    It is `backflip train ...`, `/path/to/backflip train ...` or `python -m backflip train ...`, and
    the same with `teach`.
    """
    interpreted = Path(words[0]).name.startswith("python") and words[1:2] == ["-m"]
    of_program = 3 if interpreted else 1
    program, arguments = tuple(words[:of_program]), tuple(words[of_program:])
    if Path(program[-1]).name != _PROGRAM or arguments[:1] not in [(one,) for one in _COMMANDS]:
        return None
    return SelfRecording(program, arguments)


def has_option(words: Sequence[str], name: str) -> bool:
    """Return whether a command line has an option, as `--home DIR` or as `--home=DIR`."""
    return any(word == name or word.startswith(f"{name}=") for word in words)
