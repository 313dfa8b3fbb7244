"""Which objects of a program are environments, whatever their names are."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from backflip.doctor.lint.questions.values import given_for
from backflip.doctor.lint.source import (
    FUNCTIONS,
    VERSIONS_KEPT,
    Function,
    Source,
    assignments,
    has_word,
    last_word,
    parameters,
    written,
)

PACKAGES = ("gym", "gymnasium")
MAKERS = ("make", "make_vec")
RESULTS = (4, 5)  # parts of what `step` returns: observation, reward, one or two ends, info


def steps_environment(source: Source, node: ast.AST) -> bool:
    """Return whether code is `env.step(action)`.

    Its owner has `env` in its name, or was made by Gymnasium, or the call gets an action and its
    result is taken apart into four or five parts.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="step")):
            pass
        case _:
            return False
    is_one = is_environment(source, owner)
    return is_one or (bool(node.args) and _is_taken_apart(source, node))


def is_environment(source: Source, node: ast.expr) -> bool:
    """Return whether a value has `env` in its name, or was made by Gymnasium."""
    name = written(node)
    return has_word(name, "env") or name in _made(source)


def _is_taken_apart(source: Source, call: ast.Call) -> bool:
    targets = getattr(source.parents[call], "targets", [])
    return any(isinstance(one, ast.Tuple) and len(one.elts) in RESULTS for one in targets)


@lru_cache(maxsize=VERSIONS_KEPT)
def _made(source: Source) -> frozenset[str]:
    """Return the names that hold what Gymnasium made, or a function such as `make_env`."""
    found = set(_names(source)) - {""}
    for scope in source.scopes if found else ():
        if isinstance(scope, FUNCTIONS):
            found |= {one.arg for one in parameters(scope) if _is_given(source, scope, one, found)}
    return frozenset(found)


def _is_given(source: Source, function: Function, parameter: ast.arg, names: set[str]) -> bool:
    """Return whether every call gives a parameter one of some names."""
    given = [written(one) for one in given_for(source, function, parameter.arg)]
    return bool(given) and set(given) <= names


def _names(source: Source) -> Iterator[str]:
    for scope in source.scopes:
        for target, value, _ in assignments(scope):
            if isinstance(value, ast.Call) and _makes(source, value):
                yield written(target)


def _makes(source: Source, call: ast.Call) -> bool:
    package, _, made = source.dotted(call.func).rpartition(".")
    is_maker = made in MAKERS and package.partition(".")[0] in PACKAGES
    return is_maker or has_word(last_word(call.func), "env")
