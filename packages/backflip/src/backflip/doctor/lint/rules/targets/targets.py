"""L20: target networks."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.makers import trace
from backflip.doctor.lint.questions.origins import unplaced
from backflip.doctor.lint.questions.records import number_at, possible_options, visible_options
from backflip.doctor.lint.questions.sb3 import algorithms
from backflip.doctor.lint.questions.values import given_for, known_numbers
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Source,
    argument,
    assignments,
    has_word,
    last_word,
    names_in,
    number,
    parameters,
    written,
)

LEARNING = ("q", "v", "qf", "qf1", "dqn", "model", "local", "online")
NETWORKS = ("net", "network", "model", "policy", "critic", "actor")
TARGETS = ("target", "targ", "tgt")  # in the names of target networks
SLOW = ("slow", "lagged", "frozen", "_old", "_lag")  # the same in keys of dicts
MIXERS = ("copy_", "mul_", "lerp_", "tree_map", "map")
MOST_NAMES = 4  # of one network
SMALL = 0.2  # a smaller share of the target network is surely meant the other way round


def _target_network(source: Source) -> Iterator[Hit]:
    if source.imports_any("torch", "tensorflow", "keras"):
        for scope in source.scopes:
            for target, value, statement in assignments(scope):
                if is_target(source, target) and is_network(value, False):
                    seen = f"`{written(target)}` and `{written(value)}` are one object"
                    yield Hit(statement, f"{seen}, so the target changes with every gradient step")
        for call, _ in source.calls():
            if (names := _copied_into_itself(source, call)) is not None:
                seen = f"`{names[0]}` and `{names[1]}` are one object"
                yield Hit(call, f"{seen}, so the target changes with every gradient step")
        for node in source.nodes:
            for name in _shared_by_keys(node):
                seen = f"`{name}` is the network that learns and the target, one object"
                yield Hit(node, f"{seen}, so the target changes with every gradient step")
    for scope in source.scopes:
        known: dict[str, float] | None = None
        for call, name in source.calls(scope):
            if last_word(call.func) in MIXERS or name == "optax.incremental_update":
                known = known_numbers(source, scope) if known is None else known
                if _replaces_the_target(source, call, known):
                    seen = "the target network is replaced almost entirely in every update"
                    yield Hit(call, seen)
    yield from _large_shares(source)


def _copied_into_itself(source: Source, call: ast.Call) -> tuple[str, str] | None:
    """Return the two names of one network in `target.load_state_dict(net.state_dict())`."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=old, attr="load_state_dict" | "set_weights"),
            args=[ast.Call(func=ast.Attribute(value=new, attr="state_dict" | "get_weights")), *_],
        ):
            pass
        case ast.Call(
            func=ast.Name(id="zip"),
            args=[
                ast.Call(func=ast.Attribute(value=old, attr="parameters")),
                ast.Call(func=ast.Attribute(value=new, attr="parameters")),
            ],
        ):
            pass
        case _:
            return None
    one, other = (_first_made(source, node) for node in (old, new))
    is_same = one is not None and one is other and written(old) != written(new)
    return (written(old), written(new)) if is_same else None


def _first_made(source: Source, node: ast.expr) -> ast.AST | None:
    """Return the call that made a network, or the parameter that it was; None if not seen.

    Names are followed, and what returns the network itself: `net.to(device)`.
    """
    for _ in range(MOST_NAMES):
        node, before = unplaced(node), node
        for step in trace(source, node):
            node = step
            if isinstance(step, ast.Call):
                break
        if isinstance(node, ast.Call) and unplaced(node) is node:
            return node
        if node is before:
            break
    home = source.home(node, node.id) if isinstance(node, ast.Name) else None
    if isinstance(home, FUNCTIONS) and isinstance(node, ast.Name):
        return next((one for one in parameters(home) if one.arg == node.id), None)
    return None


def _shared_by_keys(node: ast.AST) -> set[str]:
    """Return the names that a dict holds both as a target and as something else."""
    if not isinstance(node, ast.Dict):
        return set()
    kept: dict[bool, set[str]] = {True: set(), False: set()}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Name):
            kept[has_word(str(key.value).lower(), *TARGETS, *SLOW)].add(value.id)
    return kept[True] & kept[False]


def _large_shares(source: Source) -> Iterator[Hit]:
    """Find `tau=0.995` of Stable-Baselines3, where tau is the share of the network that learns."""
    for call in algorithms(source):
        found = possible_options(source, call) or [visible_options(source, call)]
        for tau in (number_at(source, one.get("tau")) for one in found):
            if tau is not None and 1 - SMALL <= tau < 1:
                yield Hit(call, f"tau = {tau:g} is the share that the target network takes over")
                break


def is_target(source: Source, node: ast.expr) -> bool:
    """Return whether a name is that of a target network; plain `target` is one if it is called."""
    last = last_word(node)
    return is_network(node, True) or (last in TARGETS and last in source.calls_of)


def is_network(node: ast.expr, target: bool) -> bool:
    """Return whether a name is that of a target network, or of one that learns."""
    last = last_word(node)
    if not isinstance(node, ast.Name | ast.Attribute) or has_word(last, *TARGETS) != target:
        return False
    words = last.split("_")
    if words[-1] in ("target", "targ", "tgt") and target:
        words = words[:1]
    return words[-1].rstrip("12") in (*NETWORKS, *LEARNING, "qnetwork")


def _replaces_the_target(source: Source, call: ast.Call, known: dict[str, float]) -> bool:
    """Return whether a call mixes a target network and another the wrong way round."""
    stands_for = _looped_over(source, call)
    match call.func, call.args:
        case ast.Attribute(attr="copy_"), [mixed, *_]:
            return _mixes_the_wrong_way(mixed, known, stands_for)
        case ast.Attribute(attr="mul_", value=of), [share] if stands_for:
            value = _share(share, known)
            return value is not None and value <= SMALL and _is_target(of, stands_for)
        case ast.Attribute(attr="lerp_", value=of), [_, share] if stands_for:
            value = _share(share, known)
            return value is not None and 1 - SMALL <= value < 1 and _is_target(of, stands_for)
        case _, [ast.Lambda(args=of, body=mixed), *trees]:
            return _mixes_the_wrong_way(
                mixed, known, _named([one.arg for one in of.args], list(map(ast.unparse, trees)))
            )
        case ast.Attribute(attr="incremental_update"), [new, old, *_]:
            size = argument(call, "step_size", 2)
            share = None if size is None else _share(size, known)
            is_whole = share is not None and 1 - SMALL <= share < 1
            return is_whole or (_is_target(new, stands_for) and not _is_target(old, stands_for))
        case _:
            return False


def _looped_over(source: Source, node: ast.AST) -> dict[str, str]:
    """Return what names stand for in `for p, q in zip(net.parameters(), target.parameters())`.

    A parameter stands for what the program's calls give for it.
    """
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        match node:
            case ast.For(
                target=ast.Tuple(elts=names),
                iter=ast.Call(func=ast.Name(id="zip"), args=zipped),
            ):
                texts = [_with_given(source, one) for one in zipped]
                return _named(list(map(written, names)), texts)
            case _:
                node = source.parents[node]
    return {}


def _with_given(source: Source, zipped: ast.expr) -> str:
    """Return the text of an expression, and what calls give for the parameter in it."""
    scope, given = source.function_of(zipped), list[ast.expr]()
    if not isinstance(scope, ast.Module):
        places = {one.arg for one in parameters(scope)} - {"self"}
        names = {name.partition(".")[0] for name in names_in(zipped)} & places
        given = [one for name in sorted(names) for one in given_for(source, scope, name)]
    return " ".join(map(ast.unparse, [zipped, *given]))


def _named(names: list[str], given: list[str]) -> dict[str, str]:
    """Return what names stand for: themselves, if one of them says that it is of a target.

    Empty if all of them may be of targets.
    """
    if any(has_word(name, *TARGETS, *SLOW) for name in names):
        return {name: name for name in names}
    unclear = all(has_word(text, *TARGETS, *SLOW) for text in given)
    return {} if unclear else dict(zip(names, given, strict=False))


def _is_target(node: ast.expr, stands_for: dict[str, str]) -> bool:
    """Return whether an expression is of a target network, by its name or what it stands for."""
    return any(
        has_word(stands_for.get(name.partition(".")[0], name), *TARGETS, *SLOW)
        for name in names_in(node)
    )


def _mixes_the_wrong_way(
    node: ast.expr, known: dict[str, float], stands_for: dict[str, str]
) -> bool:
    """Return whether `a target + b online` has a small a."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    for part in (node.left, node.right):
        if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)):
            continue
        for share, of in ((part.left, part.right), (part.right, part.left)):
            value = _share(share, known)
            if value is not None and value <= SMALL and _is_target(of, stands_for):
                return True
    return False


def _share(node: ast.expr, known: dict[str, float]) -> float | None:
    """Return the value of a share: a number, a constant, or one minus it."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
            inner = _share(right, known)
            return None if inner is None else 1 - inner
        case ast.Name() | ast.Attribute():
            return known.get(written(node))
        case _:
            return number(node)


RULES = (
    Rule(
        "L20",
        "the target network is not a slow copy",
        "Without a slow copy the target chases the prediction, and values diverge or oscillate.",
        "Make it by `copy.deepcopy(net)`; update it by `target = (1 - tau) * target + tau * net` "
        "with a small tau (0.005), or copy the weights every few thousand steps.",
        "Mnih et al. 2015; Stack Overflow 57106676",
        _target_network,
    ),
)
