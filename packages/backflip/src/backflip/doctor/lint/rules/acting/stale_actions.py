"""L62: actions that are chosen once for a whole episode."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    is_of_next,
    parameters,
)

NOTHING = ("noop", "no_op", "zero", "null", "fixed", "constant")


def _stale_actions(source: Source) -> Iterator[Hit]:
    """Find loops with `env.step(a)` and `s = s2` that never set `a`."""
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and steps_environment(source, node)):
            continue
        match node.args:
            case [ast.Name(id=name)] if not any(word in name.lower() for word in NOTHING):
                pass
            case _:
                continue
        scope, loop = source.function_of(node), _loop_of(source, node)
        given = {one.arg for one in parameters(scope)} if isinstance(scope, FUNCTIONS) else set()
        if loop is None or name in given or not _is_set(scope, name):
            continue
        if not _is_set(loop, name) and _moves_on(loop):
            yield Hit(node, f"`{name}` is never chosen in this loop")


def _loop_of(source: Source, node: ast.AST) -> ast.AST | None:
    """Return the innermost loop that a node is in, of its own function."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node = source.parents[node]
        if isinstance(node, LOOPS):
            return node
    return None


def _is_set(place: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(place)
    )


def _moves_on(loop: ast.AST) -> bool:
    """Return whether a loop has `s = s2`: it is no loop that repeats an action for a few frames."""
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name()], value=ast.Name() as value) if is_of_next(value):
                return True
            case _:
                pass
    return False


RULES = (
    Rule(
        "L62",
        "the action is chosen once for many steps",
        "The environment gets the first action again in every step, whatever the policy learns.",
        "Choose in the loop; in SARSA carry it on: `s, a = s2, a2`.",
        "Sutton & Barto 2018, section 6.4, Sarsa",
        _stale_actions,
    ),
)
