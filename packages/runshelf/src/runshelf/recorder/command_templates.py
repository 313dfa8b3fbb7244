"""Command lines with `{placeholders}`: their words, names and values. No shell takes part."""

import re
import shlex
from collections.abc import Mapping, Sequence

from runshelf.errors import UsageError

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")
_ESCAPED = re.compile(r"\{\{(\w+)\}\}")


def words_of(command: str, source: str, example: str) -> list[str]:
    """Return the words of a command line.

    Args:
        command: the text.
        source: what the user wrote it in, such as `--command`; for messages.
        example: a command line to try instead of an empty one.

    Raises:
        UsageError: a quote is not closed, or there is no word.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{source} cannot be split into words, `{command}`: {error}") from error
    if not words:
        raise UsageError(f"{source} is empty; try '{example}'")
    return words


def placeholders(words: Sequence[str]) -> set[str]:
    """Return the names of the placeholders in the words of a command; `{{name}}` is text."""
    return {name for word in words for name in _PLACEHOLDER.findall(word)}


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word with values in place of its placeholders; unknown ones and `{{name}}` stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)


def unescaped(word: str) -> str:
    """Return a filled word with `{name}` in place of each `{{name}}`."""
    return _ESCAPED.sub(r"{\1}", word)
