"""Parses the settings in any program's command line: `--lr 1e-3`, `lr=1e-3`, `--fast`."""

import re
from collections.abc import Sequence
from typing import NamedTuple, final

Value = int | float | bool | str

_KEY = re.compile(r"[+]{0,2}[A-Za-z_][\w./@-]*")


@final
class Setting(NamedTuple):
    """A setting of a command line.

    Attributes:
        key: its name, with `_` for `-`.
        value: its value.
        place: the index of the argument with the value.
        prefix: the text before the value in that argument, such as `--lr=`; None for a bare flag.
    """

    key: str
    value: Value
    place: int
    prefix: str | None


def parse_settings(argv: Sequence[str]) -> list[Setting]:
    """Return the settings of a command line in order, without other arguments."""
    settings: list[Setting] = []
    index = 1
    while index < len(argv):
        name, equals, text = argv[index].partition("=")
        option = name.startswith("--") and _KEY.fullmatch(name[2:]) is not None
        if equals and (option or _KEY.fullmatch(name)):
            settings.append(Setting(_key(name), parse_value(text), index, f"{name}="))
        elif option and index + 1 < len(argv) and _is_value(argv[index + 1]):
            index += 1
            settings.append(Setting(_key(name), parse_value(argv[index]), index, ""))
        elif option:
            settings.append(Setting(_key(name), True, index, None))
        index += 1
    return settings


def config_of(argv: Sequence[str]) -> dict[str, Value]:
    """Return the settings of a command line by name; the last one of a name wins."""
    return {setting.key: setting.value for setting in parse_settings(argv)}


def parse_value(text: str) -> Value:
    """Return `text` as an integer, float or boolean if possible, else the text."""
    if text in ("true", "True", "false", "False"):
        return text in ("true", "True")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _key(name: str) -> str:
    return name.lstrip("-+").replace("-", "_")


def _is_value(argument: str) -> bool:
    """Return whether an argument is the value of the option before it."""
    is_number = not isinstance(parse_value(argument), str)
    is_setting = "=" in argument and _KEY.fullmatch(argument.partition("=")[0]) is not None
    return is_number or not (argument.startswith("-") or is_setting)
