"""L23: errors that are caught and forgotten."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import own_function
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    Source,
    assignments,
    has_word,
    last_word,
    names_in,
    parameters,
    written,
)

LEARNERS = ("agent", "learner", "trainer", "algo", "policy", "model", "actor", "critic")
STEPPED = ("env", "agent", "learner", "trainer", "algo", "optim")
MAKERS = ("make", "adam", "sgd", "rmsprop")  # in names of what a whole run calls
HANDS_ON = ("set_exception", "put", "put_nowait", "send")
# Calls of handlers that say what happened.
SAID = (
    *("print", "log", "debug", "info", "warning", "warn", "error", "exception", "critical"),
    *("print_exc", "write", "append", "echo"),
)
BROAD = ("Exception", "BaseException", "")


def _hidden_errors(source: Source) -> Iterator[Hit]:
    yield from _suppressed(source)
    steps = _gradient_steps(source)
    for node in source.nodes:
        if not isinstance(node, ast.Try):
            continue
        trains = any(map(_trains, node.body)) or any(_calls(one, steps) for one in node.body)
        may_train = any(map(_may_train, node.body))
        for handler in node.handlers:
            if not _is_broad(handler) or _ends(handler) or _is_raised_later(source, handler):
                continue
            repeats = _goes_on(source, handler) and _is_a_turn(source, node)
            if trains or (may_train and _does_nothing(handler)) or repeats:
                yield Hit(handler, "errors of training are caught, and the program goes on")


def _suppressed(source: Source) -> Iterator[Hit]:
    """Find `with contextlib.suppress(Exception):` around training."""
    for node in source.nodes:
        if not isinstance(node, ast.With) or not any(map(_trains, node.body)):
            continue
        for item in node.items:
            call = item.context_expr
            if (
                isinstance(call, ast.Call)
                and source.dotted(call.func) == "contextlib.suppress"
                and any(written(one) in BROAD[:2] for one in call.args)
            ):
                yield Hit(node, "errors of training are caught, and the program goes on")


def _gradient_steps(source: Source) -> set[str]:
    """Return the names of the program's functions that compute gradients, and are no whole run.

    A whole run makes its environment or optimiser: a program that trains many times may go on.
    """
    return {
        scope.name
        for scope in source.scopes
        if isinstance(scope, FUNCTIONS) and any(map(_trains, scope.body))
        if any(last_word(call.func) == "step" for call, _ in source.calls(scope))
        if not any(has_word(last_word(call.func), *MAKERS) for call, _ in source.calls(scope))
    }


def _calls(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement calls one of the program's own functions or methods."""
    return any(
        isinstance(one, ast.Call) and written(one.func).rpartition(".")[2] in names
        for one in ast.walk(statement)
    )


def _trains(statement: ast.stmt) -> bool:
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and last_word(one.func) in ("learn", "backward", "train_step")
        for one in ast.walk(statement)
    )


def _may_train(statement: ast.stmt) -> bool:
    """Return whether a statement updates an agent, or steps an environment or an optimiser."""
    for one in ast.walk(statement):
        match one:
            case ast.Call(func=ast.Attribute(value=owner, attr="update" | "train" | "optimize")):
                words = LEARNERS
            case ast.Call(func=ast.Attribute(value=owner, attr="step")):
                words = STEPPED
            case _:
                continue
        if has_word(last_word(owner), *words):
            return True
    return False


def _is_a_turn(source: Source, node: ast.Try) -> bool:
    """Return whether code is one turn of a loop that trains what was made before the loop."""
    loop = source.parents[node]
    while not isinstance(loop, (*LOOPS, *FUNCTIONS, ast.Module)):
        loop = source.parents[loop]
    made = {written(target) for target, _, _ in assignments(loop)}
    learners = [one for part in node.body for one in _learners(source, part)]
    fresh = any(written(one) in made or isinstance(one, ast.Call) for one in learners)
    return isinstance(loop, LOOPS) and bool(learners) and not fresh


def _learners(source: Source, statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a statement trains: x of `result = x.train()`, also in an own function.

    `model.train()` alone switches the layers of a network.
    """
    for one in ast.walk(statement):
        match one:
            case ast.Call(func=ast.Attribute(value=owner, attr="train"), args=[], keywords=[]):
                is_used = not isinstance(source.parents[one], ast.Expr)
                if (is_used or _is_of_rllib(source)) and not _switches(source, one):
                    yield owner
            case ast.Call(func=ast.Attribute(value=owner, attr="update" | "learn" | "optimize")):
                if has_word(last_word(owner), *LEARNERS):
                    yield owner
            case ast.Call(args=args) if (own := own_function(source, one)) is not None:
                inside = [x for part in own.body for x in _trained_in(source, part)]
                names = [place.arg for place in parameters(own) if place.arg != "self"]
                given = dict(zip(names, args, strict=False))
                yield from (given.get(written(x), x) for x in inside)
            case _:
                pass


def _trained_in(source: Source, statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield x of each `return x.train()` and `result = x.train()`, not of what is made there."""
    for one in ast.walk(statement):
        match one:
            case ast.Call(func=ast.Attribute(value=owner, attr="train"), args=[], keywords=[]):
                made = {written(target) for target, _, _ in assignments(source.function_of(one))}
                if not isinstance(source.parents[one], ast.Expr) and written(owner) not in made:
                    yield owner
            case _:
                pass


def _is_of_rllib(source: Source) -> bool:
    return any(name.startswith("ray.rllib") for name in source.imports.values())


def _switches(source: Source, call: ast.Call) -> bool:
    """Return whether what `net.train()` returns is a network: `net = Net().train()`."""
    parent = source.parents[call]
    if isinstance(parent, ast.Attribute):
        return True
    return (
        source.imports_any("torch")
        and not _is_of_rllib(source)
        and (not isinstance(parent, ast.Assign | ast.NamedExpr))
    )


def _goes_on(source: Source, handler: ast.ExceptHandler) -> bool:
    """Return whether a handler only says what happened, and counts what is not tested."""
    tested = {
        name
        for node in source.nodes
        if isinstance(node, ast.If | ast.While)
        for name in names_in(node.test)
    }
    for one in handler.body:
        match one:
            case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call(func=func)) if last_word(func) in SAID:
                pass
            case ast.AugAssign(target=target) if written(target) not in tested:
                pass
            case _:
                return False
    return True


def _does_nothing(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler only goes on: `pass`, `...` or `continue`."""
    return all(
        isinstance(one, ast.Pass | ast.Continue)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in handler.body
    )


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or written(handler.type) in BROAD


def _ends(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler raises or leaves: the function, or a loop after it said so."""
    if any(isinstance(one, ast.Break) for one in handler.body) and len(handler.body) > 1:
        return True
    return any(
        isinstance(one, ast.Raise | ast.Return)
        or (isinstance(one, ast.Call) and last_word(one.func) in ("exit", "_exit", "abort"))
        for one in ast.walk(handler)
    )


def _is_raised_later(source: Source, handler: ast.ExceptHandler) -> bool:
    """Return whether the error is kept and raised elsewhere, or given to another thread."""
    if handler.name is None:
        return False
    kept: set[str] = set()
    for target, value, _ in assignments(handler):
        kept |= {written(target)} if handler.name in names_in(value) else set()
    for call, _ in source.calls(handler):
        given = any(written(one) == handler.name for one in call.args)
        if given and last_word(call.func) in HANDS_ON:
            return True
        if given and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
            kept.add(written(call.func.value))
    raised = {
        name
        for node in source.nodes
        if isinstance(node, ast.Raise) and node.exc is not None
        for name in names_in(node.exc)
    }
    return bool((kept - {""}) & raised)


RULES = (
    Rule(
        "L23",
        "errors of training are hidden",
        "A bug in the loss or in the environment looks like a policy that does not learn.",
        "Catch the one error that is expected, or none.",
        "Rahtz 2018; wassname, ml_debug",
        _hidden_errors,
    ),
)
