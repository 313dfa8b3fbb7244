"""L07, L08: gradient steps, and the mode of networks."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, last_word, walk, written

MODES = ("Dropout", "Dropout1d", "Dropout2d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


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


def _modes(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch") or "backward" not in source.text:
        return
    if not any(_is_call(call, "train") for call, _ in source.calls()):
        for call, _ in source.calls():
            if _is_call(call, "eval") and not call.args and isinstance(call.func, ast.Attribute):
                name = written(call.func.value)
                if name and not _is_frozen(name):
                    yield Hit(call, f"`{name}` is never set back to training mode")
    if _has_ratio(source):
        for call, name in source.calls():
            if name.rpartition(".")[2] in MODES and name.startswith("torch."):
                layer = name.rpartition(".")[2]
                yield Hit(call, f"{layer} in a policy whose probabilities are compared")


def _is_frozen(name: str) -> bool:
    """Return whether a network surely does not learn."""
    return any(word in name.lower() for word in ("target", "teacher", "ref", "old", "frozen"))


def _has_ratio(source: Source) -> bool:
    """Return whether exp(log π - log π_old) is computed."""
    return any(
        isinstance(node, ast.Assign)
        and "ratio" in last_word(node.targets[0])
        and any(last_word(c.func) == "exp" for c in walk(node) if isinstance(c, ast.Call))
        for node in source.nodes
    )


RULES = (
    Rule(
        "L07",
        "gradients add up, or are used before they are computed",
        "Each step follows a sum of all earlier gradients, or the gradient of the last minibatch.",
        "`optimizer.zero_grad(); loss.backward(); optimizer.step()`, in this order.",
        "PyTorch, documentation of optim; DeepFD's faults",
        _gradient_steps,
    ),
    Rule(
        "L08",
        "the mode of a network differs between acting and learning",
        "Dropout and batch normalisation act differently in the two modes: the ratio of "
        "probabilities is then not 1 before the first gradient step, and the policy is updated for "
        "actions that it did not choose.",
        "Leave such layers out of policies; after `net.eval()` call `net.train()`.",
        "trl#454, lerobot#3668; Huang et al. 2022, 37 details of PPO",
        _modes,
    ),
)
