"""L31: rewards inside of the discount."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Source,
    has_word,
    is_discount,
    is_of_next,
    names_in,
    unconverted,
    written,
)

REWARDS = ("reward", "rewards", "rew", "rews", "r", "reward_batch", "rewards_batch", "batch_reward")
LATER = ("value", "values", "max", "amax", "reduce_max", "target", "q_next", "boot")


def _discounted_rewards(source: Source) -> Iterator[Hit]:
    """Find `gamma * (reward + next_value)`."""
    for node in source.nodes:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for share, total in ((left, right), (right, left)):
                    if is_discount(written(share)) and _adds_reward_and_value(total):
                        seen = f"`{written(share)}` multiplies the reward of this step too"
                        yield Hit(node, seen)
            case _:
                pass


def _adds_reward_and_value(node: ast.expr) -> bool:
    """Return whether code is a sum, or a difference, of this step's reward and a later value."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)):
        return False
    for reward, other in ((node.left, node.right), (node.right, node.left)):
        if _is_reward(reward) and _is_later_value(other):
            return True
    return False


def _is_reward(node: ast.expr) -> bool:
    plain = unconverted(node)
    is_name = isinstance(plain, ast.Name | ast.Attribute | ast.Subscript)
    return is_name and written(plain).rpartition(".")[2].lower() in REWARDS


def _is_later_value(node: ast.expr) -> bool:
    words = names_in(node)
    return is_of_next(node) or any(has_word(one, *LATER) for one in words)


RULES = (
    Rule(
        "L31",
        "the reward of this step is discounted",
        "A target is the reward plus the discounted value of the next state. With the reward "
        "inside, or the value subtracted, what is learned is the value of another task.",
        "Discount the next value alone: `reward + gamma * next_value * (1 - terminated)`.",
        "DRLinter, arXiv:2101.00135, `Wrong update rule`; Sutton and Barto 2018, equation 6.8",
        _discounted_rewards,
    ),
)
