"""Running means of rewards that wrappers of environments subtract: a part of L14."""

import ast

from backflip.doctor.lint.source import (
    FUNCTIONS,
    Scope,
    Source,
    assignments,
    last_word,
    names_in,
    parameters,
    walk,
    written,
)

MEANS = ("mu", "mean", "avg", "average", "running_mean")
MEAN_OF = ("mean", "nanmean", "average", "fmean")
REWARD = 1  # its place in what `step` returns


def centres_in_a_wrapper(source: Source, scope: Scope, left: ast.expr, mean: ast.expr) -> bool:
    """Return whether `reward` or `step` of a wrapper subtracts a mean that is kept."""
    inside = source.class_of(scope)
    bases = inside.bases if inside is not None and isinstance(scope, FUNCTIONS) else []
    kinds = {source.dotted(base).rpartition(".")[2] for base in bases}
    name = getattr(scope, "name", "")
    if name == "reward" and "RewardWrapper" in kinds and not isinstance(scope, ast.Module):
        rewards = {one.arg for one in parameters(scope)[1:]}
    elif name == "step" and any(one.endswith("Wrapper") for one in kinds):
        rewards = _rewards_of(scope)
    else:
        return False
    is_kept = written(mean).startswith("self.") and last_word(mean) in MEANS
    return written(left) in rewards and (is_kept or is_running_mean(source, mean))


def _rewards_of(scope: Scope) -> set[str]:
    """Return the names of the reward that the wrapped environment gives."""
    found: set[str] = set()
    for target, value, _ in assignments(scope):
        match target, value:
            case ast.Tuple(elts=parts), ast.Call(func=ast.Attribute(attr="step")) if len(parts) > 3:
                found.add(written(parts[REWARD]))
            case _:
                pass
    return found - {""}


def is_running_mean(source: Source, node: ast.expr) -> bool:
    """Return whether an attribute is a mean that the program keeps up to date itself."""
    if not isinstance(node, ast.Attribute) or not written(node).startswith("self."):
        return False
    return any(
        last_word(target) == node.attr.lower()
        and isinstance(target, ast.Attribute)
        and _moves(scope, target, value, statement)
        for scope in source.scopes
        for target, value, statement in assignments(scope)
    ) or any(
        isinstance(scope, FUNCTIONS) and scope.name == node.attr and _returns_a_mean(scope)
        for scope in source.scopes
    )


def _moves(scope: Scope, target: ast.expr, value: ast.expr, statement: ast.AST) -> bool:
    """Return whether a value moves a mean to a number: by a share of `x - mean`, or as a mix."""
    name = written(target)
    if isinstance(value, ast.Call) and last_word(value.func) in MEAN_OF:
        return True
    differences = {written(t) for t, v, _ in assignments(scope) if _is_difference(v, name)} - {""}
    has_share = any(
        _is_difference(one, name) or written(one) in differences for one in ast.walk(value)
    )
    is_share = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div | ast.Mult)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and is_share and has_share
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)):
        return False
    mixes = _has_share_of(value.left, name) or _has_share_of(value.right, name)
    return mixes or (name in map(written, (value.left, value.right)) and has_share)


def _has_share_of(node: ast.expr, name: str) -> bool:
    """Return whether code is `share * mean`."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return name in (written(left), written(right))
        case _:
            return False


def _is_difference(node: ast.AST, name: str) -> bool:
    """Return whether code is `x - mean`."""
    match node:
        case ast.BinOp(op=ast.Sub(), right=right):
            return written(right) == name
        case _:
            return False


def _returns_a_mean(scope: Scope) -> bool:
    """Return whether a property gives `self.total / self.count`, or the mean of a list."""
    for one in walk(scope):
        match one:
            case ast.Return(value=ast.Call(func=func)) if last_word(func) in MEAN_OF:
                return True
            case ast.Return(value=ast.BinOp(left=left, op=ast.Div(), right=right)):
                return written(left).startswith("self.") and written(right).startswith("self.")
            case _:
                pass
    return False


def is_returned(source: Source, scope: Scope, node: ast.AST) -> bool:
    """Return whether code is in what a function returns, also by a name; of `step`, as reward."""
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
    names = {written(one) for one in getattr(node, "targets", [])} - {""}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        names.add(node.target.id)
    for target, value, _ in assignments(scope):
        if isinstance(target, ast.Name) and names & names_in(value):
            names = names | {target.id}
    for one in walk(scope):
        match one:
            case ast.Return(value=ast.Tuple(elts=parts)) if len(parts) > 3:
                if names & names_in(parts[REWARD]) or node is one:
                    return True
            case ast.Return(value=ast.expr() as value) if node is one or names & names_in(value):
                return True
            case _:
                pass
    return False
