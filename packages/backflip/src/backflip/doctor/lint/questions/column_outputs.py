"""Which networks of a program give columns (B, 1), also as one of several results."""

import ast

from backflip.doctor.lint.questions.layers import FORWARD, last_value, resolved, size_of
from backflip.doctor.lint.questions.origins import ends_in_one
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    argument,
    assignments,
    last_word,
    made_by,
    number,
    parameters,
    walk,
    written,
)

WHOLE = -1  # the place of a value that is no part of a tuple
SAME = ("detach", "float", "to", "clamp", "clip", "double", "cpu", "clone")  # methods
SAME_OF = ("stop_gradient", "clip", "clamp", "abs", "minimum", "maximum", "min", "max", "fmin")
APPLIED = ("apply", "apply_fn", "forward", "__call__")  # attributes that stand for their owner
KEPT = ("to", "cuda", "cpu", "train", "eval", "replace", "apply_gradients", "double", "float")
COPIED = ("deepcopy", "copy", "jit", "compile", "script")


class Columns:
    """Tells which values are columns.

    Args:
        source: the program.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        bodies = (one for one in source.bodies if isinstance(one, ast.ClassDef))
        self._classes = {body.name: _places(source, body) for body in bodies}
        self._known: dict[tuple[ast.expr, int], bool] = {}
        self._known_outputs: dict[ast.expr, set[int]] = {}

    def any_network(self) -> bool:
        """Return whether a class, or a network made in place, gives a column."""
        return any(self._classes.values()) or any(
            ends_in_one(self._source, call) for call, _ in self._source.calls()
        )

    def has(self, node: ast.expr, place: int = WHOLE) -> bool:
        """Return whether a value surely is a column, or the place of a tuple is one."""
        if (node, place) not in self._known:
            self._known[node, place] = False  # of a value that is computed from itself
            self._known[node, place] = self._has(node, place)
        return self._known[node, place]

    def _has(self, node: ast.expr, place: int) -> bool:
        match node:
            case ast.Name():
                made = self._assigned(node)
                return bool(made) and all(
                    self.has(one, place if at == WHOLE else at) for one, at in made
                )
            case ast.Subscript(value=inner, slice=index) if number(index) is not None:
                at = int(number(index) or 0)
                return at >= 0 and self.has(inner, at)
            case ast.Tuple(elts=parts):
                return 0 <= place < len(parts) and self.has(parts[place])
            case ast.BinOp(
                left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right
            ):
                return self.has(left) or self.has(right)
            case ast.UnaryOp(operand=inner):
                return self.has(inner)
            case ast.Call(func=func, args=args):
                return self._gives(node, place) or self._is_same(func, args)
            case _:
                return False

    def _is_same(self, func: ast.expr, args: list[ast.expr]) -> bool:
        """Return whether a call keeps the shape of a column: `torch.min(q1, q2)`, `q.detach()`."""
        name = self._source.dotted(func)
        is_package = name.partition(".")[0] in ("torch", "jax", "numpy")
        if is_package and last_word(func) in SAME_OF:
            both = len(args) == 2 or not last_word(func).startswith(("min", "max", "fmin"))
            return both and bool(args) and self.has(args[0])
        if isinstance(func, ast.Attribute) and func.attr in SAME:
            return self.has(func.value)
        return False

    def _gives(self, call: ast.Call, place: int) -> bool:
        """Return whether a called network, or function of the program, gives a column."""
        if place in self._outputs(call.func):
            return True
        own = [
            one
            for one in self._source.scopes
            if isinstance(one, FUNCTIONS) and one.name == written(call.func).removeprefix("self.")
        ]
        if len(own) != 1 or not written(call.func):
            return False
        returned = [one.value for one in walk(own[0]) if isinstance(one, ast.Return)]
        return bool(returned) and all(one is not None and self.has(one, place) for one in returned)

    def _outputs(self, node: ast.expr) -> set[int]:
        """Return the places of columns in what a network gives that is called as this."""
        if node not in self._known_outputs:
            self._known_outputs[node] = set()
            self._known_outputs[node] = self._outputs_of(node)
        return self._known_outputs[node]

    def _outputs_of(self, node: ast.expr) -> set[int]:
        match node:
            case ast.Attribute(value=owner, attr=attr) if attr in APPLIED:
                return self._outputs(owner)
            case ast.Name() | ast.Attribute():
                found = [self._outputs(one) for one, at in self._assigned(node) if at == WHOLE]
                known = [one for one in found if one]
                return known[0] if known and all(one == known[0] for one in known) else set()
            case ast.Call() if made_by(node) in self._classes:
                named = argument(node, "apply_fn")
                return self._classes[made_by(node)] if named is None else set()
            case ast.Call() if (given := argument(node, "apply_fn")) is not None:
                return self._outputs(given)
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in KEPT:
                return self._outputs(owner)
            case ast.Call(args=[of, *_]) if last_word(node.func) in COPIED:
                return self._outputs(of)
            case ast.Call():
                return {WHOLE} if ends_in_one(self._source, node) else set()
            case _:
                return set()

    def _assigned(self, node: ast.expr) -> list[tuple[ast.expr, int]]:
        """Return what a name is set to, and the place in it; of a parameter, what calls give."""
        name, source = written(node), self._source
        home = source.home(node, name)
        scopes = source.scopes if isinstance(node, ast.Attribute) else [home]
        found: list[tuple[ast.expr, int]] = []
        for target, value, _ in (one for scope in scopes for one in assignments(scope)):
            parts = list(map(written, target.elts)) if isinstance(target, ast.Tuple) else []
            if written(target) == name:
                found.append((value, WHOLE))
            elif name in parts:
                found.append((value, parts.index(name)))
        if isinstance(home, FUNCTIONS) and name in {one.arg for one in parameters(home)}:
            found += [(one, WHOLE) for one in given_for(source, home, name)]
        return found


def _places(source: Source, body: ast.ClassDef) -> set[int]:
    """Return the places of columns in what `forward` gives; of a single value that is -1."""
    own = {
        written(target)
        for method in body.body
        if isinstance(method, ast.FunctionDef)
        for target, value, _ in assignments(method)
        if _ends_in_one(source, value)
    }
    found: list[set[int]] = []
    for method in body.body:
        if isinstance(method, ast.FunctionDef) and method.name in FORWARD:
            for node in walk(method):
                if isinstance(node, ast.Return):
                    found.append(_columns_in(source, node, own))
    return found[0] if found and all(one == found[0] for one in found) else set()


def _columns_in(source: Source, statement: ast.Return, own: set[str]) -> set[int]:
    value = last_value(source, statement)
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    found = set[int]()
    for place, one in enumerate(parts):
        made = None if one is None else resolved(source, statement, one)
        is_own = isinstance(made, ast.Call) and made_by(made) in own
        if is_own or (isinstance(made, ast.Call) and _ends_in_one(source, made.func)):
            found.add(place)
    return found if isinstance(value, ast.Tuple) else {WHOLE for _ in found}


def _ends_in_one(source: Source, node: ast.expr) -> bool:
    """Return whether a layer or a network has one output, also `nn.Dense(1)` of Flax."""
    is_dense = isinstance(node, ast.Call) and last_word(node.func) == "dense"
    return number(size_of(node)) == 1 if is_dense else ends_in_one(source, node)
