"""L06, L20: shapes of targets, and target networks."""

import ast
from collections.abc import Iterator

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
    walk,
    written,
)
from backflip.doctor.lint.values import known_numbers

LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
LOSS_CLASSES = ("MSELoss", "SmoothL1Loss", "HuberLoss", "L1Loss")
LEARNING = ("q", "v", "qf", "qf1", "dqn", "model", "local", "online")
NETWORKS = ("net", "network", "model", "policy", "critic", "actor")
TARGETS = ("target", "targ", "tgt")  # in the names of target networks
MIXERS = ("copy_", "mul_", "lerp_", "tree_map", "map")
IN_PLACE = ("squeeze_", "unsqueeze_", "resize_", "t_", "transpose_")  # these change a shape
SMALL = 0.2  # a smaller share of the target network is surely meant the other way round


def _column_against_row(source: Source) -> Iterator[Hit]:
    """Follow the shapes (B, 1) and (B,) by name, in the order of the text."""
    if not source.imports_any("torch"):
        return
    losses = _loss_objects(source)
    for scope in source.scopes:
        shapes: dict[str, str] = {}
        for node in walk(scope):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    shapes |= _assigned_shapes(target, node.value, shapes)
            shapes |= _changed_shapes(node, shapes)
            compared = _compared(source, node, losses)
            if sorted(_shape(one, shapes) for one in compared) == ["column", "row"]:
                yield Hit(node, "one side has shape (B, 1), the other (B,)")


def _loss_objects(source: Source) -> set[str]:
    """Return the names of objects such as `nn.MSELoss()`."""
    return {
        written(target)
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if _makes_a_loss(source, value)
    } - {""}


def _makes_a_loss(source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and source.dotted(node.func).endswith(LOSS_CLASSES)


def _compared(source: Source, node: ast.AST, losses: set[str]) -> list[ast.expr]:
    """Return the two sides of a loss, or of a difference."""
    if isinstance(node, ast.Call) and (
        source.dotted(node.func).endswith(LOSSES)
        or written(node.func) in losses
        or _makes_a_loss(source, node.func)
    ):
        return node.args[:2]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return [node.left, node.right]
    return []


def _assigned_shapes(target: ast.expr, value: ast.expr, shapes: dict[str, str]) -> dict[str, str]:
    """Return the shapes of names after an assignment; `best, places = q.max(1)` has two."""
    match target, value:
        case ast.Tuple(elts=[best, places]), ast.Call() if _is_maximum(value):
            return {written(best): "row", written(places): "row"}
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            pairs = zip(targets, values, strict=True)
            return {written(one): _shape(of, shapes) for one, of in pairs}
        case ast.Tuple(elts=targets), _:
            return {written(one): "" for one in targets}
        case _:
            return {written(target): _shape(value, shapes)}


def _changed_shapes(node: ast.AST, shapes: dict[str, str]) -> dict[str, str]:
    """Return the shape of a name that is changed in place: `best.unsqueeze_(1)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in IN_PLACE:
            return {written(owner): _shape_of_call(node, shapes)}
        case _:
            return {}


def _shape(node: ast.expr, shapes: dict[str, str]) -> str:
    """Return `column` for (B, 1), `row` for (B,), or an empty string for what is not known."""
    match node:
        case ast.Name() | ast.Attribute() if written(node) in shapes:
            return shapes[written(node)]
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(value=ast.Call() as call, attr="values"):
            return "row" if _is_maximum(call) else ""
        case ast.Call():
            return _shape_of_call(node, shapes)
        case ast.BinOp(left=left, right=right):
            found = {_shape(left, shapes), _shape(right, shapes)} - {""}
            return found.pop() if len(found) == 1 else ""
        case _:
            return ""


def _shape_of_call(call: ast.Call, shapes: dict[str, str]) -> str:
    match call.func, call.args:
        case ast.Attribute(attr="gather"), _:
            return "column" if _gathers_one(call) else ""
        case ast.Attribute(attr="amax"), _:
            return "row" if _is_maximum(call) else ""
        case ast.Attribute(attr="squeeze" | "squeeze_" | "flatten", value=inner), _:
            return "row" if _shape(inner, shapes) else ""
        case ast.Attribute(attr="unsqueeze" | "unsqueeze_", value=inner), [dim] if number(dim) in (
            1,
            -1,
        ):
            return "column" if _shape(inner, shapes) == "row" else ""
        case ast.Attribute(attr="view" | "reshape", value=inner), [ast.expr() as size] if number(
            size
        ) == -1 and _shape(inner, shapes):
            return "row"
        case ast.Attribute(attr="detach" | "float" | "to", value=inner), _:
            return _shape(inner, shapes)
        case _:
            return ""


def _gathers_one(call: ast.Call) -> bool:
    """Return whether a call is `q.gather(1, index)`, or a function of q, with one column."""
    of_torch = written(call.func) == "torch.gather"
    dim = argument(call, "dim", 1 if of_torch else 0)
    index = argument(call, "index", 2 if of_torch else 1)
    return number(dim) in (1, -1) and index is not None and _is_unsqueezed(index)


def _is_unsqueezed(node: ast.expr) -> bool:
    """Return whether an index surely has one column."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(), ast.Constant(value=None)])):
            return True
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[dim]):
            return number(dim) in (1.0, -1.0)
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=[rows, columns]):
            return number(rows) == -1 and number(columns) == 1
        case ast.Call(func=ast.Attribute(value=inner, attr="long" | "to" | "type")):
            return _is_unsqueezed(inner)
        case _:
            return False


def _is_maximum(call: ast.Call) -> bool:
    """Return whether a call is `x.max(1)` without `keepdim`."""
    if last_word(call.func) not in ("max", "amax") or argument(call, "keepdim") is not None:
        return False
    if any(isinstance(one, ast.Constant) and one.value is True for one in call.args):
        return False
    places = [argument(call, "dim", place) for place in (0, 1)]
    return any(number(place) in (1.0, -1.0) for place in places)


def _target_network(source: Source) -> Iterator[Hit]:
    if source.imports_any("torch"):
        for scope in source.scopes:
            for target, value, statement in assignments(scope):
                if is_network(target, True) and is_network(value, False):
                    seen = f"`{written(target)}` and `{written(value)}` are one object"
                    yield Hit(statement, f"{seen}, so the target changes with every gradient step")
    for scope in source.scopes:
        known: dict[str, float] | None = None
        for call, name in source.calls(scope):
            if last_word(call.func) in MIXERS or name == "optax.incremental_update":
                known = known_numbers(source, scope) if known is None else known
                if _replaces_the_target(source, call, known):
                    seen = "the target network is replaced almost entirely in every update"
                    yield Hit(call, seen)
    yield from _large_shares(source)


def _large_shares(source: Source) -> Iterator[Hit]:
    """Find `tau=0.995` of Stable-Baselines3, where tau is the share of the network that learns."""
    for call, name in source.calls():
        tau = number(argument(call, "tau"))
        last = name.rpartition(".")[2]
        ours = name.startswith("stable_baselines3") and last.isupper()
        if ours and tau is not None and 1 - SMALL <= tau < 1:
            yield Hit(call, f"tau = {tau:g} is the share that the target network takes over")


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
            return _mixes_the_wrong_way(mixed, known, _named([one.arg for one in of.args], trees))
        case ast.Attribute(attr="incremental_update"), [new, old, *_]:
            return _is_target(new, stands_for) and not _is_target(old, stands_for)
        case _:
            return False


def _looped_over(source: Source, node: ast.AST) -> dict[str, str]:
    """Return what names stand for in `for p, q in zip(net.parameters(), target.parameters())`."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        match node:
            case ast.For(
                target=ast.Tuple(elts=names),
                iter=ast.Call(func=ast.Name(id="zip"), args=zipped),
            ):
                return _named(list(map(written, names)), zipped)
            case _:
                node = source.parents[node]
    return {}


def _named(names: list[str], given: list[ast.expr]) -> dict[str, str]:
    """Return what names stand for: themselves, if one of them says that it is of a target."""
    if any(has_word(name, *TARGETS) for name in names):
        return {name: name for name in names}
    return dict(zip(names, map(ast.unparse, given), strict=False))


def _is_target(node: ast.expr, stands_for: dict[str, str]) -> bool:
    """Return whether an expression is of a target network, by its name or what it stands for."""
    return any(
        has_word(stands_for.get(name.partition(".")[0], name), *TARGETS) for name in names_in(node)
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
        "L06",
        "(B, 1) against (B,) in a loss",
        "The shapes broadcast to (B, B): every prediction is compared with every target, and all "
        "predictions move to the mean of the targets. PyTorch only warns.",
        "Give both the same shape: `q.gather(1, action).squeeze(1)`, or `target.unsqueeze(1)`.",
        "PyTorch, warning of mse_loss; fault of DRLinter's samples",
        _column_against_row,
    ),
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
