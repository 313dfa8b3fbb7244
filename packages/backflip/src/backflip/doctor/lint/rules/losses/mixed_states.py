"""L41: critics that are given a state and the action of another one."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, assignments, has_word, last_word, walk, written

CRITICS, ACTORS = ("critic", "qf", "q_net", "qnet"), ("actor", "policy")


def _all_mixed(source: Source) -> Iterator[Hit]:
    yield from _mixed_states(source)
    yield from _mixed_choices(source)


def _mixed_states(source: Source) -> Iterator[Hit]:
    """Find `critic(states, actor(next_states))` and `critic(next_states, actor(states))`."""
    for node in source.nodes:
        match node:
            case ast.Call(func=func, args=[state, ast.Call(func=acts, args=[other])]):
                pass
            case _:
                continue
        if not (has_word(last_word(func), *CRITICS) and has_word(last_word(acts), *ACTORS)):
            continue
        names = written(state), written(other)
        if _is_next_of(*names) or _is_next_of(*reversed(names)):
            seen = f"the critic judges `{names[0]}` with an action for `{names[1]}`"
            yield Hit(node, seen)


def _mixed_choices(source: Source) -> Iterator[Hit]:
    """Find `best = q(states).argmax(1)` and `target_q(next_states).gather(1, best)`."""
    for scope in source.scopes:
        chosen = {
            written(target): states
            for target, value, _ in assignments(scope)
            if (states := _chosen_for(value))
        }
        for node in walk(scope):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Call(args=[state]), attr="gather"),
                    args=[_, best, *_],
                ):
                    other = chosen.get(plain_name(best), "")
                case _:
                    continue
            if _is_next_of(other, written(state)):
                seen = f"the action is the best in `{other}`, and its value that in another state"
                yield Hit(node, seen)


def _chosen_for(value: ast.expr) -> str:
    """Return the states of `q(states).argmax(...)`, or `q(states).max(1)[1]`; else empty."""
    for node in ast.walk(value):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(args=[state]), attr="argmax" | "max")):
                return written(state)
            case _:
                pass
    return ""


def plain_name(node: ast.expr) -> str:
    """Return the name of `best.unsqueeze(1)`, `best[:, None]` or `best`."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
                node = inner
            case _:
                return ""
    return node.id


def _is_next_of(state: str, after: str) -> bool:
    """Return whether two names are of one kind, and the second is that of the next state."""
    words = [word for word in after.lower().split("_") if word not in ("next", "new", "n")]
    kept = "_".join(words)
    is_short = (state, after) in (("s", "s2"), ("s", "s_"), ("s", "ns"), ("obs", "obs2"))
    return is_short or (bool(state) and state != after and kept == state.lower())


RULES = (
    Rule(
        "L41",
        "the action is of another state",
        "The critic is asked for the value of an action in a state where the policy would not take "
        "it: targets, or the gradient of the policy, are of a mixture.",
        "Give both the same state: `critic(states, actor(states))` for the policy, "
        "`target_critic(next_states, target_actor(next_states))` for targets.",
        "Lillicrap et al. 2015, arXiv:1509.02971, algorithm 1",
        _all_mixed,
    ),
)
