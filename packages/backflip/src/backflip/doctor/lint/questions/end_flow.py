"""Where ends of episodes go in a whole program: through tuples, keys, fields and own functions."""

import ast
from dataclasses import dataclass, field
from typing import final

from backflip.doctor.lint.questions.episode_ends import Flags, find_flags
from backflip.doctor.lint.source import (
    Scope,
    Source,
    assignments,
    last_word,
    made_by,
    number,
    parameters,
    unconverted,
    walk,
    written,
)

FEWEST = 3  # parts of a tuple whose places are followed
MASKS = {0.0, 1.0}  # of `0.0 if end else 1.0`, which is 1 - end
ROUNDS = 6  # an end goes through a few containers
KEEPING = ("append", "add", "push", "put", "extend")


@final
@dataclass
class EndFlow:
    """What holds an end of both kinds, `terminated or truncated`, and nothing else.

    Attributes:
        source: the program.
        names: of each scope.
        words: keys of dictionaries, fields, and attributes.
        places: (size, place) in tuples and in arguments of calls.
        alone: follow `terminated` by itself instead, and whatever is called so.
        flags: the names of terminations and truncations in each scope.
        own: the functions of the program by name, and those that make objects by their class.
    """

    source: Source
    alone: bool = False
    names: dict[Scope, set[str]] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    places: set[tuple[int, int]] = field(default_factory=set)
    flags: dict[Scope, Flags] = field(default_factory=dict)
    own: dict[str, list[Scope]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for scope in self.source.scopes:
            self.names[scope], self.flags[scope] = set(), find_flags(self.source, scope)
            name = _called_as(self.source, scope)
            self.own.setdefault(name, []).append(scope)
        for _ in range(ROUNDS):
            before = self._size()
            for scope in self.source.scopes:
                self._follow(scope)
            if self._size() == before:
                break

    def _size(self) -> int:
        return sum(map(len, self.names.values())) + len(self.words) + len(self.places)

    def holds(self, scope: Scope, node: ast.expr) -> bool:
        """Return whether an expression is an end, or 1 - it, in any type and at any place."""
        plain = unconverted(node)
        if self._begins(scope, plain):
            return True
        match plain:
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as key)):
                return key in self.words or self.holds(scope, inner)
            case ast.Subscript(value=inner, slice=ast.Constant(value=int() as at)):
                is_part = any(size > FEWEST and place == at for size, place in self.places)
                return is_part or self.holds(scope, inner)
            case ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
                return self.holds(scope, inner)
            case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=inner):
                return self.holds(scope, inner)
            case ast.Call(func=func, args=[ast.ListComp(elt=inner) | inner, *_]) if last_word(
                func
            ) in ("logical_not", "stack", "cat", "concatenate"):
                return self.holds(scope, inner)
            case ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner) | ast.List(elts=[inner]):
                return self.holds(scope, inner)
            case ast.IfExp(test=inner, body=one, orelse=other) if {
                number(one),
                number(other),
            } == MASKS:
                return self.holds(scope, inner)
            case ast.Attribute(attr=attr):
                return attr in self.words
            case ast.Name(id=name):
                return name in self.names[self.source.home(plain, name)]
            case _:
                return False

    def _begins(self, scope: Scope, node: ast.expr) -> bool:
        """Return whether an expression is an end by itself, and not by what it comes from."""
        if not self.alone:
            return self.flags[scope].joins(node)
        word = last_word(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        key = node.slice if isinstance(node, ast.Subscript) else None
        texts = _texts([key])
        is_named = any(one.startswith("term") for one in (word, *texts))
        return is_named or written(node) in self.flags[scope].ended - {""}

    def is_read(self) -> bool:
        """Return whether the program does more with an end than to keep it, or to join it."""
        return any(
            isinstance(node, ast.expr)
            and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
            and self.holds(scope, node)
            and not self._is_kept(scope, node)
            for node in self.source.nodes
            for scope in [self.source.function_of(node)]
        )

    def _is_kept(self, scope: Scope, node: ast.expr) -> bool:
        """Return whether an end only goes into a container, a name, or an own function."""
        parent = self.source.parents[node]
        if isinstance(parent, ast.expr) and (
            self.holds(scope, parent) or self.flags[scope].joins(parent)
        ):
            return True
        if isinstance(parent, ast.keyword):
            parent = self.source.parents[parent]
        match parent:
            case ast.Call(func=func) if func is not node:
                called = written(func).rpartition(".")[2]
                own = called in self.own or bool(_fields(self.source, called))
                return own or last_word(func) in KEEPING
            case ast.Attribute(attr=attr):
                return attr in KEEPING
            case ast.Subscript(value=inner, ctx=ast.Store()):
                return inner is node
            case ast.Tuple() | ast.List() | ast.Dict() | ast.Return():
                return True
            case _:
                return isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr)

    def _follow(self, scope: Scope) -> None:
        for target, value, _ in assignments(scope):
            if isinstance(target, ast.Tuple | ast.List):
                if last_word(getattr(value, "func", value)) != "step":
                    self._take(scope, target)
            elif self.holds(scope, value):
                self._keep(scope, target)
        for node in walk(scope):
            match node:
                case (
                    ast.For(target=ast.Tuple() as target, iter=over)
                    | ast.comprehension(target=ast.Tuple() as target, iter=over)
                ):
                    self._take(scope, target)
                    self._pair(scope, target, over)
                case ast.For(target=ast.Name() as target, iter=over) if self.holds(scope, over):
                    self._keep(scope, target)
                case ast.Call():
                    self._pass(scope, node)
                case ast.Tuple(elts=parts, ctx=ast.Load()) | ast.List(elts=parts, ctx=ast.Load()):
                    self._place(scope, parts)
                    self._name_places(parts)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        if self.holds(scope, value):
                            self.words |= _texts([key])
                    self._name_places([one for one in keys if one is not None])
                case _:
                    pass

    def _keep(self, scope: Scope, target: ast.expr) -> None:
        """Note what gets an end."""
        match target:
            case ast.Subscript(slice=ast.Constant(value=str() as key)):
                self.words.add(key)
            case ast.Subscript(value=inner, slice=ast.Name() | ast.BinOp() | ast.Slice()):
                self._keep(scope, inner)
            case ast.Attribute(attr=attr):
                self.words.add(attr)
            case ast.Name(id=name):
                self.names[self.source.home(target, name)].add(name)
            case _:
                pass

    def _take(self, scope: Scope, target: ast.Tuple | ast.List) -> None:
        """Note the names that a tuple is unpacked to, at the place of an end."""
        for place, one in enumerate(target.elts):
            if (len(target.elts), place) in self.places and len(target.elts) > FEWEST:
                self._keep(scope, one)

    def _pair(self, scope: Scope, target: ast.Tuple, over: ast.expr) -> None:
        """Note the variable of a loop over `zip(rewards, dones)` that goes over ends."""
        if made_by(over) == "zip" and isinstance(over, ast.Call):
            for one, part in zip(target.elts, over.args, strict=False):
                if self.holds(scope, part):
                    self._keep(scope, one)

    def _place(self, scope: Scope, parts: list[ast.expr]) -> None:
        """Note at which places of a tuple, or of the arguments of a call, ends are."""
        if len(parts) >= FEWEST and not any(isinstance(one, ast.Starred) for one in parts):
            size = len(parts)
            self.places |= {(size, i) for i, one in enumerate(parts) if self.holds(scope, one)}

    def _name_places(self, parts: list[ast.expr]) -> None:
        """Note the key at the place of an end, in the keys of a buffer: `("obs", ..., "end")`.

        So name the fields of a structured array: `[("obs", "f4"), ..., ("end", "f4")]`.
        """
        parts = [one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one for one in parts]
        if len(parts) > FEWEST and len(_texts(parts)) == len(parts):
            for place, one in enumerate(parts):
                if (len(parts), place) in self.places:
                    self.words |= _texts([one])

    def _pass(self, scope: Scope, call: ast.Call) -> None:
        """Note where an argument of a call goes."""
        self._place(scope, call.args)
        for one in call.keywords:
            if one.arg is not None and self.holds(scope, one.value):
                self.words.add(one.arg)
        kept = call.args[:1] if last_word(call.func) in KEEPING and len(call.args) == 1 else []
        if isinstance(call.func, ast.Attribute) and any(self.holds(scope, one) for one in kept):
            self._keep(scope, call.func.value)
        self._pass_to_own(scope, call)

    def _pass_to_own(self, scope: Scope, call: ast.Call) -> None:
        """Note the parameters of own functions, and the fields of own rows, that get ends."""
        called = written(call.func).rpartition(".")[2]
        for function in self.own.get(called, ()):
            given = _parameters_of(function)
            pairs = [*zip(given, call.args, strict=False)]
            pairs += [(one.arg, one.value) for one in call.keywords if one.arg in given]
            self.names[function] |= {name for name, value in pairs if self.holds(scope, value)}
        for name, value in zip(_fields(self.source, called), call.args, strict=False):
            if self.holds(scope, value):
                self.words.add(name)


def _called_as(source: Source, scope: Scope) -> str:
    """Return by which name a function is called; of `__init__`, that of its class."""
    inside = source.class_of(scope)
    name = "" if isinstance(scope, ast.Module) else scope.name
    made = name == "__init__" and inside is not None
    return inside.name if made and inside is not None else name


def _parameters_of(function: Scope) -> list[str]:
    if isinstance(function, ast.Module):
        return []
    names = [one.arg for one in parameters(function)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _fields(source: Source, name: str) -> list[str]:
    """Return the fields of `class Step(NamedTuple)`, a dataclass, or a `namedtuple`."""
    for body in source.bodies:
        if isinstance(body, ast.ClassDef) and body.name == name:
            return [written(one.target) for one in body.body if isinstance(one, ast.AnnAssign)]
        for target, value, _ in assignments(body):
            if written(target) == name and made_by(value).endswith("namedtuple"):
                return _named(value)
    return []


def _named(value: ast.expr) -> list[str]:
    match value:
        case ast.Call(args=[_, ast.Constant(value=str() as text), *_]):
            return text.replace(",", " ").split()
        case ast.Call(args=[_, ast.List(elts=parts) | ast.Tuple(elts=parts), *_]):
            return [str(getattr(one, "value", "")) for one in parts]
        case _:
            return []


def _texts(parts: list[ast.expr] | list[ast.expr | None]) -> set[str]:
    return {
        one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
