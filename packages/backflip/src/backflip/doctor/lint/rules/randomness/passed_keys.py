"""Random keys of JAX that every turn of a training loop passes on as they are: a part of L19."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    LOOPS,
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    last_word,
    walk,
    written,
)

KEPT = ("eval", "test", "init", "seed", "fixed")  # in names of keys that may stay the same


def passed_keys(source: Source) -> Iterator[Hit]:
    """Find keys that are made before a loop with `env.step`, and that its calls get."""
    for scope in source.scopes:
        keys = _keys(source, scope)
        for loop in walk(scope) if keys else ():
            if not isinstance(loop, LOOPS):
                continue
            inside = list(ast.walk(loop))
            if not any(steps_environment(source, one) for one in inside):
                continue
            for name in sorted(keys - _set_in(inside)):
                uses = [node for node in inside if _passes(source, node, name)]
                if uses:
                    yield Hit(uses[0], f"`{name}` is the same in each turn of the loop")


def _keys(source: Source, scope: Scope) -> set[str]:
    """Return the names that a scope sets to keys."""
    found: set[str] = set()
    for target, value, _ in assignments(scope):
        name = source.dotted(value.func) if isinstance(value, ast.Call) else ""
        if name in ("jax.random.split", "jax.random.PRNGKey", "jax.random.key"):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            found |= {one.id for one in parts if isinstance(one, ast.Name)}
    return {name for name in found if not has_word(name, *KEPT)}


def _set_in(nodes: list[ast.AST]) -> set[str]:
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _passes(source: Source, node: ast.AST, name: str) -> bool:
    """Return whether a call gets a key, and is not one of `jax.random`, which is followed."""
    if not isinstance(node, ast.Call) or name not in map(written, arguments(node)):
        return False
    of_jax = source.dotted(node.func).startswith("jax.random.")
    return not of_jax and last_word(node.func) != "fold_in"
