"""L07: gradient steps."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.training.early_schedules import early_schedules
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    arguments,
    assignments,
    calls_method,
    has_word,
    last_word,
    names_in,
    walk,
    written,
)

NETWORKS = ("net", "network", "model", "policy", "critic", "actor", "agent")
PARTS = ("body", "encoder", "backbone", "trunk", "feature", "shared", "base", "embed", "torso")
HARMLESS = {"clip_grad_norm_", "clip_grad_value_", "parameters", "item", "print", "append"}


def _gradient_steps(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    yield from _never_cleared(source)
    yield from early_schedules(source)
    for node in source.nodes:
        for block in ("body", "orelse"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                yield from _step_before_backward(statements)
                yield from _cleared_before_step(statements)


def _never_cleared(source: Source) -> Iterator[Hit]:
    if "backward" not in source.calls_of or any(map(_clears_by_hand, source.nodes)):
        return
    if "distributedoptimizer" in source.calls_of:  # each of its passes has gradients of its own
        return
    made = _made_optimisers(source)
    cleared = _cleared(source, made)
    if cleared is None:
        return
    for call, _ in source.calls():
        owner = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if not calls_method(call, "step") or _may_be_cleared(source, call):
            continue
        if not cleared and (owner in made or _is_optimiser(call)):
            yield Hit(call, "no gradient is set to zero in this file, so gradients add up")
            return
        if owner in made and cleared and not _shares(source, made, owner, cleared):
            yield Hit(call, f"`{owner}.zero_grad` is never called, so gradients add up")
            return


def _made_optimisers(source: Source) -> dict[str, ast.Call]:
    """Return what is made by a class of `torch.optim`, by name; without names set twice."""
    found: dict[str, list[ast.expr]] = {}
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            found.setdefault(written(target), []).append(value)
    return {
        name: values[0]
        for name, values in found.items()
        if name and len(values) == 1 and isinstance(values[0], ast.Call)
        if _makes_optimiser(source.dotted(values[0].func))
    }


def _makes_optimiser(name: str) -> bool:
    """Return whether a class is `torch.optim.Adam`, and no schedule of learning rates."""
    first, _, last = name.rpartition(".")
    return first == "torch.optim" and last[:1].isupper()


def _cleared(source: Source, made: dict[str, ast.Call]) -> set[str] | None:
    """Return the optimisers whose gradients are set to zero; None if that cannot be seen.

    It can where every `zero_grad` is one of an optimiser that is made in this file.
    """
    found: set[str] = set()
    for node in source.nodes:
        if _names_zero_grad(node):
            owner = written(node.value) if isinstance(node, ast.Attribute) else ""
            if owner not in made:
                return None
            found.add(owner)
    return found


def _shares(source: Source, made: dict[str, ast.Call], name: str, cleared: set[str]) -> bool:
    """Return whether an optimiser is cleared, or may have parameters of one that is."""
    own = _networks(source, made[name])
    others = [_networks(source, made[one]) for one in cleared]
    if name in cleared or not own or not all(others):
        return True
    return any(
        f"{one}.".startswith(f"{two}.") or f"{two}.".startswith(f"{one}.")
        for one in own
        for two in set[str]().union(*others)
    )


def _networks(source: Source, made: ast.Call) -> set[str]:
    """Return whose parameters an optimiser has, and what these networks may share with others.

    Empty if something else is in its first argument.
    """
    match made.args:
        case [ast.Call(func=ast.Attribute(value=network, attr="parameters"), args=[]), *_]:
            name = written(network)
        case _:
            return set()
    parts = (v for body in source.bodies for t, v, _ in assignments(body) if written(t) == name)
    inside = {one for part in parts for given in _given(part) for one in names_in(given)}
    return {name, *(one for one in inside if has_word(one, *NETWORKS, *PARTS))} - {""}


def _given(value: ast.expr) -> list[ast.expr]:
    """Return the arguments of a call; of anything else, all of it."""
    return arguments(value) if isinstance(value, ast.Call) else [value]


def _clears_by_hand(node: ast.AST) -> bool:
    """Return whether code sets or fills a gradient."""
    match node:
        case ast.Attribute(attr="grad", ctx=ast.Store() | ast.Del()):
            return True
        case ast.Call(func=ast.Attribute(attr="zero_" | "fill_" | "copy_", value=of)):
            return ".grad" in ast.unparse(of)
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value="grad"), _]):
            return True
        case _:
            return False


def _names_zero_grad(node: ast.AST) -> bool:
    """Return whether code, and no comment, names a function such as `zero_grad`."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return "zero_grad" in name
        case ast.Constant(value=str() as text):  # for `getattr`
            return text == "zero_grad"
        case _:
            return False


def _may_be_cleared(source: Source, step: ast.Call) -> bool:
    """Return whether a function of another module gets the optimiser or a network in each step."""
    above = {step, *_above(source, step)}
    loop = next((one for one in _above(source, step) if isinstance(one, LOOPS)), None)
    for node in walk(source.function_of(step)):
        if not isinstance(node, ast.Expr) or source.parents[node] not in above:
            continue
        inside = next((one for one in _above(source, node) if isinstance(one, LOOPS)), None)
        if inside is loop and _calls_unknown_helper(source, node.value):
            return True
    return False


def _above(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node is in, up to its function."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node = source.parents[node]
        yield node


def _calls_unknown_helper(source: Source, node: ast.expr) -> bool:
    """Return whether a call passes an optimiser or a network to code that cannot be seen."""
    if not isinstance(node, ast.Call) or last_word(node.func) in _defined(source):
        return False
    if source.dotted(node.func).startswith("torch.") or last_word(node.func) == "print":
        return False
    first = written(node.func).partition(".")[0]
    seen_here = isinstance(node.func, ast.Attribute) and first not in (*source.imports, "self")
    given = {last_word(one) for one in arguments(node)}
    return not seen_here and any(_names_what_learns(name) for name in given)


def _defined(source: Source) -> set[str]:
    """Return the names of functions and classes of a program, in lower case."""
    return {getattr(body, "name", "").lower() for body in source.bodies}


def _names_what_learns(name: str) -> bool:
    return name.startswith("opt") or has_word(name, "optim") or name.endswith(NETWORKS)


def _cleared_before_step(block: list[ast.stmt]) -> Iterator[Hit]:
    """Find `opt.zero_grad(); opt.step()` where gradients are computed before it, or after it."""
    clears = any(_calls(one, "zero_grad") for one in block)
    cleared, computed = set[str](), clears and any(map(_computes_gradients, block))
    if not computed:
        return
    for statement in block:
        owner = _owner(statement)
        if _calls(statement, "zero_grad"):
            cleared |= {owner} - {""}
        elif _calls(statement, "step"):
            if owner in cleared and not _has_arguments(statement):
                seen = f"`{owner}.zero_grad()` throws the gradient away before the step"
                yield Hit(statement, seen)
                return
        elif not _leaves_gradients(statement):
            cleared = set()


def _owner(statement: ast.stmt) -> str:
    """Return what a statement calls a method of; empty for others."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
            return written(owner)
        case _:
            return ""


def _leaves_gradients(statement: ast.stmt) -> bool:
    """Return whether a statement surely computes and sets no gradient."""
    calls = {last_word(one.func) for one in ast.walk(statement) if isinstance(one, ast.Call)}
    stores = (ast.Attribute, ast.Subscript)
    return calls <= HARMLESS and not any(
        isinstance(one, stores) and isinstance(one.ctx, ast.Store) for one in ast.walk(statement)
    )


def _computes_gradients(statement: ast.stmt) -> bool:
    return any(
        isinstance(one, ast.Call) and calls_method(one, "backward") for one in ast.walk(statement)
    )


def _has_arguments(statement: ast.stmt) -> bool:
    """Return whether a call gets something, such as a function that computes gradients."""
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return bool(arguments(call))
        case _:
            return False


def _step_before_backward(block: list[ast.stmt]) -> Iterator[Hit]:
    """Find a block in which the optimiser steps, and only then the gradient is computed."""
    steps = [(i, one) for i, one in enumerate(block) if _calls(one, "step")]
    backward = [i for i, one in enumerate(block) if _calls(one, "backward")]
    cleared = list(_cleared_before_step(block))
    if steps and backward and steps[-1][0] < backward[0] and not cleared:
        yield Hit(steps[0][1], "the optimiser steps before `backward` computes the gradient")


def _calls(statement: ast.stmt, method: str) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    return calls_method(call, method) and (method != "step" or _is_optimiser(call))


def _is_optimiser(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    word = last_word(owner)
    return word.startswith("opt") or word.endswith("_opt") or "optim" in word


RULES = (
    Rule(
        "L07",
        "gradients add up, or are used before they are computed",
        "Each step follows a sum of all earlier gradients, or the gradient of the last minibatch.",
        "`optimizer.zero_grad(); loss.backward(); optimizer.step()`, in this order.",
        "PyTorch, documentation of optim; DeepFD's faults",
        _gradient_steps,
    ),
)
