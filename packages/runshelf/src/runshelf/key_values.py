"""Options that are given as KEY=VALUE, each key once."""

from collections.abc import Sequence

from runshelf.errors import UsageError


def key_values(
    option: str, texts: Sequence[str], example: str, *, identifiers: bool = False
) -> dict[str, str]:
    """Return the values of `KEY=VALUE` texts by key.

    Args:
        option: the option's name, for messages.
        texts: what was given, such as `lr=0.001`.
        example: a text that would be right.
        identifiers: keys must be names of Python.

    Raises:
        UsageError: a text has another form, or a key is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key) or (identifiers and not key.isidentifier()):
            raise UsageError(f"{option} must be KEY=VALUE, got `{text}`; try {option} {example}")
        if key in found:
            raise UsageError(f"{option} `{key}` is given twice; give it once")
        found[key] = value
    return found
