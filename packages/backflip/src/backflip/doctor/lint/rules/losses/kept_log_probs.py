"""Log-probabilities that lose their gradient where they are kept for a later loss: a part of L05.

One function returns `dist.log_prob(a).detach()`, another keeps it, and a third multiplies what was
kept by an advantage. No other likelihood in the program has a gradient.
"""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import own_function
from backflip.doctor.lint.questions.ratios import compares_policies
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.losses.cut_log_probs import is_temperature
from backflip.doctor.lint.rules.losses.loss_signs import terms
from backflip.doctor.lint.source import (
    CONVERTED,
    FUNCTIONS,
    MADE_FROM,
    Source,
    last_word,
    names_in,
    parameters,
)

STACKS = ("stack", "cat", "concatenate", "append", "hstack", *MADE_FROM)
CUTS = ("detach", "item", "numpy", "tolist")
REDUCED = ("sum", "mean", "squeeze", "flatten", "unsqueeze", "view", "reshape", *CONVERTED, *CUTS)
# Other ways to a gradient of a policy.
OTHERS = (
    *("log_softmax", "cross_entropy", "nll_loss", "logsumexp", "log", "exp", "rsample"),
    *("crossentropyloss", "nllloss", "grad"),
)
MOST_STEPS = 6  # from where a log-probability is computed to a loss


def kept_log_probs(source: Source) -> Iterator[Hit]:
    """Find the only log-probabilities of a program, detached, that weigh advantages in a loss."""
    calls = source.calls_of.get("log_prob", [])
    own = any(getattr(scope, "name", "") == "log_prob" for scope in source.scopes)
    if not calls or own or "backward" not in source.calls_of or compares_policies(source):
        return
    if any(_is_other(source, name) for name in OTHERS):
        return
    cut = [_cut(source, call) for call in calls]
    kept = _kept_as(source, calls)
    if all(cut) and any(_is_weighed(source, node, kept) for node in source.nodes):
        yield Hit(cut[0] or calls[0], "the log-probability that is kept has no gradient")


def _is_other(source: Source, name: str) -> bool:
    """Return whether a program calls a function with a name, of more than the scale of a policy."""
    for call in source.calls_of.get(name, ()):
        words = names_in(call)
        if name != "exp" or not any("std" in one or "scale" in one for one in words):
            return True
    return False


def _cut(source: Source, call: ast.Call) -> ast.expr | None:
    """Return where a log-probability loses its gradient; None if it keeps it."""
    if source.without_gradients(call):
        return call
    node: ast.AST = call
    while isinstance(parent := source.parents[node], ast.Attribute | ast.Call):
        if isinstance(parent, ast.Call) and parent.func is not node:
            return None
        if isinstance(parent, ast.Call) and last_word(parent.func) in CUTS:
            return parent
        node = parent
    return None


def _kept_as(source: Source, calls: list[ast.Call]) -> set[str]:
    """Return the last words of names that log-probabilities get, also by own functions."""
    nodes: list[ast.expr] = list(calls)
    found = set[str]()
    for _ in range(MOST_STEPS):
        new = {name.lower() for node in nodes for name in _names_of(source, node)} - found - {""}
        if not new:
            break
        found |= new
        nodes = [
            one
            for one in source.nodes
            if isinstance(one, ast.Name | ast.Attribute)
            and isinstance(one.ctx, ast.Load)
            and last_word(one) in new
        ]
    return found


def _names_of(source: Source, node: ast.expr) -> Iterator[str]:
    """Yield the names that get a value: by an assignment, a list, a parameter or a result."""
    parent = source.parents[node]
    while _keeps(parent, node):
        if isinstance(parent, ast.Call) and last_word(parent.func) == "append":
            yield last_word(getattr(parent.func, "value", parent))
            return
        assert isinstance(parent, ast.expr)
        node, parent = parent, source.parents[parent]
    place = None
    if isinstance(parent, ast.Tuple):
        place, parent = parent.elts.index(node), source.parents[parent]
    match parent:
        case ast.Assign(targets=[target]):
            yield from _part(target, place)
        case ast.Return():
            yield from _results(source, parent, place)
        case ast.keyword(arg=str() as name):
            yield name
        case ast.Call(args=args) if node in args:
            function = own_function(source, parent)
            names = [one.arg for one in parameters(function)] if function is not None else []
            names = names[1:] if names[:1] == ["self"] else names
            yield from names[args.index(node) :][:1]
        case _:
            pass


def _keeps(parent: ast.AST, node: ast.expr) -> bool:
    """Return whether code around a value changes its type or shape, or puts it into a list."""
    match parent:
        case ast.Attribute():
            return True
        case ast.Call(func=func) if func is node:
            return last_word(func) in REDUCED
        case ast.Call(func=func):
            return node in parent.args and last_word(func) in STACKS
        case _:
            return False


def _part(target: ast.expr, place: int | None) -> Iterator[str]:
    """Yield the name that gets a part of what is assigned."""
    if place is None:
        yield last_word(target)
    elif isinstance(target, ast.Tuple) and place < len(target.elts):
        yield last_word(target.elts[place])


def _results(source: Source, statement: ast.Return, place: int | None) -> Iterator[str]:
    """Yield the names that get a part of what a function returns, where it is called."""
    function = source.function_of(statement)
    if isinstance(function, FUNCTIONS):
        for call in source.calls_of.get(function.name.lower(), ()):
            for target in getattr(source.parents[call], "targets", ()):
                yield from _part(target, place)


def _is_weighed(source: Source, node: ast.AST, kept: set[str]) -> bool:
    """Return whether a statement is `loss = -(kept * weight).mean()`, with gradients."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.Return) or not isinstance(value, ast.expr):
        return False
    if source.without_gradients(node):
        return False
    found = list(terms(value))
    first = found[0] if found else None
    if first is None or first.sign > 0 or len(first.factors) < 2:
        return False
    words = [{name.rpartition(".")[2].lower() for name in names_in(one)} for one in first.factors]
    weighed = [one for one in words if one & kept]
    return len(weighed) == 1 and not any(map(is_temperature, set().union(*words)))
