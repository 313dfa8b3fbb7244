"""The fields of objects, and the options of calls: of dicts, data classes and namespaces.

Objects are followed through names, parameters, own functions, and containers of objects.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache

from backflip.doctor.lint.questions.makers import trace
from backflip.doctor.lint.questions.values import (
    given_for,
    known_numbers,
    parsed,
    settings,
    value_of,
)
from backflip.doctor.lint.source import (
    FUNCTIONS,
    KEPT,
    VERSIONS_KEPT,
    Source,
    argument,
    last_word,
    number,
    parameters,
    walk,
    written,
)

Record = dict[str, ast.expr]

UNKNOWN = ast.Constant(...)  # what a field has if its value is not seen
ANY = "*"  # of a field whose name is not seen
DEEPEST = 10  # objects that are followed
MOST = 32  # records that one object may have
MADE = ("dict", "simplenamespace", "namespace", "munch", "attrdict", "easydict", "configdict")
# What gives the fields of its first argument, or of the object whose method it is.
COPIED = ("asdict", "vars", "deepcopy", "copy", "_asdict", "model_dump", "to_dict")
REPLACED = ("replace", "_replace")  # copies with other values of some fields


def options(source: Source, call: ast.Call) -> Record | None:
    """Return the arguments of a call by name, also those of `**options`; UNKNOWN for some values.

    None if it has some whose names cannot be seen.
    """
    found = possible_options(source, call)
    return None if found is None else _common(found)


def possible_options(source: Source, call: ast.Call) -> list[Record] | None:
    """Return the arguments that a call may have: several, if `**options` is one of some presets."""
    parts = [(one.arg, one.value) for one in call.keywords]
    return _joined(source, parts, DEEPEST)


def visible_options(source: Source, call: ast.Call) -> Record:
    """Return the arguments of a call by name, and what can be seen of those in `**options`."""
    found: Record = {}
    for one in call.keywords:
        found |= {one.arg: one.value} if one.arg else visible_entries(source, one.value)
    return found


def visible_entries(source: Source, node: ast.expr, depth: int = 3) -> Record:
    """Return the entries of a dict that is merged from others: `{**defaults, "lr": 1}`."""
    if (whole := entries(source, node)) is not None:
        return whole
    match list(trace(source, node))[-1]:
        case ast.Dict(keys=keys, values=values):
            parts = list(zip(keys, values, strict=True))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            parts = [(None, left), (None, right)]
        case _:
            return {}
    found: Record = {}
    for key, value in parts:
        if key is None and depth:
            found |= visible_entries(source, value, depth - 1)
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = value
    return found


def entries(source: Source, node: ast.expr | None, depth: int = DEEPEST) -> Record | None:
    """Return the fields of an object; None if some are not seen."""
    found = None if node is None else records(source, node, depth)
    return None if found is None else _common(found)


def number_at(source: Source, node: ast.expr | None, depth: int = 4) -> float | None:
    """Return the number that an expression has at its place: a constant, a default, an option."""
    if node is None or node is UNKNOWN:
        return None
    field = field_at(source, node) if depth else None
    if field is not None:
        return number_at(source, field, depth - 1)
    if isinstance(node, ast.Attribute) and node.attr in (chosen := settings(source)):
        return number(chosen[node.attr])  # `args.total_timesteps`
    return value_of(node, known_numbers(source, source.function_of(node)))


def field_at(source: Source, node: ast.expr) -> ast.expr | None:
    """Return the value of `config.gamma` or `config["gamma"]`; None if the object is not seen."""
    match node:
        case ast.Attribute(value=owner, attr=name):
            pass
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))):
            pass
        case _:
            return None
    return (entries(source, owner) or {}).get(name)


# Both are kept, since they call each other on many ways to the same code.
@lru_cache(maxsize=KEPT)
def records(source: Source, node: ast.expr, depth: int = DEEPEST) -> list[Record] | None:
    """Return the fields that an object may have: several records, if it is one of some objects.

    None if some fields are not seen.
    """
    if not depth:
        return None
    steps = list(trace(source, node))
    found = _made(source, steps[-1], depth - 1)
    if not found or len(found) > MOST:
        return None
    for name in (written(one) for one in steps if not isinstance(one, ast.Subscript)):
        changed = _changes(source).get(name, set[str]()) if name else set[str]()
        if ANY in changed:
            return None
        found = [one | dict.fromkeys(changed, UNKNOWN) for one in found]
    return found


@lru_cache(maxsize=KEPT)
def objects(source: Source, node: ast.expr, depth: int = DEEPEST) -> list[ast.expr] | None:
    """Return the code of what a value may be, of elements of containers and loop variables too."""
    if not depth:
        return None
    last = list(trace(source, node))[-1]
    match last:
        case ast.Subscript(value=owner, slice=key):
            return _elements(source, owner, key, depth - 1)
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key, *_]):
            return _elements(source, owner, key, depth - 1)
        case ast.IfExp(body=body, orelse=orelse):
            return _all_objects(source, [body, orelse], depth - 1)
        case ast.Attribute():
            parts = records(source, last.value, depth - 1)
            found = [one.get(last.attr) for one in parts or ()]
            seen = [one for one in found if one is not None]
            whole = bool(seen) and len(seen) == len(found)
            return _all_objects(source, seen, depth - 1) if whole else [last]
        case ast.Name():
            found = _looped(source, last, depth - 1) or _given(source, last)
            return _all_objects(source, found, depth - 1) if found else [last]
        case _:
            return [last]


def _all_objects(source: Source, nodes: list[ast.expr], depth: int) -> list[ast.expr] | None:
    found: list[ast.expr] = []
    for one in nodes:
        inner = objects(source, one, depth)
        if inner is None:
            return None
        found += inner
    return found


def _elements(
    source: Source, owner: ast.expr, key: ast.expr | None, depth: int
) -> list[ast.expr] | None:
    """Return what an element of a dict or list may be; of a known key, the one that it has."""
    found: list[ast.expr] = []
    for one in objects(source, owner, depth) or ():
        match one:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                found += parts
            case _:
                fields = entries(source, one, depth)
                if fields is None:
                    return None
                name = key.value if isinstance(key, ast.Constant) else None
                found += [fields[name]] if name in fields else fields.values()
    return _all_objects(source, found, depth) if found else None


def _looped(source: Source, name: ast.Name, depth: int) -> list[ast.expr] | None:
    """Return what a loop variable may be: of a list, a dict's values, or its keys and values."""
    for node in (*walk(source.function_of(name)), *walk(source.tree)):
        if not isinstance(node, (ast.For, ast.comprehension)):
            continue
        match node.target, node.iter:
            case ast.Name(id=own), ast.Call(func=ast.Attribute(value=owner, attr="values")):
                pass
            case (
                ast.Tuple(elts=[_, ast.Name(id=own)]),
                ast.Call(func=ast.Attribute(value=owner, attr="items")),
            ):
                pass
            case ast.Name(id=own), ast.Name() | ast.Attribute() | ast.List() | ast.Tuple():
                owner = node.iter
            case _:
                continue
        if own == name.id:
            is_dict = isinstance(node.iter, ast.Call)
            kinds = {type(one) for one in objects(source, owner, depth) or ()}
            plain = kinds and kinds <= {ast.List, ast.Tuple}
            return _elements(source, owner, None, depth) if is_dict or plain else None
    return None


def _given(source: Source, name: ast.Name) -> list[ast.expr]:
    """Return what all calls of the program give for a parameter."""
    home = source.home(name, name.id)
    if isinstance(home, FUNCTIONS) and name.id in {one.arg for one in parameters(home)}:
        return list(given_for(source, home, name.id))
    return []


def _made(source: Source, node: ast.expr, depth: int) -> list[Record] | None:
    """Return the fields that the code of an object gives it."""
    match node:
        case ast.Dict(keys=keys, values=values):
            if not all(key is None or _is_text(key) for key in keys):
                return None
            pairs = [
                (str(key.value) if isinstance(key, ast.Constant) else None, value)
                for key, value in zip(keys, values, strict=True)
            ]
            return _joined(source, pairs, depth)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _joined(source, [(None, left), (None, right)], depth)
        case ast.Attribute(value=owner, attr="__dict__"):
            return records(source, owner, depth)
        case ast.Call():
            return _called(source, node, depth)
        case ast.Name() if (body := _class_named(source, node)) is not None:
            return [_fields(body)]
        case ast.Name() if (calls := _passed_on(source, node)) is not None:
            return _of_calls(source, calls, depth)
        case _:
            found = objects(source, node, depth) or [node]
            if any(one is node for one in found):
                return None
            inner = [records(source, one, depth) for one in found]
            return None if None in inner else [one for some in inner for one in some or ()]


def _passed_on(source: Source, name: ast.Name) -> list[list[ast.keyword]] | None:
    """Return what calls give for `**options` of a function; None if a name is something else."""
    home = source.home(name, name.id)
    if not isinstance(home, FUNCTIONS) or home.args.kwarg is None:
        return None
    if home.args.kwarg.arg != name.id:
        return None
    own = {one.arg for one in parameters(home)}
    calls = source.calls_of.get(home.name.lower(), ())
    return [[one for one in call.keywords if one.arg not in own] for call in calls]


def _of_calls(source: Source, calls: list[list[ast.keyword]], depth: int) -> list[Record] | None:
    """Return the fields that each call gives; None if some are not seen, or nothing calls."""
    found = [_joined(source, [(one.arg, one.value) for one in given], depth) for given in calls]
    return None if None in found or not found else [one for some in found for one in some or ()]


def _text(key: ast.expr) -> str:
    """Return the text of a key; ANY for one that is not known."""
    match key:
        case ast.Constant(value=str() as text):
            return text
        case _:
            return ANY


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _called(source: Source, call: ast.Call, depth: int) -> list[Record] | None:
    """Return the fields of what a call makes or copies."""
    last, given = last_word(call.func), [(one.arg, one.value) for one in call.keywords]
    whole = [(None, one) for one in call.args]
    body = _class_named(source, call.func)
    if last in MADE and body is None:
        return _joined(source, [*whole, *given], depth)
    if last == "parse_args":
        return [dict(parsed(source))]
    if last in (*COPIED, *REPLACED):
        copied = whole[:1]
        if not copied and isinstance(call.func, ast.Attribute):
            copied = [(None, call.func.value)]
        return _joined(source, [*copied, *(given if last in REPLACED else [])], depth)
    if body is None or any(
        isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in body.body
    ):
        inner = [one for one in objects(source, call, depth) or [call] if one is not call]
        return records(source, inner[0], depth) if len(inner) == 1 else None
    own = _fields(body)
    places = [(name, value) for name, value in zip(own, call.args, strict=False)]
    made = _joined(source, [*places, *given], depth)
    return None if made is None else [own | one for one in made]


def _class_named(source: Source, node: ast.expr) -> ast.ClassDef | None:
    found = [
        one for one in source.bodies if isinstance(one, ast.ClassDef) and one.name == written(node)
    ]
    return found[0] if len(found) == 1 else None


def _fields(body: ast.ClassDef) -> Record:
    """Return the fields of a class in their order, each with its default."""
    found: Record = {}
    for one in body.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                found[name] = UNKNOWN if value is None else _default(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case _:
                pass
    return found


def _default(value: ast.expr) -> ast.expr:
    """Return a default; of `field(default=1)` what is in it."""
    if isinstance(value, ast.Call) and last_word(value.func) == "field":
        return argument(value, "default", 0) or UNKNOWN
    return value


def _joined(
    source: Source, parts: list[tuple[str | None, ast.expr]], depth: int
) -> list[Record] | None:
    """Return the records of fields, and of whole objects without a name, one after the other."""
    found: list[Record] = [{}]
    for name, value in parts:
        new = [{name: value}] if name is not None else records(source, value, depth)
        if new is None or len(found) * len(new) > MOST:
            return None
        found = [old | one for old in found for one in new]
    return found


def _common(found: list[Record]) -> Record:
    """Return one record: what records do not agree on is UNKNOWN."""
    names = dict.fromkeys(name for one in found for name in one)
    return {
        name: found[0][name]
        if len({ast.dump(one.get(name, UNKNOWN)) for one in found}) == 1
        else UNKNOWN
        for name in names
    }


@lru_cache(maxsize=VERSIONS_KEPT)
def _changes(source: Source) -> dict[str, set[str]]:
    """Return the fields that a program sets after an object was made, by the object's name."""
    found: dict[str, set[str]] = {}
    for name, field in _changed(source):
        found.setdefault(name, set()).add(field)
    return found


def _changed(source: Source) -> Iterator[tuple[str, str]]:
    for node in source.nodes:
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=ast.Store() | ast.Del()):
                yield written(owner), name
            case ast.Subscript(value=owner, slice=key, ctx=ast.Store() | ast.Del()):
                yield written(owner), _text(key)
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
                yield written(owner), ANY
            case ast.Call(func=ast.Attribute(value=owner, attr="update"), args=args):
                names = [one.arg for one in node.keywords]
                yield from ((written(owner), name or ANY) for name in names)
                yield from ((written(owner), ANY) for _ in args)
            case ast.Call(func=ast.Attribute(value=owner, attr="pop" | "setdefault"), args=args):
                yield written(owner), _text(args[0]) if args else ANY
            case ast.Call(func=ast.Attribute(value=owner, attr="clear")):
                yield written(owner), ANY
            case _:
                pass
