"""L24: target networks that stay as they were at the start."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.networks.modes import turns_gradients_off
from backflip.doctor.lint.rules.targets.targets import is_target
from backflip.doctor.lint.rules.targets.uncalled_copies import uncalled_copies
from backflip.doctor.lint.source import (
    LOOPS,
    Source,
    arguments,
    assignments,
    calls_method,
    discounts,
    last_word,
    made_by,
    walk,
    written,
)

HARMLESS = ("eval", "train", "to", "cuda", "cpu", "float", "double", "half", "requires_grad_")
BASES = ("torch.nn.Module", "object", "abc.ABC")
ALL_PARTS = (  # of a module, that of its target network too
    *("parameters", "named_parameters", "modules", "children", "named_modules", "__dict__"),
    *("state_dict", "load_state_dict"),
)


def _still_targets(source: Source) -> Iterator[Hit]:
    yield from _never_updated(source)
    yield from uncalled_copies(source)


def _never_updated(source: Source) -> Iterator[Hit]:
    """Find targets that are made once, by a program that learns, and change nowhere in it."""
    if not source.imports_any("torch") or "backward" not in source.calls_of:
        return
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            if not is_target(source, target) or not _runs_once(source, target, statement):
                continue
            uses = _reads(source, last_word(target))
            copied = _is_copy(value) or any(_is_first_load(source, one, target) for one in uses)
            if not copied or any(_may_change(source, one, target) for one in uses):
                continue
            if _is_only(source, target) and any(_is_asked(source, one) for one in uses):
                seen = f"`{written(target)}` is a copy that nothing changes in this file"
                yield Hit(statement, seen)


def _runs_once(source: Source, target: ast.expr, statement: ast.AST) -> bool:
    """Return whether an assignment runs once, and only code of this file can see its target."""
    if source.is_inside(statement, LOOPS):
        return False
    scope = source.function_of(statement)
    if isinstance(target, ast.Attribute):
        inside = source.class_of(statement)
        is_first = getattr(scope, "name", "") == "__init__" and written(target.value) == "self"
        return is_first and inside is not None and _is_seen_whole(source, inside)
    if isinstance(scope, ast.Module):
        return True
    calls = source.calls_of.get(scope.name.lower(), [])
    return bool(calls) and all(
        isinstance(source.function_of(one), ast.Module) and not source.is_inside(one, LOOPS)
        for one in calls
    )


def _is_seen_whole(source: Source, body: ast.ClassDef) -> bool:
    """Return whether all that has an object of a class is in this file."""
    if not all(source.dotted(base) in BASES for base in body.bases):
        return False
    for node in ast.walk(body):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if attr in ALL_PARTS:
                return False
            case ast.Call(func=func) if last_word(func) != "super":
                if any(written(one) == "self" for one in arguments(node)):
                    return False
            case _:
                pass
    return _stays_here(source, body.name)


def _stays_here(source: Source, name: str) -> bool:
    """Return whether a class is used in this file, and its objects go to no other code."""
    objects = {
        written(target)
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if made_by(value) == name
    } - {""}
    defined = {getattr(body, "name", "").lower() for body in source.bodies}
    return bool(objects) and not any(
        last_word(call.func) not in defined
        and any(written(one) in objects for one in arguments(call))
        for call, _ in source.calls()
    )


def _reads(source: Source, last: str) -> list[ast.Name | ast.Attribute]:
    """Return where a name is read, with any owner."""
    return [
        node
        for node in source.nodes
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and last_word(node) == last
    ]


def _is_copy(value: ast.expr) -> bool:
    """Return whether a value is `copy.deepcopy(net)`, also with `.eval()` after it."""
    return any(
        isinstance(one, ast.Call) and last_word(one.func) == "deepcopy" for one in ast.walk(value)
    )


def _is_first_load(source: Source, node: ast.AST, target: ast.expr) -> bool:
    """Return whether a target gets its weights where it is made: `load_state_dict` of another."""
    call = source.parents[source.parents[node]]
    if not isinstance(call, ast.Call) or not calls_method(call, "load_state_dict"):
        return False
    of_another = any(
        isinstance(one, ast.Call) and calls_method(one, "state_dict") for one in call.args
    )
    here = source.function_of(node) is source.function_of(target)
    return of_another and here and not source.is_inside(node, LOOPS)


def _may_change(source: Source, node: ast.AST, target: ast.expr) -> bool:
    """Return whether a use of a target may change its weights."""
    parent = source.parents[node]
    match parent:
        case ast.Call(func=func) if func is node:
            return False
        case ast.Attribute(attr=attr) if attr in HARMLESS:
            return False
        case ast.Attribute(attr="parameters"):
            loop = source.parents[source.parents[parent]]
            return not (isinstance(loop, ast.For) and _only_freezes(loop))
        case _:
            return not _is_first_load(source, node, target)


def _only_freezes(loop: ast.For) -> bool:
    """Return whether a loop does nothing but `p.requires_grad = False`."""
    return all(any(map(turns_gradients_off, (one, *walk(one)))) for one in loop.body)


def _is_only(source: Source, target: ast.expr) -> bool:
    """Return whether a name is set once in the file, and is in no text that may name it."""
    last = last_word(target)
    stores = [
        node
        for node in source.nodes
        if isinstance(node, ast.Name | ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and last_word(node) == last
    ]
    texts = {node.value for node in source.nodes if isinstance(node, ast.Constant)}
    named = any(isinstance(text, str) and text.lower() == last for text in texts)
    return len(stores) == 1 and not named


def _is_asked(source: Source, node: ast.AST) -> bool:
    """Return whether a target network is called where values are discounted."""
    parent = source.parents[node]
    is_called = isinstance(parent, ast.Call) and parent.func is node
    return is_called and discounts(source.function_of(node))


RULES = (
    Rule(
        "L24",
        "the target network is never updated",
        "Targets come from the network as it was at the start, whose values are random: the "
        "prediction learns these, and nothing of later states.",
        "Copy the weights every few thousand steps, "
        "`target_net.load_state_dict(net.state_dict())`, or mix them with a small tau in every "
        "step.",
        "Mnih et al. 2015, algorithm 1; DRLinter, arXiv:2101.00135, `Wrong network update`",
        _still_targets,
    ),
)
