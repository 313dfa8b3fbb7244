"""Targets r + γ V of JAX whose V comes from the parameters that learn: a part of L05."""

import ast
from collections.abc import Iterator
from itertools import permutations

from backflip.doctor.lint.questions.gradients import (
    compared_by_losses,
    stopped_later,
    with_gradients,
)
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.targets.targets import TARGETS
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    assignments,
    factors,
    has_word,
    is_discount,
    is_usual_discount,
    last_word,
    number,
    walk,
    written,
)

GRADIENTS = ("grad", "value_and_grad", "filter_grad", "filter_value_and_grad")
PACKAGES = ("jax", "equinox", "flax")
ON_PURPOSE = ("residual", "dice")  # in names of losses that have gradients of both values
COPIES = ("old", "ema", "frozen", "fixed", "slow", "lagged", "delayed")  # in names of networks


def differentiated(source: Source) -> Iterator[tuple[Function, str]]:
    """Yield the functions that `jax.grad` is applied to, with the parameter that learns."""
    found: dict[tuple[Function, str], None] = {}
    for call, name in source.calls():
        if _is_gradient(name) and call.args:
            for one in _learned_parameters(source, call.args[0], _place(call)):
                found[one] = None
    for scope in source.scopes:
        if isinstance(scope, ast.FunctionDef):
            for one in scope.decorator_list:
                if _is_gradient(source.dotted(one)):
                    found |= dict.fromkeys(_parameter(scope, 0))
    yield from found


def _is_gradient(name: str) -> bool:
    package, _, _ = name.partition(".")
    return name.rpartition(".")[2] in GRADIENTS and package in PACKAGES


def _place(call: ast.Call) -> int | None:
    """Return the place of the argument that gradients are computed of; None for several."""
    given = argument(call, "argnums", 1)
    known = 0 if given is None else number(given)
    return None if known is None else int(known)


def _learned_parameters(
    source: Source, node: ast.expr, place: int | None
) -> Iterator[tuple[Function, str]]:
    """Yield the function that is named, or that a lambda calls with its parameter."""
    match node:
        case _ if place is None:
            return
        case ast.Name() | ast.Attribute():
            yield from _named(source, node, place)
        case ast.Lambda(args=ast.arguments(args=[*names]), body=ast.Call() as call):
            given = [written(one) for one in call.args]
            if place < len(names) and names[place].arg in given:
                yield from _named(source, call.func, given.index(names[place].arg))
        case _:
            pass


def _named(source: Source, node: ast.expr, place: int) -> Iterator[tuple[Function, str]]:
    name = written(node).rpartition(".")[2]
    for scope in source.scopes:
        if isinstance(scope, ast.FunctionDef) and scope.name == name:
            yield from _parameter(scope, place)


def _parameter(function: Function, place: int) -> Iterator[tuple[Function, str]]:
    names = [one.arg for one in function.args.args if one.arg != "self"]
    if place < len(names):
        yield function, names[place]


def open_sums(source: Source, function: Function, params: str) -> Iterator[Hit]:
    """Find `r + gamma * v` in a difference that a loss has, where gradients flow through v.

    The discount tells that the sum is a target, also where no name says that v is of what follows.
    """
    if has_word(function.name, *ON_PURPOSE):
        return
    learned = _Learned(source, function, params)
    for sides in compared_by_losses(source, function):
        for side, other in permutations(sides, 2):
            place = learned.sums.get(written(side)) if written(side) else learned.sum_in(side)
            if place is not None and learned.flows(other) and learned.sum_in(other) is None:
                yield Hit(place, "gradients of the loss flow through the target")
                return


class _Learned:
    """Tells what in a function comes from parameters that learn, with its gradients.

    Attributes:
        names: of the parameters, and of what is computed from them.
        sums: the statements that set names to r + γ v, where v is learned and r is not.
    """

    def __init__(self, source: Source, function: Function, params: str) -> None:
        self._source = source
        self.names, self.sums = {params}, dict[str, ast.AST]()
        stopped = stopped_later(function)
        for node in walk(function):  # functions in it, which use the parameters from outside
            if isinstance(node, FUNCTIONS) and any(map(self.flows, node.body)):
                self.names.add(node.name)
        for target, value, statement in assignments(function):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names = set(map(written, parts)) - stopped - {""}
            if self.sum_in(value) is not None:
                self.sums |= dict.fromkeys(names, statement)
            if self.flows(value):
                self.names |= names

    def flows(self, node: ast.AST) -> bool:
        """Return whether a value comes from what learns, with gradients."""
        if any(isinstance(one, ast.Call) and _stops_all(one) for one in ast.walk(node)):
            return False
        parts = (one for one in with_gradients(node) if isinstance(one, ast.Name))
        return any(one.id in self.names and not self._is_of_copy(one) for one in parts)

    def _is_of_copy(self, node: ast.AST) -> bool:
        """Return whether a name is followed by that of a target network: `params.target`."""
        while isinstance(self._source.parents[node], ast.Attribute | ast.Subscript):
            node = self._source.parents[node]
        return has_word(ast.unparse(node), *TARGETS, *COPIES)

    def sum_in(self, value: ast.expr) -> ast.expr | None:
        """Return a value that has a part r + γ v, where v is learned and r is not."""
        for node in with_gradients(value):
            match node:
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    for reward, product in ((left, right), (right, left)):
                        if not self.flows(reward) and self._is_discounted(product):
                            return value
                case _:
                    pass
        return None

    def _is_discounted(self, product: ast.expr) -> bool:
        """Return whether a product has a discount and a learned value."""
        parts = factors(product)
        if not any(map(self.flows, parts)):
            return False
        is_named = any(is_discount(written(one)) for one in parts)  # a number also needs a mask
        return is_named or (any(map(is_usual_discount, parts)) and any(map(_is_mask, parts)))


def _stops_all(call: ast.Call) -> bool:
    """Return whether a call is `jax.tree.map(jax.lax.stop_gradient, params)`."""
    return "stop_gradient" in map(last_word, call.args)


def _is_mask(node: ast.expr) -> bool:
    """Return whether code is `1 - x`, or a name of a mask."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub()):
            return number(left) == 1
        case _:
            return has_word(last_word(node), "mask", "not", "continu", "alive")
