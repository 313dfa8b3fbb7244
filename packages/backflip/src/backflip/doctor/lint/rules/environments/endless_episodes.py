"""L34: loops over an episode that nothing ends."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.questions.episode_ends import never_truncates
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    has_word,
    is_false,
    walk,
    written,
)

ENDS = ("done", "terminated", "truncated", "terminal", "finished", "episode_over")
LEAVES = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


def _endless_episodes(source: Source) -> Iterator[Hit]:
    yield from _without_a_step(source)
    yield from _ignored_limits(source)


def _ignored_limits(source: Source) -> Iterator[Hit]:
    """Find `while not done: obs, reward, done, _, info = env.step(action)`."""
    for scope in source.scopes:
        for loop in walk(scope):
            if not isinstance(loop, ast.While) or _leaves(loop):
                continue
            for target, value, statement in assignments(loop):
                env = _stepped(source, target, value, _ends(loop.test))
                if env is not None and not never_truncates(source, scope, env):
                    yield Hit(statement, "the end of a time limit is ignored, and the loop goes on")


def _stepped(source: Source, target: ast.expr, value: ast.expr, ends: set[str]) -> ast.expr | None:
    """Return the environment whose step keeps the tested end alone; None for other statements."""
    match target, value:
        case (
            ast.Tuple(elts=[_, _, ended, ast.Name(id=cut), _]),
            ast.Call(func=ast.Attribute(value=env, attr="step")),
        ) if cut.startswith("_") and {written(ended)} == ends:
            return env if steps_environment(source, value) else None
        case _:
            return None


def _leaves(loop: ast.While) -> bool:
    """Return whether a loop has a way out beside its test."""
    return _has_break(loop) or any(isinstance(node, LEAVES) for node in ast.walk(loop))


def _without_a_step(source: Source) -> Iterator[Hit]:
    """Find `while not done:` with nothing in it that sets `done`."""
    for scope in source.scopes:
        for loop in walk(scope):
            if not isinstance(loop, ast.While):
                continue
            ends = _ends(loop.test)
            if ends and _are_plain(scope, ends) and not _can_end(source, loop, ends):
                name = sorted(ends)[0]
                yield Hit(loop, f"nothing in the loop sets `{name}`: no step of an environment")


def _ends(test: ast.expr) -> set[str]:
    """Return the names in `not done` or `not (terminated or truncated)`; empty for other tests."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            names = {one.id for one in ast.walk(inner) if isinstance(one, ast.Name)}
        case _:
            return set()
    others = (ast.Call, ast.Attribute, ast.Subscript, ast.Compare)
    plain = not any(isinstance(one, others) for one in ast.walk(inner))
    return names if plain and all(has_word(name, *ENDS) for name in names) else set()


def _are_plain(scope: Scope, names: set[str]) -> bool:
    """Return whether names are set to False, and to nothing that code elsewhere can change."""
    values = {name: list[ast.expr]() for name in names}
    for target, value, _ in assignments(scope):
        values.get(written(target), []).append(value)
    return all(found and all(map(is_false, found)) for found in values.values())


def _can_end(source: Source, loop: ast.While, ends: set[str]) -> bool:
    """Return whether something in a loop can end it: it sets a name, leaves, or lets others do."""
    sets = any(_stores(node, ends) for node in ast.walk(loop))
    return sets or _leaves(loop) or _is_shared(source, ends)


def _stores(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return name in names
        case _:
            return False


def _has_break(loop: ast.While) -> bool:
    """Return whether a loop has a `break` of its own."""
    return any(
        isinstance(node, ast.Break) and not _is_in_inner_loop(loop, node) for node in ast.walk(loop)
    )


def _is_in_inner_loop(loop: ast.While, node: ast.AST) -> bool:
    inner = (one for one in ast.walk(loop) if isinstance(one, ast.For | ast.While))
    return any(one is not loop and node in ast.walk(one) for one in inner)


def _is_shared(source: Source, ends: set[str]) -> bool:
    """Return whether other functions can set the names: global ones, or those of a closure."""
    return any(
        isinstance(node, ast.Global | ast.Nonlocal) and ends & set(node.names)
        for node in source.nodes
    )


RULES = (
    Rule(
        "L34",
        "an episode that never ends",
        "The loop runs until the episode is over, but no step of the environment is taken in it, "
        "what the step says of the end has another name, or the end of a time limit is ignored: "
        "then a policy that never fails keeps the program in one episode.",
        "Step the environment in the loop: `obs, reward, terminated, truncated, info = "
        "env.step(action)`, and `done = terminated or truncated`.",
        "DRLinter, arXiv:2101.00135, `Missing stepping the environment`; Gymnasium, migration "
        "guide",
        _endless_episodes,
    ),
)
