"""L69: time limits of an environment that are not reset."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import FUNCTIONS, Function, Source, number, walk, written


def _running_clocks(source: Source) -> Iterator[Hit]:
    """Find `self.t += 1` in `step` that ends episodes, where `reset` never sets `self.t`."""
    for body in source.nodes:
        if not isinstance(body, ast.ClassDef):
            continue
        methods = {one.name: one for one in body.body if isinstance(one, FUNCTIONS)}
        if not {"step", "reset"} <= methods.keys():
            continue
        later = [one for name, one in methods.items() if name not in ("__init__", "step")]
        changed = {name for one in later for name in _set_in(one)}
        for name, node in _counted(methods["step"]).items():
            if name not in changed and not _is_delegated(methods["reset"]):
                yield Hit(node, f"`reset` does not set `{name}`, which ends episodes")


def _set_in(method: Function) -> set[str]:
    """Return the attributes that a method sets, or a part of which it sets."""
    found: set[str] = set()
    for node in walk(method):
        match node:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                found.add(written(node))
            case ast.Call(func=ast.Attribute(value=of, attr="fill" | "fill_" | "zero_")):
                found.add(written(of))
            case _:
                pass
    return found


def _counted(step: Function) -> dict[str, ast.AST]:
    """Return the attributes that `step` counts with and compares with a limit, and where."""
    nodes = walk(step)
    counted = {
        written(one.target): one
        for one in nodes
        if isinstance(one, ast.AugAssign)
        and isinstance(one.op, ast.Add | ast.Sub)
        and number(one.value) == 1
        and isinstance(one.target, ast.Attribute)
    }
    compared = {
        written(side)
        for one in nodes
        if isinstance(one, ast.Compare)
        for side in (one.left, *one.comparators)
    }
    return {name: node for name, node in counted.items() if name in compared}


def _is_delegated(reset: Function) -> bool:
    """Return whether `reset` may set attributes elsewhere: by a call of its own, or by name."""
    return any(
        isinstance(one, ast.Call)
        and (
            (isinstance(one.func, ast.Name) and one.func.id in ("setattr", "vars"))
            or (
                isinstance(one.func, ast.Attribute)
                and written(one.func.value) == "self"
                and one.func.attr in ("__init__", "__dict__")
            )
        )
        for one in walk(reset)
    )


RULES = (
    Rule(
        "L69",
        "the time limit is not reset",
        "Steps are counted over all episodes. Once the limit is reached, every episode ends after "
        "one step.",
        "Set the counter in `reset`: `self.t = 0`.",
        "a common mistake in own environments",
        _running_clocks,
    ),
)
