"""L21: returns that are summed from the first reward on."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.records import number_at
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.rewards import FILLS
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LOOPS,
    SMALLEST_DISCOUNT,
    Source,
    argument,
    assignments,
    has_word,
    is_discount,
    is_false,
    last_word,
    names_in,
    number,
    parameters,
    walk,
    written,
)

ERRORS = ("delta", "td_err", "rew")  # in names of what a return is summed from
SCALERS = ("norm", "scale", "running", "statistic")


def _forward_returns(source: Source) -> Iterator[Hit]:
    for node in source.nodes:
        if not isinstance(node, ast.For) or not (
            _goes_forward(node.iter) or _counts_up(node) or _appends_sums(source, node)
        ):
            continue
        backward, of_step = _backward_before(source, node), _of_the_step(node)
        for statement in walk(node):
            if _loop_of(source, statement) is not node:
                continue
            if not _is_recursion(source, statement, of_step):
                continue
            if _reads_backward(statement, node, backward) or _is_running(source, statement, node):
                continue
            seen = "the return is summed from the first reward on, not from the last"
            yield Hit(statement, seen)
    yield from _forward_scans(source)


def _loop_of(source: Source, node: ast.AST) -> ast.AST:
    """Return the innermost loop around a statement, or its function."""
    while not isinstance(node, (*LOOPS, *FUNCTIONS, ast.Module)):
        node = source.parents[node]
    return node


def _of_the_step(loop: ast.For) -> set[str]:
    """Return the names of a loop, and of errors and rewards that are computed from them."""
    found = names_in(loop.target)
    for target, value, _ in assignments(loop):
        if found & names_in(value) and has_word(last_word(target), *ERRORS):
            found.add(written(target))
    return found


def _forward_scans(source: Source) -> Iterator[Hit]:
    """Find `scan(body, 0.0, rewards)` without `reverse=True`, where body sums a return."""
    functions = {one.name: one for one in source.scopes if isinstance(one, ast.FunctionDef)}
    for call, name in source.calls():
        body, over = argument(call, "f", 0), argument(call, "xs", 2)
        if name != "jax.lax.scan" or body is None or over is None or _is_reversed(source, call):
            continue
        function = functions.get(written(body))
        scaled = has_word(getattr(source.function_of(call), "name", ""), *SCALERS)
        if function is None or scaled or not _starts_a_return(argument(call, "init", 1)):
            continue
        if not has_word(" ".join(names_in(over)), *ERRORS):
            continue
        match function.args.args, function.body:
            case [_, step], [*_, ast.Return(value=ast.Tuple(elts=[_, kept]))]:
                of_step = {step.arg} | _taken_from(function, step.arg)
            case _:
                continue
        for statement in walk(function):
            if _is_recursion(source, statement, of_step) and _sets(statement) & names_in(kept):
                yield Hit(call, "the return is summed from the first reward on: scan goes forward")


def _starts_a_return(init: ast.expr | None) -> bool:
    """Return whether a sum starts at 0, or at a value; what is kept from before is running."""
    match init:
        case ast.Call(func=func):
            return last_word(func) in ("zeros", "zeros_like") or number(init) == 0
        case ast.Name() | ast.Attribute():
            return has_word(last_word(init), "value", "last_val")
        case _:
            return number(init) == 0


def _is_reversed(source: Source, call: ast.Call) -> bool:
    """Return whether a scan goes from the last to the first, or may."""
    reverse, over = argument(call, "reverse", 4), argument(call, "xs", 2)
    if reverse is not None and not is_false(reverse):
        return True
    return over is not None and (
        _reverses(over) or bool(_backward_before(source, call) & names_in(over))
    )


def _taken_from(function: ast.FunctionDef, name: str) -> set[str]:
    """Return the names that a parameter is taken apart into, `reward, done = step`."""
    return {
        one
        for target, value, _ in assignments(function)
        if isinstance(target, ast.Tuple) and written(value) == name
        for one in names_in(target)
    }


def _sets(statement: ast.AST) -> set[str]:
    """Return the names that a statement sets."""
    return {written(one) for one in getattr(statement, "targets", [])} - {""}


def _goes_forward(node: ast.expr) -> bool:
    """Return whether a loop goes over rewards from the first to the last."""
    word = last_word(_without_enumerate(node))
    return has_word(word, "reward", "rews") and isinstance(
        _without_enumerate(node), ast.Name | ast.Attribute
    )


def _appends_sums(source: Source, loop: ast.For) -> bool:
    """Return whether a loop over any list appends a discounted sum, `G = r + γ G`, of each step."""
    name = last_word(_without_enumerate(loop.iter))
    if not isinstance(_without_enumerate(loop.iter), ast.Name | ast.Attribute):
        return False
    if not name or has_word(name, "rev", "back", "flip"):
        return False
    sums = {
        written(target)
        for target, value, _ in assignments(loop)
        if _is_recursion_of(source, written(target), value)
    }
    return any(
        isinstance(node, ast.Call)
        and last_word(node.func) == "append"
        and bool(node.args)
        and written(node.args[0]) in sums - {""}
        for node in walk(loop)
    )


def _is_recursion_of(source: Source, name: str, value: ast.expr) -> bool:
    return bool(name) and any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Mult)
        and name in names_in(one)
        and any(_is_discount_at(source, part) for part in ast.walk(one))
        for one in ast.walk(value)
    )


def _is_discount_at(source: Source, node: ast.AST) -> bool:
    """Return whether a name is that of a discount, or has the value of one."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return is_discount(key)
        case ast.Name() | ast.Attribute():
            pass
        case _:
            return False
    name, scope = written(node), source.function_of(node)
    if is_discount(name):
        return True
    values: list[ast.expr] = [node]
    if isinstance(scope, FUNCTIONS) and name in {one.arg for one in parameters(scope)}:
        values = list(given_for(source, scope, name))
    numbers = [number_at(source, one) for one in values]
    return bool(numbers) and all(x is not None and SMALLEST_DISCOUNT <= x < 1 for x in numbers)


def _without_enumerate(node: ast.expr) -> ast.expr:
    """Return what a loop goes over; of `enumerate(x)`, x."""
    if isinstance(node, ast.Call) and last_word(node.func) == "enumerate" and node.args:
        return node.args[0]
    return node


def _backward_before(source: Source, loop: ast.For | ast.Call) -> set[str]:
    """Return the names that hold their values from the last to the first before a line."""
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
    read = {statement, *(one for one in walk(loop) if _sets(one) & names_in(statement))}
    return any(
        isinstance(one, ast.Subscript)
        and (written(one) in backward or _counts_down(one.slice, counted))
        for part in read
        for one in ast.walk(part)
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


def _is_running(source: Source, statement: ast.AST, loop: ast.For) -> bool:
    """Return whether a sum is yielded, or only updates statistics: rewards are scaled by it."""
    own = {written(target) for target in getattr(statement, "targets", [])}
    updates, others = False, False
    for node in walk(loop):
        match node:
            case ast.Yield(value=value) if value is not None and own & names_in(value):
                return True
            case ast.Call(func=func, args=args) if any(own & names_in(one) for one in args):
                scales = last_word(func) == "update" or _gives_a_spread(source, node)
                updates, others = updates or scales, others or not scales
            case _:
                pass
    return updates and not others


def _gives_a_spread(source: Source, call: ast.Call) -> bool:
    """Return whether a call appends to a list that only a spread is computed of."""
    kept = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    read = [
        source.parents[node]
        for node in walk(source.function_of(call))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == kept
    ]
    used = [one for one in read if not (isinstance(one, ast.Attribute) and one.attr in FILLS)]
    return bool(used) and all(
        isinstance(one, ast.Call) and last_word(one.func) in ("std", "var") for one in used
    )


def _counts_up(loop: ast.For) -> bool:
    """Return whether a loop counts up, and keeps a sum for each step."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]):
            return any(_keeps(node, names_in(loop.target)) for node in walk(loop))
        case _:
            return False


def _keeps(node: ast.AST, counted: set[str]) -> bool:
    """Return whether code adds to a list, or sets the place of a step: `returns[t] = R`."""
    if isinstance(node, ast.Call):
        return last_word(node.func) in ("append", "insert")
    return any(
        isinstance(target, ast.Subscript) and bool(counted & names_in(target.slice))
        for target in getattr(node, "targets", [])
    )


def _is_recursion(source: Source, statement: ast.AST, rewards: set[str]) -> bool:
    """Return whether a statement is `R = reward + gamma * R`, with names of the loop."""
    match statement:
        case ast.Assign(targets=targets, value=ast.BinOp(op=ast.Add()) as value):
            own = {one.id for one in targets if isinstance(one, ast.Name)}
            discounted = any(_is_recursion_of(source, name, value) for name in own)
            return bool(rewards & names_in(value)) and discounted
        case _:
            return False


RULES = (
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
)
