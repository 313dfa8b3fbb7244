"""L05: gradients that flow through the target of the temporal difference."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from math import inf

from backflip.doctor.lint.questions.gradients import sides_of_losses, stopped_later, with_gradients
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.cut_log_probs import cut_log_probs
from backflip.doctor.lint.rules.losses.kept_log_probs import kept_log_probs
from backflip.doctor.lint.rules.targets.open_sums import COPIES, differentiated, open_sums
from backflip.doctor.lint.rules.targets.targets import LEARNING, TARGETS
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    discounts,
    has_word,
    is_of_next,
    last_word,
    names_in,
    walk,
    written,
)

Learns = Callable[[ast.Call], bool]  # whether a call is of a network that learns

POLICIES = ("actor", "policy", "pi", "mu")  # in names of networks
TAPED = ("gradient", "minimize", "apply_gradients")
VARIABLES = ("trainable_variables", "trainable_weights", "variables", "weights")
SHAPES = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "float")  # methods, same values


def _gradient_through_target(source: Source) -> Iterator[Hit]:
    if source.imports_any("torch"):
        yield from list(cut_log_probs(source)) or kept_log_probs(source)
        learns = partial(_is_learning_network, _optimised(source))
        for scope in source.scopes:
            if _learns_from(source, scope):
                yield from _open_targets(source, scope, learns)
    if source.imports_any("jax"):
        for function, params in differentiated(source):
            found = list(_open_targets(source, function, partial(_gets, params)))
            yield from found or open_sums(source, function, params)
    if source.imports_any("tensorflow", "keras"):
        tapes = [node for node in source.nodes if isinstance(node, ast.With) and _is_tape(node)]
        for tape in tapes:
            learned = _differentiated_by(source, tape, tapes)
            yield from _open_targets(source, tape, partial(_is_one_of, source, learned))


def _is_tape(node: ast.With) -> bool:
    """Return whether a context is `tf.GradientTape() as tape`."""
    made = (item.context_expr for item in node.items)
    return any(isinstance(one, ast.Call) and last_word(one.func) == "gradienttape" for one in made)


def _differentiated_by(source: Source, tape: ast.With, tapes: list[ast.With]) -> set[str]:
    """Return the networks whose variables gradients are computed of: `model.trainable_variables`.

    The gradients are those before the next tape.
    """
    scope, end = source.function_of(tape), tape.end_lineno or tape.lineno
    after = [one.lineno for one in tapes if source.function_of(one) is scope and one.lineno > end]
    given = [
        one
        for call, _ in source.calls(scope)
        if last_word(call.func) in TAPED and tape.lineno <= call.lineno < min([*after, inf])
        for one in arguments(call)
    ]
    names = {name for one in given for name in names_in(one)}
    given += [value for target, value, _ in assignments(scope) if written(target) in names]
    found = {
        written(part.value)
        for one in given
        for part in ast.walk(one)
        if isinstance(part, ast.Attribute) and part.attr in VARIABLES
    }
    return found - {""}


def _is_one_of(source: Source, networks: set[str], call: ast.Call) -> bool:
    """Return whether a call is of one of the networks, and no function of numpy gets what it says.

    Those end gradients.
    """
    if written(call.func) not in networks:
        return False
    node: ast.AST = call
    while isinstance(node, ast.expr):
        if isinstance(node, ast.Call) and source.dotted(node.func).startswith("numpy."):
            return False
        node = source.parents[node]
    return True


def _open_targets(source: Source, scope: ast.AST, learns: Learns) -> Iterator[Hit]:
    """Find targets in a loss that gradients flow through.

    Args:
        source: the program.
        scope: where the loss is computed.
        learns: tells the networks that learn.
    """
    following = _values_of_next(source, scope, learns)
    stopped, compared = stopped_later(scope), _second_arguments(source, scope)
    for target, value, statement in assignments(scope):
        name = written(target)
        if name in stopped or source.without_gradients(statement):
            continue
        if name in compared and _bootstraps(value, following, learns):
            yield Hit(statement, f"gradients of the loss flow through the target `{name}`")
    for side in sides_of_losses(source, scope):
        if written(side) or source.without_gradients(side):
            continue
        if _bootstraps(side, following, learns):
            yield Hit(side, "gradients of the loss flow through the target")


def _learns_from(source: Source, scope: Scope) -> bool:
    """Return whether a scope computes gradients, or returns a loss to one that does."""
    if any(last_word(call.func) == "backward" for call, _ in source.calls(scope)):
        return True
    if isinstance(scope, ast.Module) or "backward" not in source.text:
        return False
    called = [call for call, _ in source.calls() if last_word(call.func) == scope.name.lower()]
    if not any(not source.without_gradients(call) for call in called):
        return False
    return any(
        has_word(" ".join(names_in(node.value)), "loss")
        for node in walk(scope)
        if isinstance(node, ast.Return) and node.value is not None
    )


def _values_of_next(source: Source, scope: ast.AST, learns: Learns) -> set[str]:
    """Return the names of what a network that learns says of the next state, with gradients."""
    found = {
        written(one)
        for target, value, statement in assignments(scope)
        if not source.without_gradients(statement) and _is_value_of_next(value, learns)
        for one in (target.elts if isinstance(target, ast.Tuple) else [target])
    }
    return found - {""} - stopped_later(scope)


def _is_value_of_next(value: ast.expr, learns: Learns) -> bool:
    return any(
        isinstance(one, ast.Call) and learns(one) and any(map(is_of_next, one.args))
        for one in with_gradients(value)
    )


def _bootstraps(value: ast.expr, following: set[str], learns: Learns) -> bool:
    """Return whether a value is γ times the output of a network that learns, with gradients."""
    if not discounts(value):
        return False
    parts = list(with_gradients(value))
    if following & {written(one) for one in parts if isinstance(one, ast.Name | ast.Attribute)}:
        return True
    return any(isinstance(one, ast.Call) and learns(one) for one in parts)


def _gets(params: str, call: ast.Call) -> bool:
    """Return whether a network of JAX gets parameters that learn, and the next state."""
    has_params = any(written(one).partition(".")[0] == params for one in call.args)
    return has_params and any(map(is_of_next, call.args))


def _optimised(source: Source) -> set[str]:
    """Return the networks whose parameters an optimiser gets, but those of policies."""
    return {
        written(inner.func.value)
        for call, name in source.calls()
        if name.startswith("torch.optim.") and call.args
        for inner in ast.walk(call.args[0])
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr == "parameters"
        and not has_word(last_word(inner.func.value), *POLICIES)
    } - {"", "self"}


def _is_learning_network(optimised: set[str], call: ast.Call) -> bool:
    """Return whether a call is of a network of torch that learns: by its name, or its optimiser."""
    name = written(call.func)
    if has_word(name, *TARGETS, *COPIES):
        return False
    last = last_word(call.func)
    usual = last in LEARNING or last.endswith(("net", "network", "critic"))
    return bool(call.args) and (usual or name in optimised)


def _second_arguments(source: Source, scope: ast.AST) -> set[str]:
    """Return the names that losses are computed to: their arguments, or what is subtracted."""
    found = {written(_unshaped(one)) for one in sides_of_losses(source, scope)}
    for node in walk(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            found |= {written(node.left), written(node.right)}
    return found - {""}


def _unshaped(node: ast.expr) -> ast.expr:
    """Return what is given another shape: y of `y.unsqueeze(1)`."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in SHAPES:
                node = inner
            case _:
                return node


RULES = (
    Rule(
        "L05",
        "gradients flow through the target, or not through the log-probability",
        "The loss also changes the value of the next state, so that the target moves towards the "
        "prediction: residual gradients learn slowly, or something else. A log-probability "
        "without a gradient leaves the policy as it began.",
        "Compute the target inside `with torch.no_grad():`, or use `.detach()`; in TensorFlow, "
        "compute it before the tape, or use `tf.stop_gradient`. Leave the log-probability in "
        "the policy's loss attached.",
        "Mnih et al. 2015; Spinning Up, DQN and DDPG",
        _gradient_through_target,
    ),
)
