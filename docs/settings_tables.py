"""Write the tables of settings in docs/algorithms from the algorithms' entries.

    python docs/settings_tables.py

Run it after a setting, a default or a bound has changed; a test compares the pages with it.
"""

import inspect
import re
from pathlib import Path
from typing import Any

from backflip.algorithms.entry import AlgorithmEntry, Kind
from backflip.algorithms.registry import algorithms
from backflip.core.settings import LARGEST_COUNT, Setting

PAGES = Path(__file__).parent / "algorithms"
OPTIONS = {"env_steps": "--env-steps", "updates_per_step": "--updates-per-step"}
KINDS: dict[Kind, str] = {
    "discrete": "vectors, discrete actions",
    "continuous": "vectors, continuous actions",
    "small continuous": "vectors of at most 4 numbers, continuous actions",
    "grid": "grids of cells",
    "pixels": "pictures",
}
KIND_HEAD = "| algorithm | kind | settings |"
ENVIRONMENT_HEAD = "| algorithm | environment | settings |"


def pages() -> dict[Path, str]:
    """Return the pages with tables and their texts as they must be."""
    found = {PAGES / f"{entry.name}.md": _page(entry) for entry in algorithms().values()}
    return found | {PAGES / "defaults.md": _defaults_page()}


def _page(entry: AlgorithmEntry) -> str:
    head = "| name | default | valid | meaning |"
    meanings = documented(entry.config)
    rows = [
        f"| `{name}` | `{typed(setting.default)}` | {valid(setting)} | "
        f"{meanings[name]}{also(name)} |"
        for name, setting in entry.settings.items()
    ]
    before, _, after = (PAGES / f"{entry.name}.md").read_text().partition("\n## Settings\n")
    return f"{before}\n## Settings\n{with_table(after, head, rows)}"


def _defaults_page() -> str:
    of_kinds = [
        f"| [`{entry.name}`]({entry.name}.md) | {words} | {assigned(entry.defaults[kind])} |"
        for entry in algorithms().values()
        for kind, words in KINDS.items()
        if kind in entry.defaults
    ]
    of_one = [
        f"| [`{entry.name}`]({entry.name}.md) | `{env}` | {assigned(settings)} |"
        for entry in algorithms().values()
        for env, settings in entry.environments.items()
    ]
    text = with_table((PAGES / "defaults.md").read_text(), KIND_HEAD, of_kinds)
    return with_table(text, ENVIRONMENT_HEAD, of_one)


def with_table(text: str, head: str, rows: list[str]) -> str:
    """Return a text with the rows of its first table whose head begins as `head` does."""
    first = re.escape("|".join(head.split("|")[:3]))
    table = "\n".join([head, re.sub("[^|]+", "---", head), *rows]) + "\n"
    return re.sub(rf"^{first}\|.*\n(?:\|.*\n)*", lambda _: table, text, count=1, flags=re.MULTILINE)


def documented(config: type[Any]) -> dict[str, str]:
    """Return what the docstring of a settings dataclass says of each field, on one line."""
    _, _, attributes = (inspect.getdoc(config) or "").partition("Attributes:\n")
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(text.split()).removesuffix(".") for name, text in found}


def also(name: str) -> str:
    """Return the option of the command line that sets the same."""
    return f" (also `{OPTIONS[name]}`)" if name in OPTIONS else ""


def valid(setting: Setting) -> str:
    """Return the valid values of a setting in words."""
    if setting.choices:
        own = [setting.own] if setting.own else []
        return ", ".join(f"`{choice}`" for choice in [*setting.choices, *own])
    if setting.kind is bool:
        return "true, false"
    if setting.kind is tuple:
        return "whole numbers, or none"
    if setting.bounds is None or setting.bounds.low <= -LARGEST_COUNT:
        return "any number"
    low, high, above = setting.bounds
    if high >= LARGEST_COUNT:
        return f"{'above' if above else 'at least'} {low:g}"
    return f"above {low:g}, at most {high:g}" if above else f"{low:g} to {high:g}"


def assigned(settings: Any) -> str:
    """Return settings as they are typed after --set."""
    return " ".join(f"`{name}={typed(value)}`" for name, value in settings.items())


def typed(value: Any) -> str:
    """Return a value as it is typed."""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value
        return ",".join(map(str, parts)) or "none"
    return str(value).lower()


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
