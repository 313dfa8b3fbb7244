"""L01: a time limit that counts as an end of the task."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.ends import stores
from backflip.doctor.lint.source import (
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


def _truncation_masks(source: Source) -> Iterator[Hit]:
    """Follow `terminated or truncated` by name to `γ V (1 - done)`, in one function."""
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(scope):
            continue
        masks = _masks(scope, done)
        for statement in _statements(scope):
            names = names_in(statement)
            used = (masks & names) or _negates(statement, done)
            if used and discounts(statement) and any(map(_is_value, names)):
                seen = "the bootstrapped value is multiplied by 0 where an episode is truncated"
                yield Hit(statement, seen)
                break


def _is_value(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return last in ("v", "q", "vf", "qf") or has_word(
        last, "value", "critic", "boot", "q_", "_q", "qval", "target"
    )


def _stored_ends(source: Source) -> Iterator[Hit]:
    """Find ends that go into a replay, where what comes out of it masks values."""
    if not any(_masks_a_value(one) for scope in source.scopes for one in _statements(scope)):
        return
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(scope):
            continue
        for call, _ in source.calls(scope):
            kept = done & {name for one in arguments(call) for name in names_in(one)}
            if kept and stores(call):
                name = sorted(kept)[0]
                yield Hit(call, f"`{name}` is stored, and what is stored masks bootstrapped values")
                break


def _masks_a_value(statement: ast.stmt) -> bool:
    """Return whether a statement has γ, a value, and 1 - done."""
    names = names_in(statement)
    ends = {name for name in names if has_word(name.rpartition(".")[2], "done", "terminal")}
    if not discounts(statement) or not _negates(statement, ends):
        return False
    return any(map(_is_value, names))


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
    """Return whether a value is `terminated or truncated`, also by `|`, `+` or `logical_or`.

    Names that are never true count as no end.
    """
    for node in ast.walk(value):
        match node:
            case ast.BoolOp(op=ast.Or(), values=[one, other]):
                pass
            case ast.BinOp(left=one, op=ast.BitOr() | ast.Add(), right=other):
                pass
            case ast.Call(func=ast.Attribute(attr=attr), args=[one, other]) if attr in EITHER:
                pass
            case _:
                continue
        one, other = unconverted(one), unconverted(other)
        words = {last_word(one)[:4], last_word(other)[:4]}
        if words == {"term", "trun"} and not never & {written(one), written(other)}:
            return True
    return False


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
    for one in ast.walk(node):
        match one:
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
                inner = right
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                inner = operand
            case _:
                continue
        if done & names_in(inner):
            return True
    return False


def _bootstraps_truncated(scope: Scope) -> bool:
    """Return whether the value of the last state is added where an episode is truncated."""
    for statement in _statements(scope):
        names = names_in(statement)
        if discounts(statement) and any(has_word(name, "trunc", "timeout") for name in names):
            return True
    return False


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
