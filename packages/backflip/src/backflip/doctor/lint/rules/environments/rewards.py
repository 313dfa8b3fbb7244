"""L14, L22: rewards that are shifted or scaled."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.running_means import (
    centres_in_a_wrapper,
    is_returned,
    is_running_mean,
)
from backflip.doctor.lint.rules.environments.two_discounts import two_discounts
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    is_discount,
    last_word,
    names_in,
    origins,
    unconverted,
    walk,
    written,
)

REWARDS = ("reward", "rewards", "rew", "rews", "r")

# Names of what may be centred; only the order of fitness counts.
CENTRED = ("adv", "baseline", "zscore", "z_score", "rank", "fitness", "utilit")
FILLS = ("append", "insert", "appendleft")
PRODUCTS = ("dot", "matmul", "einsum", "tensordot")
DIRECTIONS = ("noise", "eps", "perturb", "direction", "mutation")
COMPARED = ("preference", "rlhf", "grpo", "rloo", "bradley")
REWARD_MODELS = ("model", "preference", "predict", "ensemble", "reward_net", "discriminator")
SHOWN = (
    *("print", "log", "debug", "info", "warning", "write", "format", "add_scalar", "add_histogram"),
    *("plot", "hist", "scatter", "bar", "boxplot", "fill_between", "title", "text", "set_title"),
)
SHOWN_OR_SPREAD = (*SHOWN, "abs", "square")


def _shifted_rewards(source: Source) -> Iterator[Hit]:
    if _is_about_preferences(source):
        return
    for scope in source.scopes:
        free = _from_a_model(scope) | _returns(source, scope)
        for node in walk(scope):
            match node:
                case ast.BinOp(left=left, op=ast.Sub(), right=mean):
                    pass
                case ast.AugAssign(target=left, op=ast.Sub(), value=mean):
                    pass
                case _:
                    continue
            names = [left, *origins(scope, left)]
            is_given = centres_in_a_wrapper(source, scope, left, mean)
            if is_given and is_returned(source, scope, node):
                yield Hit(node, "the mean is subtracted from rewards")
                continue
            if not any(last_word(one) in REWARDS for one in names):
                continue
            if free & set(map(written, names)):
                continue
            shifted = (
                _is_mean_of(mean, written(left))
                or _is_mean_of_store(scope, left, mean)
                or _is_standardised(source, node, mean)
            )
            if shifted and _is_learned_from(source, scope, node):
                yield Hit(node, "the mean is subtracted from rewards")


def _is_standardised(source: Source, node: ast.AST, mean: ast.expr) -> bool:
    """Return whether code is `(reward - self.mean) / self.std`, with running statistics."""
    match source.parents[node]:
        case ast.BinOp(left=left, op=ast.Div(), right=spread) if left is node:
            words = " ".join(names_in(spread))
            kept = has_word(last_word(mean), "mean") or is_running_mean(source, mean)
            return kept and has_word(words, "std", "var", "sigma")
        case _:
            return False


def _is_mean_of(call: ast.expr, name: str) -> bool:
    """Return whether a value is `x.mean()` or `mean(x)`; not of groups, which are a baseline."""
    if not isinstance(call, ast.Call):
        return False
    if any(one.arg in ("dim", "axis", "keepdim", "keepdims") for one in call.keywords):
        return False
    own = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return last_word(call.func) == "mean" and name in (own, *map(written, call.args))


def _is_mean_of_store(scope: Scope, left: ast.expr, mean: ast.expr) -> bool:
    """Return whether rows of a store are centred by the mean of its rows: `r[i] - r[:n].mean()`."""
    match left, mean:
        case ast.Subscript(value=store), ast.Call(func=ast.Attribute(value=of, attr="mean")):
            rows = [of, *origins(scope, of)]
            return any(
                isinstance(one, ast.Subscript) and written(one.value) == written(store) != ""
                for one in rows
            )
        case _:
            return False


def _is_about_preferences(source: Source) -> bool:
    """Return whether a program compares answers or segments: a shift of all changes nothing."""
    defined = [getattr(body, "name", "") for body in source.bodies]
    return any(has_word(name, *COMPARED) for name in (*defined, *source.imports.values()))


def _from_a_model(scope: Scope) -> set[str]:
    """Return the names of rewards that a model says: it knows them up to a shift."""
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call)
        and has_word(f"{written(value.func)} {last_word(value.func)}", *REWARD_MODELS)
    } - {""}


def _returns(source: Source, scope: Scope) -> set[str]:
    """Return the names that hold discounted returns, whatever they are called."""
    sums = {
        written(target)
        for target, value, _ in assignments(scope)
        if _is_sum_of_later(value, last_word(target))
    }
    kept = {
        written(call.func.value)
        for call, _ in source.calls(scope)
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILLS
        if any(sums & names_in(one) for one in call.args)
    }
    return _renamed(scope, sums | kept | _made_by_discounting(scope)) - {""}


def _is_sum_of_later(value: ast.expr, name: str) -> bool:
    """Return whether a value is `reward + gamma * name`, also of `name[t + 1]`."""
    if not name or not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)):
        return False
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Mult)
        and name in map(last_word, ast.walk(one))
        and any(map(is_discount, names_in(one)))
        for one in ast.walk(value)
    )


def _made_by_discounting(scope: Scope) -> set[str]:
    """Return the names of what a function of discounts or returns gives."""
    return {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call)
        and (
            has_word(last_word(value.func), "discount", "return", "to_go", "togo")
            or any(is_discount(written(one)) for one in arguments(value))
        )
    }


def _renamed(scope: Scope, names: set[str]) -> set[str]:
    """Return some names, and those of the same values in another type."""
    while True:
        more = {
            written(target)
            for target, value, _ in assignments(scope)
            if names & {written(unconverted(value))} - {""}
        }
        if more <= names:
            return names
        names = names | more


def _weighs_directions(scope: Scope, name: str) -> bool:
    """Return whether a value weighs the directions of a search, as evolution strategies do."""
    for node in walk(scope):
        match node:
            case ast.BinOp(op=ast.MatMult()):
                directions = True
            case ast.Call(func=func) if last_word(func) in PRODUCTS:
                directions = True
            case ast.BinOp(op=ast.Mult()):
                directions = has_word(" ".join(names_in(node)), *DIRECTIONS)
            case _:
                continue
        if directions and name in names_in(node):
            return True
    return False


def _is_learned_from(source: Source, scope: Scope, node: ast.AST) -> bool:
    """Return whether shifted rewards stay rewards: not a spread, an advantage or a picture."""
    while not isinstance(node, ast.stmt):
        node, inside = source.parents[node], node
        match node:
            case ast.FormattedValue() | ast.BinOp(op=ast.Pow()):
                return False
            case ast.Call(func=func) if inside is not func and last_word(func) in SHOWN_OR_SPREAD:
                return False
            case _:
                pass
    match node:
        case ast.Assign(targets=[target]):
            name = written(target)
            centred = has_word(name, *CENTRED) or _weighs_directions(scope, name)
            return not centred and not _is_only_shown(source, scope, name)
        case ast.Return():
            return not has_word(getattr(scope, "name", ""), *CENTRED)
        case _:
            return True


def _is_only_shown(source: Source, scope: Scope, name: str) -> bool:
    """Return whether a name is read, and only to print or to plot it."""
    read = [
        node
        for node in walk(scope)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and written(node) == name
    ]
    return bool(read) and all(_is_shown(source, node) for node in read)


def _is_shown(source: Source, node: ast.AST) -> bool:
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
        if isinstance(node, ast.Call) and last_word(node.func) in SHOWN:
            return True
    return False


RULES = (
    Rule(
        "L14",
        "rewards are shifted",
        "Subtracting a constant changes what it is worth to stay alive: if episodes can end early, "
        "it can become best to end them.",
        "Divide rewards by a scale, and subtract nothing. Advantages and returns may be centred.",
        "Schulman 2017, Nuts and bolts: `scale and don't shift`",
        _shifted_rewards,
    ),
    Rule(
        "L22",
        "two discounts",
        "The normaliser scales rewards by the spread of returns with another horizon, so that "
        "targets are larger or smaller than it promises.",
        "Give `VecNormalize` or `NormalizeReward` the `gamma` of the algorithm.",
        "SB3, documentation of VecNormalize",
        two_discounts,
    ),
)
