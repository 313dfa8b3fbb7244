"""L07: gradient steps."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, last_word


def _gradient_steps(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    if "zero_grad" not in source.text:
        for call, _ in source.calls():
            if _is_call(call, "step") and _is_optimiser(call) and "backward" in source.text:
                yield Hit(call, "no gradient is set to zero in this file, so gradients add up")
                return
    for node in source.nodes:
        for block in ("body", "orelse"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                yield from _step_before_backward(statements)


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
    return _is_call(call, method) and (method != "step" or _is_optimiser(call))


def _is_call(call: ast.Call, method: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method


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
