"""L02, L04: what environments return at the end of an episode."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.layers import resolved, returned_by
from backflip.doctor.lint.questions.own_stores import calls_a_store, rows_written
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.reset_successors import reset_successors
from backflip.doctor.lint.rules.environments.vector_successors import conditions, successors_of_sb3
from backflip.doctor.lint.source import (
    Scope,
    Source,
    arguments,
    assignments,
    has_word,
    last_word,
    names_in,
    unconverted,
    written,
)

FINAL = ("final_info", "final_observation")
KEEPS_LAST = (
    "final_obs",
    "final_observation",
    "terminal_observation",
    "real_next_obs",
)
BUFFERS = ("buf", "replay", "memory", "transitions", "ring")
ROWS = ("dict", "zip")
VECTORS = ("SyncVectorEnv", "AsyncVectorEnv", "make_vec")
SEEN = "the replay gets the observation after the reset as the successor of the last"
STORES = ("add", "push", "append", "store", "add_batch", "insert", "extend")


def _final_keys(source: Source) -> Iterator[Hit]:
    """Find the keys of vector environments before Gymnasium 1.0.

    With `AutoresetMode.SAME_STEP`, 1.0 has `final_info` again, but `final_obs`.
    """
    if not source.imports_any("gymnasium"):
        return
    older = FINAL[1:] if "AutoresetMode" in source.text else FINAL
    if any(_chooses_by_version(source, node) for node in source.nodes):
        return
    for node in source.nodes:
        if isinstance(node, ast.Constant) and node.value in older:
            parent = source.parents[node]
            if _has_newer_key(source, node, parent):
                continue
            by_name = isinstance(parent, ast.Assign) and _is_index(source, parent.targets[0])
            if by_name or isinstance(parent, ast.Subscript | ast.Compare | ast.Call):
                yield Hit(node, f'"{node.value}" is read from the infos of environments')
                return


def _chooses_by_version(source: Source, node: ast.AST) -> bool:
    """Return whether code asks for the version of Gymnasium, and may be right for older ones.

    To print it, or to demand a new one, is no choice: `assert gym.__version__ >= "1"`.
    """
    if source.dotted(node) != "gymnasium.__version__":
        return False
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
    match node:
        case ast.Expr():
            return False
        case ast.Assert(test=test):
            return not _compares(test, (ast.Gt, ast.GtE))
        case ast.If(test=test, body=[ast.Raise()], orelse=[]):
            return not _compares(test, (ast.Lt, ast.LtE))
        case _:
            return True


def _compares(test: ast.expr, kinds: tuple[type[ast.cmpop], ...]) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], kinds)


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


def _foreign_successors(source: Source) -> Iterator[Hit]:
    yield from reset_successors(source)
    yield from _autoreset_rows(source)


def _autoreset_rows(source: Source) -> Iterator[Hit]:
    """Find replays that are given what vector environments return after a reset."""
    if any(word in source.text for word in KEEPS_LAST):
        return
    if "AutoresetMode" in source.text and "SAME_STEP" not in source.text:
        return
    vectors = {
        written(target)
        for scope in source.scopes
        for target, value, _ in assignments(scope)
        if _makes_vectors(source, value)
    }
    yield from _rows_of_sb3(source)
    yield from successors_of_sb3(source)
    for scope in source.scopes:
        after = _next_observations(scope, vectors)
        if not after:
            continue
        for node, parts in _stored_rows(source, scope, after):
            given = any(written(unconverted(one)) in after for one in parts)
            if given and not _leaves_rows_out(source, scope, node, parts, vectors):
                yield Hit(node, SEEN)


def _stored_rows(
    source: Source, scope: Scope, after: set[str]
) -> Iterator[tuple[ast.Call | ast.stmt, list[ast.expr]]]:
    """Yield where a scope stores a transition, and its parts.

    Arrays may be written line by line: what `obs = next_obs` becomes is then a part, too.
    """
    for call, _ in source.calls(scope):
        if stores(call) or calls_a_store(source, call):
            yield call, _parts_of_row(call)
    before = {written(t) for t, value, _ in assignments(scope) if written(value) in after}
    for last, parts in rows_written(scope):
        if before & {written(unconverted(one)) for one in parts}:
            yield last, parts


def _parts_of_row(call: ast.Call) -> list[ast.expr]:
    """Return what a call stores, also in a dict, an own row, or as `zip(obs, actions)`."""
    match arguments(call):
        case [ast.Dict(values=parts)]:
            return parts
        case [ast.Call(func=ast.Name(id=name)) as row] if name[0].isupper() or name in ROWS:
            return arguments(row)
        case _:
            return stored_by(call)


def _rows_of_sb3(source: Source) -> Iterator[Hit]:
    """Find rows `(obs[i], ..., new_obs[i])` of a VecEnv of Stable-Baselines3: it resets itself."""
    if not source.imports_any("stable_baselines3"):
        return
    for scope in source.scopes:
        after = {
            written(target.elts[0]): written(value.func.value)
            for target, value, _ in assignments(scope)
            if isinstance(target, ast.Tuple) and len(target.elts) == 4
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
            if value.func.attr == "step"
        }
        for call, _ in source.calls(scope):
            is_kept = isinstance(call.func, ast.Attribute) and call.func.attr in STORES
            rows = [one for one in stored_by(call) if isinstance(one, ast.Subscript)]
            given = {written(one) for one in rows} & set(after) if is_kept else set[str]()
            if any(f"{after[name]}.num_envs" in source.text for name in given) and len(rows) > 1:
                yield Hit(call, "the successor of the last observation is that after the reset")


def _makes_vectors(source: Source, value: ast.expr, depth: int = 3) -> bool:
    """Return whether a value is a vector environment, wrapped or from an own function or not."""
    made = returned_by(source, value)
    if not isinstance(made, ast.Call) or not depth:
        return False
    name = source.dotted(made.func)
    if name.startswith("gymnasium.wrappers.") and made.args:
        return _makes_vectors(source, resolved(source, made, made.args[0]), depth - 1)
    return name.startswith("gymnasium.") and name.rpartition(".")[2] in VECTORS


def _next_observations(scope: Scope, vectors: set[str]) -> set[str]:
    """Return the names of the observations that `step` of a vector environment returns."""
    return {written(names[0]) for names, _ in _steps(scope, vectors)}


def _steps(scope: Scope, vectors: set[str]) -> Iterator[tuple[list[ast.expr], ast.stmt]]:
    """Yield the five names of `obs, reward, ended, cut, info = envs.step(action)`, and where."""
    for target, value, statement in assignments(scope):
        match target, value:
            case (
                ast.Tuple(elts=[_, _, _, _, _] as names),
                ast.Call(func=ast.Attribute(value=env, attr="step")),
            ) if written(env) in vectors and isinstance(statement, ast.stmt):
                yield names, statement
            case _:
                pass


def _leaves_rows_out(
    source: Source,
    scope: Scope,
    node: ast.Call | ast.stmt,
    parts: list[ast.expr],
    vectors: set[str],
) -> bool:
    """Return whether rows are stored that are chosen by the ends of the step before."""
    before = _ends_before(scope, node, vectors)
    stored = {written(one) for one in parts}
    given = [value for target, value, _ in assignments(scope) if written(target) in stored]
    if any(_is_chosen_by(one, before) for one in (*parts, *given)):
        return True
    return any(before & names_in(one) for one in conditions(source, node))


def _ends_before(scope: Scope, call: ast.Call | ast.stmt, vectors: set[str]) -> set[str]:
    """Return the names that still have the ends of the step before where a call is.

    They are made from the ends after the call, or before `step` is called again.
    """
    steps = list(_steps(scope, vectors))
    ends = _made_from(scope, {written(one) for names, _ in steps for one in names[2:4]})
    again = [one.lineno for _, one in steps]
    kept = {
        (written(target), call.lineno < statement.lineno or statement.lineno < min(again))
        for target, value, statement in assignments(scope)
        if ends & names_in(value)
    }
    now = {name for name, is_old in kept if not is_old}
    return _made_from(scope, {name for name, is_old in kept if is_old and name} - now)


def _made_from(scope: Scope, names: set[str]) -> set[str]:
    """Return some names, and those whose value is made from them, in any number of steps."""
    while True:
        more = {
            written(target)
            for target, value, _ in assignments(scope)
            if names & names_in(value) and not isinstance(target, ast.Tuple)
        } - {""}
        if more <= names:
            return names
        names = names | more


def _is_chosen_by(node: ast.expr, names: set[str]) -> bool:
    """Return whether an expression is indexed by one of the names."""
    return any(
        isinstance(one, ast.Subscript) and names & names_in(one.slice) for one in ast.walk(node)
    )


def stored_by(call: ast.Call) -> list[ast.expr]:
    """Return what a call stores: its arguments, or the parts of its only one, a tuple."""
    match arguments(call):
        case [ast.Tuple(elts=parts)]:
            return parts
        case given:
            return given


def stores(call: ast.Call) -> bool:
    """Return whether a call puts something into a replay."""
    match call.func:
        case ast.Attribute(value=owner, attr=attr) if attr in STORES:
            word = last_word(owner)
            return word in ("rb", "mem") or has_word(word, *BUFFERS)
        case _:
            return False


RULES = (
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
        "the action is ignored, and a program that resets before it stores has no other either. "
        "Bootstrapped values then come from another episode.",
        "Store `infos['final_obs']` where an episode ended (`AutoresetMode.SAME_STEP`), or leave "
        "the rows after ends out; of a VecEnv, store `infos[i]['terminal_observation']`. Of a "
        "single environment, store first, and then reset.",
        "ml-agents#574; Gymnasium#1227",
        _foreign_successors,
    ),
)
