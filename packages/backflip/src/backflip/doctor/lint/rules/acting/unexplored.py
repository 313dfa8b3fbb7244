"""L30: agents that only ever take the action that looks best."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.acting.choosing import CHOOSERS
from backflip.doctor.lint.rules.acting.still_epsilons import (
    DRAWS,
    is_epsilon,
    steps_an_environment,
)
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    discounts,
    has_word,
    last_word,
    names_in,
    parameters,
    walk,
)

BEST = ("argmax", "argmax_", "nanargmax")
LARGEST = ("max", "amax", "reduce_max", "nanmax")
FITS = ("fit", "train_on_batch", "backward", "apply_gradients", "minimize", "update")
MEMORIES = ("memory", "buffer", "replay", "batch", "experience", "transitions", "history")
MAKERS = ("tensorflow", "keras", "tf")  # their draws make weights
# In names of programs that explore in another way.
OTHER_WAYS = (
    *("eps", "explor", "noise", "noisy", "ucb", "boltzmann", "softmax", "temperature", "thompson"),
    *("bonus", "curios", "optimistic", "dropout", "behavio", "teacher", "expert"),
)


def _never_explores(source: Source) -> Iterator[Hit]:
    yield from _unused_epsilons(source)
    yield from _greedy_programs(source)


def _unused_epsilons(source: Source) -> Iterator[Hit]:
    """Find functions that choose an action, have ε as a parameter, and never read it."""
    for function in source.scopes:
        if not isinstance(function, FUNCTIONS) or not _is_chooser(function):
            continue
        given = [one.arg for one in parameters(function) if is_epsilon(one.arg)]
        read = {name for node in ast.walk(function) for name in names_in(node)}
        unused = [name for name in given if name not in read]
        best = _choice(function)
        if unused and best is not None and not _draws_actions(source, function):
            yield Hit(best, f"`{unused[0]}` is never read, so every action is the best one")


def _is_chooser(function: Function) -> bool:
    return function.name in CHOOSERS or has_word(function.name, "action", "policy")


def _choice(function: Function) -> ast.Call | None:
    """Return the `argmax` of a function; None without one."""
    calls = (node for node in walk(function) if isinstance(node, ast.Call))
    return next((one for one in calls if last_word(one.func) in BEST), None)


def _greedy_programs(source: Source) -> Iterator[Hit]:
    """Find programs that learn Q-values, act by `argmax`, and draw nothing but minibatches."""
    if not (steps_an_environment(source) and set(FITS) & set(source.calls_of)):
        return
    words = {word for node in source.nodes if (word := _word(node))}
    if not _bootstraps_the_best(source) or any(has_word(word, *OTHER_WAYS) for word in words):
        return
    if _draws_actions(source, source.tree):
        return
    for function in source.scopes:
        if not isinstance(function, FUNCTIONS) or not _is_chooser(function):
            continue
        if (best := _choice(function)) is not None:
            yield Hit(best, "nothing in this program makes an action random")


def _word(node: ast.AST) -> str:
    """Return the name that a node has, or the module that it imports."""
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
            return word
        case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.alias(name=word):
            return word
        case _:
            return ""


def _bootstraps_the_best(source: Source) -> bool:
    """Return whether a line discounts the largest value of a state."""
    return any(
        isinstance(node, ast.Assign | ast.AugAssign)
        and discounts(node)
        and any(
            isinstance(one, ast.Call) and last_word(one.func) in LARGEST for one in ast.walk(node)
        )
        for node in source.nodes
    )


def _draws_actions(source: Source, scope: ast.AST) -> bool:
    """Return whether code draws random numbers, beside minibatches and initial weights."""
    return any(
        isinstance(node, ast.Call)
        and last_word(node.func) in DRAWS
        and not _draws_a_batch(node)
        and not source.dotted(node.func).startswith(MAKERS)
        for node in ast.walk(scope)
    )


def _draws_a_batch(call: ast.Call) -> bool:
    names = names_in(call) - {"random", "np", "numpy"}
    is_of_many = argument(call, "size") is not None or argument(call, "k", 1) is not None
    return any(has_word(name, *MEMORIES) for name in names) or (
        last_word(call.func) == "sample" and is_of_many
    )


RULES = (
    Rule(
        "L30",
        "the agent never explores",
        "It takes the action that looks best from the first step on. What the others lead to is "
        "never seen, so that Q-values stay wrong where they are too low.",
        "Take a random action in a share epsilon of the steps, and let epsilon fall; or draw the "
        "action from a softmax of the Q-values.",
        "DRLinter, arXiv:2101.00135, `Missing exploration`; Stack Overflow 47750291",
        _never_explores,
    ),
)
