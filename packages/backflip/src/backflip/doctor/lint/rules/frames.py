"""L16, L17: pictures."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, assignments, number, walk, written

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
        games = [call for call, name in source.calls(scope) if _skips_itself(call, name)]
        for call, name in source.calls(scope):
            option = SKIPPERS.get(name.rpartition(".")[2])
            if games and option is not None and not _has_unknown_options(call):
                skip = argument(call, *option)
                if skip is None or (number(skip) or 0) > 1:
                    id_ = ast.unparse(games[0].args[0])
                    seen = f"{id_} skips frames, and {name.rpartition('.')[2]} skips frames of it"
                    yield Hit(call, seen)


def _skips_itself(call: ast.Call, name: str) -> bool:
    if name != "gymnasium.make" or not call.args or not isinstance(call.args[0], ast.Constant):
        return False
    if argument(call, "frameskip") is not None or _has_unknown_options(call):
        return False
    id_ = str(call.args[0].value)
    known = id_.startswith("ALE/") or id_.startswith(GAMES)
    return known and SKIPS.match(id_) is not None


def _has_unknown_options(call: ast.Call) -> bool:
    """Return whether a call has `**options`."""
    return any(one.arg is None for one in call.keywords)


def _wrapping_bytes(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        kinds: dict[str, set[bool]] = {}
        for target, value, _ in assignments(scope):
            kinds.setdefault(written(target), set()).add(_is_bytes(source, value))
        of_bytes = {name for name, found in kinds.items() if name and found == {True}}
        for node in walk(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
                sides = node.left, node.right
                if all(_is_bytes(source, one) or written(one) in of_bytes for one in sides):
                    sign = "a difference" if isinstance(node.op, ast.Sub) else "a sum"
                    yield Hit(node, f"{sign} of two arrays of unsigned bytes")


def _is_bytes(source: Source, node: ast.expr) -> bool:
    """Return whether a value is surely an array of unsigned bytes."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        return bool(node.args) and _names_bytes(source, node.args[0])
    dtype = argument(node, "dtype")
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
