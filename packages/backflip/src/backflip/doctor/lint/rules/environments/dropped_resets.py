"""L43: episodes that begin with the last observation of the one before."""

import ast
from collections.abc import Iterator, Sequence

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.masks.ignored_ends import may_tell_ends
from backflip.doctor.lint.source import LOOPS, Source, assignments, names_in, walk, written


def _dropped_resets(source: Source) -> Iterator[Hit]:
    """Find `if done: env.reset()` in a loop that acts on the observation of the last step."""
    for loop in source.nodes:
        if not isinstance(loop, LOOPS):
            continue
        for node in walk(loop):
            if not (isinstance(node, ast.If) and any(map(may_tell_ends, names_in(node.test)))):
                continue
            reset = _reset_alone(node.body)
            if reset is None:
                continue
            env, statement = reset
            if _is_stepped_in(loop, env) and not _is_left(node.body, source, node):
                seen = f"what `{env}.reset()` returns is dropped, and the old observation is kept"
                yield Hit(statement, seen)


def _reset_alone(body: Sequence[ast.stmt]) -> tuple[str, ast.stmt] | None:
    """Return the environment that a branch resets without the observation, and where."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="reset"))):
                return written(owner), statement
            case _:
                pass
    return None


def _is_stepped_in(loop: ast.stmt, env: str) -> bool:
    """Return whether a loop steps an environment, and keeps what it returns for the next step."""
    observed = set[str]()
    for target, value, _ in assignments(loop):
        match target, value:
            case ast.Tuple(elts=[first, *_]), ast.Call(
                func=ast.Attribute(value=owner, attr="step")
            ):
                if written(owner) == env:
                    observed.add(written(first))
            case _:
                pass
    read = (one for one in walk(loop) if isinstance(getattr(one, "ctx", None), ast.Load))
    return any(written(one) in observed - {"", "_"} for one in read)


def _is_left(body: Sequence[ast.stmt], source: Source, branch: ast.If) -> bool:
    """Return whether the branch ends the loop, or another reset sets the observation."""
    ends = (ast.Break, ast.Return, ast.Raise)
    if any(isinstance(node, ends) for statement in body for node in ast.walk(statement)):
        return True
    around = source.function_of(branch)
    inside = [loop for loop in walk(around) if isinstance(loop, LOOPS)]
    return any(
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in ("reset", "get_state", "observe", "observation", "_get_obs")
        for loop in inside
        for _, value, _ in assignments(loop)
    )


RULES = (
    Rule(
        "L43",
        "an episode begins with an old observation",
        "The first action of each episode is chosen for the last state of the one before, and this "
        "transition is learned from.",
        "Keep what it returns: `obs, info = env.reset()`.",
        "Gymnasium's documentation of `Env.reset`",
        _dropped_resets,
    ),
)
