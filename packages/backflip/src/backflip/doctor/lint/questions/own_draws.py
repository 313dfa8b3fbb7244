"""The keys that calls use up: those of `jax.random`, and of own functions that draw with one."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from backflip.doctor.lint.source import (
    FUNCTIONS,
    INNER,
    VERSIONS_KEPT,
    Function,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    names_in,
    parameters,
    walk,
    written,
)

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BRANCHES = (ast.If, ast.Match, ast.IfExp, ast.BoolOp)
# Functions of jax.random that make keys from numbers, or do not consume one.
NOT_DRAWS = ("PRNGKey", "key", "key_data", "wrap_key_data", "clone", "key_impl", "fold_in")
GRADIENTS = ("grad", "value_and_grad")
WRAPPERS = ("jit", "vmap", "pmap", "checkpoint", "remat", *GRADIENTS)  # what they give draws too
REPEATED = ("eval", "test", "render", "video")  # may get the same key each time


class Draws:
    """Tells which keys calls of a program use up.

    Args:
        source: the program.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._named, self._wrapped = _only_ones(source), _wrapped(source)
        self._drawing: dict[Function, set[str]] = {one: set() for one in self._named.values()}
        found: dict[Function, set[str]] = {}
        while found != self._drawing:  # a function may call another one
            self._drawing |= found
            found = {one: self._drawn_with(one) for one in self._drawing}

    def used_by(self, call: ast.Call) -> set[str]:
        """Return the names of keys that a call uses up: `rng` of `jax.random.split(rng)`."""
        name = self._source.dotted(call.func)
        if name.startswith("jax.random."):
            draws = name.rpartition(".")[2] not in NOT_DRAWS
            return {_name_of(argument(call, "key", 0))} - {""} if draws else set()
        function = self.called(call.func)
        if function is None or has_word(function.name, *REPEATED):
            return set()
        names = [one.arg for one in parameters(function)]
        places = names[1:] if names[:1] == ["self"] and names else names
        used = self._drawing[function]
        return {
            _name_of(argument(call, one, place)) for place, one in enumerate(places) if one in used
        } - {""}

    def used_inside(self, node: ast.Lambda | Function) -> dict[str, ast.Call]:
        """Return the keys of an outer function that an inner one uses up, each with one use."""
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        own |= set(map(_stored, walk(node)))
        calls = [one for one in walk(node) if isinstance(one, ast.Call)]
        return {
            key: call
            for call in reversed(calls)
            for key in self.used_by(call)
            if key.partition(".")[0] not in own
        }

    def called(self, func: ast.expr) -> Function | None:
        """Return the function of the program that is called, also as `jax.jit(f)(x)`."""
        match func:
            case ast.Call(args=[inner, *_]) if _wraps(func):
                return self.called(inner)
            case ast.Name(id=name) if name in self._wrapped:
                return self.called(self._wrapped[name])
            case ast.Name(id=name):
                return self._named.get(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._named.get(f"self.{name}")
            case _:
                return None

    def _drawn_with(self, function: Function) -> set[str]:
        """Return the parameters that a function surely draws with, as they are given."""
        given = {one.arg for one in parameters(function)} - {"self"}
        found: set[str] = set()
        for statement in _straight(function.body):
            calls = (one for one in always_run(statement) if isinstance(one, ast.Call))
            found |= {key for call in calls for key in self.used_by(call) if key in given}
            given -= assigned(statement)
        return found


@lru_cache(maxsize=VERSIONS_KEPT)
def draws_of(source: Source) -> Draws:
    """Return what tells which keys calls of a program use up."""
    return Draws(source)


def _only_ones(source: Source) -> dict[str, Function]:
    """Return the functions by name, and methods as `self.f`, of names that only one has."""
    found: dict[str, list[Function]] = {}
    for scope in source.scopes:
        if isinstance(scope, FUNCTIONS):
            is_method = isinstance(source.parents[scope], ast.ClassDef)
            found.setdefault(f"self.{scope.name}" if is_method else scope.name, []).append(scope)
    set_too = {written(target) for scope in source.scopes for target, _, _ in assignments(scope)}
    return {n: ones[0] for n, ones in found.items() if len(ones) == 1 and n not in set_too}


def _wrapped(source: Source) -> dict[str, ast.expr]:
    """Return what names are set to that are set once: `jax.jit(act)` of `fast = jax.jit(act)`."""
    found: dict[str, list[ast.expr]] = {}
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            found.setdefault(written(target), []).append(value)
    return {n: ones[0] for n, ones in found.items() if len(ones) == 1 and _wraps(ones[0])}


def _wraps(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_word(node.func) in WRAPPERS


def _straight(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that always run, up to the first branch that returns."""
    for one in statements:
        if isinstance(one, ast.If | ast.Match):
            if any(isinstance(node, ast.Return | ast.Raise) for node in ast.walk(one)):
                return
        elif isinstance(one, ast.With):
            yield from _straight(one.body)
        elif not isinstance(one, (*INNER, ast.For, ast.While, ast.Try)):
            yield one


def always_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield an expression's nodes, without functions, comprehensions and branches in it.

    These run elsewhere, with a key of their own, or not at all.
    """
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*INNER, *BRANCHES, *COMPREHENSIONS)):
            yield from always_run(child)


def assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement sets."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return {name for one in targets if one is not None for name in names_in(one)}


def _name_of(node: ast.expr | None) -> str:
    return written(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _stored(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
