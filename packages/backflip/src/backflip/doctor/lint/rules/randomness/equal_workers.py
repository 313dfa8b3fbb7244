"""Functions that make the environments of a vector, all with one seed: a part of L18."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import made_at
from backflip.doctor.lint.questions.records import visible_options
from backflip.doctor.lint.questions.sb3 import algorithms, layers
from backflip.doctor.lint.questions.values import defaults
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Source,
    argument,
    arguments,
    assignments,
    last_word,
    made_by,
    names_in,
    parameters,
    written,
)

VECTORS = ("SyncVectorEnv", "AsyncVectorEnv", "SubprocVecEnv", "DummyVecEnv")
SPACES = ("action_space", "observation_space")
NO_ENVIRONMENTS = ("random", "np", "numpy", "torch", "tf", "rng", "generator")


def equal_workers(source: Source) -> Iterator[Hit]:
    """Find vectors of environments whose maker seeds each with what is no number of its own."""
    for vector, name in source.calls():
        if name.rpartition(".")[2] not in VECTORS:
            continue
        functions = argument(vector, "env_fns", 0)
        for made, counters in _members(source, functions):
            maker = _maker(source, made)
            if maker is None or _is_seeded_later(source, vector, maker):
                continue
            own = numbered(maker, made, counters)
            seeds = list(seeds_of(source, maker))
            if makes_others(maker, own):
                continue
            if seeds and all(is_one_for_all(seed, maker, own) for _, seed in seeds):
                yield Hit(seeds[0][0], "every environment gets the same seed")


def makes_others(maker: ast.AST, own: set[str]) -> bool:
    """Return whether each environment is made with other options: they have no equal episodes."""
    return any(
        last_word(call.func) in ("make", "make_env", "create")
        and any(own & names_in(one) for one in arguments(call))
        for call in ast.walk(maker)
        if isinstance(call, ast.Call)
    )


def _members(
    source: Source, functions: ast.expr | None
) -> Iterator[tuple[ast.Call | ast.Name, set[str]]]:
    """Yield what makes each function of a list, and the names that differ from one to the next.

    The list is `[make(i) for i in range(n)]`, `[make(seed)] * n`, or filled by `append` in a loop.
    """
    match None if functions is None else made_at(source, functions):
        case ast.ListComp(elt=element, generators=[loop]) if made_by(loop.iter) == "range":
            counters = names_in(loop.target)
        case ast.BinOp(left=ast.List(elts=[element]), op=ast.Mult()):
            counters = set[str]()
        case ast.List(elts=[]) if functions is not None:
            yield from _appended(source, functions)
            return
        case _:
            return
    element = element.body if isinstance(element, ast.Lambda) else _unbound(element)
    if isinstance(element, ast.Call | ast.Name):
        yield element, counters


def _unbound(element: ast.expr) -> ast.expr:
    """Return the call that `partial(make, i, seed)` stands for."""
    match element:
        case ast.Call(func=func, args=[made, *args], keywords=keywords):
            return ast.Call(made, args, keywords) if last_word(func) == "partial" else element
        case _:
            return element


def _appended(
    source: Source, functions: ast.expr
) -> Iterator[tuple[ast.Call | ast.Name, set[str]]]:
    scope = source.function_of(functions)
    for call, _ in source.calls(scope):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"),
                args=[ast.Call() | ast.Name() as element],
            ) if name == written(functions):
                loop = source.parents[source.parents[call]]
                if isinstance(loop, ast.For) and made_by(loop.iter) == "range":
                    new = {written(target) for target, _, _ in assignments(loop)}
                    made = _unbound(element)
                    if isinstance(made, ast.Call | ast.Name):
                        yield made, names_in(loop.target) | new
            case _:
                pass


def _maker(source: Source, made: ast.Call | ast.Name) -> Function | ast.ClassDef | None:
    """Return the function or class of the program that makes an environment, or its maker."""
    name = written(made.func if isinstance(made, ast.Call) else made)
    found = [
        one
        for one in source.bodies
        if isinstance(one, (*FUNCTIONS, ast.ClassDef)) and one.name == name
    ]
    if len(found) != 1:
        return None
    [only] = found
    return None if isinstance(only, ast.ClassDef) and not _method(only, "__call__") else only


def _method(body: ast.ClassDef, name: str) -> Function | None:
    found = [one for one in body.body if isinstance(one, FUNCTIONS) and one.name == name]
    return found[0] if found else None


def numbered(
    maker: Function | ast.ClassDef, made: ast.Call | ast.Name, counters: set[str]
) -> set[str]:
    """Return the names in a maker that may differ from one environment to the next.

    They get a counter, what a call draws, or no value that is seen.
    """
    first = _method(maker, "__init__") if isinstance(maker, ast.ClassDef) else maker
    places = [one.arg for one in parameters(first)] if first is not None else []
    places = [one for one in places if one != "self"]
    named = defaults(first) if first is not None else {}
    if isinstance(made, ast.Call):
        named |= dict(zip(places, made.args, strict=False))
        named |= {one.arg or "**": one.value for one in made.keywords}
    found = {name for name in places if name not in named or "**" in named}
    for name, value in named.items():
        inside = [value, *ast.walk(value)]
        is_open = any(isinstance(one, ast.Call | ast.Starred) or _is_none(one) for one in inside)
        if is_open or counters & names_in(value):
            found.add(name)
    inner = (one for one in ast.walk(maker) if isinstance(one, FUNCTIONS) and one is not first)
    found |= {place.arg for one in inner for place in parameters(one)} - {"self"}
    return _depending(maker, found if isinstance(made, ast.Call) else found | counters)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _depending(maker: ast.AST, names: set[str]) -> set[str]:
    """Return some names, and those in a maker whose value is made from them."""
    pairs = [
        (written(target), value)
        for one in [maker, *ast.walk(maker)]
        if isinstance(one, (*FUNCTIONS, ast.ClassDef))
        for target, value, _ in assignments(one)
    ]
    while True:
        more = {name for name, value in pairs if names & names_in(value)} - {""}
        if more <= names:
            return names
        names = names | more


def seeds_of(source: Source, maker: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls in a maker that seed an environment, and the seeds."""
    for call in (one for one in ast.walk(maker) if isinstance(one, ast.Call)):
        match call.func:
            case ast.Attribute(attr="reset"):
                seed = argument(call, "seed")
            case ast.Attribute(value=owner, attr="seed") if (
                last_word(owner) not in (*SPACES, *NO_ENVIRONMENTS)
                and written(owner) not in source.imports
            ):
                seed = argument(call, "seed", 0)
            case _:
                continue
        is_super = isinstance(call.func.value, ast.Call) and made_by(call.func.value) == "super"
        if seed is not None and not _is_none(seed) and not is_super:
            yield call, seed


def is_one_for_all(seed: ast.expr, maker: ast.AST, own: set[str]) -> bool:
    """Return whether a seed surely does not vary: nothing in it does, and it is not drawn."""
    return not own & names_in(seed) and not any(
        isinstance(one, ast.Call) for value in _values(seed, maker) for one in ast.walk(value)
    )


def _values(seed: ast.expr, maker: ast.AST) -> list[ast.expr]:
    """Return a seed, and what its names are set to in the maker."""
    names = names_in(seed)
    return [seed] + [
        value
        for one in [maker, *ast.walk(maker)]
        if isinstance(one, (*FUNCTIONS, ast.ClassDef))
        for target, value, _ in assignments(one)
        if written(target) in names
    ]


def _is_seeded_later(source: Source, vector: ast.Call, maker: ast.AST) -> bool:
    """Return whether other code may give the environments seeds that differ.

    `seed` and `reset(seed=...)` of a vector do, and so does an algorithm that has a seed.
    """
    for model in algorithms(source):
        seed = visible_options(source, model).get("seed")
        is_open = any(one.arg is None for one in model.keywords)
        if seed is not None and not _is_none(seed):
            return True
        if seed is None and is_open:
            return True
    inside = set(ast.walk(maker))
    for call in [*source.calls_of.get("reset", ()), *source.calls_of.get("seed", ())]:
        if call in inside or not isinstance(call.func, ast.Attribute):
            continue
        seeds = argument(call, "seed", 0 if last_word(call.func) == "seed" else None)
        owner = call.func.value
        if seeds is None or last_word(owner) in (*SPACES, *NO_ENVIRONMENTS):
            continue
        made = [one.call for one in layers(source, owner)]
        if written(owner) not in source.imports and (not made or vector in made):
            return True
    return False
