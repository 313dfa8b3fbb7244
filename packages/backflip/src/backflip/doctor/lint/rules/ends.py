"""L01, L02, L04: ends of episodes."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    discounts,
    has_word,
    is_false,
    last_word,
    made_by,
    names_in,
    unconverted,
    walk,
    written,
)

FINAL = ("final_info", "final_observation")
KEEPS_LAST = ("final_obs", "terminal_observation", "AutoresetMode", "real_next_obs")
BUFFERS = ("buffer", "replay", "memory", "transitions")
STORES = ("add", "push", "append", "store", "add_batch", "insert")
EITHER = ("logical_or", "bitwise_or", "maximum")


def _truncation_masks(source: Source) -> Iterator[Hit]:
    """Follow `terminated or truncated` by name to `γ V (1 - done)`, in one function."""
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(scope):
            continue
        masks = _masks(scope, done)
        for statement in _statements(scope):
            names = names_in(statement)
            used = (masks & names) or _negates(statement, done)
            if used and discounts(statement) and any(map(_is_value, names)):
                seen = "the bootstrapped value is multiplied by 0 where an episode is truncated"
                yield Hit(statement, seen)
                break


def _is_value(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return last in ("v", "q", "vf", "qf") or has_word(
        last, "value", "critic", "boot", "q_", "_q", "qval", "target"
    )


def _stored_ends(source: Source) -> Iterator[Hit]:
    """Find ends that go into a replay, where what comes out of it masks values."""
    if not any(_masks_a_value(one) for scope in source.scopes for one in _statements(scope)):
        return
    for scope in source.scopes:
        done = _both_ends(source, scope)
        if not done or _bootstraps_truncated(scope):
            continue
        for call, _ in source.calls(scope):
            kept = done & {name for one in arguments(call) for name in names_in(one)}
            if kept and _stores(call):
                name = sorted(kept)[0]
                yield Hit(call, f"`{name}` is stored, and what is stored masks bootstrapped values")
                break


def _masks_a_value(statement: ast.stmt) -> bool:
    """Return whether a statement has γ, a value, and 1 - done."""
    names = names_in(statement)
    ends = {name for name in names if has_word(name.rpartition(".")[2], "done", "terminal")}
    if not discounts(statement) or not _negates(statement, ends):
        return False
    return any(map(_is_value, names))


def _ends(source: Source) -> Iterator[Hit]:
    yield from _truncation_masks(source)
    yield from _stored_ends(source)


def _statements(scope: Scope) -> Iterator[ast.stmt]:
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
    return (node for node in walk(scope) if isinstance(node, simple))


def _both_ends(source: Source, scope: Scope) -> set[str]:
    """Return the names whose value comes from `terminated or truncated`."""
    done: set[str] = set()
    pairs = list(assignments(scope))
    never = _never_true(source, scope)
    while True:
        found = {
            written(target)
            for target, value, _ in pairs
            if _is_either_end(value, never) or (done & names_in(value) and not _is_made_from(value))
        }
        found.discard("")
        if found <= done:
            return done
        done |= found


def _never_true(source: Source, scope: Scope) -> set[str]:
    """Return the names that are always False: by their value, or as an own environment says."""
    values: dict[str, list[bool]] = {}
    for target, value, _ in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[_, _, ended, cut, _]),
                ast.Call(func=ast.Attribute(value=env, attr="step")),
            ):
                values.setdefault(written(ended), []).append(False)
                values.setdefault(written(cut), []).append(_never_truncates(source, scope, env))
            case _:
                values.setdefault(written(target), []).append(is_false(value))
    return {name for name, found in values.items() if name and all(found)}


def _never_truncates(source: Source, scope: Scope, env: ast.expr) -> bool:
    """Return whether an environment is of a class of this file that never cuts an episode."""
    name = written(env)
    bodies = source.bodies if "." in name else [scope, source.tree]
    made = [v for body in bodies for target, v, _ in assignments(body) if written(target) == name]
    classes = [
        body
        for body in source.bodies
        if isinstance(body, ast.ClassDef) and body.name in {made_by(value) for value in made}
    ]
    return bool(made) and len(classes) == len(made) and all(map(_returns_no_truncation, classes))


def _returns_no_truncation(body: ast.ClassDef) -> bool:
    """Return whether every `return` of `step` has False in the place of the truncation."""
    returned = [
        node.value
        for step in body.body
        if isinstance(step, ast.FunctionDef) and step.name == "step"
        for node in walk(step)
        if isinstance(node, ast.Return)
    ]
    return bool(returned) and all(
        isinstance(value, ast.Tuple) and len(value.elts) == 5 and is_false(value.elts[3])
        for value in returned
    )


def _is_either_end(value: ast.expr, never: set[str]) -> bool:
    """Return whether a value is `terminated or truncated`, also by `|`, `+` or `logical_or`.

    Names that are never true count as no end.
    """
    for node in ast.walk(value):
        match node:
            case ast.BoolOp(op=ast.Or(), values=[one, other]):
                pass
            case ast.BinOp(left=one, op=ast.BitOr() | ast.Add(), right=other):
                pass
            case ast.Call(func=ast.Attribute(attr=attr), args=[one, other]) if attr in EITHER:
                pass
            case _:
                continue
        one, other = unconverted(one), unconverted(other)
        words = {last_word(one)[:4], last_word(other)[:4]}
        if words == {"term", "trun"} and not never & {written(one), written(other)}:
            return True
    return False


def _is_made_from(value: ast.expr) -> bool:
    """Return whether a value is computed from the ends, and not the ends in another type."""
    if isinstance(value, ast.Compare | ast.IfExp):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = last_word(value.func)
    return name not in {"tensor", "as_tensor", "asarray", "array", "float", "int", "to", "float32"}


def _masks(scope: Scope, done: set[str]) -> set[str]:
    """Return the names whose value is 1 - done."""
    return {written(target) for target, value, _ in assignments(scope) if _negates(value, done)} - {
        ""
    }


def _negates(node: ast.AST, done: set[str]) -> bool:
    """Return whether `1 - done`, `not done` or `~done` is in the code."""
    for one in ast.walk(node):
        match one:
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right):
                inner = right
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                inner = operand
            case _:
                continue
        if done & names_in(inner):
            return True
    return False


def _bootstraps_truncated(scope: Scope) -> bool:
    """Return whether the value of the last state is added where an episode is truncated."""
    for statement in _statements(scope):
        names = names_in(statement)
        if discounts(statement) and any(has_word(name, "trunc", "timeout") for name in names):
            return True
    return False


def _final_keys(source: Source) -> Iterator[Hit]:
    """Find the keys of vector environments before Gymnasium 1.0."""
    if not source.imports_any("gymnasium") or "AutoresetMode" in source.text:
        return
    if any(source.dotted(node) == "gymnasium.__version__" for node in source.nodes):
        return
    for node in source.nodes:
        if isinstance(node, ast.Constant) and node.value in FINAL:
            parent = source.parents[node]
            if _has_newer_key(source, node, parent):
                continue
            by_name = isinstance(parent, ast.Assign) and _is_index(source, parent.targets[0])
            if by_name or isinstance(parent, ast.Subscript | ast.Compare | ast.Call):
                yield Hit(node, f'"{node.value}" is read from the infos of environments')
                return


def _is_index(source: Source, name: ast.expr) -> bool:
    """Return whether something is read by a name: `infos[key]`."""
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == written(name)
        for node in source.nodes
    )


def _has_newer_key(source: Source, key: ast.Constant, parent: ast.AST) -> bool:
    """Return whether a program also reads what Gymnasium 1.0 has in place of a key."""
    texts = {node.value for node in source.nodes if isinstance(node, ast.Constant)}
    if key.value == "final_observation":
        return "final_obs" in texts
    infos = _container(parent)
    return "_episode" in texts or any(
        isinstance(node, ast.Constant)
        and node.value == "episode"
        and infos != ""
        and _container(source.parents[node]) == infos
        for node in source.nodes
    )


def _container(node: ast.AST) -> str:
    """Return the name of what a key is read from, or looked for in."""
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as of):
            return written(of)
        case ast.Compare(comparators=[ast.Name() | ast.Attribute() as of]):
            return written(of)
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as of, attr="get")):
            return written(of)
        case _:
            return ""


def _autoreset_rows(source: Source) -> Iterator[Hit]:
    """Find replays that are given what vector environments return after a reset."""
    if any(word in source.text for word in (*KEEPS_LAST, *FINAL)):
        return
    vectors = {
        written(target)
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if isinstance(value, ast.Call) and _makes_vectors(source.dotted(value.func))
    }
    for scope in source.scopes:
        after = _next_observations(scope, vectors)
        for call, _ in source.calls(scope):
            if _stores(call) and any(written(one) in after for one in arguments(call)):
                seen = (
                    "the replay gets the observation after the reset as the successor of the last"
                )
                yield Hit(call, seen)


def _makes_vectors(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name.startswith("gymnasium.") and last in ("SyncVectorEnv", "AsyncVectorEnv", "make_vec")


def _next_observations(scope: Scope, vectors: set[str]) -> set[str]:
    """Return the names of the observations that `step` of a vector environment returns."""
    found: set[str] = set()
    for target, value, _ in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[first, _, _, _, _]),
                ast.Call(func=ast.Attribute(value=env, attr="step")),
            ) if written(env) in vectors:
                found.add(written(first))
            case _:
                pass
    return found


def _stores(call: ast.Call) -> bool:
    """Return whether a call puts something into a replay."""
    match call.func:
        case ast.Attribute(value=owner, attr=attr) if attr in STORES:
            word = last_word(owner)
            return word == "rb" or has_word(word, *BUFFERS)
        case _:
            return False


RULES = (
    Rule(
        "L01",
        "truncation counted as termination",
        "A time limit ends the episode for the program, not for the task. Values of states near it "
        "are too small, most of all where every step is rewarded.",
        "Mask with `terminated` alone: `r + gamma * v(next_obs) * (1 - terminated)`, where "
        "`next_obs` is the last observation, not the one after the reset.",
        "Pardo et al. 2018, arXiv:1712.00378; cleanrl#198, rsl_rl#151, skrl#449",
        _ends,
    ),
    Rule(
        "L02",
        "keys of vector environments before Gymnasium 1.0",
        "From Gymnasium 1.0 on, vector environments reset in the next step by default, and the "
        "keys are missing: returns are not logged, and last observations are not found, without "
        "an error.",
        "Pass `autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP`, and read `final_obs`; or "
        "skip the rows after an end, in which the action is ignored.",
        "cleanrl#499; Gymnasium 1.0, release notes",
        _final_keys,
    ),
    Rule(
        "L04",
        "the observation after a reset is stored as a successor",
        "A vector environment returns the first observation of the next episode, or a row in which "
        "the action is ignored. Bootstrapped values then come from another episode.",
        "Store `infos['final_obs']` where an episode ended (`AutoresetMode.SAME_STEP`), or leave "
        "the rows after ends out.",
        "ml-agents#574; Gymnasium#1227",
        _autoreset_rows,
    ),
)
