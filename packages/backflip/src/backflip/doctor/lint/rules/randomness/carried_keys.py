"""Keys that loops of JAX carry on as they are after a use: a part of L19."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import resolved
from backflip.doctor.lint.questions.own_draws import draws_of
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    Function,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    walk,
    written,
)

# The place of the body in a call, its name there, and the place of the carry in the body.
BODIES = {
    "jax.lax.scan": (0, "f", 0),
    "jax.lax.fori_loop": (2, "body_fun", 1),
    "jax.lax.while_loop": (1, "body_fun", 0),
}
OF_KEYS = ("key", "rng", "seed", "prng")  # in names of keys
CHANGES = ("replace", "_replace")
PARTLY = ("split",)  # `split(key, n)[i]` gives each turn its own part


def carried_keys(source: Source) -> Iterator[Hit]:
    """Find `jax.random.split(key)` in the body of a scan that gives the same key on."""
    for call, name in source.calls():
        if name not in BODIES:
            continue
        place, keyword, carry_place = BODIES[name]
        body, bound = _body(source, call, argument(call, keyword, place))
        names = [one.arg for one in body.args.args if one.arg != "self"] if body else []
        if body is None or carry_place + bound >= len(names):
            continue
        carry = names[carry_place + bound]
        given_on = list(_given_on(source, body, name == "jax.lax.scan"))
        kept = _kept(body, carry, given_on)
        for use, key in _uses(source, body):
            if key in kept:
                seen = f"the key `{key}` is used, and given on as it is"
                yield Hit(use, f"{seen}: each turn draws the same numbers")
                break


def _body(
    source: Source, call: ast.Call, node: ast.expr | None
) -> tuple[ast.FunctionDef | None, int]:
    """Return the function that a loop runs, and how many of its arguments `partial` gives."""
    match node:
        case ast.Call(func=func, args=[inner, *given]) if last_word(func) == "partial":
            return _body(source, call, inner)[0], len(given)
        case ast.Call(args=[inner]):
            return _body(source, call, inner)
        case ast.Name() | ast.Attribute():
            pass
        case _:
            return None, 0
    own = [
        one
        for one in source.scopes
        if isinstance(one, ast.FunctionDef) and one.name == written(node).rpartition(".")[2]
    ]
    near = [one for one in own if source.function_of(one) is source.function_of(call)]
    found = near if len(near) == 1 else own
    return (found[0], 0) if len(found) == 1 else (None, 0)


def _given_on(source: Source, body: Function, is_scan: bool) -> Iterator[ast.expr | None]:
    """Yield the carries that a body returns; of a scan the first of two values."""
    for node in walk(body):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value = resolved(source, node, node.value)
        if is_scan:
            is_pair = isinstance(value, ast.Tuple) and len(value.elts) == 2
            value = value.elts[0] if isinstance(value, ast.Tuple) and is_pair else None
        yield None if value is None else resolved(source, node, value)


def _kept(body: Function, carry: str, given_on: list[ast.expr | None]) -> set[str]:
    """Return the parts of a carry that are never set, and that all returned carries have again."""
    parts = _parts(body, carry)
    set_again = [name for target, _, _ in assignments(body) for name in _names(target)]
    own = {name for name in parts if set_again.count(name) == (name != carry and "." not in name)}
    kept = [_held(one, own) for one in given_on if one is not None]
    return set.intersection(*kept) if kept and len(kept) == len(given_on) else set()


def _parts(body: Function, carry: str) -> set[str]:
    """Return the names of a carry and of what is taken out of it: `state, key = carry`."""
    found = {carry}
    for target, value, _ in assignments(body):
        if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
            is_part = written(value).partition(".")[0] in found
            found |= set(_names(target)) if is_part else set()
    return found | {name for node in walk(body) if (name := _attribute_of(node, found))}


def _attribute_of(node: ast.AST, owners: set[str]) -> str:
    """Return `carry.key` for an attribute of one of the owners; empty for others."""
    is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    return written(node) if is_read and written(node).partition(".")[0] in owners else ""


def _names(target: ast.expr) -> list[str]:
    """Return the names that an assignment sets, of nested tuples too."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for one in target.elts for name in _names(one)]
    inner = target.value if isinstance(target, ast.Starred) else target
    return [written(inner)] if isinstance(inner, ast.Name | ast.Attribute) else []


def _held(node: ast.expr, own: set[str]) -> set[str]:
    """Return the names that a carry holds as they are, of `state` also `state.key`."""
    match node:
        case ast.Name() | ast.Attribute():
            name = written(node)
            return {one for one in own if f"{one}.".startswith(f"{name}.")}
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            pass
        case ast.Call(func=ast.Attribute(value=old, attr=attr), keywords=new) if attr in CHANGES:
            changed = {f"{written(old)}.{one.arg}" for one in new}
            again = set[str]().union(*(_held(one.value, own) for one in new))
            return (_held(old, own) - changed) | again
        case ast.Call(func=func, args=parts, keywords=named) if last_word(func) == "dict" or (
            written(func).rpartition(".")[2][:1].isupper()
        ):
            parts = [*parts, *(one.value for one in named)]
        case _:
            return set()
    return set[str]().union(*(_held(one, own) for one in parts))


def _uses(source: Source, body: Function) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of a body that use a key up, with its name."""
    draws = draws_of(source)
    for node in walk(body):
        if isinstance(node, ast.Call) and not _takes_a_part(source, node):
            found = draws.used_by(node)
            first = written(node.args[0]) if node.args else ""
            if last_word(node.func).startswith(("step", "reset")) and has_word(first, *OF_KEYS):
                found = found | {first}  # an environment of JAX gets a key
            yield from ((node, key) for key in sorted(found))


def _takes_a_part(source: Source, call: ast.Call) -> bool:
    """Return whether a call is `split(key, n)` that is not taken apart at once: a turn has one."""
    if last_word(call.func) not in PARTLY:
        return False
    targets = getattr(source.parents[call], "targets", [])
    return not any(isinstance(one, ast.Tuple) for one in targets)
