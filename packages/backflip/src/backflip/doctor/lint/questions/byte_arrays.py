"""Which code makes arrays of unsigned bytes."""

import ast

from backflip.doctor.lint.source import Source, argument, last_word


def makes_bytes(source: Source, node: ast.expr) -> bool:
    """Return whether a value is surely an array of unsigned bytes."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        return bool(node.args) and names_bytes(source, node.args[0])
    place = 1 if last_word(node.func) in ("zeros", "ones", "empty", "array", "asarray") else None
    dtype = argument(node, "dtype", place)
    return source.dotted(node.func) == "numpy.uint8" or (
        dtype is not None and names_bytes(source, dtype)
    )


def names_bytes(source: Source, node: ast.expr) -> bool:
    """Return whether code is `np.uint8`, or `"uint8"`."""
    named = source.dotted(node).rpartition(".")[2]
    return named == "uint8" or (isinstance(node, ast.Constant) and node.value == "uint8")
