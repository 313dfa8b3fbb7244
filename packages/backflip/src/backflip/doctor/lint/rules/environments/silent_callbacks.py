"""L68: callbacks that end training without a word."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, last_word, walk

BASES = ("basecallback", "eventcallback")


def _silent_callbacks(source: Source) -> Iterator[Hit]:
    """Find `_on_step` of a callback of Stable-Baselines3 that returns nothing."""
    for body in source.nodes:
        if not isinstance(body, ast.ClassDef) or not {*map(last_word, body.bases)} & {*BASES}:
            continue
        for method in body.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "_on_step"):
                continue
            ends = [one for one in walk(method) if isinstance(one, ast.Return | ast.Raise)]
            if all(isinstance(one, ast.Return) and one.value is None for one in ends):
                yield Hit(method, "`_on_step` returns None, which ends training")


RULES = (
    Rule(
        "L68",
        "a callback ends training",
        "Stable-Baselines3 goes on only if `_on_step` returns something true: without a `return`, "
        "`learn` ends after the first step, without an error.",
        "End `_on_step` with `return True`.",
        "Stable-Baselines3's documentation, Callbacks",
        _silent_callbacks,
    ),
)
