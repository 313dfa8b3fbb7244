"""L67: states of an optimiser that are thrown away."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, calls_method

FEWEST = 2  # arguments of `optimiser.update(gradients, state)`


def _lost_states(source: Source) -> Iterator[Hit]:
    """Find `updates, _ = optimiser.update(gradients, state)` of optax."""
    if not source.imports_any("optax"):
        return
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            match target, value:
                case ast.Tuple(elts=[_, ast.Name(id="_")]), ast.Call(args=given):
                    if calls_method(value, "update") and len(given) >= FEWEST:
                        yield Hit(statement, "the new state of the optimiser is thrown away")
                case _:
                    pass


RULES = (
    Rule(
        "L67",
        "the state of the optimiser is thrown away",
        "Adam's averages and its count stay as at the start: each step is a first step, with the "
        "sign of the gradient and the size of the learning rate.",
        "Keep it: `updates, state = optimiser.update(gradients, state)`.",
        "optax's documentation of `GradientTransformation.update`",
        _lost_states,
    ),
)
