"""L16, L17: pictures."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    argument,
    assignments,
    last_word,
    number,
    walk,
    written,
)
from backflip.doctor.lint.values import text_of

# Ids of Atari games that skip frames themselves: `ALE/Pong-v5`, `Pong-v0`, `PongDeterministic-v4`.
SKIPS = re.compile(r"^(ALE/\w+-v5|(?!\w*NoFrameskip)[A-Z]\w*-v[04])$")
GAMES = (
    "Pong",
    "Breakout",
    "Seaquest",
    "SpaceInvaders",
    "Enduro",
    "Qbert",
    "BeamRider",
    "MsPacman",
)
SKIPPERS = {
    "MaxAndSkipEnv": ("skip", 1),
    "MaxAndSkipObservation": ("skip", 1),
    "AtariPreprocessing": ("frame_skip", 2),
    "AtariWrapper": ("frame_skip", 2),
}


def _skipped_twice(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        games = [
            id_ for call, name in source.calls(scope) if (id_ := _skipping(source, call, name))
        ]
        for call, name in source.calls(scope):
            last = name.rpartition(".")[2]
            option = SKIPPERS.get(last)
            if games and option is not None and not _has_unknown_options(call):
                skip = argument(call, *option)
                if skip is None or (number(skip) or 0) > 1:
                    seen = f"{games[0]!r} skips frames, and {last} skips frames of it"
                    yield Hit(call, seen)
            elif last == "make_atari_env" and not _has_options(call):
                id_ = text_of(source, argument(call, "env_id", 0))
                if _is_skipping_game(id_):
                    yield Hit(call, f"{id_!r} skips frames, and {last} skips frames of it")


def _has_options(call: ast.Call) -> bool:
    """Return whether a game is made with other options than those by default."""
    given = (argument(call, "env_kwargs"), argument(call, "wrapper_kwargs"))
    return any(given) or _has_unknown_options(call)


def _skipping(source: Source, call: ast.Call, name: str) -> str:
    """Return the id of a game that skips frames itself; empty for other calls."""
    if name != "gymnasium.make" or not call.args:
        return ""
    if argument(call, "frameskip") is not None or _has_unknown_options(call):
        return ""
    id_ = text_of(source, call.args[0])
    return id_ if _is_skipping_game(id_) else ""


def _is_skipping_game(id_: str) -> bool:
    known = id_.startswith("ALE/") or id_.startswith(GAMES)
    return known and SKIPS.match(id_) is not None


def _has_unknown_options(call: ast.Call) -> bool:
    """Return whether a call has `**options`."""
    return any(one.arg is None for one in call.keywords)


def _wrapping_bytes(source: Source) -> Iterator[Hit]:
    attributes: dict[ast.ClassDef | None, list[tuple[str, ast.expr]]] = {}
    for scope in source.scopes:
        kept = attributes.setdefault(source.class_of(scope), [])
        kept += [one for one in _named_values(scope) if "." in one[0]]
    for scope in source.scopes:
        own = [one for one in _named_values(scope) if "." not in one[0]]
        of_bytes = _names_of_bytes(source, own + attributes[source.class_of(scope)])
        for node in walk(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
                sides = node.left, node.right
                if all(_is_bytes(source, one) or written(one) in of_bytes for one in sides):
                    sign = "a difference" if isinstance(node.op, ast.Sub) else "a sum"
                    yield Hit(node, f"{sign} of two arrays of unsigned bytes")


def _named_values(scope: ast.AST) -> list[tuple[str, ast.expr]]:
    return [(written(target), value) for target, value, _ in assignments(scope)]


def _names_of_bytes(source: Source, pairs: list[tuple[str, ast.expr]]) -> set[str]:
    """Return the names whose values are bytes, or names of bytes, all of them."""
    certain = {name for name, value in pairs if _is_bytes(source, value)} - {""}
    while True:
        wrong = {
            name
            for name, value in pairs
            if name in certain and not _is_bytes(source, value) and written(value) not in certain
        }
        if not wrong:
            return certain
        certain -= wrong


def _is_bytes(source: Source, node: ast.expr) -> bool:
    """Return whether a value is surely an array of unsigned bytes."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        return bool(node.args) and _names_bytes(source, node.args[0])
    place = 1 if last_word(node.func) in ("zeros", "ones", "empty", "array", "asarray") else None
    dtype = argument(node, "dtype", place)
    return source.dotted(node.func) == "numpy.uint8" or (
        dtype is not None and _names_bytes(source, dtype)
    )


def _names_bytes(source: Source, node: ast.expr) -> bool:
    named = source.dotted(node).rpartition(".")[2]
    return named == "uint8" or (isinstance(node, ast.Constant) and node.value == "uint8")


RULES = (
    Rule(
        "L16",
        "frames are skipped twice",
        "The policy sees one frame of sixteen, and repeats every action as often: games become "
        "unplayable.",
        "Make the game with `frameskip=1`, or use a `NoFrameskip-v4` id.",
        "RL-Adventure#12; Machado et al. 2018, arXiv:1709.06009",
        _skipped_twice,
    ),
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
