"""Actions that environments get, followed back to the largest value: a part of L11."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.networks.bounded_values import is_q
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    arguments,
    assignments,
    has_word,
    last_word,
    names_in,
    number,
    parameters,
    unconverted,
    walk,
    written,
)

DEPTH = 9  # steps back from `env.step(action)`
LARGEST = ("max", "amax", "nanmax", "reduce_max")
PAIRED = ("max",)  # of torch, with a dimension: the values and their places
WRAPPERS = ("jit", "filter_jit", "vmap", "function", "compile")
PLACES = ("where", "argwhere", "nonzero", "flatnonzero", "argmax", "argsort", "arange", "range")
PACKAGES = ("numpy", "jax", "torch", "tensorflow")
BOUNDS = ("space", "high", "bound", "limit", "legal", "valid", "avail")  # actions by themselves
BOUNDING = ("clip", "clamp", "minimum", "min", "max")
SAME = (
    *("squeeze", "reshape", "flatten", "ravel", "view", "detach", "copy", "tolist"),
    *("clip", "clamp", "round"),
)
SAME_OF = (
    *("squeeze", "device_get", "int32", "int64", "stop_gradient"),
    *("clip", "clamp", "minimum", "round", "rint", "floor"),
)
UNKNOWN = -1_000  # a place in a tuple, or an index, that is not known


def followed_actions(source: Source) -> Iterator[Hit]:
    """Find the largest value that comes to `env.step(action)`, also through own functions."""
    found: dict[ast.AST, None] = {}
    for call, _ in source.calls():
        if len(call.args) != 1 or call.keywords:
            continue
        if steps_environment(source, call):
            found |= dict.fromkeys(_Followed(source).largest(call.args[0]))
    for node in found:
        yield Hit(node, "the action is the largest value, not its place")


class _Followed:
    """Follows one value back to where it is made."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[tuple[ast.AST, int | None]] = set()

    def largest(
        self, node: ast.expr, place: int | None = None, depth: int = DEPTH
    ) -> Iterator[ast.expr]:
        """Yield the code that takes the largest value of something, which a value can be.

        Args:
            node: the value.
            place: of the value in what the code gives, if that is a tuple.
            depth: how many steps are still made.
        """
        if depth == 0 or (node, place) in self._seen:
            return
        self._seen.add((node, place))
        for inner, at in self._before(node, place):
            yield from self.largest(inner, at, depth - 1)
        if isinstance(node, ast.Call) and self._is_largest(node, place):
            yield node

    def _before(self, node: ast.expr, place: int | None) -> Iterator[tuple[ast.expr, int | None]]:
        """Yield what a value comes from, and the place in that."""
        plain = unconverted(node)
        if plain is not node:
            yield plain, place
            return
        match node:
            case ast.Call(func=func) if last_word(func) in BOUNDING and _bounds_a_number(node):
                return
            case ast.Name():
                yield from self._assigned(node, place)
            case ast.Attribute(value=inner, attr="values"):
                yield inner, 0
            case ast.Attribute(value=inner, attr="data"):
                yield inner, place
            case ast.Attribute() if written(node).startswith("self."):
                yield from self._assigned(node, place)
            case ast.Subscript(value=inner, slice=index):
                at = number(index)
                yield inner, UNKNOWN if at is None else int(at)
            case ast.Tuple(elts=parts) if place is not None and 0 <= place < len(parts):
                yield parts[place], None
            case ast.IfExp(body=body, orelse=orelse):
                yield from ((body, place), (orelse, place))
            case ast.BinOp(left=left, op=ast.Mod()):
                yield left, place
            case ast.NamedExpr(value=value):
                yield value, place
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if (
                attr in SAME and not self._is_package(inner)
            ):
                yield inner, place
            case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _] as sides):  # bounded
                yield from ((one, place) for one in sides)
            case ast.Call(func=func, args=[inner, *_]) if last_word(func) in SAME_OF:
                yield inner, place
            case ast.Call():
                yield from self._returned(node, place)
            case _:
                pass

    def _assigned(self, node: ast.expr, place: int | None) -> Iterator[tuple[ast.expr, int | None]]:
        """Yield what a name is set to in the function that it belongs to, or is given in calls."""
        name = written(node)
        home = self._source.home(node, name)
        scopes = self._source.scopes if name.startswith("self.") else [home]
        for target, value, _ in (one for scope in scopes for one in assignments(scope)):
            if written(target) == name and not isinstance(target, ast.Subscript):
                yield value, place
            elif isinstance(target, ast.Tuple) and name in map(written, target.elts):
                yield value, list(map(written, target.elts)).index(name)
        if isinstance(home, FUNCTIONS) and name in {one.arg for one in parameters(home)}:
            yield from ((one, place) for one in given_for(self._source, home, name))

    def _returned(self, call: ast.Call, place: int | None) -> Iterator[tuple[ast.expr, int | None]]:
        """Yield what the function of the program that is called returns."""
        function = self._function(call.func)
        if isinstance(function, ast.Lambda):
            yield function.body, place
        elif function is not None:
            for node in walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value, place

    def _function(self, func: ast.expr, depth: int = 3) -> Function | ast.Lambda | None:
        """Return the only function, method or lambda of the program with this name."""
        match func:
            case ast.Lambda():
                return func
            case ast.Call(func=wrapper, args=[inner, *_]) if last_word(wrapper) in WRAPPERS:
                return self._function(inner, depth - 1) if depth else None
            case ast.Name(id=name):
                found = [one for one in self._named(name) if not self._is_method(one)]
                values = [value for value, _ in self._assigned(func, None)]
                if len(values) == 1 and not found and depth:
                    return self._function(values[0], depth - 1)
                return found[0] if len(found) == 1 and not values else None
            case ast.Attribute(value=owner, attr=name):
                found = [one for one in self._named(name) if self._is_method(one)]
                return found[0] if len(found) == 1 and not self._is_package(owner) else None
            case _:
                return None

    def _is_package(self, owner: ast.expr) -> bool:
        return written(owner).partition(".")[0] in self._source.imports

    def _named(self, name: str) -> list[Function]:
        scopes = self._source.scopes
        return [one for one in scopes if isinstance(one, FUNCTIONS) and one.name == name]

    def _is_method(self, function: Function) -> bool:
        return isinstance(self._source.parents[function], ast.ClassDef)

    def _is_largest(self, call: ast.Call, place: int | None) -> bool:
        """Return whether a call gives the largest value of something, at a place of its result."""
        if last_word(call.func) not in LARGEST or argument(call, "key") is not None:
            return False
        of, rest = self._parts(call)
        if of is None or _is_no_value(of) or any(number(one) is None for one in rest):
            return False
        has_dim = bool(rest) or argument(call, "dim") is not None
        is_pair = has_dim and last_word(call.func) in PAIRED and self._may_be_torch(call)
        return place == 0 if is_pair else place in (None, 0, UNKNOWN)

    def _parts(self, call: ast.Call) -> tuple[ast.expr | None, list[ast.expr]]:
        """Return what the largest of is taken, and the other arguments by place."""
        name = self._source.dotted(call.func)
        if name == "max":  # of Python: other values than those of actions are common
            of = call.args[0] if len(call.args) == 1 else None
            is_of_q = of is not None and any(map(is_q, names_in(of)))
            return (of if is_of_q else None), []
        if name.partition(".")[0] in PACKAGES:
            return (call.args[0], call.args[1:]) if call.args else (None, [])
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        return owner, call.args

    def _may_be_torch(self, call: ast.Call) -> bool:
        name = self._source.dotted(call.func)
        known = name.partition(".")[0] in PACKAGES
        return name.startswith("torch.") if known else self._source.imports_any("torch")


def _bounds_a_number(call: ast.Call) -> bool:
    """Return whether a bound is such as -1 or 1.0: then the action is no whole number."""
    values = [one for one in arguments(call) if number(one) is not None]
    return any("." in ast.unparse(one) or (number(one) or 0) < 0 for one in values)


def _is_no_value(node: ast.expr) -> bool:
    """Return whether code gives places or actions, whose largest is one of them."""
    return any(
        isinstance(one, ast.Compare)
        or (isinstance(one, ast.Call) and last_word(one.func) in PLACES)
        or (isinstance(one, ast.Name | ast.Attribute) and has_word(last_word(one), *BOUNDS))
        for one in ast.walk(node)
    )
