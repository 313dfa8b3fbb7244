"""L36: observations that are overwritten before they are stored."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, is_of_next, written

FEWEST = 4  # parts of a transition


def _overwritten_states(source: Source) -> Iterator[Hit]:
    """Find `obs = next_obs`, then `memory.append((obs, action, reward, next_obs))`, in a block."""
    for parent in source.nodes:
        for block in _blocks(parent):
            yield from _in_block(source, block)


def _blocks(parent: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and block:
            yield block


def _in_block(source: Source, block: list[ast.stmt]) -> Iterator[Hit]:
    for place, statement in enumerate(block):
        match statement:
            case ast.Assign(targets=[ast.Name(id=obs)], value=ast.Name(id=after) as value) if (
                is_of_next(value) or _is_stepped(source, block[:place], after)
            ):
                for later in block[place + 1 :]:
                    if _sets(later, {obs, after}):
                        break
                    if _stores(later, obs, after):
                        yield Hit(
                            later, f"`{obs}` is `{after}` here, since line {statement.lineno}"
                        )
                        break
            case _:
                pass


def _is_stepped(source: Source, before: list[ast.stmt], name: str) -> bool:
    """Return whether a name is the first thing that `env.step` returned in a block."""
    return any(
        isinstance(one, ast.Assign)
        and steps_environment(source, one.value)
        and isinstance(one.targets[0], ast.Tuple)
        and written(one.targets[0].elts[0]) == name
        for one in before
    )


def _sets(statement: ast.stmt, names: set[str]) -> bool:
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names
        for node in ast.walk(statement)
    )


def _stores(statement: ast.stmt, obs: str, after: str) -> bool:
    """Return whether a statement is one call that gets both states and more of a transition."""
    match statement:
        case ast.Expr(value=ast.Call(args=[ast.Tuple(elts=parts) | ast.List(elts=parts)])):
            pass
        case ast.Expr(value=ast.Call(args=parts)) | ast.Assign(value=ast.Tuple(elts=parts)):
            pass
        case _:
            return False
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return len(parts) >= FEWEST and {obs, after} <= names


RULES = (
    Rule(
        "L36",
        "the observation is overwritten before it is stored",
        "Both states of the transition are the next one: what is learned is that actions change "
        "nothing.",
        "Store the transition first, then write `obs = next_obs`.",
        "a common mistake in programs with a replay",
        _overwritten_states,
    ),
)
