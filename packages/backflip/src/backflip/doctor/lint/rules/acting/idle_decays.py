"""Methods that make a share of random actions smaller, and that nothing calls: a part of L12."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.records import number_at
from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.acting.still_epsilons import (
    LARGE,
    is_never_called,
    is_uniform,
    steps_an_environment,
)
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    assignments,
    names_in,
    parameters,
    unconverted,
    written,
)

MAKERS = ("__init__", "__post_init__")
SMALLER = (ast.Mult, ast.Sub, ast.Div, ast.Pow)


def idle_decays(source: Source) -> Iterator[Hit]:
    """Find a class that compares a random number with its share, and never calls its decay."""
    if not steps_an_environment(source):
        return
    for body in source.bodies:
        if not isinstance(body, ast.ClassDef) or body.bases:
            continue
        methods = [one for one in body.body if isinstance(one, FUNCTIONS)]
        compared = _compared_shares(body)
        for method in (one for one in methods if is_never_called(source, one)):
            for name in sorted(_made_smaller(method) & compared):
                if _stays_large(source, body, method, name):
                    yield Hit(method, f"nothing calls `{method.name}`: `{name}` stays as it starts")


def _compared_shares(body: ast.ClassDef) -> set[str]:
    """Return the attributes of an object that random numbers are compared with in its class."""
    found = set[str]()
    for node in ast.walk(body):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                for one, other in ((left, right), (right, left)):
                    found |= {written(unconverted(one))} if is_uniform(other) else set()
            case _:
                pass
    return {name for name in found if name.startswith("self.")}


def _made_smaller(method: Function) -> set[str]:
    """Return what a method computes from itself: `self.p = max(0.01, self.p * rate)`."""
    return {
        written(target)
        for target, value, statement in assignments(method)
        if isinstance(target, ast.Attribute)
        if (isinstance(statement, ast.AugAssign) and isinstance(statement.op, SMALLER))
        or (written(target) in names_in(value) and _has_smaller(value))
    }


def _has_smaller(value: ast.expr) -> bool:
    return any(
        isinstance(one, ast.BinOp) and isinstance(one.op, SMALLER) for one in ast.walk(value)
    )


def _stays_large(source: Source, body: ast.ClassDef, decay: Function, name: str) -> bool:
    """Return whether an attribute is set only where objects are made, and to a large share."""
    makers = [one for one in body.body if isinstance(one, FUNCTIONS) and one.name in MAKERS]
    inside = {node for one in (*makers, decay) for node in ast.walk(one)}
    is_changed = any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == name.rpartition(".")[2]
        and node not in inside
        for node in source.nodes
    )
    starts = [one for maker in makers for one in _starts(source, maker, name)]
    starts = starts or _starts_of_field(source, body, name.removeprefix("self."))
    return not is_changed and bool(starts) and min(starts) >= LARGE


def _starts(source: Source, maker: Function, name: str) -> list[float]:
    """Return the numbers that an attribute starts with, of all calls; 0 for an unknown one."""
    found: list[ast.expr] = []
    for target, value, _ in assignments(maker):
        if written(target) == name:
            is_given = written(value) in {one.arg for one in parameters(maker)}
            given = list(given_for(source, maker, written(value))) if is_given else []
            found += given or [value]
    return [number_at(source, one) or 0.0 for one in found]


def _starts_of_field(source: Source, body: ast.ClassDef, name: str) -> list[float]:
    """Return the numbers that a field of a class has by default, and in all calls."""
    places = [written(one.target) for one in body.body if isinstance(one, ast.AnnAssign)]
    if name not in places:
        return []
    values = [value for target, value, _ in assignments(body) if written(target) == name]
    for call in source.calls_of.get(body.name.lower(), ()):
        given = argument(call, name, places.index(name))
        values += [] if given is None else [given]
    return [number_at(source, one) or 0.0 for one in values]
