"""What ends of episodes are called in a program: `done = terminated or truncated`."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

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


class Ends(NamedTuple):
    """The names of ends in one scope.

    Attributes:
        done: of `terminated or truncated`.
        masks: of 1 - done.
        never: of what is always False, and so is no end.
    """

    done: set[str]
    masks: set[str]
    never: set[str]

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
        return bool(self.done & names_in(inner)) or _is_either_end(inner, self.never)

    def tests(self, test: ast.expr) -> bool | None:
        """Return whether a test holds where an episode ended, or goes on; None for other tests."""
        plain = unconverted(test)
        match plain:
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
                found = self.tests(inner)
                return None if found is None else not found
            case _ if written(plain) in self.masks:
                return False
            case _ if written(plain) in self.done or joins_ends(plain, self.never):
                return True
            case _:
                return None


def find_ends(source: Source, scope: Scope) -> Ends | None:
    """Return what ends are called in a scope; None if it joins no ends."""
    never = _never_true(source, scope)
    nodes = (one for one in walk(scope) if isinstance(one, ast.expr))
    if not any(joins_ends(one, never) for one in nodes):
        return None
    pairs = [(target, value) for target, value, _ in assignments(scope)]
    passed = [*_appended(source, scope), *_looped(scope)]
    done = _both_ends(pairs, passed, never)
    return Ends(done, _masks(pairs + passed, Ends(done, set(), never)), never)


def _both_ends(pairs: list[Pair], passed: list[Pair], never: set[str]) -> set[str]:
    """Return the names whose value comes from `terminated or truncated`."""
    done: set[str] = set()
    while True:
        found = {
            written(target)
            for target, value in pairs
            if _is_either_end(value, never) or (done & names_in(value) and not _is_made_from(value))
        }
        found |= {written(target) for target, value in passed if _is_end(value, done, never)}
        found.discard("")
        if found <= done:
            return done
        done |= found


def _is_end(value: ast.expr, done: set[str], never: set[str]) -> bool:
    """Return whether a value is an end itself, and not a tuple or a call with one in it."""
    plain = unconverted(value)
    return written(plain) in done or joins_ends(plain, never)


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
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_mask(inner, masks, ends)
        case _:
            return False


def _never_true(source: Source, scope: Scope) -> set[str]:
    """Return the names that are always False: by their value, or as an own environment says."""
    values: dict[str, list[bool]] = {}
    for target, value, _ in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[_, _, ended, cut, _]),
                ast.Call(func=ast.Attribute(value=env, attr="step")),
            ):
                values.setdefault(written(ended), []).append(False)
                values.setdefault(written(cut), []).append(_never_truncates(source, scope, env))
            case _:
                values.setdefault(written(target), []).append(is_false(value))
    return {name for name, found in values.items() if name and all(found)}


def _never_truncates(source: Source, scope: Scope, env: ast.expr) -> bool:
    """Return whether an environment is of a class of this file that never cuts an episode."""
    name = written(env)
    bodies = source.bodies if "." in name else [scope, source.tree]
    made = [v for body in bodies for target, v, _ in assignments(body) if written(target) == name]
    classes = [
        body
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and body.name in {made_by(value) for value in made}
    ]
    return bool(made) and len(classes) == len(made) and all(map(_returns_no_truncation, classes))


def _returns_no_truncation(body: ast.ClassDef) -> bool:
    """Return whether every `return` of `step` has False in the place of the truncation."""
    returned = [
        node.value
        for step in body.body
        if isinstance(step, ast.FunctionDef) and step.name == "step"
        for node in walk(step)
        if isinstance(node, ast.Return)
    ]
    return bool(returned) and all(
        isinstance(value, ast.Tuple) and len(value.elts) == 5 and is_false(value.elts[3])
        for value in returned
    )


def _is_either_end(value: ast.expr, never: set[str]) -> bool:
    """Return whether `terminated or truncated` is in a value, also by `|`, `+` or `logical_or`.

    Names that are never true count as no end.
    """
    return any(isinstance(one, ast.expr) and joins_ends(one, never) for one in ast.walk(value))


def joins_ends(node: ast.expr, never: set[str]) -> bool:
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
    words = {last_word(one)[:4], last_word(other)[:4]}
    return words == {"term", "trun"} and not never & {written(one), written(other)}


def _is_made_from(value: ast.expr) -> bool:
    """Return whether a value is computed from the ends, and not the ends in another type."""
    if isinstance(value, ast.Compare | ast.IfExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = last_word(value.func)
    return name not in {"tensor", "as_tensor", "asarray", "array", "float", "int", "to", "float32"}
