"""L11: how actions are chosen from Q-values."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.acting.followed_actions import followed_actions
from backflip.doctor.lint.rules.networks.bounded_values import is_q
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    last_word,
    names_in,
    number,
    origins,
    unconverted,
    walk,
    written,
)

ACTIONS = ("action", "actions", "act")
CHOOSERS = ("act", "choose_action", "select_action", "get_action", "greedy_action", "greedy")
NETWORKS = ("net", "network", "model", "predict")
DRAWS = ("randint", "randrange", "integers", "choice", "sample")


def _maximum_as_action(source: Source) -> Iterator[Hit]:
    yield from list(_named_maximum(source)) or followed_actions(source)


def _named_maximum(source: Source) -> Iterator[Hit]:
    """Find the largest value of Q-values in what is named, used or returned as an action."""
    for scope in source.scopes:
        pairs = list(assignments(scope))
        actions = {written(t) for t, _, _ in pairs if last_word(t) in ACTIONS}
        actions |= {"a"} if any(_draws(v) for t, v, _ in pairs if written(t) == "a") else set()
        actions |= set(_acted(source, scope))
        best = _largest_of_both(source, scope)
        for target, value, _ in pairs:
            plain = unconverted(value)
            is_best = isinstance(plain, ast.Name) and plain.id in best
            if written(target) in actions and (is_best or _is_maximum(source, plain)):
                yield Hit(value, "the action is the largest value, not its place")
        yield from _returned_maximum(source, scope)


def _is_largest(node: ast.expr) -> bool:
    """Return whether a value is the largest of something: `x.max(1)[0]`, `x.max().item()`."""
    match unconverted(node):
        case ast.Subscript(value=inner, slice=index):
            return number(index) == 0 and _is_largest(inner)
        case ast.Attribute(value=inner, attr="values"):
            return _is_largest(inner)
        case ast.Call(func=ast.Attribute(attr="max" | "amax"), args=args) as call:
            return len(args) <= 1 and argument(call, "key") is None
        case _:
            return False


def _acted(source: Source, scope: Scope) -> Iterator[str]:
    """Yield the names that environments get: a of `env.step(int(a))`."""
    for call, _ in source.calls(scope):
        if steps_environment(source, call) and len(call.args) == 1:
            yield written(unconverted(call.args[0]))


def _draws(value: ast.expr) -> bool:
    """Return whether a value is drawn at random."""
    plain = unconverted(value)
    return isinstance(plain, ast.Call) and last_word(plain.func) in DRAWS


def _draws_whole(value: ast.expr) -> bool:
    """Return whether a value is a whole number at random, such as that of an action."""
    plain = unconverted(value)
    return isinstance(plain, ast.Call) and last_word(plain.func) in DRAWS[:3]


def _largest_of_both(source: Source, scope: Scope) -> set[str]:
    """Return the names of the largest values in `values, places = q.max(1)`."""
    found: set[str] = set()
    for target, value, _ in assignments(scope):
        match target:
            case ast.Tuple(elts=[largest, _]) if _is_maximum(source, value):
                found.add(written(largest))
            case _:
                pass
    return found - {""}


def _returned_maximum(source: Source, scope: Scope) -> Iterator[Hit]:
    """Find functions that choose an action, and return the largest value."""
    name = getattr(scope, "name", "")
    returned = [one for one in walk(scope) if isinstance(one, ast.Return) and one.value]
    explores = any(one.value is not None and _draws_whole(one.value) for one in returned)
    if name not in CHOOSERS and not explores:
        return
    for node in returned:
        value = node.value
        if value is None:
            continue
        plain = unconverted(value)
        if _is_maximum(source, plain) or (
            explores and any(map(_is_largest, origins(scope, plain)))
        ):
            yield Hit(node, "the action is the largest value, not its place")


def _is_maximum(source: Source, node: ast.expr) -> bool:
    """Return whether a value is `max` of Q-values, taken apart or not."""
    match unconverted(node):
        case ast.Subscript(value=inner, slice=index):
            return number(index) == 0 and _is_maximum(source, inner)
        case ast.Attribute(value=inner, attr="values"):
            return _is_maximum(source, inner)
        case ast.Call(func=func, args=args) as call:
            if last_word(func) not in ("max", "amax") and source.dotted(func) != "max":
                return False
            if argument(call, "key") is not None:  # `max(q, key=q.get)` is the place
                return False
            owner = func.value if isinstance(func, ast.Attribute) else func
            words = names_in(owner) | {name for one in args for name in names_in(one)}
            return any(map(is_q, words)) or any(map(_applies_a_network, (owner, *args)))
        case _:
            return False


def _applies_a_network(node: ast.expr) -> bool:
    """Return whether a value is what a network says of a state: `policy_net(obs)[0]`."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Call) and last_word(node.func).endswith(NETWORKS)


RULES = (
    Rule(
        "L11",
        "the largest value instead of the action that has it",
        "A value is used as the number of an action: mostly action 0.",
        "Use `argmax`.",
        "DRLinter, arXiv:2101.00135, `Wrong output`",
        _maximum_as_action,
    ),
)
