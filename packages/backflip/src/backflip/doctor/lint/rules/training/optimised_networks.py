"""L39: optimisers that hold the parameters of another network."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    assignments,
    has_word,
    last_word,
    made_by,
    written,
)

ACTORS = ("actor", "policy", "pi_")
CRITICS = ("critic", "value", "qf", "q_net", "qnet")
OPTIMISERS = ("optim", "opt")


def _all_optimised(source: Source) -> Iterator[Hit]:
    yield from _optimised_networks(source)
    yield from _optimised_targets(source)


def _optimised_targets(source: Source) -> Iterator[Hit]:
    """Find optimisers of all of a module that has a predictor, and a random target beside it."""
    if "requires_grad" in source.text or _closes_targets(source):
        return
    classes = (body for body in source.bodies if isinstance(body, ast.ClassDef))
    modules = {body.name for body in classes if _has_predictor(body)}
    of_module = {
        written(target)
        for body in source.bodies
        for target, value, _ in assignments(body)
        if made_by(value) in modules
    } - {""}
    for call, name in source.calls():
        owner = getattr(call.func, "value", None)
        if name.endswith(".parameters") and owner is not None and written(owner) in of_module:
            seen = f"`{written(owner)}` has a target that should stay as it was at the start"
            yield Hit(call, seen)


def _has_predictor(body: ast.ClassDef) -> bool:
    """Return whether a class keeps a predictor and a target."""
    names = {
        last_word(target)
        for method in body.body
        if isinstance(method, FUNCTIONS)
        for target, _, _ in assignments(method)
    }
    return any("predict" in name for name in names) and any("target" in name for name in names)


def _closes_targets(source: Source) -> bool:
    """Return whether the program detaches something that is called a target."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "detach"
        and "targ" in last_word(node.value).lower()
        for node in source.nodes
    )


def _optimised_networks(source: Source) -> Iterator[Hit]:
    """Find `critic_optimizer = Adam(actor.parameters())`, and the reverse."""
    for scope in source.scopes:
        for target, value, statement in assignments(scope):
            name = last_word(target)
            if not has_word(name, *OPTIMISERS):
                continue
            network = _network(value)
            for own, other in ((ACTORS, CRITICS), (CRITICS, ACTORS)):
                if _is_of(name, own, other) and _is_of(network, other, own):
                    yield Hit(statement, f"`{written(target)}` moves `{network}`")


def _network(value: ast.expr) -> str:
    """Return `actor` of `Adam(actor.parameters(), lr=1e-3)`; empty for others."""
    match value:
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=of, attr="parameters")), *_]):
            return written(of)
        case _:
            return ""


def _is_of(name: str, own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    last = name.rpartition(".")[2]
    return has_word(last, *own) and not has_word(last, *other)


RULES = (
    Rule(
        "L39",
        "an optimiser holds the parameters of another network",
        "One network has two optimisers, and the other none: it stays as it was at the start.",
        "Pass the parameters of its own network: `Adam(critic.parameters())`.",
        "a common mistake when lines are copied",
        _all_optimised,
    ),
)
