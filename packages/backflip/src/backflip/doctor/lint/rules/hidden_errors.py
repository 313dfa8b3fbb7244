"""L23: errors that are caught and forgotten."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, last_word, written

BROAD = ("Exception", "BaseException", "")


def _hidden_errors(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.Try) or not any(map(_trains, node.body)):
            continue
        for handler in node.handlers:
            if _is_broad(handler) and not _ends(handler):
                yield Hit(handler, "errors of training are caught, and the program goes on")


def _trains(statement: ast.stmt) -> bool:
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and last_word(one.func) in ("learn", "backward", "train_step")
        for one in ast.walk(statement)
    )


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or written(handler.type) in BROAD


def _ends(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler raises, or leaves the program or the function."""
    return any(
        isinstance(one, ast.Raise | ast.Return)
        or (isinstance(one, ast.Call) and last_word(one.func) in ("exit", "_exit", "abort"))
        for one in ast.walk(handler)
    )


RULES = (
    Rule(
        "L23",
        "errors of training are hidden",
        "A bug in the loss or in the environment looks like a policy that does not learn.",
        "Catch the one error that is expected, or none.",
        "Rahtz 2018; wassname, ml_debug",
        _hidden_errors,
    ),
)
