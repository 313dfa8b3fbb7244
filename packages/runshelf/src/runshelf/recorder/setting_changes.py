"""Changes settings in a recorded command line: `--set KEY=VALUE`."""

from collections.abc import Mapping, Sequence

from runshelf.errors import UsageError, did_you_mean
from runshelf.key_values import key_values
from runshelf.snapshot.command_settings import Setting, parse_settings
from runshelf.snapshot.secrets import MASK

_TRUTHS = {"true": True, "false": False}


def parse_changes(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of `--set KEY=VALUE` texts by key, with `_` for `-`.

    Raises:
        UsageError: a text has another form, or repeats a key.
    """
    return key_values("--set", [_plain(text) for text in texts], "lr=0.001")


def _plain(text: str) -> str:
    key, equals, value = text.partition("=")
    return key.lstrip("-").replace("-", "_") + equals + value


def change(argv: Sequence[str], changes: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the changed command line, and the changes that matched nothing in it.

    A masked value is matched by its option's name, or as `argument_3`.

    Raises:
        UsageError: a flag is set to a value other than true or false.
    """
    argv, left = list(argv), dict(changes)
    removed: list[int] = []
    for setting in parse_settings(argv):
        if setting.key in changes:
            left.pop(setting.key, None)
            removed += _change_one(argv, setting, changes[setting.key])
    for place, argument in enumerate(argv):
        value = left.pop(f"argument_{place}", None) if MASK in argument else None
        argv[place] = argument if value is None else value
    return [word for place, word in enumerate(argv) if place not in removed], left


def refuse_unknown(argv: Sequence[str], left: Mapping[str, str]) -> None:
    """Refuse changes that matched no setting.

    Raises:
        UsageError: `left` is not empty.
    """
    keys = list(dict.fromkeys(setting.key for setting in parse_settings(argv)))
    for key in left:
        known = f"it has {', '.join(keys)}" if keys else "it has none"
        raise UsageError(f"the run has no setting `{key}`{did_you_mean(key, keys)} ({known})")


def refuse_masked(argv: Sequence[str], masked: Sequence[str]) -> None:
    """Refuse a command line with a masked secret.

    Raises:
        UsageError: a secret is missing; the message says how to give it.
    """
    if all(name.startswith("env:") for name in masked):
        return
    settings = {setting.place: setting.key for setting in parse_settings(argv)}
    missing = [
        settings.get(place, f"argument_{place}")
        for place, argument in enumerate(argv)
        if MASK in argument
    ]
    if missing:
        give = " ".join(f"--set {key}=..." for key in missing)
        raise UsageError(f"the run used secrets, which are not archived: give them with {give}")


def _change_one(argv: list[str], setting: Setting, value: str) -> list[int]:
    """Change one setting in place; return the indices of words to remove."""
    if setting.prefix is not None:
        argv[setting.place] = setting.prefix + value
        return []
    if value.lower() not in _TRUTHS:
        raise UsageError(f"`{setting.key}` is a flag: --set {setting.key}=true or false")
    return [] if _TRUTHS[value.lower()] else [setting.place]
