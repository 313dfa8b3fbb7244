"""L39: optimisers that hold the parameters of another network."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, has_word, last_word, written

ACTORS = ("actor", "policy", "pi_")
CRITICS = ("critic", "value", "qf", "q_net", "qnet")
OPTIMISERS = ("optim", "opt")


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
        _optimised_networks,
    ),
)
