"""What names of a program stand for: constants, defaults of parameters, texts."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from backflip.doctor.lint.source import (
    FUNCTIONS,
    KEPT,
    ONE_FILE,
    VERSIONS_KEPT,
    Function,
    Scope,
    Source,
    argument,
    assignments,
    last_word,
    number,
    parameters,
    walk,
    written,
)

UNSEEN = "Unknown"  # a part of a text that is not known


def known_numbers(source: Source, scope: Scope) -> dict[str, float]:
    """Return the numbers that names have in a scope: constants, and defaults of parameters.

    A default counts where no call of the program gives something else.
    """
    known = source.constants | _kept_defaults(source)
    for function in reversed(_around(source, scope)):
        places = {one.arg for one in parameters(function)}
        known = {name: value for name, value in known.items() if name not in places}
        known |= default_numbers(source, function)
    return known


def _around(source: Source, scope: Scope) -> list[Function]:
    """Return a function and those that it is in, from the innermost on."""
    found: list[Function] = []
    while not isinstance(scope, ast.Module):
        found.append(scope)
        scope = source.function_of(scope)
    return found


@lru_cache(maxsize=ONE_FILE)
def _kept_defaults(source: Source) -> dict[str, float]:
    """Return the attributes that are set once, to a parameter that has a known number."""
    found: dict[str, list[float | None]] = {}
    for scope in source.scopes:
        own = default_numbers(source, scope) if isinstance(scope, FUNCTIONS) else {}
        for target, value, _ in assignments(scope):
            if isinstance(target, ast.Attribute):
                found.setdefault(written(target), []).append(own.get(written(value)))
    return {
        name: values[0]
        for name, values in found.items()
        if name and len(values) == 1 and values[0] is not None
    }


def defaults(function: Function) -> dict[str, ast.expr]:
    """Return the defaults of parameters by name."""
    args = function.args
    places = [*args.posonlyargs, *args.args]
    found = dict(zip((one.arg for one in reversed(places)), reversed(args.defaults), strict=False))
    for one, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if value is not None:
            found[one.arg] = value
    return found


def default_numbers(source: Source, function: Function) -> dict[str, float]:
    """Return the parameters that are one known number: in all calls, and by default."""
    known, given = source.constants, defaults(function)
    found: dict[str, float] = {}
    for name in (one.arg for one in parameters(function) if one.arg not in ("self", "cls")):
        default = [given[name]] if name in given else []
        values = {value_of(one, known) for one in (*default, *given_for(source, function, name))}
        only = values.pop() if len(values) == 1 else None
        if only is not None:
            found[name] = only
    return found


def given_for(source: Source, function: Function, name: str) -> Iterator[ast.expr]:
    """Yield what calls of the program give for a parameter."""
    parent = source.parents[function]
    made = function.name == "__init__" and isinstance(parent, ast.ClassDef)
    called = parent.name if made and isinstance(parent, ast.ClassDef) else function.name
    names = [one.arg for one in parameters(function)]
    is_method = isinstance(parent, ast.ClassDef) and names[0] in ("self", "cls")
    place = names.index(name) - is_method
    if place < 0:  # `self` is no argument
        return
    for call in source.calls_of.get(called.lower(), ()):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is not None and written(owner) in source.imports:
            continue  # `gym.make` is no call of an own `make`
        given = argument(call, name, place)
        if given is not None:
            yield given


def value_of(node: ast.expr, known: dict[str, float]) -> float | None:
    """Return the number that an expression is, or that its name is known to be."""
    return known.get(written(node)) if written(node) else number(node)


def _literal(source: Source, node: ast.expr) -> ast.expr | None:
    """Return what a name is set to, if that happens once and nothing is added to it."""
    name = written(node)
    if not name or any(
        isinstance(call.func, ast.Attribute)
        and written(call.func.value) == name
        and call.func.attr in ("update", "pop", "setdefault", "clear")
        for call, _ in source.calls()
    ):
        return None if name else node
    values = [v for body in source.bodies for t, v, _ in assignments(body) if written(t) == name]
    return values[0] if len(values) == 1 else None


# Kept: a function that is called in many places with names has as many ways at each step.
@lru_cache(maxsize=KEPT)
def text_of(source: Source, node: ast.expr | None, depth: int = 8) -> str:
    """Return the text that an expression stands for; empty for one that is not known.

    Args:
        source: the program.
        node: a text, a name that is set to one, a parameter or an option that has one, a call of
            an own function that returns one, or what goes over a list of some: the first of them.
        depth: how many names are followed.
    """
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts) if depth:
            return "".join(_part(source, one, depth - 1) for one in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if depth:
            parts = [_part(source, one, depth - 1) for one in (left, right)]
            return "" if parts == [UNSEEN, UNSEEN] else "".join(parts)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            for one in node.args:
                text = text.replace("{}", _part(source, one, depth - 1), 1) if depth else text
            return text
        case ast.Call(func=ast.Name(id=name)) if depth:
            found = [
                one.value
                for scope in source.scopes
                if isinstance(scope, FUNCTIONS) and scope.name == name
                for one in walk(scope)
                if isinstance(one, ast.Return)
            ]
            return text_of(source, found[0], depth - 1) if len(found) == 1 else ""
        case ast.Name(id=name) if depth:
            return _text_of_name(source, node, name, depth)
        case ast.Attribute(attr=name) if depth:
            return text_of(source, settings(source).get(name), depth - 1)
        case _:
            return ""


def _text_of_name(source: Source, node: ast.Name, name: str, depth: int) -> str:
    """Return the text that a name stands for: of a parameter, what is given for it."""
    for function in _around(source, source.function_of(node)):
        if name in {one.arg for one in parameters(function)}:
            given = list(given_for(source, function, name))
            default = defaults(function).get(name)
            texts = {text_of(source, one, depth - 1) for one in given}
            only = default if not given else None
            return texts.pop() if len(texts) == 1 else text_of(source, only, depth - 1)
    looped = [
        one.iter
        for one in source.nodes
        if isinstance(one, (ast.For, ast.comprehension)) and written(one.target) == name
    ]
    match looped:
        case [ast.Name() as iterated]:
            over = _literal(source, iterated)
        case [over]:
            pass
        case _:
            return text_of(source, _literal(source, node), depth - 1)
    first = over.elts[0] if isinstance(over, ast.List | ast.Tuple) and over.elts else None
    return text_of(source, first, depth - 1)


def _only_given(source: Source, name: ast.Name) -> list[ast.Constant]:
    """Return the constant that the only call gives for a parameter."""
    function = source.home(name, name.id)
    if isinstance(function, ast.Module) or name.id not in map(_arg, parameters(function)):
        return []
    given = list(given_for(source, function, name.id))
    return [one for one in given if isinstance(one, ast.Constant)] if len(given) == 1 else []


def _arg(place: ast.arg) -> str:
    return place.arg


def _part(source: Source, node: ast.expr, depth: int) -> str:
    """Return a part of an f-string; one that is not known is a word."""
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(inner, ast.Name):
        inner = next(iter(_only_given(source, inner)), inner)
    if isinstance(inner, ast.Constant):
        return str(inner.value)
    return text_of(source, inner, depth) or UNSEEN


@lru_cache(maxsize=VERSIONS_KEPT)
def settings(source: Source) -> dict[str, ast.expr]:
    """Return the defaults of a program's options by name, of those that are set once.

    Options are attributes of classes, arguments of `argparse`, and parameters with defaults.
    """
    found: dict[str, list[ast.expr]] = {}
    for body in source.bodies:
        if isinstance(body, ast.ClassDef):
            for target, value, _ in assignments(body):
                found.setdefault(written(target), []).append(value)
        elif isinstance(body, FUNCTIONS):
            for name, value in defaults(body).items():
                found.setdefault(name, []).append(value)
    for name, value in parsed(source):
        found.setdefault(name, []).append(value)
    return {name: values[0] for name, values in found.items() if name and len(values) == 1}


def parsed(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and default of each `add_argument("--total-timesteps", default=1)`."""
    for call, _ in source.calls():
        default = argument(call, "default")
        if last_word(call.func) != "add_argument" or default is None:
            continue
        for one in call.args:
            if isinstance(one, ast.Constant) and str(one.value).startswith("--"):
                yield str(one.value).lstrip("-").replace("-", "_"), default
