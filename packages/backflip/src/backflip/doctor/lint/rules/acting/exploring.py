"""L12: the share of random actions."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.values import value_of
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.acting.idle_decays import idle_decays
from backflip.doctor.lint.rules.acting.rising_shares import rising_shares
from backflip.doctor.lint.rules.acting.still_epsilons import (
    greedy_shares,
    is_epsilon,
    still_epsilons,
)
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    constants,
    has_word,
    last_word,
    names_in,
    number,
    origins,
    walk,
    written,
)

LARGEST_END = 0.5  # a larger bound may be the first value
ATTACKS = ("attack", "adversar", "perturb", "fgsm", "pgd", "robust")  # ε is a size there


def _epsilons(source: Source) -> Iterator[Hit]:
    yield from _growing_epsilon(source)
    rising = list(_rising_schedules(source))
    known = {getattr(hit.node, "lineno", 0) for hit in rising}
    yield from rising
    yield from (hit for hit in rising_shares(source) if getattr(hit.node, "lineno", 0) not in known)
    yield from list(still_epsilons(source)) or idle_decays(source)


def _growing_epsilon(source: Source) -> Iterator[Hit]:
    known, sizes = _known(source), _sizes_of_attacks(source)
    greedy = greedy_shares(source)
    for scope in source.scopes:
        for node in walk(scope):
            if _grown(node) in sizes or _grown(node).rpartition(".")[2] in greedy:
                continue
            factor = _factor(node)
            value = None if factor is None else value_of(factor, known)
            if value is not None and value > 1:
                yield Hit(node, f"ε is multiplied by {value:g}, so it grows")
            divisor = _divisor(node)
            less = None if divisor is None else value_of(divisor, known)
            if less is not None and 0 < less < 1:
                yield Hit(node, f"ε is divided by {less:g}, so it grows")
            if (smallest := _falls_at_once(node, known)) is not None:
                yield Hit(node, f"ε is at most {smallest:g} from the first step on")
            added = _added(node)
            more = None if added is None else value_of(added, known)
            if more is not None and 0 < more < 1 and not _starts_at_zero(source, scope, node):
                yield Hit(node, f"{more:g} is added to ε, so it grows")


def _rising_schedules(source: Source) -> Iterator[Hit]:
    """Find `end + (start - end) * t / T`, which begins at the end and goes to the start."""
    for scope in source.scopes:
        of_function = has_word(getattr(scope, "name", ""), "eps", "explor")
        for node in walk(scope):
            match node:
                case ast.Return(value=ast.expr() as value) if of_function:
                    pass
                case ast.Assign(targets=[target], value=value) if is_epsilon(written(target)):
                    pass
                case _:
                    continue
            if _rises(scope, value):
                yield Hit(node, "ε begins at its last value and rises to its first")


def _rises(scope: Scope, value: ast.expr) -> bool:
    match value:
        case ast.BinOp(
            left=low,
            op=ast.Add(),
            right=ast.BinOp(
                left=ast.BinOp(left=high, op=ast.Sub(), right=again), op=ast.Mult(), right=share
            ),
        ):
            pass
        case _:
            return False
    is_end = has_word(last_word(low), "end", "final", "min", "last", "stop")
    is_start = has_word(last_word(high), "start", "init", "begin", "max", "first")
    same = ast.unparse(low) == ast.unparse(again)
    return is_end and is_start and same and any(map(_grows_in_time, origins(scope, share)))


def _grows_in_time(share: ast.expr) -> bool:
    """Return whether a share is `t / T`, also bounded by 1, and not 1 minus it."""
    parts = list(ast.walk(share))
    if any(isinstance(one, ast.Sub | ast.USub | ast.Pow) for one in parts):
        return False
    if any(isinstance(one, ast.Call) and last_word(one.func) == "exp" for one in parts):
        return False
    return any(isinstance(one, ast.Div) for one in parts)


def _falls_at_once(node: ast.AST, known: dict[str, float]) -> float | None:
    """Return the bound of `epsilon = min(0.05, epsilon * 0.99)`, where `max` is meant."""
    match node:
        case ast.Assign(
            targets=[target], value=ast.Call(func=ast.Name(id="min"), args=[one, two])
        ) if is_epsilon(written(target)):
            pass
        case _:
            return None
    for bound, falling in ((one, two), (two, one)):
        factor = _beside(falling, written(target), ast.Mult)
        share = None if factor is None else value_of(factor, known)
        value = value_of(bound, known)
        if share is not None and value is not None:
            return value if share < 1 and value < LARGEST_END else None
    return None


def _known(source: Source) -> dict[str, float]:
    """Return the names of numbers, also `self.decay` of `decay` in a class."""
    found = constants(source.bodies)
    classes = [body for body in source.bodies if isinstance(body, ast.ClassDef)]
    own = {f"self.{name}": value for name, value in constants(classes).items()}
    assigned = {written(target) for body in source.bodies for target, _, _ in assignments(body)}
    return found | {name: value for name, value in own.items() if name not in assigned}


def _sizes_of_attacks(source: Source) -> set[str]:
    """Return the names that are given to what disturbs inputs by at most ε."""
    return {
        written(one)
        for call, name in source.calls()
        if has_word(name or last_word(call.func), *ATTACKS)
        for one in arguments(call)
    } - {""}


def _grown(node: ast.AST) -> str:
    """Return the name that a statement sets; empty for others."""
    match node:
        case ast.AugAssign(target=target) | ast.Assign(targets=[target]):
            return written(target)
        case _:
            return ""


def _added(node: ast.AST) -> ast.expr | None:
    """Return what is added to ε: by `+=`, or by `epsilon = min(1.0, epsilon + 0.01)`."""
    match node:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if is_epsilon(written(target)):
            return value
        case ast.Assign(targets=[target], value=value) if is_epsilon(written(target)):
            return _beside(value, written(target), ast.Add)
        case _:
            return None


def _starts_at_zero(source: Source, scope: Scope, growth: ast.AST) -> bool:
    """Return whether ε starts at 0: a counter, a sweep, or the share of greedy actions."""
    name = _grown(growth)
    bodies = source.bodies if "." in name else [scope, source.tree]
    values = [value for body in bodies for value in _values_of(body, name)]
    return bool(values) and set(map(number, values)) == {0.0}


def _values_of(body: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what a name is set to in a body, without what is added to it."""
    for target, value, statement in assignments(body):
        grown = isinstance(statement, ast.AugAssign) or name in names_in(value)
        if written(target) == name and not grown:
            yield value


def _factor(node: ast.AST) -> ast.expr | None:
    """Return what ε is multiplied by."""
    match node:
        case ast.AugAssign(target=target, op=ast.Mult(), value=value) if is_epsilon(
            written(target)
        ):
            return value
        case ast.Assign(targets=[target], value=value) if is_epsilon(written(target)):
            return None if _is_bounded(value) else _beside(value, written(target), ast.Mult)
        case _:
            return None


def _divisor(node: ast.AST) -> ast.expr | None:
    """Return what ε is divided by."""
    match node:
        case ast.AugAssign(target=target, op=ast.Div(), value=value) if is_epsilon(written(target)):
            return value
        case ast.Assign(targets=[target], value=value) if is_epsilon(written(target)):
            return None if _is_bounded(value) else _below(value, written(target))
        case _:
            return None


def _below(value: ast.expr, name: str) -> ast.expr | None:
    """Return what a name is divided by in an expression: 0.9 in `max(0.1, epsilon / 0.9)`."""
    for node in ast.walk(value):
        match node:
            case ast.BinOp(left=left, op=ast.Div(), right=right) if written(left) == name:
                return right
            case _:
                pass
    return None


def _is_bounded(value: ast.expr) -> bool:
    """Return whether a value stays below a bound below 1, so that it grows on purpose."""
    match value:
        case ast.Call(func=ast.Name(id="min"), args=sides):
            return any((number(one) or 1.0) < 1 for one in sides)
        case _:
            return False


def _beside(value: ast.expr, name: str, op: type[ast.operator]) -> ast.expr | None:
    """Return the other side of a name in an expression: 1.1 in `max(0.1, epsilon * 1.1)`."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, op):
            if name == written(node.left):
                return node.right
            if name == written(node.right):
                return node.left
    return None


RULES = (
    Rule(
        "L12",
        "epsilon grows, or stays large",
        "The policy acts at random for most of training, and what it has learned is never seen.",
        "Multiply by a factor below 1, or decay it linearly, down to a smallest value.",
        "Stack Overflow 54385568: `epsilon *= .995 + .01`; DRLinter, arXiv:2101.00135, "
        "`Suboptimal exploration rate`",
        _epsilons,
    ),
)
