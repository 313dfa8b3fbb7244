"""Differences of pictures that become floats too late: a part of L17."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.questions.values import (
    given_for,
)
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    assignments,
    number,
    parameters,
    written,
)

PICTURES = re.compile(r"ALE/|NoFrameskip|AtariPreprocessing|GrayscaleObservation|rgb_array|ale_py")
SCALED = re.compile(r"scale_obs|ScaledFloat|ScaleObservation|RescaleObservation|as_float")


def late_casts(source: Source) -> Iterator[Hit]:
    """Find differences of pictures that become floats when they have wrapped."""
    yield from _differences_of_frames(source)
    yield from _late_scalings(source)
    yield from _late_centrings(source)


def _differences_of_frames(source: Source) -> Iterator[Hit]:
    """Find `(frame - self.before).astype(np.float32)` in a wrapper of a game: too late."""
    if not PICTURES.search(source.text) or SCALED.search(source.text):
        return
    for body in source.bodies:
        if not isinstance(body, ast.ClassDef) or not body.bases:
            continue
        frames = _frames_of(body)
        for node in ast.walk(body):
            match node:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.BinOp(left=left, op=ast.Sub(), right=right) as late, attr="astype"
                    )
                ) if {written(left), written(right)} <= frames and not _scales(body):
                    yield Hit(late, "a difference of two frames, which are of unsigned bytes")
                case _:
                    pass


def _late_scalings(source: Source) -> Iterator[Hit]:
    """Find `(now - before).astype(np.float32) / 255`: 255 divides bytes, and so both are bytes.

    Names that a float may be given to are left out.
    """
    for node in source.nodes:
        match node:
            case ast.BinOp(
                left=ast.Call(func=ast.Attribute(value=ast.BinOp(op=ast.Sub()) as late, attr=attr)),
                op=ast.Div(),
                right=ast.Constant(value=255 | 255.0),
            ) if attr in ("astype", "float"):
                names = {written(late.left), written(late.right)}
                if all(names) and not any(_may_be_float(source, late, name) for name in names):
                    yield Hit(late, "a difference of two pictures of unsigned bytes")
            case _:
                pass


def _late_centrings(source: Source) -> Iterator[Hit]:
    """Find `((frames - 128) / 128.0).astype(np.float32)`: bytes minus a whole number are bytes."""
    for node in source.nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.BinOp(
                        left=ast.BinOp(
                            left=frames, op=ast.Sub(), right=ast.Constant(value=127 | 128 as middle)
                        ) as late,
                        op=ast.Div(),
                    ),
                    attr="astype" | "float",
                )
            ) if type(middle) is int and not _is_made_float(source, frames):
                yield Hit(late, f"a difference of unsigned bytes and the whole number {middle}")
            case _:
                pass


def _is_made_float(source: Source, node: ast.expr) -> bool:
    """Return whether code is a float, as far as its function and its calls show."""
    return _has_float([node, *_values_of(source, node, written(node))])


def _may_be_float(source: Source, node: ast.AST, name: str) -> bool:
    """Return whether a name is set to a float, or a parameter that is given one, or not here."""
    scope, values = source.function_of(node), _values_of(source, node, name)
    if isinstance(scope, FUNCTIONS) and name in {one.arg for one in parameters(scope)}:
        return _has_float(values) or not any(True for _ in given_for(source, scope, name))
    return _has_float(values)


def _values_of(source: Source, node: ast.AST, name: str) -> list[ast.expr]:
    """Return what a function sets a name to, and what calls give for it."""
    scope = source.function_of(node)
    values = [value for target, value, _ in assignments(scope) if written(target) == name]
    if isinstance(scope, FUNCTIONS) and name in {one.arg for one in parameters(scope)}:
        values += given_for(source, scope, name)
    return values


def _has_float(values: list[ast.expr]) -> bool:
    return any("float" in text or "/" in text for text in map(ast.unparse, values))


def _scales(body: ast.ClassDef) -> bool:
    """Return whether a class divides something by 255."""
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and number(node.right) == 255
        for node in ast.walk(body)
    )


def _frames_of(body: ast.ClassDef) -> set[str]:
    """Return the names in a class that are only set to observations of the environment inside."""
    pairs: list[tuple[str, ast.expr]] = []
    for method in body.body:
        for target, value, _ in assignments(method) if isinstance(method, ast.FunctionDef) else ():
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            pairs.append((written(first), value))
    certain = {name for name, value in pairs if _observes(value)}
    return {
        name
        for name in certain | {name for name, value in pairs if written(value) in certain}
        if all(
            _observes(value) or written(value) in certain or _is_none(value)
            for one, value in pairs
            if one == name
        )
    } - {""}


def _observes(value: ast.expr) -> bool:
    """Return whether a value is what the environment inside of a wrapper gives, or a copy of it."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="copy")):
            return _observes(inner)
        case ast.Subscript(value=inner, slice=ast.Constant(value=0)):
            return _observes(inner)
        case ast.Call(func=ast.Attribute(value=owner, attr="step" | "reset")):
            return written(owner) == "self.env"
        case _:
            return False


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
