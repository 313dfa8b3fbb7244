"""Networks that subtract a whole number from pictures of bytes: a part of L17."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import Source, argument, last_word, number, unconverted, written

MIDDLE = range(100, 156)  # of the values of a byte, and near it
TIMES = re.compile(r"step|iter|epoch|episode|time|count|^[tnijk]$")
ARRAYS = ("zeros", "empty", "ones")
MADE = ("as_tensor", "tensor", "asarray", "array", "from_numpy")
# Names of numbers of steps: that these become floats says nothing of pictures.
NUMBERS = re.compile(r"^(r|d|t|g|a|rew|dones?|term|ret|adv|act|logp|val|flag|mask|not_?done|live)")
FLOATS = re.compile(r"float|half|double")
# Programs that may change the type of pictures where it is not seen.
OTHER = re.compile(
    r"autocast|scale_obs|ScaledFloat|ScaleObs|RescaleObs|ToTensor|supersuit|dtype_v"
    r"|TransformObs|Rescaling|Normalize|cast\(|convert_image_dtype|normalize_images|img_as"
)


def byte_inputs(source: Source) -> Iterator[Hit]:
    """Find `(x - 128) / 128` of a program that keeps pictures as bytes, and converts none."""
    if not _keeps_bytes(source) or OTHER.search(source.text):
        return
    if any(_makes_floats(node) for node in source.nodes):
        return
    for node in source.nodes:
        match node:
            case ast.BinOp(
                left=ast.BinOp(
                    left=ast.Name() as inner, op=ast.Sub(), right=ast.Constant(value=int() as much)
                ) as late,
                op=ast.Div() | ast.Mult(),
                right=share,
            ) if much in MIDDLE and number(share) is not None and not TIMES.search(inner.id):
                seen = f"{much} is subtracted from `{inner.id}`, and nothing here makes it floats"
                yield Hit(late, seen)
            case _:
                pass


def _keeps_bytes(source: Source) -> bool:
    """Return whether a program makes arrays of bytes, with several axes."""
    return any(
        last_word(call.func) in ARRAYS
        and _is_named(argument(call, "dtype", 1), "uint8")
        and call.args != []
        and not isinstance(call.args[0], ast.Constant)
        for call, _ in source.calls()
    )


def _is_named(node: ast.expr | None, word: str) -> bool:
    return node is not None and (last_word(node) == word or getattr(node, "value", "") == word)


def _makes_floats(node: ast.AST) -> bool:
    """Return whether code makes a picture floats, as far as its name does not say otherwise."""
    match node:
        case ast.BinOp(left=left, op=ast.Div() | ast.Mult(), right=right):
            is_scaled = number(right) in (255, 256, 127.5, 1 / 255, 1 / 256)
            return is_scaled and not isinstance(left, ast.BinOp)
        case ast.AugAssign(op=ast.Div()):
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in (
            *("float", "half", "double", "astype", "to", "type", "type_as"),
        ):
            given = " ".join(map(ast.unparse, [*node.args, *(one.value for one in node.keywords)]))
            is_float = attr in ("float", "half", "double", "type_as") or FLOATS.search(given)
            return bool(is_float) and not _is_number(inner)
        case ast.Call(func=func, args=[inner, *_]) if last_word(func) in MADE:
            kind = argument(node, "dtype", 1)
            is_float = kind is not None and FLOATS.search(ast.unparse(kind))
            return bool(is_float) and not _is_number(inner)
        case ast.Call(func=func):
            return last_word(func) in ("floattensor", "float32")
        case _:
            return False


def _is_number(node: ast.expr) -> bool:
    """Return whether a value is of numbers of steps by its name, or a comparison."""
    plain = unconverted(node)
    if isinstance(plain, ast.Compare | ast.UnaryOp):
        return True
    return bool(NUMBERS.match(written(plain).rpartition(".")[2].lower()))
