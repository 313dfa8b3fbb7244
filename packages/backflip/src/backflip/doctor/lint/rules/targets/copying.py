"""L35: copies of weights into the wrong network, or in almost every step."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.environments import steps_environment
from backflip.doctor.lint.questions.values import known_numbers, value_of
from backflip.doctor.lint.questions.weight_copies import Copy, copied
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.targets.targets import TARGETS
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    has_word,
    walk,
    written,
)

FEWEST = 5  # env steps between two copies; DRLinter copies every 25, and wrongly every 2
OTHER_COUNTERS = ("episode", "epoch", "game", "iteration", "update")  # of more than env steps
STARTS = ("__init__", "reset", "setup", "load", "restore", "build", "init")


def _copying(source: Source) -> Iterator[Hit]:
    copies = [
        (call, copy)
        for call, _ in source.calls()
        if (copy := copied(source, call)) is not None and _is_at_work(source, call)
    ]
    fills_target = any(_is_target(copy.into) for _, copy in copies)
    for call, copy in copies:
        if _is_target(copy.of) and not _is_target(copy.into) and not fills_target:
            yield Hit(call, f"`{copy.into}` gets the weights of `{copy.of}`, not the reverse")
        elif _fills_a_target(copy) and (steps := _period(source, call)) is not None:
            yield Hit(call, f"`{copy.into}` is replaced every {steps:g} steps of the environment")


def _is_target(name: str) -> bool:
    return has_word(name, *TARGETS)


def _fills_a_target(copy: Copy) -> bool:
    return _is_target(copy.into) and not _is_target(copy.of)


def _is_at_work(source: Source, call: ast.Call) -> bool:
    """Return whether a copy is made during training, not at the start, where both are equal."""
    name = getattr(source.function_of(call), "name", "")
    inside = source.is_inside(call, (*LOOPS, ast.If))
    return inside or (bool(name) and not name.startswith(STARTS))


def _period(source: Source, call: ast.Call) -> float | None:
    """Return the env steps between two copies if they are few; None otherwise.

    It is n of `if step % n == 0` in the loop that steps the environment.
    """
    node: ast.AST = call
    found: float | None = None
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node = source.parents[node]
        match node:
            case ast.If(
                test=ast.Compare(
                    left=ast.BinOp(left=counter, op=ast.Mod(), right=every), ops=[ast.Eq()]
                )
            ) if not has_word(written(counter), *OTHER_COUNTERS):
                found = value_of(every, known_numbers(source, source.function_of(every)))
            case ast.For() | ast.While():
                few = found is not None and 1 <= found < FEWEST
                return found if few and _steps(source, node) else None
            case _:
                pass
    return None


def _steps(source: Source, loop: ast.AST) -> bool:
    """Return whether a loop steps an environment itself."""
    inner = {one for part in walk(loop) if isinstance(part, LOOPS) for one in ast.walk(part)}
    return any(steps_environment(source, node) and node not in inner for node in walk(loop))


RULES = (
    Rule(
        "L35",
        "weights are copied the wrong way, or too often",
        "The network that learns loses what it has learned; or the target follows it so closely "
        "that it is no target network, and values chase themselves.",
        "Copy into the target, `target_net.load_state_dict(net.state_dict())`, every few hundred "
        "steps or more.",
        "DRLinter, arXiv:2101.00135, `Wrong network update` and `Suboptimal network update "
        "frequency`; Mnih et al. 2015",
        _copying,
    ),
)
