"""Programs with their own short functions inlined: put where they are called.

Rules look at one function. A mistake is often in two: `over = ended(result)` in one, and
`return result[2] or result[3]` in the other. Here a call of a function of the same file, or of a
method of `self`, becomes the body of that function, if the body is straight and short. Every node
keeps the place in the text that it came from.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, final

from backflip.doctor.lint.source import (
    FUNCTIONS,
    Function,
    Scope,
    Source,
    assignments,
    parameters,
    walk,
    written,
)

_Node = TypeVar("_Node", bound=ast.AST)
LONGEST = 20  # statements of a function that is put in the place of a call
MOST_NODES = 60_000  # a larger program is left as it is
PASSES = 2  # a function may call another one
PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript)
OF_ENVIRONMENTS = ("step", "reset")  # rules look for these calls
OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOT_STRAIGHT = (
    *(ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal),
    *(*FUNCTIONS, ast.ClassDef),
)
SHARED = (ast.expr_context, ast.operator, ast.boolop, ast.cmpop, ast.unaryop)
STRAIGHT = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


class Body(NamedTuple):
    """A function that can be inlined.

    Attributes:
        name: of the function.
        arguments: its parameters.
        statements: its body, without documentation and `return`.
        value: what it returns; None if it returns nothing.
        context: the `with` statement around all of it; None without one.
    """

    name: str
    arguments: ast.arguments
    statements: list[ast.stmt]
    value: ast.expr | None
    context: list[ast.withitem] | None


def inlined(source: Source) -> Source | None:
    """Return a program without the calls of its own small functions; None if nothing changes."""
    if len(source.nodes) > MOST_NODES:
        return None
    found, changed = Source(source.path, source.text), False
    for _ in range(PASSES):
        if not _Inliner(found).changes():
            break
        found, changed = _renewed(found), True
        if len(found.nodes) > MOST_NODES:
            return None
    if _unpack_steps(found):
        found, changed = _renewed(found), True
    return found if changed else None


def _renewed(source: Source) -> Source:
    """Return a program with new nodes: what is known of a node is kept, and it has changed."""
    found = Source(source.path, source.text)
    found.tree = _copy(source.tree)
    return found


def place_of(node: ast.AST) -> tuple[int, int]:
    """Return line and column, from 1, of the code that a node came from."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
    return getattr(node, "came_from", (line, column))


def _body_of(function: Function) -> Body | None:
    """Return a function that has no `return` but one at its end; None for any other."""
    given = function.args
    if (
        given.vararg
        or given.kwarg
        or given.posonlyargs
        or isinstance(function, ast.AsyncFunctionDef)
    ):
        return None
    statements = _without_documentation(function.body)
    context: list[ast.withitem] | None = None
    match statements:
        case [ast.With(items=items, body=inside)] if "no_grad" in ast.unparse(items[0]):
            statements, context = inside, items
        case _:
            pass
    for decorator in function.decorator_list:
        if "no_grad" not in ast.unparse(decorator):
            return None
        call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
        context = [ast.withitem(ast.copy_location(call, decorator))]
    if not statements or len(statements) > LONGEST:
        return None
    *before, last = statements
    value = last.value if isinstance(last, ast.Return) else None
    before += [] if isinstance(last, ast.Return) else [last]
    parts = [*before, *([value] if value is not None else [])]
    if any(isinstance(node, NOT_STRAIGHT) for one in parts for node in ast.walk(one)):
        return None
    # A copy: calls in this function are replaced, too.
    return _copied(Body(function.name, given, before, value, context))


def _copied(body: Body) -> Body:
    """Return a function with nodes of its own."""
    return body._replace(
        arguments=_copy(body.arguments),
        statements=_copy(body.statements),
        value=_copy(body.value),
        context=_copy(body.context),
    )


def _copy(node: Any) -> Any:
    """Return a copy of code: `copy.deepcopy` takes several times as long.

    `ast.Load()` and the like are shared, as `ast.parse` shares them.
    """
    if isinstance(node, list):
        return [_copy(one) for one in node]
    if not isinstance(node, ast.AST) or isinstance(node, SHARED):
        return node
    new = node.__class__.__new__(node.__class__)
    new.__dict__.update({name: _copy(value) for name, value in node.__dict__.items()})
    return new


def _without_documentation(statements: list[ast.stmt]) -> list[ast.stmt]:
    match statements:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return statements


@final
@dataclass
class _Inliner:
    """Inlines the functions of a program: puts them where they are called.

    Attributes:
        source: the program; its tree is changed.
        bodies: the functions that can be put elsewhere, by class and name.
        methods: those of classes whose name only one class has.
        replaced: the number of calls that were replaced.
    """

    source: Source
    bodies: dict[tuple[ast.ClassDef | None, str], Body | None] = field(init=False)
    methods: dict[str, Body | None] = field(init=False)
    replaced: int = 0

    def __post_init__(self) -> None:
        self.bodies = {}
        formulas = dict[str, set[str]]()  # a copy of a function has its own one of each
        for scope in self.source.scopes:
            if isinstance(scope, FUNCTIONS):
                key = (self.source.class_of(scope), scope.name)
                body = None if key in self.bodies else _body_of(scope)
                self.bodies[key] = body if body and not _calls_itself(scope) else None
            for target, value, _ in assignments(scope):
                if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
                    key = (None, target.id)
                    body = _copied(Body(target.id, value.args, [], value.body, None))
                    known = formulas.setdefault(target.id, set())
                    is_other = key in self.bodies and ast.unparse(value) not in known
                    known.add(ast.unparse(value))
                    self.bodies[key] = None if is_other or _is_open(value) else body
        methods = [(name, body) for (inside, name), body in self.bodies.items() if inside]
        names = Counter(name for name, _ in methods)
        self.methods = {name: body for name, body in methods if names[name] == 1}

    def changes(self) -> bool:
        """Change the program, and return whether there was something to change."""
        for scope in self.source.scopes:
            names = {node.id for node in walk(scope) if isinstance(node, ast.Name)}
            if not isinstance(scope, ast.Module):
                names |= {one.arg for one in parameters(scope)}
            for block in _blocks(scope):
                block[:] = [one for stmt in block for one in self._replaced(stmt, scope, names)]
        return self.replaced > 0

    def _replaced(self, statement: ast.stmt, scope: Scope, names: set[str]) -> list[ast.stmt]:
        """Return a statement, after those of the functions that it calls."""
        if not isinstance(statement, STRAIGHT):
            return [statement]
        before: list[ast.stmt] = []
        for call in _own_calls(statement):
            body = self._called(call, scope)
            given = None if body is None else _given(body, call)
            if body is None or given is None:
                continue
            is_whole = isinstance(statement, ast.Expr) and statement.value is call
            if (body.value is None and not is_whole) or (is_whole and scope is self.source.tree):
                continue  # `main()` at the end of a file is no part of a function
            put = _put(body, given, names, call)
            before += put.before
            self.replaced += 1
            if put.value is None:
                return before
            _replace(statement, call, put.value)
        return [*before, statement]

    def _called(self, call: ast.Call, scope: Scope) -> Body | None:
        inside = self.source.class_of(scope)
        match call.func:
            case ast.Name(id=name):
                body = self.bodies.get((None, name))
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if inside is not None:
                body = self.bodies.get((inside, name))
            case ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=name):
                is_module = written(owner).partition(".")[0] in self.source.imports
                body = None if is_module else self.methods.get(name)
            case _:
                return None
        if body is None or body.name in (*OF_ENVIRONMENTS, getattr(scope, "name", "")):
            return None
        return body


def _calls_itself(function: Function) -> bool:
    return any(
        written(node.func).rpartition(".")[2] == function.name
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    )


def _is_open(function: ast.Lambda) -> bool:
    """Return whether a function takes any number of arguments."""
    return bool(function.args.vararg or function.args.kwarg or function.args.posonlyargs)


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements of a function, without those of inner functions."""
    yield scope.body
    for node in walk(scope):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                yield block


def _own_calls(statement: ast.stmt) -> list[ast.Call]:
    """Return the calls of a statement, the inner ones first, without those in inner scopes."""
    found: list[ast.Call] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, OWN_SCOPE):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)
        if isinstance(node, ast.Call):
            found.append(node)

    visit(statement)
    return found


def _given(body: Body, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the arguments of a call by parameter; None if that cannot be seen."""
    arguments = body.arguments
    names = [one.arg for one in arguments.args]
    owner: dict[str, ast.expr] = {}
    if names[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        owner, names = {"self": call.func.value}, names[1:]
    if any(isinstance(one, ast.Starred) for one in call.args) or len(call.args) > len(names):
        return None
    given = dict(zip(names, call.args, strict=False))
    for one in call.keywords:
        if one.arg is None or one.arg in given:
            return None
        given[one.arg] = one.value
    names += [one.arg for one in arguments.kwonlyargs]
    defaults = dict(
        zip(
            (one.arg for one in reversed(arguments.args)),
            reversed(arguments.defaults),
            strict=False,
        )
    )
    defaults |= {
        one.arg: value
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    found = {name: given.get(name, defaults.get(name)) for name in names}
    if set(given) - set(names) or any(value is None for value in found.values()):
        return None
    return owner | {name: value for name, value in found.items() if value is not None}


class _Put(NamedTuple):
    before: list[ast.stmt]
    value: ast.expr | None


def _put(body: Body, given: dict[str, ast.expr], names: set[str], call: ast.Call) -> _Put:
    """Return what a call does, as statements, and its value."""
    owner = given.pop("self", None)
    parts = [*body.statements, *([body.value] if body.value is not None else [])]
    own = {
        node.id
        for one in parts
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if not body.statements and body.context is None:  # a formula: its arguments are put into it
        known = {name for name, value in given.items() if isinstance(value, PLAIN)}
        values = {name: given[name] for name in known}
    else:
        known, values = {name for name, value in given.items() if written(value) == name}, {}
    renamed = {name: _free(name, names) for name in (own | set(given)) - known if name in names}
    names |= {renamed.get(name, name) for name in (own | set(given)) - known}
    values |= {} if owner is None else {"self": owner}
    change = _Change(renamed, values, call)
    before: list[ast.stmt] = [
        change.assigned(renamed.get(name, name), change.moved(value), place_of(value))
        for name, value in given.items()
        if name not in known
    ]
    inside = [change.copied(one) for one in body.statements]
    value = None if body.value is None else change.copied(body.value)
    if body.context is None:
        return _Put([*before, *inside], value)
    if value is not None and body.value is not None:
        result = _free(f"{body.name}_result", names)
        names.add(result)
        inside.append(change.assigned(result, value, place_of(body.value)))
        value = ast.copy_location(ast.Name(result, ast.Load()), call)
    within = ast.With([change.moved(one) for one in body.context], inside)
    return _Put([*before, ast.fix_missing_locations(ast.copy_location(within, call))], value)


def _free(name: str, names: set[str]) -> str:
    number = 1
    while f"{name}_{number}" in names:
        number += 1
    return f"{name}_{number}"


@final
class _Change(ast.NodeTransformer):
    """Copies code of a function to the line of a call, and keeps where it came from.

    Args:
        renamed: the new names of its variables.
        values: what other names become: `self`, and the arguments of a formula.
        call: what the code is put in the place of.
    """

    def __init__(
        self, renamed: dict[str, str], values: dict[str, ast.expr], call: ast.Call
    ) -> None:
        self.renamed, self.values, self.call = renamed, values, call

    def copied(self, node: _Node) -> _Node:
        """Return a changed copy."""
        return self.visit(self.moved(node))

    def moved(self, node: _Node) -> _Node:
        """Return a copy at the line of the call."""
        new = _copy(node)
        for old, one in zip(ast.walk(node), ast.walk(new), strict=True):
            if hasattr(one, "lineno"):
                one.came_from = place_of(old)  # type: ignore[attr-defined]
                ast.copy_location(one, self.call)
        return new

    def assigned(self, name: str, value: ast.expr, place: tuple[int, int]) -> ast.Assign:
        """Return a statement that gives a name a value."""
        target = ast.Name(name, ast.Store())
        new = ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), self.call))
        new.came_from = target.came_from = place  # type: ignore[attr-defined]
        return new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return what a name becomes."""
        if node.id in self.values:
            return self.moved(self.values[node.id])
        node.id = self.renamed.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Return a parameter of an inner function, with the new name of its variable."""
        node.arg = self.renamed.get(node.arg, node.arg)
        return node


def _replace(statement: ast.stmt, call: ast.Call, value: ast.expr) -> None:
    """Put a value in the place of a call."""
    for node in ast.walk(statement):
        for name, child in ast.iter_fields(node):
            if child is call:
                setattr(node, name, value)
                return
            if isinstance(child, list) and any(one is call for one in child):
                setattr(node, name, [value if one is call else one for one in child])
                return


def _unpack_steps(source: Source) -> bool:
    """Make `result = env.step(a)` and `result[2]` one name for each of the five values."""
    changed = False
    for scope in source.scopes:
        made = Counter(written(target) for target, _, _ in assignments(scope))
        for target, value, statement in assignments(scope):
            match target, value, statement:
                case (
                    ast.Name(id=name),
                    ast.Call(func=ast.Attribute(attr="step")),
                    ast.Assign(targets=[_]),
                ) if made[name] == 1:
                    changed = _take_apart(scope, name, statement) or changed
                case _:
                    pass
    return changed


def _take_apart(scope: Scope, name: str, statement: ast.Assign) -> bool:
    """Replace `name[i]` by a name of its own, if that is all that is done with it."""
    reads = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    places: list[tuple[ast.Subscript, int]] = []
    for node in walk(scope):
        match node:
            case ast.Subscript(value=ast.Name(id=read), slice=ast.Constant(value=int(at))):
                if read == name and 0 <= at < 5:
                    places.append((node, at))
            case _:
                pass
    if not places or len(places) != len(reads) - 1:
        return False
    names = [f"{name}_{at}" for at in range(5)]
    parts = [ast.Name(one, ast.Store()) for one in names]
    target = ast.copy_location(ast.Tuple(list(parts), ast.Store()), statement)
    statement.targets = [ast.fix_missing_locations(target)]
    for node, at in places:
        new = ast.copy_location(ast.Name(names[at], ast.Load()), node)
        for parent in walk(scope):
            for field_name, child in ast.iter_fields(parent):
                if child is node:
                    setattr(parent, field_name, new)
                elif isinstance(child, list) and any(one is node for one in child):
                    setattr(parent, field_name, [new if one is node else one for one in child])
    return True
