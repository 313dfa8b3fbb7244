"""Where predictions and targets come from, and which shape that gives them."""

import ast
from collections.abc import Iterator
from functools import lru_cache, partial

from backflip.doctor.lint.questions.layers import (
    classes_that_return,
    layers_of,
    names_that_are,
    size_of,
)
from backflip.doctor.lint.source import (
    FUNCTIONS,
    ONE_FILE,
    Scope,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    made_by,
    names_in,
    number,
    parameters,
    unconverted,
    written,
)

SINGLE = ("r", "rew", "reward", "ret", "g", "d", "done")  # numbers of one step
MANY = ("rews", "rewards", "returns", "rtg", "dones", "rew_batch", "reward_batch", "done_batch")
PLACED = ("to", "cuda", "cpu", "double", "float", "train", "eval")  # methods that return a network
RESHAPES = ("view", "reshape", "resize_")
COLUMNS = ("unsqueeze", "unsqueeze_", "squeeze", "squeeze_", "expand_dims", "vstack")
FILLED = ("zeros", "empty", "ones", "full")


def column_networks(source: Source) -> set[str]:
    """Return the names of networks whose last layer is linear with one output: (B, 1)."""
    classes = classes_that_return(source, partial(ends_in_one, source))

    def is_column(value: ast.expr) -> bool:
        made = unplaced(value)
        return made_by(made) in classes or ends_in_one(source, made)

    return names_that_are(source, is_column)


def unplaced(node: ast.expr) -> ast.expr:
    """Return what makes a network: `Critic(4)` of `Critic(4).to(device)`, or its name."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in PLACED:
                node = inner
            case _:
                return node


def ends_in_one(source: Source, made: ast.expr) -> bool:
    """Return whether a value is a linear layer with one output, or a network that ends with it.

    `mlp([n, *sizes] + [1])` and `layer_init(nn.Linear(n, 1))` are such too.
    """
    if not isinstance(made, ast.Call):
        return False
    kind, last = source.dotted(made.func), last_word(made.func)
    if last == "sequential":
        return any(ends_in_one(source, one) for one in layers_of(source, made)[-1:])
    if kind == "torch.nn.Linear":
        return number(size_of(made)) == 1
    if last == "dense":  # of Keras
        return number(argument(made, "units", 0)) == 1
    match made.args:
        case [ast.BinOp(op=ast.Add(), right=ast.List(elts=[size])), *_] if "mlp" in last:
            return number(size) == 1
        case [first, *_] if "init" in last:
            return ends_in_one(source, first)
        case _:
            return False


def lists_of_numbers(source: Source, scope: Scope) -> set[str] | None:
    """Return the names of rewards, returns and ends in a scope that have a number for each step.

    They are lists, what `zip(*batch)` gives, or parameters. None for a program that makes columns
    of such numbers.
    """
    if _makes_columns(source):
        return None
    found: dict[str, list[bool]] = {}
    places = parameters(scope) if isinstance(scope, FUNCTIONS) else []
    for one in places:
        found[one.arg] = [_has_many(one.arg)]
    for body in source.scopes:
        for name, fits in _assigned_lists(body):
            if body is scope or name.startswith("self."):
                found.setdefault(name, []).append(fits)
    return {name for name, fits in found.items() if name and all(fits)}


def _assigned_lists(scope: Scope) -> Iterator[tuple[str, bool]]:
    """Yield the names that are assigned in a scope, and whether each is a list of numbers."""
    for target, value, _ in assignments(scope):
        zipped = made_by(value) in ("zip", "map") and any(
            isinstance(one, ast.Starred) for one in ast.walk(value)
        )
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            name, plain = written(one), unconverted(value)
            is_list = isinstance(plain, ast.List) and not plain.elts and _has_many(name)
            is_same = plain is not value and written(plain) == name
            fits = is_same or is_list or _is_comprehension(plain)
            yield name, fits or (zipped and _is_of_steps(name))


def _is_comprehension(node: ast.expr) -> bool:
    """Return whether a value is `[step.reward for step in batch]`."""
    match node:
        case ast.ListComp(elt=ast.Name() | ast.Attribute() as element):
            return _is_of_steps(written(element))
        case _:
            return False


def _has_many(name: str) -> bool:
    return has_word(name.rpartition(".")[2], *MANY)


def _is_of_steps(name: str) -> bool:
    return _has_many(name) or name.rpartition(".")[2].lower() in SINGLE


def is_number_of_each(node: ast.expr, lists: set[str] | None) -> bool:
    """Return whether a value is one of the lists, or made by a comprehension."""
    plain = unconverted(node)
    return lists is not None and (
        _is_comprehension(plain)
        or (not isinstance(plain, ast.Subscript) and written(plain) in lists)
    )


@lru_cache(maxsize=ONE_FILE)
def _makes_columns(source: Source) -> bool:
    return any(_makes_column(source, node) for node in source.nodes)


def _makes_column(source: Source, node: ast.AST) -> bool:
    """Return whether code makes a column of numbers of steps, or a row of a column."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr), args=[*_, size]) if attr in RESHAPES:
            made = number(size) == 1
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in FILLED:
            made, node = _ends_with_one(argument(node, "size", 0)), source.parents[node]
        case ast.Call(func=ast.Attribute(attr=attr)):
            made = attr in COLUMNS or argument(node, "keepdim") is not None
        case ast.Subscript(slice=ast.Tuple(elts=[*_, ast.Constant(value=None) | ast.Attribute()])):
            made = True
        case ast.List(elts=[ast.Name() | ast.Attribute()], ctx=ast.Load()):
            made = True
        case _:
            return False
    return made and any(map(_is_of_steps, names_in(node)))


def _ends_with_one(size: ast.expr | None) -> bool:
    match size:
        case ast.Tuple(elts=[*_, last]):
            return number(last) == 1
        case _:
            return False
