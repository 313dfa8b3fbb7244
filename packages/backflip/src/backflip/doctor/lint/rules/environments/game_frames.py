"""Differences of pictures of a game, followed back to where they are bytes: a part of L17."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.questions.byte_arrays import makes_bytes
from backflip.doctor.lint.questions.values import given_for, text_of
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Scope,
    Source,
    assignments,
    last_word,
    parameters,
    walk,
    written,
)

GAMES = re.compile(r"^ALE/|NoFrameskip-v|Deterministic-v")
# Programs that may change the type of pictures where it is not seen.
OTHER = re.compile(r"scale_|Scale|ToTensor|TransformObs|dtype_v|supersuit|wrap_deepmind|Wrapper\b")
KEEPING = (
    *("copy", "ravel", "reshape", "flatten", "squeeze", "transpose", "swapaxes"),
    *("ascontiguousarray", "expand_dims", "moveaxis"),
)
EMPTY = ("zeros_like", "ones_like", "empty_like")
SIZES = {"reset": 2, "step": 5}


def game_frames(source: Source) -> Iterator[Hit]:
    """Find sums and differences of two pictures of a game that no line has made floats."""
    if OTHER.search(source.text) or not _plays_games(source):
        return
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
            sides = (node.left, node.right)
            if all(_Frames(source).are_bytes(one) for one in sides):
                yield Hit(node, "a difference or sum of two pictures of a game, which are bytes")


def _plays_games(source: Source) -> bool:
    """Return whether all environments are games with pictures, and none is the program's own."""
    made = [text_of(source, one.args[0]) for one in source.calls_of.get("make", ()) if one.args]
    own = {getattr(scope, "name", "") for scope in source.scopes}
    return bool(made) and all(map(GAMES.search, made)) and "step" not in own


class _Frames:
    """Follows one value back to what environments return."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[ast.AST] = set()
        self._has_base = False

    def are_bytes(self, node: ast.expr) -> bool:
        """Return whether a value is surely a picture, or a part of one, as the game gives it."""
        return self._are(node) and self._has_base

    def _are(self, node: ast.expr) -> bool:
        if node in self._seen:
            return True
        self._seen.add(node)
        match node:
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)) if (
                _is_interface(call)
            ):
                self._has_base = True
                return True
            case ast.Subscript(value=inner) | ast.NamedExpr(value=inner):
                return self._are(inner)
            case ast.Attribute(value=inner, attr="T"):
                return self._are(inner)
            case ast.IfExp(body=first, orelse=second):
                return all(self._are(one) for one in (first, second) if not _is_none(one))
            case ast.Name() | ast.Attribute():
                return self._named(node)
            case ast.Call():
                return self._called(node)
            case _:
                return False

    def _called(self, call: ast.Call) -> bool:
        """Return whether a call keeps the bytes of what it is given."""
        word = last_word(call.func)
        if word in (*KEEPING, *EMPTY) and isinstance(call.func, ast.Attribute):
            is_package = written(call.func.value) in self._source.imports
            of = call.args[0] if is_package and call.args else call.func.value
            return not call.keywords and self._are(of)
        if makes_bytes(self._source, call):
            return True
        function = self._own(word)
        returned = (
            [one for one in walk(function) if isinstance(one, ast.Return)] if function else []
        )
        return bool(returned) and all(
            one.value is not None and self._are(one.value) for one in returned
        )

    def _own(self, word: str) -> Function | None:
        found = [one for one in self._source.scopes if getattr(one, "name", "").lower() == word]
        only = found[0] if len(found) == 1 else None
        return only if isinstance(only, FUNCTIONS) else None

    def _named(self, node: ast.expr) -> bool:
        """Return whether all that a name is set to, and is given in calls, is bytes."""
        name = written(node)
        home = self._source.home(node, name)
        values = list(self._set_to(node, name, home))
        is_parameter = isinstance(home, FUNCTIONS) and name in {x.arg for x in parameters(home)}
        if is_parameter and isinstance(home, FUNCTIONS):
            given = list(self._given(home, name))
            if not given:
                return False
            values += given
        kept = [one for one in values if one is None or not _is_none(one)]
        return bool(kept) and all(one is not None and self._are(one) for one in kept)

    def _set_to(self, node: ast.expr, name: str, home: Scope) -> Iterator[ast.expr | None]:
        """Yield what a name is set to; None for what is not known to be a picture."""
        inside = self._source.class_of(node)
        scopes = self._source.scopes if name.startswith("self.") else [home]
        for scope in scopes:
            if name.startswith("self.") and self._source.class_of(scope) is not inside:
                continue
            for target, value, statement in assignments(scope):
                if isinstance(target, ast.Tuple | ast.List):
                    if name in map(written, target.elts):
                        yield self._first(target, value, name)
                elif written(target) == name and not isinstance(target, ast.Subscript):
                    yield None if isinstance(statement, ast.AugAssign) else value
            yield from (None for one in walk(scope) if _loops_over(one, name))

    def _first(self, target: ast.Tuple | ast.List, value: ast.expr, name: str) -> ast.expr | None:
        """Return a picture, if a name is the first of what an environment returns."""
        is_first = written(target.elts[0]) == name
        if not is_first or not isinstance(value, ast.Call) or not _is_interface(value):
            return None
        first = ast.Subscript(value, ast.Constant(0), ast.Load())
        return first if len(target.elts) == SIZES[last_word(value.func)] else None

    def _given(self, function: Function, name: str) -> Iterator[ast.expr]:
        """Yield what calls give for a parameter, also those of objects with `__call__`."""
        yield from given_for(self._source, function, name)
        inside = self._source.class_of(function)
        if function.name != "__call__" or inside is None:
            return
        place = [one.arg for one in parameters(function)].index(name) - 1
        for scope in self._source.scopes:
            for target, value, _ in assignments(scope):
                if isinstance(value, ast.Call) and written(value.func) == inside.name:
                    calls = self._source.calls_of.get(last_word(target), ())
                    yield from (one.args[place] for one in calls if place < len(one.args))


def _is_interface(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in SIZES


def _loops_over(node: ast.AST, name: str) -> bool:
    """Return whether a loop sets a name."""
    if not isinstance(node, ast.For):
        return False
    return name in {written(one) for one in ast.walk(node.target)}


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
