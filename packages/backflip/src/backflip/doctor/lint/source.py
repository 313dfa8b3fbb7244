"""A parsed program, and the questions that rules ask about it."""

import ast
import math
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import final

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Module
Assignment = tuple[ast.expr, ast.expr, ast.stmt | ast.NamedExpr]  # target, value, statement

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SMALLEST_DISCOUNT = 0.9  # a smaller number before a value may be a weight
VALUED = (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)  # assignments to one target
LOOPS = (ast.For, ast.AsyncFor, ast.While)
CONVERTED = ("float", "int", "bool", "long", "to", "type", "astype", "cpu", "numpy", "item")
MADE_FROM = ("as_tensor", "tensor", "Tensor", "FloatTensor", "asarray", "array", "from_numpy")
STATES = ("s", "o", "ob", "obs", "state", "states", "observation", "observations")
NEXT = ("_", "2", "_2", "p", "_p")  # what follows the name of a state in that of the next one
INNER = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
LARGEST_LOG = 700  # of a float; e**710 is too large
LONGEST_CHAIN = 5  # names that are followed to where a value comes from
KEPT = 2_000  # scopes whose parts are kept: every rule asks for them, file by file
VERSIONS_KEPT = 2  # rules see a program twice: as written, and with its short functions inlined
ONE_FILE = 1  # files are checked one by one, so only the current one is worth keeping
RENAMED = {"gym": "gymnasium"}  # `gym` is read as `gymnasium`, except where versions matter


@final
class Source:
    """One file.

    Args:
        path: of the file.
        text: the program.

    Raises:
        SyntaxError, ValueError: it is not Python.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.tree = ast.parse(text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the program."""
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for: `F` is `torch.nn.functional`."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for one in node.names:
                    name = one.asname or one.name.partition(".")[0]
                    found[name] = one.name if one.asname else name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    found[one.asname or one.name] = f"{node.module}.{one.name}"
        return found

    def imports_any(self, *packages: str) -> bool:
        """Return whether the program imports one of the packages, or a part of it."""
        return any(name.partition(".")[0] in packages for name in self.imports.values())

    def dotted(self, node: ast.AST) -> str:
        """Return what an expression names, `torch.nn.functional.relu`; empty if it is not a name.

        `self.q.target` is `self.q.target`.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        first, _, rest = self.imports.get(node.id, node.id).partition(".")
        parts += [rest] if rest else []
        return ".".join([RENAMED.get(first, first), *reversed(parts)])

    def calls(self, scope: ast.AST | None = None) -> Iterator[tuple[ast.Call, str]]:
        """Yield the calls of the program, or of one scope, with what they call."""
        nodes = self.nodes if scope is None else walk(scope)
        for node in nodes:
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func)

    @cached_property
    def calls_of(self) -> dict[str, list[ast.Call]]:
        """The calls of the program by the last word of what they call, in lower case."""
        found: dict[str, list[ast.Call]] = {}
        for call, _ in self.calls():
            found.setdefault(last_word(call.func), []).append(call)
        return found

    @cached_property
    def scopes(self) -> list[Scope]:
        """The module and all functions."""
        return [node for node in self.nodes if isinstance(node, (*FUNCTIONS, ast.Module))]

    @cached_property
    def bodies(self) -> list[ast.AST]:
        """The module, all functions, and all classes: where names are assigned."""
        return [*self.scopes, *(node for node in self.nodes if isinstance(node, ast.ClassDef))]

    @cached_property
    def constants(self) -> dict[str, float]:
        """The names that the program assigns once in all its scopes, and to a number."""
        return constants(self.scopes)

    def function_of(self, node: ast.AST) -> Scope:
        """Return the innermost function that contains a node, or the module."""
        while not isinstance(node, ast.Module):
            node = self.parents[node]
            if isinstance(node, FUNCTIONS):
                return node
        return node

    def home(self, node: ast.AST, name: str) -> Scope:
        """Return the function that a name belongs to at a place, or the module.

        It is the innermost that sets the name, or has it as a parameter; of `self.x` the module.
        """
        scope, first = self.function_of(node), name.partition(".")[0]
        if first == "self" or name.startswith("cls."):
            return self.tree
        while not isinstance(scope, ast.Module) and first not in self._own_names[scope]:
            scope = self.function_of(scope)
        return scope

    @cached_property
    def _own_names(self) -> dict[Scope, set[str]]:
        """The names that belong to each scope: parameters, and what it sets."""
        return {scope: _own_names(scope) for scope in self.scopes}

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the innermost class that contains a node; None for one outside of classes."""
        while not isinstance(node, ast.Module):
            node = self.parents[node]
            if isinstance(node, ast.ClassDef):
                return node
        return None

    def is_inside(self, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
        """Return whether a node is inside one of these kinds, in its own function."""
        while (node := self.parents.get(node, self.tree)) is not self.tree:
            if isinstance(node, kinds):
                return True
            if isinstance(node, FUNCTIONS):
                return False
        return False

    def later(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the code of the same function that can run after a node, all of its loops too."""
        leaves_loop = False
        while not isinstance(node, (*FUNCTIONS, ast.Module)):
            parent = self.parents[node]
            for one in rest_of_block(parent, node):
                yield one
                if isinstance(one, ast.Return | ast.Raise):
                    return
                leaves_loop = leaves_loop or isinstance(one, ast.Break)
            if isinstance(parent, LOOPS):
                if not leaves_loop:
                    yield parent
                leaves_loop = False
            node = parent

    def without_gradients(self, node: ast.AST) -> bool:
        """Return whether torch computes no gradients here: by a context, decorator or switch."""
        if isinstance(node, ast.expr | ast.stmt) and self._is_switched_off(node):
            return True
        while node is not self.tree:
            if isinstance(node, ast.With) and any(
                self.stops_gradients(item.context_expr) for item in node.items
            ):
                return True
            if isinstance(node, FUNCTIONS) and any(map(self.stops_gradients, node.decorator_list)):
                return True
            node = self.parents[node]
        return False

    def stops_gradients(self, node: ast.AST) -> bool:
        """Return whether an expression is `torch.no_grad()`, or something like it."""
        name = self.dotted(node.func if isinstance(node, ast.Call) else node)
        if name.endswith("set_grad_enabled"):
            return isinstance(node, ast.Call) and is_false(argument(node, "mode", 0))
        return name.rpartition(".")[2] in ("no_grad", "inference_mode", "stop_recording")

    def _is_switched_off(self, node: ast.expr | ast.stmt) -> bool:
        """Return whether the last `torch.set_grad_enabled(...)` before a line is of False."""
        scope = self.function_of(node)
        before = [one for one in self._switches.get(scope, ()) if one.lineno < node.lineno]
        if before or isinstance(scope, ast.Module):
            return bool(before) and self.stops_gradients(before[-1])
        return self._is_switched_off(scope)

    @cached_property
    def _switches(self) -> dict[Scope, list[ast.Call]]:
        """The statements `torch.set_grad_enabled(...)` by function, in the order of the text."""
        found: dict[Scope, list[ast.Call]] = {}
        for call in self.calls_of.get("set_grad_enabled", ()):
            if isinstance(self.parents[call], ast.Expr):
                found.setdefault(self.function_of(call), []).append(call)
        return {scope: sorted(calls, key=lambda one: one.lineno) for scope, calls in found.items()}


def rest_of_block(parent: ast.AST, node: ast.AST) -> list[ast.stmt]:
    """Return the statements after a statement in its block; empty for an expression."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _own_names(scope: Scope) -> set[str]:
    places = [] if isinstance(scope, ast.Module) else parameters(scope)
    found, elsewhere = {one.arg for one in places}, set[str]()
    for node in walk(scope):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere.update(names)
            case _:
                pass
    return found - elsewhere


def parameters(function: Function) -> list[ast.arg]:
    """Return the parameters of a function, `*args` and `**options` last."""
    args = function.args
    rest = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *rest]


@lru_cache(maxsize=KEPT)
def walk(scope: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes of a scope in the order of the text, without those of functions in it."""
    return tuple(_walk(scope))


def _walk(scope: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, INNER):
            yield from _walk(child)


@lru_cache(maxsize=KEPT)
def assignments(scope: ast.AST) -> tuple[Assignment, ...]:
    """Return (target, value, statement) of a scope; tuples of equal length go in pairs.

    Of `(name := value)`, the statement is the expression itself.
    """
    return tuple(_assignments(scope))


def _assignments(scope: ast.AST) -> Iterator[Assignment]:
    for node in walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from ((one, value, node) for one, value in _pairs(target, node.value))
        elif isinstance(node, VALUED) and node.value is not None:
            yield node.target, node.value, node


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    both = (ast.Tuple, ast.List)
    if isinstance(target, both) and isinstance(value, both) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def names_in(node: ast.AST) -> set[str]:
    """Return the names that are read in an expression; `self.done` counts as `self.done`."""
    return {written(one) for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)}


def written(node: ast.AST) -> str:
    """Return a name as it is written, `self.done`; of `x[i]` that of x; empty for others."""
    while isinstance(node, ast.Subscript):
        node = node.value
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last_word(node: ast.AST) -> str:
    """Return the last part of a name, in lower case: `target` of `f(x).Target`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return word.lower()


def unconverted(node: ast.expr) -> ast.expr:
    """Return what is converted: x of `int(x)`, `x.float()` and `torch.as_tensor(x)`."""
    while True:
        match node:
            case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[inner]):
                node = inner
            case ast.Call(func=ast.Attribute(attr=attr), args=[inner, *_]) if attr in MADE_FROM:
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in CONVERTED:
                node = inner
            case _:
                return node


def origins(scope: ast.AST, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what a name stands for, by names that are set once: b, a and x of `b = a`, `a = x`."""
    for _ in range(LONGEST_CHAIN):
        node = unconverted(node)
        yield node
        if not isinstance(node, ast.Name):
            return
        values = [value for target, value, _ in assignments(scope) if written(target) == node.id]
        if len(values) != 1:
            return
        node = values[0]


def argument(call: ast.Call, name: str, place: int | None = None) -> ast.expr | None:
    """Return an argument of a call by its name, or by its place; None if it is not given."""
    for one in call.keywords:
        if one.arg == name:
            return one.value
    if place is None or place >= len(call.args) or isinstance(call.args[place], ast.Starred):
        return None
    return call.args[place]


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return all arguments of a call, by place and by name."""
    return [*call.args, *(one.value for one in call.keywords)]


def number(node: ast.AST | None) -> float | None:
    """Return the value of a number, or of arithmetic on numbers; None for anything else."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right):
            return computed(number(left), op, number(right))
        case ast.Call(func=ast.Name(id="int" | "float"), args=[only], keywords=[]):
            return number(only)
        case _:
            return None


def computed(left: float | None, op: ast.operator, right: float | None) -> float | None:
    """Return a sum, product or power of two numbers; None if one is not known, or too large."""
    if left is None or right is None:
        return None
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div() if right:
            return left / right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Mod() if right:
            return left % right
        case ast.Pow() if left > 0 and right * math.log(left) < LARGEST_LOG:
            return left**right
        case _:
            return None


def constants(scopes: Iterable[ast.AST]) -> dict[str, float]:
    """Return the names that are assigned once, and to a number."""
    found: dict[str, list[float | None]] = {}
    for scope in scopes:
        for target, value, statement in assignments(scope):
            name = written(target)
            plain = number(value) if not isinstance(statement, ast.AugAssign) else None
            found.setdefault(name, []).append(plain)
    return {
        name: values[0]
        for name, values in found.items()
        if name and len(values) == 1 and values[0] is not None
    }


def has_word(name: str, *words: str) -> bool:
    """Return whether one of the words is in a name."""
    return any(word in name.lower() for word in words)


def is_discount(name: str) -> bool:
    """Return whether a name is that of a discount."""
    last = name.rpartition(".")[2]
    return has_word(last, "gamma", "discount") or name == "γ" or "disc" in last.split("_")


def discounts(node: ast.AST) -> bool:
    """Return whether a discount is in code: by its name, or as the number in `r + 0.99 * q`."""
    return any(map(is_discount, names_in(node))) or any(map(_adds_a_share, ast.walk(node)))


def _adds_a_share(node: ast.AST) -> bool:
    """Return whether code is `r + 0.99 * x`; what r is multiplied by too is an average."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    for plain, product in ((node.left, node.right), (node.right, node.left)):
        if not is_product(plain) and any(map(is_usual_discount, factors(product))):
            return True
    return False


def is_product(node: ast.expr) -> bool:
    """Return whether code is a product."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def factors(node: ast.expr) -> list[ast.expr]:
    """Return the factors of a product; empty for anything else."""
    if not (isinstance(node, ast.BinOp) and is_product(node)):
        return []
    sides = node.left, node.right
    return [one for side in sides for one in (factors(side) or [side])]


def is_usual_discount(node: ast.expr) -> bool:
    """Return whether code is a number such as 0.99."""
    value = number(node) if isinstance(node, ast.Constant) else None
    return value is not None and SMALLEST_DISCOUNT <= value < 1


def is_of_next(node: ast.AST) -> bool:
    """Return whether code names the next state: `next_obs`, `obs_prime`, `states_` or `s2`."""
    return any(_is_next(name.rpartition(".")[2].lower()) for name in names_in(node)) or any(
        _is_next(one.value.lower())
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


def _is_next(name: str) -> bool:
    state, mark = name.rstrip("_2p"), name[len(name.rstrip("_2p")) :]
    return (
        has_word(name, "next", "prime", "new_", "successor")
        or (mark in NEXT and state in STATES)
        or (name.removeprefix("n").lstrip("_") in STATES and name.startswith("n"))
    )


def calls_method(call: ast.Call, name: str) -> bool:
    """Return whether a call is of a method with this name."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def made_by(value: ast.expr) -> str:
    """Return the name of the function or class that makes a value; empty for others."""
    return written(value.func) if isinstance(value, ast.Call) else ""


def is_false(node: ast.AST | None) -> bool:
    """Return whether an expression is the literal False."""
    return isinstance(node, ast.Constant) and node.value is False
