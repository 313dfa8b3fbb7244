"""L63: sums over the batch where a sum over actions is meant."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, last_word, number

OVER_ACTIONS = ("logsumexp", "softmax", "log_softmax", "argmax")


def _batch_axes(source: Source) -> Iterator[Hit]:
    """Find `torch.logsumexp(q, dim=0)` of values that are also gathered by action along axis 1."""
    by_action = {
        last_word(node.func.value)
        for node in source.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "gather"
        and number(argument(node, "dim", 0)) in (1.0, -1.0)
    } - {""}
    for call, name in source.calls():
        last = last_word(call.func)
        if last not in OVER_ACTIONS:
            continue
        of_function = name.startswith(("torch.", "jax."))
        values = call.args[0] if of_function and call.args else getattr(call.func, "value", None)
        if values is None or last_word(values) not in by_action:
            continue
        axis = argument(call, "dim", 1 if of_function else 0) or argument(call, "axis")
        if number(axis) == 0:
            yield Hit(call, f"axis 0 of `{last_word(values)}` is the batch, and 1 the actions")


RULES = (
    Rule(
        "L63",
        "the axis is that of the batch",
        "States are compared with each other, where the actions of one state were to be compared.",
        "Use the axis of the actions: `torch.logsumexp(q, dim=1)`.",
        "Kumar et al. 2020, arXiv:2006.04779, equation 4",
        _batch_axes,
    ),
)
