"""L07: gradient steps."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    arguments,
    calls_method,
    has_word,
    last_word,
    walk,
    written,
)

NETWORKS = ("net", "network", "model", "policy", "critic", "actor", "agent")
HARMLESS = {"clip_grad_norm_", "clip_grad_value_", "parameters", "item", "print", "append"}


def _gradient_steps(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    yield from _never_cleared(source)
    for node in source.nodes:
        for block in ("body", "orelse"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                yield from _step_before_backward(statements)
                yield from _cleared_before_step(statements)


def _never_cleared(source: Source) -> Iterator[Hit]:
    if "backward" not in source.text or _clears_gradients(source):
        return
    for call, _ in source.calls():
        if calls_method(call, "step") and _is_optimiser(call) and not _may_be_cleared(source, call):
            yield Hit(call, "no gradient is set to zero in this file, so gradients add up")
            return


def _clears_gradients(source: Source) -> bool:
    """Return whether a program calls `zero_grad`, or sets or fills a gradient by hand."""
    if "zero_grad" in source.text:
        return True
    for node in source.nodes:
        match node:
            case ast.Attribute(attr="grad", ctx=ast.Store() | ast.Del()):
                return True
            case ast.Call(func=ast.Attribute(attr="zero_" | "fill_" | "copy_", value=of)):
                if ".grad" in ast.unparse(of):
                    return True
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value="grad"), _]):
                return True
            case _:
                pass
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
    """Find `loss.backward(); opt.zero_grad(); opt.step()`: what was computed is thrown away."""
    computed, cleared = False, set[str]()
    for statement in block:
        owner = _owner(statement)
        if _calls(statement, "zero_grad"):
            cleared |= {owner} if computed and owner else set()
        elif _calls(statement, "step") and owner in cleared:
            yield Hit(statement, f"`{owner}.zero_grad()` throws the gradient away before the step")
            return
        elif _calls(statement, "step"):
            computed = False
        elif not _leaves_gradients(statement):
            cleared = set()
            computed = computed or _computes_gradients(statement)


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


def _step_before_backward(block: list[ast.stmt]) -> Iterator[Hit]:
    """Find a block in which the optimiser steps, and only then the gradient is computed."""
    steps = [(i, one) for i, one in enumerate(block) if _calls(one, "step")]
    backward = [i for i, one in enumerate(block) if _calls(one, "backward")]
    if steps and backward and steps[-1][0] < backward[0]:
        yield Hit(steps[0][1], "the optimiser steps before `backward` computes the gradient")


def _calls(statement: ast.stmt, method: str) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    return calls_method(call, method) and (method != "step" or _is_optimiser(call))


def _is_optimiser(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return last_word(owner).startswith("opt") or "optim" in last_word(owner)


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
