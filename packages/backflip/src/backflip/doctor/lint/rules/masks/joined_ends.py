"""Part of L01: programs that know no termination without a time limit."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.bootstraps import (
    LARGEST,
    has_value,
    leaves_a_value_out,
    statements,
    term_of,
    values_in,
)
from backflip.doctor.lint.questions.end_flow import EndFlow
from backflip.doctor.lint.questions.episode_ends import Ends, Flags, find_flags
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    discounts,
    factors,
    has_word,
    is_of_next,
    last_word,
    names_in,
    unconverted,
    walk,
    written,
)

CUT = ("trunc", "timeout", "time_limit", "timelimit")  # in names of truncations
SHAPED = ("zeros_like", "ones_like", "empty_like", "full_like", "len", "range", "zeros")
DATA = ("h5py", "minari", "d4rl", "datasets", "pickle", "tensorflow_datasets", "rlds")


def joined_ends(source: Source) -> Iterator[Hit]:
    """Find programs that use `terminated` only together with `truncated`, and mask values.

    The mask holds time limits then, whatever its name, and wherever the program kept it.
    """
    if source.imports_any(*DATA) or not any(map(discounts, _targets(source))):
        return
    joined = _joined(source, set()) or _joined(source, _kept_for_nothing(source))
    if joined is None:
        return
    flow = EndFlow(source)
    if any(_masks_a_value(source, scope, flow) for scope in source.scopes):
        seen = "`terminated` is used with `truncated` alone, and what that gives masks values"
        yield Hit(joined, seen)


def _targets(source: Source) -> Iterator[ast.stmt]:
    return (one for scope in source.scopes for one in statements(scope))


def _joined(source: Source, idle: set[ast.AST]) -> ast.expr | None:
    """Return where a program joins ends, and keeps that; None if it uses one of them alone.

    Uses in `idle` do not count.
    """
    found: list[ast.expr] = []
    known = set(idle)
    for scope in source.scopes:
        if getattr(scope, "name", "") == "step":
            known |= set(ast.walk(scope))
            continue
        steps = list(_steps(scope))
        if not all(steps):
            return None
        flags = find_flags(source, scope)
        whole = [one for one in walk(scope) if isinstance(one, ast.expr) and flags.joins(one)]
        known |= {node for one in whole for node in ast.walk(one)}
        if steps and not _are_all_in(scope, flags, known):
            return None
        found += [one for one in whole if steps and not _is_tested(source, one)]
    names_one = any(_says_cut(node) for node in source.nodes if node not in known)
    return None if names_one or not found else min(found, key=lambda one: one.lineno)


def _kept_for_nothing(source: Source) -> set[ast.AST]:
    """Return where `terminated` alone is stored, if nothing in the program reads it there."""
    flow = EndFlow(source, alone=True)
    if flow.is_read():
        return set()
    return {
        node
        for scope in source.scopes
        for node in walk(scope)
        if isinstance(node, ast.Name) and flow.holds(scope, node)
    }


def _steps(scope: Scope) -> Iterator[bool]:
    """Yield, of each environment that is stepped, whether its five values get names."""
    for target, value, _ in assignments(scope):
        match value:
            case ast.Call(func=ast.Attribute(attr="step")):
                names = target.elts if isinstance(target, ast.Tuple) else []
                yield len(names) == 5 and all(isinstance(one, ast.Name) for one in names[2:4])
            case _:
                pass


def _are_all_in(scope: Scope, flags: Flags, known: set[ast.AST]) -> bool:
    """Return whether ends of one kind are read only where they are joined, or get another type."""
    names = flags.ended | flags.cut
    since = {
        written(target): statement.lineno
        for target, value, statement in assignments(scope)
        if written(target) in names and flags.join_in(value)
    }
    carried = {
        node
        for target, value, _ in assignments(scope)
        if written(target) in names and written(unconverted(value)) in names
        for node in ast.walk(value)
    }
    return all(
        one in known or one in carried or one.lineno > since.get(one.id, one.lineno)
        for one in ast.walk(scope)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in names
    )


def _is_tested(source: Source, node: ast.AST) -> bool:
    """Return whether a joined end is only a test of `if` or `while`."""
    parent = source.parents[node]
    return isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node


def _says_cut(node: ast.AST) -> bool:
    """Return whether code reads something that is named as a truncation."""
    match node:
        case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word, ctx=ast.Load()):
            return has_word(word, *CUT) and word != "TimeLimit"
        case ast.Constant(value=str() as word):
            return " " not in word and has_word(word, *CUT)
        case _:
            return False


def _masks_a_value(source: Source, scope: Scope, flow: EndFlow) -> bool:
    """Return whether a discounted value is only where no end is."""
    values = values_in(scope) | _made_values(scope)
    done = {
        written(one)
        for one in walk(scope)
        if isinstance(one, ast.Name | ast.Attribute) and flow.holds(scope, one)
    }
    for statement in statements(scope):
        if discounts(statement) and (
            _has_mask(source, scope, statement, flow, values)
            or leaves_a_value_out(source, scope, statement, Ends(done, set()))
        ):
            return True
    return any(map(discounts, statements(scope))) and _fills_masked(scope, flow, values)


def _gives_value(node: ast.AST, values: set[str]) -> bool:
    """Return whether code has a value: by a name, of a next state, or as the largest of many."""
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    return has_value(node, values) or any(last_word(one.func) in LARGEST for one in calls)


def _asks_a_network(term: ast.AST) -> bool:
    """Return whether a factor is `critic.apply(params, obs)`."""
    plain = map(unconverted, factors(term) if isinstance(term, ast.expr) else [])
    return any(isinstance(one, ast.Call) and last_word(one.func) == "apply" for one in plain)


def _made_values(scope: Scope) -> set[str]:
    """Return the names that are made by a function of the next state, or as the largest of many."""
    found = set[str]()
    while True:
        more = {
            written(target)
            for target, value, _ in assignments(scope)
            if isinstance(target, ast.Name)
            if any(isinstance(one, ast.Call) and _is_next(one, found) for one in ast.walk(value))
        }
        if more <= found:
            return found
        found |= more


def _is_next(call: ast.Call, known: set[str]) -> bool:
    word = last_word(call.func)
    if word in SHAPED or (isinstance(call.func, ast.Attribute) and word in LARGEST):
        return word in LARGEST
    return any(is_of_next(one) or known & names_in(one) for one in call.args)


def _has_mask(
    source: Source, scope: Scope, statement: ast.stmt, flow: EndFlow, values: set[str]
) -> bool:
    """Return whether an end, or what is made from it, is a factor of a value, or chooses one."""
    for node in ast.walk(statement):
        match node:
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                held = [one for one in (left, right) if flow.holds(scope, one)]
                term = term_of(source, node)
                if held and (_gives_value(term, values) or _asks_a_network(term)):
                    return True
            case (
                ast.IfExp(test=test, body=first, orelse=second)
                | ast.Call(func=ast.Attribute(attr="where"), args=[test, first, second])
            ) if flow.holds(scope, test):
                if _gives_value(first, values) != _gives_value(second, values):
                    return True
            case _:
                pass
    return False


def _fills_masked(scope: Scope, flow: EndFlow, values: set[str]) -> bool:
    """Return whether a scope has `q(next_obs).max(1).values.masked_fill(done, 0.0)`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("masked_fill", "masked_fill_")
        and any(flow.holds(scope, one) for one in node.args[:1])
        and _gives_value(node.func.value, values)
        for node in walk(scope)
    )
