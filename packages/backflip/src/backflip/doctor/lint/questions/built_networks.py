"""What networks are called and used for outside of the functions that build them."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.source import (
    CONVERTED,
    FUNCTIONS,
    MADE_FROM,
    Function,
    Source,
    assignments,
    discounts,
    last_word,
    made_by,
    names_in,
    walk,
    written,
)

LARGEST = ("max", "amax", "reduce_max", "maximum")
PICKS = (*LARGEST, "argmax", "gather", "take_along_axis", "gather_nd", "batch_gather")
CALLED = ("", ".predict", ".forward", ".predict_on_batch", ".call")  # of a network: what it gives
COPIES = ("deepcopy", "clone_model")
WRAPPING = (ast.Attribute, ast.Subscript, ast.Call, ast.Starred, ast.keyword)


def builder_of(source: Source, call: ast.Call) -> Function | None:
    """Return the function that returns a network, as it makes it or by a name."""
    scope = source.function_of(call)
    if not isinstance(scope, FUNCTIONS):
        return None
    parent = source.parents[call]
    names = [written(one) for one in getattr(parent, "targets", [])]
    returned = [one.value for one in walk(scope) if isinstance(one, ast.Return)]
    whole = [one is call or (one is not None and written(one) in names) for one in returned]
    return scope if whole and all(whole) else None


def built_names(source: Source, builder: ast.AST) -> list[str]:
    """Return the names that get what a function or class of the program makes, or a copy of it."""
    found: list[str] = []
    for body in source.bodies:
        for target, value, _ in assignments(body):
            own = made_by(_unplaced(value)).rpartition(".")[2]
            is_own = own == getattr(builder, "name", "") or _copied(value) in found
            if is_own and isinstance(target, ast.Name | ast.Attribute):
                found.append(written(target))
    return found


def _copied(value: ast.expr) -> str | None:
    """Return the network that a value is a copy of; None for anything else."""
    match _unplaced(value):
        case ast.Call(func=func, args=[of, *_]) if last_word(func) in COPIES:
            return written(of) or None
        case _:
            return None


def _unplaced(value: ast.expr) -> ast.expr:
    """Return what makes a network: `build(4)` of `build(4).to(device)`."""
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner)):
                value = inner
            case _:
                return value


def picks_outputs(source: Source, name: str) -> bool:
    """Return whether an output of a network is chosen: `net(obs).argmax(1)`, or by a name."""
    return any(True for _ in _picked(source, name, PICKS))


def bootstraps_by(source: Source, name: str) -> bool:
    """Return whether the largest output of a network is in a discounted target."""
    for node in _picked(source, name, LARGEST):
        scope = source.function_of(node)
        statement = _statement(source, node)
        targets = {written(one) for one in getattr(statement, "targets", [])} - {""}
        if discounts(statement) or any(
            discounts(one) and targets & names_in(one)
            for one in walk(scope)
            if isinstance(one, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return)
        ):
            return True
    return False


def _picked(source: Source, name: str, picks: tuple[str, ...]) -> Iterator[ast.AST]:
    """Yield the calls that choose among the outputs of a network."""
    for call in calls_of_network(source, name):
        yield from _around(source, call, picks)
        statement = _statement(source, call)
        given = {written(one) for one in getattr(statement, "targets", [])} - {""}
        for one in walk(source.function_of(call)) if given else ():
            if isinstance(one, ast.Name) and one.id in given and isinstance(one.ctx, ast.Load):
                yield from _around(source, one, picks)


def calls_of_network(source: Source, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a network; one that is an attribute may be that of any object."""
    last = name.rpartition(".")[2]
    for call, _ in source.calls():
        func = written(call.func)
        for method in CALLED:
            of = func.removesuffix(method) if method and func.endswith(method) else func
            if of == name or ("." in name and of.endswith(f".{last}")):
                yield call
                break


def _around(source: Source, node: ast.AST, picks: tuple[str, ...]) -> Iterator[ast.Call]:
    """Yield the calls around a value, which change its type or shape, that choose one output."""
    parent = source.parents[node]
    while isinstance(parent, WRAPPING):
        if isinstance(parent, ast.Call):
            word = last_word(parent.func)
            if word in picks:
                yield parent
            elif node is not parent.func and word not in (*MADE_FROM, *CONVERTED, "squeeze"):
                return  # another network gets it
        node, parent = parent, source.parents[parent]


def _statement(source: Source, node: ast.AST) -> ast.AST:
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
    return node
