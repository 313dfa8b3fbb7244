"""What ends of episodes are called in a program: `done = terminated or truncated`."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from backflip.doctor.lint.questions.environments import is_environment
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    is_false,
    last_word,
    made_by,
    names_in,
    number,
    unconverted,
    walk,
    written,
)

EITHER = ("logical_or", "bitwise_or", "maximum")
Pair = tuple[ast.expr, ast.expr]  # a name, and where its value comes from


class Flags(NamedTuple):
    """The names of ends of one kind in one scope, by the place in what `step` returns.

    Names that begin with `term` and `trun` are known without this.

    Attributes:
        ended: of terminations.
        cut: of truncations.
        never: of what is always False, and so is no end.
    """

    ended: set[str]
    cut: set[str]
    never: set[str]

    def joins(self, node: ast.expr) -> bool:
        """Return whether an expression is `terminated or truncated`, also by `any`."""
        match node:
            case ast.BoolOp(op=ast.Or(), values=[one, other]):
                pass
            case ast.BinOp(left=one, op=ast.BitOr() | ast.Add(), right=other):
                pass
            case ast.Call(func=ast.Attribute(attr=attr), args=[one, other]) if attr in EITHER:
                pass
            case ast.Call(
                func=ast.Name(id="any"),
                args=[ast.List(elts=[one, other]) | ast.Tuple(elts=[one, other])],
            ):
                pass
            case _:
                return False
        one, other = unconverted(one), unconverted(other)
        if self.never & {written(one), written(other)}:
            return False
        return self._are_both(one, other) or self._are_both(other, one)

    def _are_both(self, ended: ast.expr, cut: ast.expr) -> bool:
        return (last_word(ended)[:4] == "term" or written(ended) in self.ended) and (
            last_word(cut)[:4] == "trun" or written(cut) in self.cut
        )

    def join_in(self, value: ast.expr) -> bool:
        """Return whether `terminated or truncated` is in a value."""
        return any(isinstance(one, ast.expr) and self.joins(one) for one in ast.walk(value))


NO_FLAGS = Flags(set(), set(), set())


class Ends(NamedTuple):
    """The names of ends in one scope.

    Attributes:
        done: of `terminated or truncated`.
        masks: of 1 - done.
        flags: of ends of one kind.
        since: names of one end that become those of both, `done = done or truncated`, and where.
        scopes: where they are joined.
    """

    done: set[str]
    masks: set[str]
    flags: Flags = NO_FLAGS
    since: tuple[tuple[str, int], ...] = ()
    scopes: tuple[Scope, ...] = ()

    def at(self, node: ast.stmt | ast.expr) -> "Ends":
        """Return the names that are of both ends at a place."""
        early = {name for name, line in self.since if node.lineno < line}
        return self._replace(done=self.done - early)

    def is_end(self, value: ast.expr) -> bool:
        """Return whether a value is an end itself, and not a tuple or a call with one in it."""
        return _is_end(value, self.done, self.flags)

    def is_mask(self, value: ast.expr) -> bool:
        """Return whether a value is 1 - done, or that times something."""
        return _is_mask(value, self.masks, self)

    def negates(self, node: ast.AST) -> bool:
        """Return whether code is `1 - done`, `not done`, `~done` or `logical_not(done)`."""
        match node:
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=inner):
                pass
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
                pass
            case ast.Call(func=func, args=[inner]) if last_word(func) == "logical_not":
                pass
            case _:
                return False
        return bool(self.done & names_in(inner)) or self.flags.join_in(inner)

    def tests(self, test: ast.expr) -> bool | None:
        """Return whether a test holds where an episode ended, or goes on; None for other tests."""
        plain = unconverted(test)
        match plain:
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
                found = self.tests(inner)
                return None if found is None else not found
            case _ if written(plain) in self.masks:
                return False
            case _ if self.is_end(plain):
                return True
            case _:
                return None


def find_ends(source: Source, scope: Scope) -> Ends | None:
    """Return what ends are called in a scope; None if it joins no ends, and its class neither."""
    own = _own_ends(source, scope)
    inside = source.class_of(scope)
    if own is not None or inside is None:
        return own
    kept = _kept_ends(source, inside)
    if not kept or not any(written(one) in kept for one in walk(scope)):
        return None
    masks = _masks(_pairs(scope, {}), Ends(kept, set()))
    return Ends(kept, masks, scopes=_methods(source, inside))


def _own_ends(source: Source, scope: Scope) -> Ends | None:
    """Return what ends are called in a scope that joins them."""
    flags = find_flags(source, scope)
    nodes = (one for one in walk(scope) if isinstance(one, ast.expr))
    if not any(map(flags.joins, nodes)):
        return None
    since = {
        written(target): statement.lineno
        for target, value, statement in assignments(scope)
        if written(target) in flags.ended and flags.join_in(value)
    }
    pairs, passed = _pairs(scope, since), _passed(source, scope)
    done = _both_ends(pairs, passed, flags)
    masks = _masks(pairs + passed, Ends(done, set(), flags))
    return Ends(done, masks, flags, tuple(since.items()), (scope,))


def _pairs(scope: Scope, since: dict[str, int]) -> list[Pair]:
    """Return the assignments of a scope, without those of a name before it is of both ends."""
    return [
        (target, value)
        for target, value, statement in assignments(scope)
        if not any(statement.lineno < since.get(name, 0) for name in names_in(value))
    ]


def _passed(source: Source, scope: Scope) -> list[Pair]:
    """Return the names that get a value by a list: elements of lists, and what loops go over."""
    return [*_appended(source, scope), *_looped(scope)]


def _methods(source: Source, inside: ast.ClassDef) -> tuple[Scope, ...]:
    return tuple(one for one in source.scopes if source.class_of(one) is inside)


@lru_cache(maxsize=8)  # every method of a class asks for the ends of its class
def _kept_ends(source: Source, inside: ast.ClassDef) -> set[str]:
    """Return the attributes that a class sets to both ends, and to nothing else but constants."""
    found: dict[str, list[bool]] = {}
    for method in _methods(source, inside):
        ends = _own_ends(source, method) or Ends(set(), set())
        for target, value, _ in assignments(method):
            if isinstance(target, ast.Tuple):
                found |= {written(one): [False] for one in target.elts}
            elif isinstance(target, ast.Attribute) and not isinstance(value, ast.Constant):
                found.setdefault(written(target), []).append(ends.is_end(value))
    return {name for name, are_ends in found.items() if name[:5] == "self." and all(are_ends)}


def find_flags(source: Source, scope: Scope) -> Flags:
    """Return the names of terminations and truncations that `env.step` returns in a scope."""
    ended, cut = set[str](), set[str]()
    for one, other, env in _steps(scope):
        of_costs = "done" in last_word(other)  # it returns (obs, reward, cost, done, info)
        if is_environment(source, env) and not of_costs:
            ended.add(written(one))
            cut.add(written(other))
    plain = [(t, v) for t, v, _ in assignments(scope) if isinstance(t, ast.Name | ast.Attribute)]
    pairs = plain + _passed(source, scope) if ended else []
    never = _never_true(source, scope)
    return Flags(_carried(ended, pairs), _carried(cut, pairs), never)


def _steps(scope: Scope) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Yield the two ends that `step` returns, and the environment."""
    for target, value, _ in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[_, _, ended, cut, _]),
                ast.Call(func=ast.Attribute(value=env, attr="step")),
            ):
                yield ended, cut, env
            case _:
                pass


def _carried(names: set[str], pairs: list[Pair]) -> set[str]:
    """Return some names, and those that get their values."""
    while True:
        found = {written(one) for one, value in pairs if written(unconverted(value)) in names}
        if found - {""} <= names:
            return names
        names = names | (found - {""})


def _both_ends(pairs: list[Pair], passed: list[Pair], flags: Flags) -> set[str]:
    """Return the names whose value comes from `terminated or truncated`."""
    done: set[str] = set()
    while True:
        found = {
            written(target)
            for target, value in pairs
            if (flags.join_in(value) and not _is_chosen(value))
            or (done & names_in(value) and not _is_made_from(value))
        }
        found |= {written(target) for target, value in passed if _is_end(value, done, flags)}
        found.discard("")
        if found <= done:
            return done
        done |= found


def _is_end(value: ast.expr, done: set[str], flags: Flags) -> bool:
    plain = unconverted(value)
    return written(plain) in done or flags.joins(plain)


def _appended(source: Source, scope: Scope) -> Iterator[Pair]:
    """Yield (list, element) of each `dones.append(done)`."""
    for call, _ in source.calls(scope):
        match call:
            case ast.Call(func=ast.Attribute(value=owner, attr="append"), args=[element]):
                yield owner, element
            case _:
                pass


def _looped(scope: Scope) -> Iterator[Pair]:
    """Yield (name, list) of each loop, `for r, d in zip(reversed(rewards), dones[::-1])`."""
    for node in walk(scope):
        match node:
            case ast.For(
                target=ast.Tuple(elts=names), iter=ast.Call(func=ast.Name(id="zip"), args=lists)
            ) if len(names) == len(lists):
                yield from zip(names, map(_in_any_order, lists), strict=True)
            case ast.For(
                target=ast.Tuple(elts=[_, name]),
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[one, *_]),
            ):
                yield name, _in_any_order(one)
            case ast.For(target=ast.Name() as name, iter=one):
                yield name, _in_any_order(one)
            case _:
                pass


def _in_any_order(node: ast.expr) -> ast.expr:
    """Return what `reversed(x)`, `x[::-1]` or `list(x)` goes over."""
    while True:
        match node:
            case ast.Call(func=ast.Name(id="reversed" | "list"), args=[inner]):
                node = inner
            case ast.Subscript(value=inner, slice=ast.Slice(step=step)) if number(step) == -1:
                node = inner
            case _:
                return node


def _masks(pairs: list[Pair], ends: Ends) -> set[str]:
    """Return the names whose value is 1 - done, or that times something."""
    masks: set[str] = set()
    while True:
        found = {written(target) for target, value in pairs if _is_mask(value, masks, ends)} - {""}
        if found <= masks:
            return masks
        masks |= found


def _is_mask(value: ast.expr, masks: set[str], ends: Ends) -> bool:
    plain = unconverted(value)
    match plain:
        case _ if ends.negates(plain) or written(plain) in masks:
            return True
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _is_mask(left, masks, ends) or _is_mask(right, masks, ends)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            has_ended = ends._replace(masks=masks).tests(test)
            at_ends, elsewhere = (body, orelse) if has_ended else (orelse, body)
            return has_ended is not None and number(at_ends) == 0 != number(elsewhere)
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_mask(inner, masks, ends)
        case _:
            return False


def _never_true(source: Source, scope: Scope) -> set[str]:
    """Return the names that are always False: by their value, or as an own environment says."""
    values: dict[str, list[bool]] = {}
    for ended, cut, env in _steps(scope):
        values.setdefault(written(ended), []).append(False)
        values.setdefault(written(cut), []).append(never_truncates(source, scope, env))
    for target, value, _ in assignments(scope):
        values.setdefault(written(target), []).append(is_false(value))
        match target, value:
            case ast.Tuple(elts=[_, _, _, cut, _]), ast.Call(func=ast.Attribute(attr="last")):
                values.setdefault(written(cut), []).append(True)  # PettingZoo: games end
            case _:
                pass
    return {name for name, found in values.items() if name and all(found)}


def never_truncates(source: Source, scope: Scope, env: ast.expr) -> bool:
    """Return whether an environment is of a class of this file that never cuts an episode."""
    name = written(env)
    bodies = source.bodies if "." in name else [scope, source.tree]
    made = [v for body in bodies for target, v, _ in assignments(body) if written(target) == name]
    classes = [
        body
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and body.name in {made_by(value) for value in made}
    ]
    known = {body.name for body in classes}
    return (
        bool(made) and {*map(made_by, made)} == known and all(map(_returns_no_truncation, classes))
    )


def _returns_no_truncation(body: ast.ClassDef) -> bool:
    """Return whether every `return` of `step` has False in the place of the truncation.

    It may be a name that is set to False, and to nothing else.
    """
    returned = [
        (step, node.value)
        for step in body.body
        if isinstance(step, ast.FunctionDef) and step.name == "step"
        for node in walk(step)
        if isinstance(node, ast.Return)
    ]
    return bool(returned) and all(
        isinstance(value, ast.Tuple) and len(value.elts) == 5 and _is_false(step, value.elts[3])
        for step, value in returned
    )


def _is_false(step: ast.FunctionDef, node: ast.expr) -> bool:
    """Return whether an expression is False, or a name that `step` sets to False alone."""
    values = [value for target, value, _ in assignments(step) if written(target) == written(node)]
    return is_false(node) or (bool(written(node) and values) and all(map(is_false, values)))


def _is_chosen(value: ast.expr) -> bool:
    """Return whether a value is one of two by the ends: `env.reset()[0] if done else next_obs`."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return not all(isinstance(one, ast.Constant) for one in (body, orelse))
        case _:
            return False


def _is_made_from(value: ast.expr) -> bool:
    """Return whether a value is computed from the ends, and not the ends in another type."""
    if isinstance(value, ast.Compare | ast.IfExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = last_word(value.func)
    return name not in {"tensor", "as_tensor", "asarray", "array", "float", "int", "to", "float32"}
