"""L14, L21: rewards and returns."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    argument,
    assignments,
    has_word,
    is_discount,
    last_word,
    names_in,
    number,
    walk,
    written,
)

REWARDS = ("reward", "rewards", "rew", "rews", "r")

CENTRED = ("adv", "baseline", "zscore", "z_score")  # names of what may be centred
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
        learned = _from_a_model(scope)
        for node in walk(scope):
            match node:
                case ast.BinOp(left=left, op=ast.Sub(), right=ast.Call() as call):
                    pass
                case ast.AugAssign(target=left, op=ast.Sub(), value=ast.Call() as call):
                    pass
                case _:
                    continue
            shifted = last_word(left) in REWARDS and _is_mean_of(call, written(left))
            if shifted and _is_learned_from(source, scope, node) and written(left) not in learned:
                yield Hit(node, "the mean is subtracted from rewards")


def _is_mean_of(call: ast.Call, name: str) -> bool:
    """Return whether a call is `x.mean()` or `mean(x)`; not of groups, which are a baseline."""
    if any(one.arg in ("dim", "axis", "keepdim", "keepdims") for one in call.keywords):
        return False
    own = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return last_word(call.func) == "mean" and name in (own, *map(written, call.args))


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
            return not has_word(name, *CENTRED) and not _is_only_shown(source, scope, name)
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


def _forward_returns(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.For) or not (_goes_forward(node.iter) or _counts_up(node)):
            continue
        backward = _backward_before(source, node)
        for statement in walk(node):
            if not _is_recursion(statement, names_in(node.target)):
                continue
            if _reads_backward(statement, node, backward) or _is_running(statement, node):
                continue
            seen = "the return is summed from the first reward on, not from the last"
            yield Hit(statement, seen)


def _goes_forward(node: ast.expr) -> bool:
    """Return whether a loop goes over rewards from the first to the last."""
    word = last_word(_without_enumerate(node))
    return has_word(word, "reward", "rews") and isinstance(
        _without_enumerate(node), ast.Name | ast.Attribute
    )


def _without_enumerate(node: ast.expr) -> ast.expr:
    """Return what a loop goes over; of `enumerate(x)`, x."""
    if isinstance(node, ast.Call) and last_word(node.func) == "enumerate" and node.args:
        return node.args[0]
    return node


def _backward_before(source: Source, loop: ast.For) -> set[str]:
    """Return the names that hold their values from the last to the first when a loop starts."""
    backward: set[str] = set()
    for node in walk(source.function_of(loop)):
        if getattr(node, "lineno", 0) >= loop.lineno:
            continue
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="reverse"), args=[]):
                backward ^= {written(owner)}
            case ast.Assign(targets=[target], value=value):
                name = written(target)
                turned = _reverses(value) != bool(backward & names_in(value))
                backward = backward | {name} if turned else backward - {name}
            case _:
                pass
    return backward - {""}


def _reverses(value: ast.expr) -> bool:
    """Return whether an expression turns the order of something round."""
    for node in ast.walk(value):
        match node:
            case ast.Slice(step=step) if (number(step) or 0) < 0:
                return True
            case ast.Call(func=func) if last_word(func) in ("reversed", "flip", "flipud"):
                return True
            case _:
                pass
    return False


def _reads_backward(statement: ast.AST, loop: ast.For, backward: set[str]) -> bool:
    """Return whether rewards are read from the last on: a turned list, or `rewards[T - 1 - t]`."""
    over = _without_enumerate(loop.iter)
    if written(over) in backward or has_word(last_word(over), "revers", "backward", "flipped"):
        return True
    counted = names_in(loop.target)
    return any(
        isinstance(one, ast.Subscript)
        and (written(one) in backward or _counts_down(one.slice, counted))
        for one in ast.walk(statement)
    )


def _counts_down(index: ast.expr, counted: set[str]) -> bool:
    """Return whether an index falls as a name rises."""
    for node in ast.walk(index):
        match node:
            case ast.BinOp(op=ast.Sub(), right=falling):
                pass
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=falling):
                pass
            case _:
                continue
        if counted & names_in(falling):
            return True
    return False


def _is_running(statement: ast.AST, loop: ast.For) -> bool:
    """Return whether a sum is yielded, or only updates statistics: rewards are scaled by it."""
    own = {written(target) for target in getattr(statement, "targets", [])}
    updates, others = False, False
    for node in walk(loop):
        match node:
            case ast.Yield(value=value) if value is not None and own & names_in(value):
                return True
            case ast.Call(func=func, args=args) if any(own & names_in(one) for one in args):
                updates = updates or last_word(func) == "update"
                others = others or last_word(func) != "update"
            case _:
                pass
    return updates and not others


def _counts_up(loop: ast.For) -> bool:
    """Return whether a loop counts up, and keeps a sum for each step."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]):
            keeps = ("append", "insert")
            return any(isinstance(n, ast.Call) and last_word(n.func) in keeps for n in walk(loop))
        case _:
            return False


def _is_recursion(statement: ast.AST, rewards: set[str]) -> bool:
    """Return whether a statement is `R = reward + gamma * R`, with names of the loop."""
    match statement:
        case ast.Assign(targets=[ast.Name() as target], value=ast.BinOp(op=ast.Add()) as value):
            names = names_in(value)
            own = written(target)
            discounted = any(
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Mult)
                and own in names_in(one)
                and any(map(is_discount, names_in(one)))
                for one in ast.walk(value)
            )
            return bool(rewards & names) and discounted
        case _:
            return False


def _two_discounts(source: Source) -> Iterator[Hit]:
    """Compare the discount of a normaliser of rewards with that of the algorithm."""
    normalisers, algorithms = [], []
    for call, name in source.calls():
        last = name.rpartition(".")[2]
        if last in ("VecNormalize", "NormalizeReward"):
            normalisers.append(call)
        elif name.startswith("stable_baselines3") and last.isupper():
            algorithms.append(call)
    if len(normalisers) != 1 or len(algorithms) != 1:
        return
    found = [argument(one, "gamma") for one in (*normalisers, *algorithms)]
    texts = [ast.unparse(one) if one is not None else "0.99" for one in found]
    if texts[0] != texts[1] and not _is_off(argument(normalisers[0], "norm_reward")):
        seen = f"rewards are normalised with γ = {texts[0]}, and learned with γ = {texts[1]}"
        yield Hit(normalisers[0], seen)


def _is_off(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


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
        "L21",
        "returns are summed forwards",
        "Each return then holds the rewards before it, not those after it: actions are credited "
        "with what they did not cause.",
        "Go backwards: `for reward in reversed(rewards): R = reward + gamma * R`, and reverse "
        "the list of returns.",
        "RLMutation, arXiv:2301.05651, operator NR",
        _forward_returns,
    ),
    Rule(
        "L22",
        "two discounts",
        "The normaliser scales rewards by the spread of returns with another horizon, so that "
        "targets are larger or smaller than it promises.",
        "Give `VecNormalize` or `NormalizeReward` the `gamma` of the algorithm.",
        "SB3, documentation of VecNormalize",
        _two_discounts,
    ),
)
