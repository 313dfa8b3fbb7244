"""L22: a normaliser of rewards that has another discount than the algorithm."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.questions.records import number_at, options, visible_entries
from backflip.doctor.lint.questions.sb3 import algorithms, environment_of, layers
from backflip.doctor.lint.questions.values import settings
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import Source, argument, assignments, is_false, number, written

NORMALISERS = {"VecNormalize": 6, "NormalizeReward": 1}  # and the place of `gamma`
DISCOUNT = "0.99"  # what normalisers and algorithms have by default


def two_discounts(source: Source) -> Iterator[Hit]:
    """Compare the discount of a normaliser of rewards with that of the algorithm."""
    models = list(algorithms(source))
    for model in models:
        for layer in layers(source, environment_of(source, model)):
            if _scales_rewards(source, layer.call):
                yield from _compared(source, layer.call, model)
    found = [call for call, _ in source.calls() if _scales_rewards(source, call)]
    if len(found) == 1 and len(models) <= 1:
        yield from _compared(source, found[0], *models)


def _scales_rewards(source: Source, call: ast.Call) -> bool:
    """Return whether a call makes a normaliser of rewards whose statistics change."""
    given = options(source, call)
    is_on = given is not None and not any(
        is_false(given.get(name)) for name in ("norm_reward", "training")
    )
    return source.dotted(call.func).rpartition(".")[2] in NORMALISERS and is_on


def _compared(source: Source, call: ast.Call, *models: ast.Call) -> Iterator[Hit]:
    place = NORMALISERS[source.dotted(call.func).rpartition(".")[2]]
    own = (options(source, call) or {}).get("gamma") or argument(call, "gamma", place)
    scaled = _as_text(source, own)
    learned = _learned_discount(source, models[0] if models else None, own)
    if learned and scaled != learned and _is_known(scaled) and _is_known(learned):
        seen = f"rewards are normalised with γ = {scaled}, and learned with γ = {learned}"
        yield Hit(call, seen)


def _learned_discount(source: Source, model: ast.Call | None, given: ast.expr | None) -> str:
    """Return the discount of an algorithm as it is written; empty for one that cannot be seen.

    Of a program without an algorithm of Stable-Baselines3, it is the option `gamma`: that is
    compared with a normaliser that is given none, or a number.
    """
    if model is not None:
        found = options(source, model)
        given_by_name = argument(model, "gamma")
        if found is None and given_by_name is None:
            return ""
        return _as_text(source, given_by_name or (found or {}).get("gamma"))
    chosen = settings(source)
    option = chosen.get("gamma") or chosen.get("discount") or _constant(source)
    is_number = given is None or isinstance(given, ast.Constant)
    return _as_text(source, option) if is_number and number(option) is not None else ""


def _constant(source: Source) -> ast.expr | None:
    """Return the value of the module's only constant that is named as a discount."""
    found = [
        value for target, value, _ in assignments(source.tree) if written(target).lower() == "gamma"
    ]
    return found[0] if len(found) == 1 else None


def _as_text(source: Source, node: ast.expr | None) -> str:
    """Return a discount: a number if it is known, else as it is written."""
    if node is None:
        return DISCOUNT
    match node:
        case ast.Subscript(value=inside, slice=ast.Constant(value=str(key))):
            node = visible_entries(source, inside).get(key, node)
        case _:
            node = made_at(source, node)
    known = number_at(source, node)
    return ast.unparse(node) if known is None else f"{known:g}"


def _is_known(text: str) -> bool:
    """Return whether a discount is a number or a plain name, so that two can be compared."""
    return not text.endswith(("]", "..."))
