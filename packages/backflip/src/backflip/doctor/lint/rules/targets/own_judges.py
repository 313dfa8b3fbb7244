"""L56: double Q-learning in which one network chooses the action and judges it."""

import ast
import re
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.losses.mixed_states import plain_name
from backflip.doctor.lint.source import Scope, Source, assignments, walk, written

DOUBLE = re.compile(r"double|ddqn", re.IGNORECASE)


def _own_judges(source: Source) -> Iterator[Hit]:
    """Find `best = target(s).argmax(1)`, then `target(s).gather(1, best)`, in double DQN."""
    if not DOUBLE.search(source.text + source.path.name):
        return
    for scope in source.scopes:
        chosen = _chosen(scope)
        for node in walk(scope):
            match node:
                case ast.Call(func=ast.Attribute(value=judged, attr="gather"), args=[_, best, *_]):
                    made = chosen.get(plain_name(best)) or _chooser(best)
                case _:
                    continue
            if made and made == _meant(scope, judged):
                yield Hit(node, f"`{made}` also chose the action that it judges")


def _chosen(scope: Scope) -> dict[str, str]:
    """Return the names of best actions, and the values that they are best in."""
    found = {written(target): _chooser(value) for target, value, _ in assignments(scope)}
    return {name: made for name, made in found.items() if name and made}


def _chooser(value: ast.expr) -> str:
    """Return `target(s)` of `target(s).argmax(1)` and of `target(s).max(1)[1]`; else empty."""
    for node in ast.walk(value):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="argmax")):
                return ast.unparse(made)
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="max")),
                slice=ast.Constant(value=1),
            ):
                return ast.unparse(made)
            case _:
                pass
    return ""


def _meant(scope: Scope, node: ast.expr) -> str:
    """Return code; of a name that is set once, what it is set to."""
    known = [value for target, value, _ in assignments(scope) if written(target) == written(node)]
    return ast.unparse(known[0] if isinstance(node, ast.Name) and len(known) == 1 else node)


RULES = (
    Rule(
        "L56",
        "one network chooses the action and judges it",
        "That is the largest value, as without double Q-learning: where the network thinks too "
        "much of an action, it chooses this one.",
        "Choose with the network that learns: `online(next_obs).argmax(1)`, and judge with the "
        "target network.",
        "van Hasselt et al. 2016, arXiv:1509.06461, equation 4",
        _own_judges,
    ),
)
