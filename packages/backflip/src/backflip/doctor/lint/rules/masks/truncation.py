"""L01: a time limit that counts as an end of the task."""

import ast
from collections.abc import Callable, Iterator

from backflip.doctor.lint.inlining import inlined
from backflip.doctor.lint.questions.bootstraps import (
    has_value,
    is_value,
    leaves_a_value_out,
    statements,
    term_of,
    values_in,
)
from backflip.doctor.lint.questions.episode_ends import Ends, Flags, find_ends, find_flags
from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.rules.environments.ends import stored_by, stores
from backflip.doctor.lint.rules.masks.joined_ends import joined_ends
from backflip.doctor.lint.source import (
    FUNCTIONS,
    Scope,
    Source,
    arguments,
    assignments,
    discounts,
    has_word,
    last_word,
    names_in,
    unconverted,
    walk,
    written,
)

SEEN = "the bootstrapped value is"
CUT = ("trunc", "timeout", "time_limit", "timelimit")  # in names of truncations
PLACES = ("flatnonzero", "nonzero", "where", "argwhere")  # functions that say where something is


def _truncation_masks(source: Source) -> Iterator[Hit]:
    """Follow `terminated or truncated` by name to `γ V (1 - done)`, in one function."""
    for scope in source.scopes:
        ends = find_ends(source, scope)
        if ends is None or _handles_cuts(source, ends):
            continue
        values = values_in(scope)
        for statement in statements(scope):
            if not discounts(statement):
                continue
            if _masks_a_value(source, statement, ends.at(statement), values):
                yield Hit(statement, f"{SEEN} multiplied by 0 where an episode is truncated")
                break
            if leaves_a_value_out(source, scope, statement, ends.at(statement)):
                yield Hit(statement, f"{SEEN} left out where an episode is truncated")
                break


def _masks_a_value(source: Source, node: ast.AST, ends: Ends, values: set[str]) -> bool:
    """Return whether 1 - done is in a term of a sum that has a value, of any name.

    `γ v (1 - terminated) + γ λ (1 - done) sum` masks the sum alone by done, and that is right.
    """
    return any(
        has_value(term_of(source, one), values)
        for one in ast.walk(node)
        if (isinstance(one, ast.Name | ast.Attribute) and written(one) in ends.masks)
        or ends.negates(one)
    )


def _stored_ends(source: Source) -> Iterator[Hit]:
    """Find ends or masks that go into a replay, where what comes out of it masks values."""
    ends, masks = (set(_places_of(source, one)) for one in (Ends.is_end, Ends.is_mask))
    named = ((one, _taken_out(one, ends) | _named_done(one)) for one in source.scopes)
    if any(_masks_by(source, scope, Ends(done, set())) for scope, done in named):
        yield from _stores_of(source, _stored_end)
    elif any(_masks_by(source, one, Ends(set(), _taken_out(one, masks))) for one in source.scopes):
        yield from _stores_of(source, _stored_mask)


def _stores_of(source: Source, stored: Callable[[ast.Call, Ends], str]) -> Iterator[Hit]:
    """Yield the first call of each scope that stores what `stored` returns."""
    for scope in source.scopes:
        ends = find_ends(source, scope)
        if ends is None or _handles_cuts(source, ends):
            continue
        for call in (call for call, _ in source.calls(scope) if stores(call)):
            name = stored(call, ends.at(call))
            if name:
                yield Hit(call, f"`{name}` is stored, and what is stored masks bootstrapped values")
                break


def _stored_end(call: ast.Call, ends: Ends) -> str:
    """Return the ends that a call stores, as they are written; empty if there are none."""
    kept = ends.done & {name for one in arguments(call) for name in names_in(one)}
    joined = [ast.unparse(one) for one in stored_by(call) if ends.is_end(one)]
    return [*sorted(kept), *joined, ""][0]


def _stored_mask(call: ast.Call, ends: Ends) -> str:
    """Return the mask that a call stores, as it is written; empty if there is none."""
    return next((ast.unparse(one) for one in stored_by(call) if ends.is_mask(one)), "")


def _places_of(
    source: Source, is_stored: Callable[[Ends, ast.expr], bool]
) -> Iterator[tuple[int, int]]:
    """Yield (size, place) of `replay.push(obs, action, reward, next_obs, done)`: (5, 4)."""
    for scope in source.scopes:
        ends = find_ends(source, scope)
        if ends is None:
            continue
        for call in (call for call, _ in source.calls(scope) if stores(call)):
            parts, here = stored_by(call), ends.at(call)
            yield from ((len(parts), i) for i, one in enumerate(parts) if is_stored(here, one))


def _masks_by(source: Source, scope: Scope, ends: Ends) -> bool:
    """Return whether a scope has γ, and a value only where no end is."""
    return any(
        _masks_a_value(source, one, ends, set()) or leaves_a_value_out(source, scope, one, ends)
        for one in statements(scope)
        if discounts(one)
    )


def _named_done(scope: Scope) -> set[str]:
    """Return the names of ends, and those that get `data["done"]` or `batch.done`."""
    names = {written(one) for one in walk(scope) if isinstance(one, ast.Name | ast.Attribute)}
    keyed = {
        written(target)
        for target, value, _ in assignments(scope)
        if isinstance(target, ast.Name) and _is_done(_key(unconverted(value)))
    }
    return {name for name in names if _is_done(name)} | keyed


def _key(node: ast.expr) -> str:
    """Return by which name something is read: `done` of `data["done"]` and `batch.done`."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as key)) | ast.Attribute(attr=key):
            return key
        case _:
            return ""


def _is_done(name: str) -> bool:
    return has_word(name.rpartition(".")[2], "done", "terminal")


def _taken_out(scope: Scope, places: set[tuple[int, int]]) -> set[str]:
    """Return the names that get the ends of `o, a, r, o2, d = zip(*replay.sample(32))`.

    Also those of a loop: `for o, a, r, o2, d in batch`.
    """
    taken = [target for target, value, _ in assignments(scope) if not _is_step(value)]
    looped = [node.target for node in walk(scope) if isinstance(node, ast.For)]
    return {
        written(one)
        for target in [*taken, *looped]
        if isinstance(target, ast.Tuple)
        for place, one in enumerate(target.elts)
        if (len(target.elts), place) in places
    } - {""}


def _is_step(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_word(value.func) == "step"


def _ends(source: Source) -> Iterator[Hit]:
    """Find masks by names, and else by what a whole program never does."""
    known = list(_followed(source))
    yield from known
    for hit in () if known else joined_ends(source):
        whole = inlined(source)
        if whole is None or not any(True for _ in _followed(whole)):
            yield hit


def _followed(source: Source) -> Iterator[Hit]:
    yield from _truncation_masks(source)
    yield from _stored_ends(source)


def _handles_cuts(source: Source, ends: Ends) -> bool:
    """Return whether the value of the last state is added where ends are joined."""
    return any(_bootstraps_truncated(source, scope) for scope in ends.scopes)


def _bootstraps_truncated(source: Source, scope: Scope) -> bool:
    """Return whether the value of the last state is added where an episode is truncated.

    The statement names the truncation, or is under a test of it:
    `if truncated and not terminated: reward += gamma * critic(obs)`.
    """
    flags = _truncations(source, scope)
    return any(
        discounts(one) and (_says_cut(one, flags) or _is_where_cut(source, one, flags))
        for one in statements(scope)
    )


def _truncations(source: Source, scope: Scope) -> Flags:
    """Return the names of truncations, and made from them: `only_cut = truncated & ~terminated`.

    So is a value that is set where an episode is truncated.
    """
    pairs = [(t.id, v, where) for t, v, where in assignments(scope) if isinstance(t, ast.Name)]
    flags = find_flags(source, scope)._replace(never=set())
    while True:
        found = {name for name, value, where in pairs if _is_of_cut(source, value, where, flags)}
        if found <= flags.cut:
            return flags
        flags = flags._replace(cut=flags.cut | found)


def _is_of_cut(source: Source, value: ast.expr, where: ast.AST, flags: Flags) -> bool:
    """Return whether a value is made from truncations, or is one of a truncated state."""
    if _is_logic(value) and _says_cut(value, flags):
        return True
    return any(map(is_value, names_in(value))) and _is_where_cut(source, where, flags)


def _is_logic(value: ast.expr) -> bool:
    """Return whether a value chooses or combines, and is no object that holds many things."""
    plain = unconverted(value)
    if isinstance(plain, ast.Call):
        return last_word(plain.func) in ("logical_and", "bitwise_and", "minimum", "where")
    return isinstance(plain, ast.BoolOp | ast.BinOp | ast.IfExp | ast.Subscript)


def _says_cut(node: ast.AST, flags: Flags) -> bool:
    """Return whether code names a truncation, and not only `terminated or truncated`."""
    if isinstance(node, ast.expr) and flags.joins(node):
        return False
    match node:
        case ast.Constant(value=str() as text):
            word = text
        case ast.Name() | ast.Attribute():
            word = written(node)
        case _:
            word = ""
    said = word in flags.cut or has_word(word, *CUT)
    return said or any(_says_cut(one, flags) for one in ast.iter_child_nodes(node))


def _is_where_cut(source: Source, statement: ast.AST, flags: Flags) -> bool:
    """Return whether code runs only where an episode is truncated."""
    node = statement
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        parent = source.parents[node]
        match parent:
            case ast.If(test=test, body=body) if _tests_cut(test, flags, node in body):
                return True
            case ast.For(iter=over) if _picks_cut(over, flags):
                return True
            case _:
                node = parent
    return False


def _picks_cut(over: ast.expr, flags: Flags) -> bool:
    """Return whether a loop goes over the places of truncated episodes: `np.flatnonzero(cut)`."""
    calls = (one for one in ast.walk(over) if isinstance(one, ast.Call))
    return any(last_word(one.func) in PLACES and _says_cut(one, flags) for one in calls)


def _tests_cut(test: ast.expr, flags: Flags, holds: bool) -> bool:
    """Return whether a test that holds, or fails, says that an episode is truncated."""
    match test:
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
            return not holds and _says_cut(inner, flags)
        case ast.BoolOp(op=ast.And(), values=parts) if holds:
            return any(_tests_cut(one, flags, True) for one in parts)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right) if holds:
            return any(_tests_cut(one, flags, True) for one in (left, right))
        case _:
            return holds and _says_cut(test, flags)


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
)
