"""L66: random actions that leave the last one out."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import FUNCTIONS, Source, argument, names_in, number

EXPLORES = ("eps", "explor")  # in names of what decides whether to explore


def _short_ranges(source: Source) -> Iterator[Hit]:
    """Find `np.random.randint(n_actions - 1)` where an action is explored; its end is exclusive."""
    for call, name in source.calls():
        high = _end(call, name)
        match high:
            case ast.BinOp(left=count, op=ast.Sub(), right=one) if number(one) == 1:
                if number(count) is None and _is_explored(source, call):
                    seen = f"`{ast.unparse(high)}` is left out, as all ends of this function are"
                    yield Hit(call, seen)
            case _:
                pass


def _end(call: ast.Call, name: str) -> ast.expr | None:
    """Return the exclusive end of a range of whole numbers; None for other calls."""
    last = name.rpartition(".")[2]
    of_numpy = name == "numpy.random.randint" or last == "integers"
    if of_numpy or name == "torch.randint" or name == "random.randrange":
        alone = len(call.args) <= 1 or isinstance(call.args[1], ast.Tuple)
        return argument(call, "high") or call.args[0 if alone else 1] if call.args else None
    return None


def _is_explored(source: Source, node: ast.AST) -> bool:
    """Return whether code runs where a test of ε says so."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        node = source.parents[node]
        if isinstance(node, ast.If | ast.IfExp) and any(
            word in name.lower() for name in names_in(node.test) for word in EXPLORES
        ):
            return True
    return False


RULES = (
    Rule(
        "L66",
        "the last action is never explored",
        "The end of the range is exclusive: with `n - 1`, random actions are all but the last one, "
        "and nothing is learned about it until the values choose it.",
        "Write `rng.integers(n_actions)`, or `env.action_space.sample()`. Only `random.randint` "
        "includes its end.",
        "NumPy's documentation of `Generator.integers`",
        _short_ranges,
    ),
)
