"""L49: normal distributions whose standard deviation is a logarithm."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, assignments, last_word, written

NORMAL = ("normal", "multivariatenormaldiag")
LOGARITHMS = ("log_std", "logstd", "log_sigma", "logsigma", "log_scale", "log_stddev", "log_dev")


def _log_scales(source: Source) -> Iterator[Hit]:
    """Find `Normal(mean, log_std)`."""
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and last_word(node.func) in NORMAL):
            continue
        scale = argument(node, "scale", 1)
        if scale is None or last_word(scale).strip("_").lower() not in LOGARITHMS:
            continue
        if not _is_exponential(source, node, scale):
            seen = f"`{written(scale)}` is given as a standard deviation, and named as a logarithm"
            yield Hit(node, seen)


def _is_exponential(source: Source, call: ast.Call, scale: ast.expr) -> bool:
    """Return whether a name is set to an exponential in the same function."""
    return any(
        isinstance(one, ast.Call) and last_word(one.func) in ("exp", "softplus")
        for target, value, _ in assignments(source.function_of(call))
        if written(target) == written(scale)
        for one in ast.walk(value)
    )


RULES = (
    Rule(
        "L49",
        "a logarithm is used as a standard deviation",
        "Logarithms are negative as a rule: the distribution is refused, or has a width that its "
        "network did not mean.",
        "Write `Normal(mean, log_std.exp())`.",
        "PyTorch's documentation of `torch.distributions.Normal`",
        _log_scales,
    ),
)
