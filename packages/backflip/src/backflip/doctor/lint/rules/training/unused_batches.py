"""L32: minibatches that are drawn for nothing."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    names_in,
    written,
)

MEMORIES = ("memory", "buffer", "replay", "experience", "transitions", "dataset", "rollout")


def _unused_batches(source: Source) -> Iterator[Hit]:
    """Find names that a replay's sample is given to, and that the function never reads."""
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            if not isinstance(target, ast.Name) or target.id.startswith("_"):
                continue
            if _draws(value) and not _is_read(scope, target.id):
                yield Hit(statement, f"`{target.id}` is drawn, and never read")


def _is_read(scope: Scope, name: str) -> bool:
    """Return whether a scope, or a function in it, reads a name, or shares it with others."""
    for node in ast.walk(scope):
        match node:
            case ast.Name(id=found, ctx=ast.Load() | ast.Del()) if found == name:
                return True
            case ast.Global(names=shared) | ast.Nonlocal(names=shared) if name in shared:
                return True
            case _:
                pass
    return False


def _draws(value: ast.expr) -> bool:
    """Return whether a value is `random.sample(memory, n)` or `buffer.sample(n)`."""
    match value:
        case ast.Call(func=ast.Attribute(value=owner, attr="sample" | "choices")):
            given = {name for one in arguments(value) for name in names_in(one)}
            return any(has_word(name, *MEMORIES) for name in given | {written(owner)})
        case _:
            return False


RULES = (
    Rule(
        "L32",
        "a minibatch is drawn and not used",
        "The update learns from something else, mostly from all transitions in their order: it "
        "takes longer with each step, and what it learns from is correlated.",
        "Loop over the minibatch.",
        "Stack Overflow 54385568: `batch = random.sample(...)`, then `for ... in self.memory`",
        _unused_batches,
    ),
)
