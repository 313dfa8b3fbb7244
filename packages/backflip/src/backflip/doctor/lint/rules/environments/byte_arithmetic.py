"""L17: sums and differences of bytes."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.byte_arrays import makes_bytes
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.byte_inputs import byte_inputs
from backflip.doctor.lint.rules.environments.channel_sums import channel_sums
from backflip.doctor.lint.rules.environments.game_frames import game_frames
from backflip.doctor.lint.rules.environments.late_casts import late_casts
from backflip.doctor.lint.source import (
    LONGEST_CHAIN,
    Source,
    assignments,
    walk,
    written,
)


def _wrapping_bytes(source: Source) -> Iterator[Hit]:
    yield from late_casts(source)
    yield from game_frames(source)
    yield from byte_inputs(source)
    yield from channel_sums(source)
    attributes: dict[ast.ClassDef | None, list[tuple[str, ast.expr]]] = {}
    for scope in source.scopes:
        kept = attributes.setdefault(source.class_of(scope), [])
        kept += [one for one in _named_values(scope) if "." in one[0]]
    for scope in source.scopes:
        own = [one for one in _named_values(scope) if "." not in one[0]]
        of_bytes = _names_of_bytes(source, own + attributes[source.class_of(scope)])
        for node in walk(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
                sides = [node.left, node.right]
                known = [makes_bytes(source, one) or written(one) in of_bytes for one in sides]
                sign = "a difference" if isinstance(node.op, ast.Sub) else "a sum"
                if all(known):
                    yield Hit(node, f"{sign} of two arrays of unsigned bytes")
                elif any(known) and any(map(_is_whole_number, sides)):
                    yield Hit(node, f"{sign} of unsigned bytes and a whole number")


def _is_whole_number(node: ast.expr) -> bool:
    """Return whether an expression is such as 128: with bytes it gives bytes, 128.0 does not."""
    return isinstance(node, ast.Constant) and type(node.value) is int


def _named_values(scope: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return names and what they are set to: rows of an array keep its type, and are left out."""
    return [
        (written(target), value)
        for target, value, _ in assignments(scope)
        if not isinstance(target, ast.Subscript)
    ]


def _names_of_bytes(source: Source, pairs: list[tuple[str, ast.expr]]) -> set[str]:
    """Return the names whose values are bytes, or names of bytes, all of them."""
    certain = set[str]()
    for _ in range(LONGEST_CHAIN):
        certain |= {name for name, value in pairs if _stays_bytes(source, value, certain)} - {""}
    while True:
        wrong = {
            name
            for name, value in pairs
            if name in certain and not _stays_bytes(source, value, certain)
        }
        if not wrong:
            return certain
        certain -= wrong


def _stays_bytes(source: Source, value: ast.expr, certain: set[str]) -> bool:
    """Return whether a value is made of bytes, or computed from them and whole numbers."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult):
        sides = (value.left, value.right)
        known = [_stays_bytes(source, one, certain) for one in sides]
        return any(known) and all(
            one or _is_whole_number(side) for one, side in zip(known, sides, strict=True)
        )
    return makes_bytes(source, value) or written(value) in certain


RULES = (
    Rule(
        "L17",
        "sums and differences of bytes",
        "They wrap: 10 - 20 is 246. Differences of frames then show bright pixels where it got "
        "dark.",
        "Convert first: `frame.astype(np.float32)`.",
        "Rahtz 2018; NumPy, documentation of integer overflow",
        _wrapping_bytes,
    ),
)
