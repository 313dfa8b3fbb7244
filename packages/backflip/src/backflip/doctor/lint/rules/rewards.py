"""L14, L21: rewards and returns."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    argument,
    has_word,
    is_discount,
    last_word,
    names_in,
    walk,
    written,
)

REWARDS = ("reward", "rewards", "rew", "rews", "r")


def _shifted_rewards(source: Source) -> Iterator[Hit]:
    for scope in source.scopes:
        for node in walk(scope):
            match node:
                case ast.BinOp(left=left, op=ast.Sub(), right=ast.Call() as call):
                    if last_word(left) in REWARDS and _is_mean_of(call, written(left)):
                        yield Hit(node, "the mean is subtracted from rewards")
                case ast.AugAssign(target=left, op=ast.Sub(), value=ast.Call() as call):
                    if last_word(left) in REWARDS and _is_mean_of(call, written(left)):
                        yield Hit(node, "the mean is subtracted from rewards")
                case _:
                    pass


def _is_mean_of(call: ast.Call, name: str) -> bool:
    """Return whether a call is `x.mean()` or `mean(x)`."""
    own = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return last_word(call.func) == "mean" and name in (own, *map(written, call.args))


def _forward_returns(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.For) or not (_goes_forward(node.iter) or _counts_up(node)):
            continue
        for statement in walk(node):
            if _is_recursion(statement, names_in(node.target)):
                seen = "the return is summed from the first reward on, not from the last"
                yield Hit(statement, seen)


def _goes_forward(node: ast.expr) -> bool:
    """Return whether a loop goes over rewards from the first to the last."""
    if isinstance(node, ast.Call) and last_word(node.func) == "enumerate" and node.args:
        node = node.args[0]
    return has_word(last_word(node), "reward", "rews") and isinstance(
        node, ast.Name | ast.Attribute
    )


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
