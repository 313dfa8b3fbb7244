"""L08: the mode of networks."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.ratios import compares_policies
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.networks.forgotten_modes import (
    as_called,
    callers,
    calls_to,
    is_forgotten,
    learns,
)
from backflip.doctor.lint.source import (
    INNER,
    LOOPS,
    Source,
    argument,
    assignments,
    calls_method,
    has_word,
    is_false,
    last_word,
    number,
    parameters,
    walk,
    written,
)

LAYERS = ("Dropout", "Dropout1d", "Dropout2d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
LEARNING = ("backward", "learn", "fit")
HARMLESS = (  # attributes of a network that need no gradient
    *("eval", "train", "training", "requires_grad_", "state_dict", "load_state_dict"),
    *("to", "cuda", "cpu", "half", "float", "double"),
)
OTHERS = ("critic", "discriminator", "reward", "dynamics", "predictor")  # networks of no policy
FIXED = ("target", "teacher", "ref", "old", "frozen")  # names of networks that do not learn


def _modes(source: Source) -> Iterator[Hit]:
    if not source.imports_any("torch"):
        return
    if "backward" in source.text:
        yield from _left_in_evaluation(source)
    if compares_policies(source):
        for call, name in source.calls():
            layer = name.rpartition(".")[2]
            if layer in LAYERS and name.startswith("torch.") and _is_in_policy(source, call):
                yield Hit(call, f"{layer} in a policy whose probabilities are compared")


def _is_in_policy(source: Source, call: ast.Call) -> bool:
    """Return whether a layer can be one of a policy, and is not switched off."""
    inside = source.class_of(call)
    name = "" if inside is None else inside.name.lower().replace("actorcritic", "")
    return number(argument(call, "p", 0)) != 0 and not has_word(name, *OTHERS)


def _left_in_evaluation(source: Source) -> Iterator[Hit]:
    """Find networks that are set to evaluation mode, and may learn after it."""
    learning, frozen = callers(source, set(LEARNING)), _frozen(source)
    trains = [call for call, _ in source.calls() if _is_set_to_training(call)]
    for call, _ in source.calls():
        name = _set_to_evaluation(call)
        fixed = any(word in name.lower() for word in FIXED)
        if not name or fixed or name.rpartition(".")[2] in frozen:
            continue
        if _is_copy(source, call, name, learning) or _has_no_gradients(source, call, name):
            continue
        if _is_as_made(source, call, name):
            continue
        if trains:
            is_left = is_forgotten(source, call, name, trains, learning)
        else:
            is_left = not _is_over(source, call, name, learning, set())
        if is_left:
            yield Hit(call, f"`{name}` is never set back to training mode")


def _is_set_to_training(call: ast.Call) -> bool:
    """Return whether a call sets something to training mode, or to a mode that is not known."""
    return calls_method(call, "train") and not _set_to_evaluation(call)


def _is_as_made(source: Source, call: ast.Call, name: str) -> bool:
    """Return whether a network is made in the statement before: then it never has another mode."""
    statement = source.parents[call]
    parent = source.parents[statement]
    block = getattr(parent, "body", [])
    if statement not in block or source.is_inside(call, LOOPS):
        return False
    before = block[block.index(statement) - 1] if block.index(statement) else None
    made = isinstance(before, ast.Assign) and "from_pretrained" in ast.unparse(before.value)
    return made and isinstance(before, ast.Assign) and written(before.targets[0]) == name


def _is_copy(source: Source, call: ast.Call, name: str, learning: set[str]) -> bool:
    """Return whether a network is a copy that nothing optimises: `best = copy.deepcopy(net)`."""
    home = source.home(call, name)
    made = [
        value
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if written(target) == name and source.home(target, name) is home
    ]
    if not made or not all(last_word(getattr(one, "func", one)) == "deepcopy" for one in made):
        return False
    return not any(_may_optimise(source, one, learning) for one in _reads(source, call, name))


def _may_optimise(source: Source, node: ast.AST, learning: set[str]) -> bool:
    """Return whether a network is read for its parameters, or given to what learns."""
    parent = source.parents[node]
    if isinstance(parent, ast.keyword):
        parent = source.parents[parent]
    match parent:
        case ast.Attribute(attr=attr):
            return "parameters" in attr
        case ast.Call(func=func) if func is not node:
            return last_word(func) in learning
        case _:
            return False


def _has_no_gradients(source: Source, call: ast.Call, name: str) -> bool:
    """Return whether no gradient reaches a network.

    That is not seen of a parameter, which has another name elsewhere, and of an attribute only in
    a class that learns.
    """
    home, inside = source.home(call, name), source.class_of(call)
    if name.startswith("self."):
        if inside is None or not any(map(_is_backward, ast.walk(inside))):
            return False
    elif not isinstance(home, ast.Module) and name in {one.arg for one in parameters(home)}:
        return False
    uses = [one for one in _reads(source, call, name) if not _is_harmless(source, one)]
    return bool(uses) and all(map(source.without_gradients, uses))


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and calls_method(node, "backward")


def _reads(source: Source, call: ast.Call, name: str) -> list[ast.AST]:
    """Return where a network is read; of `self.net`, every attribute that is called `net`."""
    home, (first, _, rest) = source.home(call, name), name.partition(".")
    if rest:
        last = rest.rpartition(".")[2]
        return [
            one for one in source.nodes if isinstance(one, ast.Attribute) and _reads_as(one, last)
        ]
    return [
        one
        for one in source.nodes
        if isinstance(one, ast.Name) and _reads_as(one, first) and source.home(one, first) is home
    ]


def _reads_as(node: ast.Name | ast.Attribute, name: str) -> bool:
    """Return whether a node reads a name, or an attribute with this name."""
    own = node.id if isinstance(node, ast.Name) else node.attr
    return own == name and isinstance(node.ctx, ast.Load)


def _is_harmless(source: Source, node: ast.AST) -> bool:
    """Return whether a network is only read for a method that computes nothing."""
    parent = source.parents[node]
    return isinstance(parent, ast.Attribute) and parent.attr in HARMLESS


def _set_to_evaluation(call: ast.Call) -> str:
    """Return the name of the network that a call sets to evaluation mode; empty for others."""
    match call:
        case ast.Call(func=ast.Attribute(value=network, attr="eval"), args=[]):
            return written(network)
        case ast.Call(func=ast.Attribute(value=network, attr="train")) if is_false(
            argument(call, "mode", 0)
        ):
            return written(network)
        case _:
            return ""


def _frozen(source: Source) -> set[str]:
    """Return the last words of the networks whose parameters have no gradients."""
    found: set[str] = set()
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="requires_grad_"), args=[off]) if (
                is_false(off)
            ):
                found.add(_network_of(owner))
            case ast.For(iter=ast.Call(func=ast.Attribute(value=owner, attr="parameters"))):
                if any(turns_gradients_off(one) for one in walk(node)):
                    found.add(_network_of(owner))
            case _:
                pass
    return found - {""}


def _network_of(node: ast.expr) -> str:
    """Return the last word of a network, also of `net` in `net.eval()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="eval")):
            return _network_of(owner)
        case _:
            return written(node).rpartition(".")[2]


def turns_gradients_off(node: ast.AST) -> bool:
    """Return whether code is `p.requires_grad = False`, or `p.requires_grad_(False)`."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=value):
            return is_false(value)
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[off]):
            return is_false(off)
        case _:
            return False


def _is_over(
    source: Source, node: ast.AST, name: str, learning: set[str], seen: set[ast.AST]
) -> bool:
    """Return whether a network surely does not learn after a line.

    Nothing that follows computes gradients, in this function or where it is called, and the
    program is seen to learn: what only other files call, they may call at any time.
    """
    scope = source.function_of(node)
    after = [one for one in source.later(node) if not isinstance(one, INNER)]
    if learns(after, learning):
        return False
    own = name.partition(".")[0] in {written(target) for target, _, _ in assignments(scope)}
    if isinstance(scope, ast.Module) or (own and learns([scope], learning)):
        return learns([scope], learning)
    calls = calls_to(source, scope)
    if not calls or scope in seen:
        return bool(calls) or learns([scope], learning)
    return all(
        _is_over(source, call, as_called(scope, call, name), learning, seen | {scope})
        for call in calls
    )


RULES = (
    Rule(
        "L08",
        "the mode of a network differs between acting and learning",
        "Dropout and batch normalisation act differently in the two modes: the ratio of "
        "probabilities is then not 1 before the first gradient step, and the policy is updated for "
        "actions that it did not choose.",
        "Leave such layers out of policies; after `net.eval()` call `net.train()`.",
        "trl#454, lerobot#3668; Huang et al. 2022, 37 details of PPO",
        _modes,
    ),
)
