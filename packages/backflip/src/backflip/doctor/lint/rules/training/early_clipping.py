"""L51: gradients that are clipped before they exist."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, last_word

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value")


def _early_clipping(source: Source) -> Iterator[Hit]:
    """Find `clip_grad_norm_(...)` before `loss.backward()`, with a step after it."""
    for scope in source.nodes:
        for block in ("body", "orelse"):
            statements = getattr(scope, block, None)
            if not isinstance(statements, list):
                continue
            names = [_called(one) for one in statements]
            for place, name in enumerate(names):
                if name not in CLIPS or "backward" in names[:place]:
                    continue
                later = names[place + 1 :]
                is_cleared = "zero_grad" in names
                if is_cleared and "backward" in later and not set(CLIPS) & set(later):
                    yield Hit(statements[place], "the gradients are clipped before `backward()`")


def _called(statement: ast.AST) -> str:
    """Return the last word of what a statement calls; empty for others."""
    match statement:
        case ast.Expr(value=ast.Call(func=func)) | ast.Assign(value=ast.Call(func=func)):
            return last_word(func)
        case _:
            return ""


RULES = (
    Rule(
        "L51",
        "gradients are clipped too early",
        "There are none yet, or those of the last update: what the optimiser uses is not clipped.",
        "Clip between the two: `loss.backward()`, `clip_grad_norm_(...)`, `optimizer.step()`.",
        "PyTorch's documentation of `torch.nn.utils.clip_grad_norm_`",
        _early_clipping,
    ),
)
