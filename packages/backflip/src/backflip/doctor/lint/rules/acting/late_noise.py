"""L70: noise that is added to an action after it was clipped."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    has_word,
    last_word,
    names_in,
    unconverted,
    walk,
    written,
)

CLIPS = ("clip", "clamp", "clip_", "clamp_")
DRAWS = ("normal", "randn", "randn_like", "uniform", "rand", "rand_like", "standard_normal")


def _late_noise(source: Source) -> Iterator[Hit]:
    """Find `a = np.clip(a, low, high)`, then `a += noise`, then `env.step(a)`."""
    if not set(CLIPS) & set(source.calls_of):
        return
    for scope in source.scopes:
        for node in walk(scope):
            for block in (getattr(node, part, None) for part in ("body", "orelse")):
                if isinstance(block, list):
                    yield from _in_block(source, block)


def _in_block(source: Source, block: list[ast.stmt]) -> Iterator[Hit]:
    clipped, noisy = set[str](), dict[str, ast.stmt]()
    for statement in block:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and steps_environment(source, node):
                for name in {written(unconverted(one)) for one in node.args} & set(noisy):
                    yield Hit(noisy[name], f"`{name}` may be outside of the bounds again")
                    noisy.pop(name)
        for name, value in _assigned(statement):
            before = names_in(value) | ({name} if isinstance(statement, ast.AugAssign) else set())
            is_noisy = bool(before & clipped) and _adds_noise(statement, value)
            noisy.pop(name, None)
            clipped.discard(name)
            if is_noisy:
                noisy[name] = statement
            elif any(_is_clip(one) for one in ast.walk(value)):
                clipped.add(name)


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AugAssign):
        return [(written(statement.target), statement.value)]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return [(written(statement.targets[0]), statement.value)]
    return []


def _is_clip(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_word(node.func) in CLIPS


def _adds_noise(statement: ast.stmt, value: ast.expr) -> bool:
    """Return whether a statement adds random numbers, and does not clip their sum."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add | ast.Sub) and _is_random(value)
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_random(left) or _is_random(right)
        case _:
            return False


def _is_random(node: ast.expr) -> bool:
    if any(_is_clip(one) for one in ast.walk(node)):
        return False
    words = {name for one in names_in(node) for name in one.split(".")}
    draws = any(
        isinstance(one, ast.Call) and last_word(one.func) in DRAWS for one in ast.walk(node)
    )
    return draws or any(has_word(word, "noise") for word in words)


RULES = (
    Rule(
        "L70",
        "noise is added after the action is clipped",
        "The environment gets actions outside of its bounds. What it does with them is not what "
        "the replay says: most clip again, some fail.",
        "Add the noise first: `np.clip(action + noise, low, high)`.",
        "Spinning Up, DDPG: a = clip(μ(s) + ε, low, high)",
        _late_noise,
    ),
)
