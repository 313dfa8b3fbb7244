"""Sums of the channels of a picture in a wrapper, which are of bytes: a part of L17."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.questions.byte_arrays import names_bytes
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import Source, assignments, last_word, walk, written

METHODS = ("observation", "_observation")
FLOATS = re.compile(r"scale_obs|ScaledFloat|ScaleObs|RescaleObs|as_float|DtypeObservation")


def channel_sums(source: Source) -> Iterator[Hit]:
    """Find `frame[..., 0] + frame[..., 1]` in a wrapper whose own observations are bytes."""
    if FLOATS.search(source.text):
        return
    for body in source.bodies:
        if not isinstance(body, ast.ClassDef) or not _gives_bytes(source, body):
            continue
        for method in body.body:
            if isinstance(method, ast.FunctionDef) and method.name in METHODS:
                yield from _sums(method)


def _gives_bytes(source: Source, body: ast.ClassDef) -> bool:
    """Return whether a class is a wrapper of observations, and says that it gives bytes."""
    wraps = any(last_word(base).endswith("observationwrapper") for base in body.bases)
    return wraps and any(
        isinstance(node, ast.Call)
        and last_word(node.func) == "box"
        and any(one.arg == "dtype" and names_bytes(source, one.value) for one in node.keywords)
        for node in ast.walk(body)
    )


def _sums(method: ast.FunctionDef) -> Iterator[Hit]:
    """Find sums and differences of parts of the observation that nothing has converted."""
    frames = {one.arg for one in method.args.args[1:2]}
    pairs = [(written(target), value) for target, value, _ in assignments(method)]
    for name, value in pairs:
        if name and _is_part(value, frames):
            frames.add(name)
    frames -= {name for name, value in pairs if not _is_part(value, frames)}
    for node in walk(method):
        match node:
            case ast.BinOp(
                left=ast.Subscript() as left,
                op=ast.Add() | ast.Sub(),
                right=ast.Subscript() as right,
            ) if _is_part(left, frames) and _is_part(right, frames):
                yield Hit(node, "a sum of parts of a picture, which are of unsigned bytes")
            case _:
                pass


def _is_part(node: ast.expr, frames: set[str]) -> bool:
    """Return whether code is a frame, or cut out of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return written(node) in frames
