"""L01: a time limit that counts as an end of the task."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.ends import stores
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Scope,
    Source,
    arguments,
    assignments,
    discounts,
    has_word,
    is_false,
    last_word,
    made_by,
    names_in,
    unconverted,
    walk,
    written,
)

EITHER = ("logical_or", "bitwise_or", "maximum")
CUT = ("trunc", "timeout", "time_limit", "timelimit")  # in names of truncations
PLACES = ("flatnonzero", "nonzero", "where", "argwhere")  # functions that say where something is


def _truncation_masks(source: Source) -> Iterator[Hit]:
    """Follow `terminated or truncated` by name to `γ V (1 - done)`, in one function."""
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(source, scope):
            continue
        masks = _masks(scope, done)
        for statement in _statements(scope):
            if discounts(statement) and _masks_a_value(source, statement, masks, done):
                seen = "the bootstrapped value is multiplied by 0 where an episode is truncated"
                yield Hit(statement, seen)
                break


def _is_value(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return last in ("v", "q", "vf", "qf") or has_word(
        last, "value", "critic", "boot", "q_", "_q", "qval", "target"
    )


def _masks_a_value(source: Source, node: ast.AST, masks: set[str], done: set[str]) -> bool:
    """Return whether 1 - done is in a term of a sum that has a value.

    `γ v (1 - terminated) + γ λ (1 - done) sum` masks the sum alone by done, and that is right.
    """
    return any(
        any(map(_is_value, names_in(_term(source, one))))
        for one in ast.walk(node)
        if (isinstance(one, ast.Name | ast.Attribute) and written(one) in masks)
        or _is_negation(one, done)
    )


def _term(source: Source, node: ast.AST) -> ast.AST:
    """Return the largest code around a node that is no sum; all of `x *= node`."""
    while True:
        parent = source.parents[node]
        match parent:
            case ast.AugAssign(op=ast.Mult()):
                return parent
            case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.stmt():
                return node
            case _:
                node = parent


def _stored_ends(source: Source) -> Iterator[Hit]:
    """Find ends that go into a replay, where what comes out of it masks values."""
    statements = (one for scope in source.scopes for one in _statements(scope))
    if not any(_masks_by_stored_ends(source, one) for one in statements):
        return
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(source, scope):
            continue
        for call, _ in source.calls(scope):
            kept = done & {name for one in arguments(call) for name in names_in(one)}
            if kept and stores(call):
                name = sorted(kept)[0]
                yield Hit(call, f"`{name}` is stored, and what is stored masks bootstrapped values")
                break


def _masks_by_stored_ends(source: Source, statement: ast.stmt) -> bool:
    """Return whether a statement has γ, and a value times 1 - done."""
    ends = {
        name
        for name in names_in(statement)
        if has_word(name.rpartition(".")[2], "done", "terminal")
    }
    return discounts(statement) and _masks_a_value(source, statement, set(), ends)


def _ends(source: Source) -> Iterator[Hit]:
    yield from _truncation_masks(source)
    yield from _stored_ends(source)


def _statements(scope: Scope) -> Iterator[ast.stmt]:
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
    return (node for node in walk(scope) if isinstance(node, simple))


def _both_ends(source: Source, scope: Scope) -> set[str]:
    """Return the names whose value comes from `terminated or truncated`."""
    done: set[str] = set()
    pairs = list(assignments(scope))
    never = _never_true(source, scope)
    while True:
        found = {
            written(target)
            for target, value, _ in pairs
            if _is_either_end(value, never) or (done & names_in(value) and not _is_made_from(value))
        }
        found.discard("")
        if found <= done:
            return done
        done |= found


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
    return any(isinstance(one, ast.expr) and _joins_ends(one, never) for one in ast.walk(value))


def _joins_ends(node: ast.expr, never: set[str]) -> bool:
    """Return whether an expression is `terminated or truncated`."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=[one, other]):
            pass
        case ast.BinOp(left=one, op=ast.BitOr() | ast.Add(), right=other):
            pass
        case ast.Call(func=ast.Attribute(attr=attr), args=[one, other]) if attr in EITHER:
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


def _masks(scope: Scope, done: set[str]) -> set[str]:
    """Return the names whose value is 1 - done."""
    return {written(target) for target, value, _ in assignments(scope) if _negates(value, done)} - {
        ""
    }


def _negates(node: ast.AST, done: set[str]) -> bool:
    """Return whether `1 - done`, `not done` or `~done` is in the code."""
    return any(_is_negation(one, done) for one in ast.walk(node))


def _is_negation(node: ast.AST, done: set[str]) -> bool:
    """Return whether code is `1 - done`, `not done` or `~done`."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=inner):
            return bool(done & names_in(inner))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
            return bool(done & names_in(inner))
        case _:
            return False


def _bootstraps_truncated(source: Source, scope: Scope) -> bool:
    """Return whether the value of the last state is added where an episode is truncated.

    The statement names the truncation, or is under a test of it:
    `if truncated and not terminated: reward += gamma * critic(obs)`.
    """
    cut = _truncations(source, scope)
    return any(
        discounts(one) and (_says_cut(one, cut) or _is_where_cut(source, one, cut))
        for one in _statements(scope)
    )


def _truncations(source: Source, scope: Scope) -> set[str]:
    """Return the names made from truncations: `only_cut = truncated & ~terminated`.

    So is a value that is set where an episode is truncated.
    """
    pairs = [(t.id, v, where) for t, v, where in assignments(scope) if isinstance(t, ast.Name)]
    cut: set[str] = set()
    while True:
        found = {name for name, value, where in pairs if _is_of_cut(source, value, where, cut)}
        if found <= cut:
            return cut
        cut |= found


def _is_of_cut(source: Source, value: ast.expr, where: ast.AST, cut: set[str]) -> bool:
    """Return whether a value is made from truncations, or is one of a truncated state."""
    if _is_logic(value) and _says_cut(value, cut):
        return True
    return any(map(_is_value, names_in(value))) and _is_where_cut(source, where, cut)


def _is_logic(value: ast.expr) -> bool:
    """Return whether a value chooses or combines, and is no object that holds many things."""
    plain = unconverted(value)
    if isinstance(plain, ast.Call):
        return last_word(plain.func) in ("logical_and", "bitwise_and", "minimum", "where")
    return isinstance(plain, ast.BoolOp | ast.BinOp | ast.IfExp | ast.Subscript)


def _says_cut(node: ast.AST, cut: set[str]) -> bool:
    """Return whether code names a truncation, and not only `terminated or truncated`."""
    if isinstance(node, ast.expr) and _joins_ends(node, set()):
        return False
    match node:
        case ast.Constant(value=str() as text):
            word = text
        case ast.Name() | ast.Attribute():
            word = written(node)
        case _:
            word = ""
    said = word in cut or has_word(word, *CUT)
    return said or any(_says_cut(one, cut) for one in ast.iter_child_nodes(node))


def _is_where_cut(source: Source, statement: ast.AST, cut: set[str]) -> bool:
    """Return whether code runs only where an episode is truncated."""
    node = statement
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        parent = source.parents[node]
        match parent:
            case ast.If(test=test, body=body) if _tests_cut(test, cut, node in body):
                return True
            case ast.For(iter=over) if _picks_cut(over, cut):
                return True
            case _:
                node = parent
    return False


def _picks_cut(over: ast.expr, cut: set[str]) -> bool:
    """Return whether a loop goes over the places of truncated episodes: `np.flatnonzero(cut)`."""
    calls = (one for one in ast.walk(over) if isinstance(one, ast.Call))
    return any(last_word(one.func) in PLACES and _says_cut(one, cut) for one in calls)


def _tests_cut(test: ast.expr, cut: set[str], holds: bool) -> bool:
    """Return whether a test that holds, or fails, says that an episode is truncated."""
    match test:
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
            return not holds and _says_cut(inner, cut)
        case ast.BoolOp(op=ast.And(), values=parts) if holds:
            return any(_tests_cut(one, cut, True) for one in parts)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right) if holds:
            return any(_tests_cut(one, cut, True) for one in (left, right))
        case _:
            return holds and _says_cut(test, cut)


RULES = (
    Rule(
        "L01",
        "truncation counted as termination",
        "A time limit ends the episode for the program, not for the task. Values of states near it "
        "are too small, most of all where every step is rewarded.",
        "Mask with `terminated` alone: `r + gamma * v(next_obs) * (1 - terminated)`, where "
        "`next_obs` is the last observation, not the one after the reset.",
        "Pardo et al. 2018, arXiv:1712.00378; cleanrl#198, rsl_rl#151, skrl#449",
        _ends,
    ),
)
