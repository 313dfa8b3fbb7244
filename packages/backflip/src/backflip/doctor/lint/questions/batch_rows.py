"""Which values of a program are rows (B,): a number for each step of a batch."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.questions.column_outputs import Columns
from backflip.doctor.lint.questions.origins import MANY, SINGLE
from backflip.doctor.lint.source import (
    FUNCTIONS,
    LONGEST_CHAIN,
    MADE_FROM,
    Function,
    Source,
    argument,
    arguments,
    assignments,
    has_word,
    last_word,
    parameters,
    unconverted,
    walk,
    written,
)

OF_STEPS = ("rew", "done", "termin", "trunc")  # in names
DRAWN = ("randint", "integers", "choice", "permutation", "randperm")
STACKED = ("stack", "concatenate", "device_put", *MADE_FROM)
FILLED = ("zeros", "empty", "ones", "full")
FLAT = ("numpy", "jax", "torch", "collections", "d4rl", "minari", "h5py")  # give rewards as (n,)
WRAPPERS = ("jit", "grad", "value_and_grad")
HELD = ("tuple", "list", "map", "dict")


def is_of_steps(name: str) -> bool:
    """Return whether a name is that of rewards, returns or ends."""
    last = name.rpartition(".")[2].lower()
    return has_word(last, *OF_STEPS, *MANY) or last in SINGLE


class Rows:
    """Tells which values are a number for each step of a batch.

    Args:
        source: the program.
        columns: tells which values are columns: what is computed of one is no row.
    """

    def __init__(self, source: Source, columns: Columns) -> None:
        self._source, self._columns = source, columns
        self._known: dict[tuple[ast.expr, bool], bool] = {}
        self._known_batches: dict[ast.expr, bool] = {}

    def has(self, node: ast.expr, is_reward: bool) -> bool:
        """Return whether a value surely is a row.

        Args:
            node: the value.
            is_reward: it is added to a discounted value; else its name must say what it is.
        """
        if (node, is_reward) not in self._known:
            self._known[node, is_reward] = False  # of a value that is computed from itself
            self._known[node, is_reward] = self._has(node, is_reward)
        return self._known[node, is_reward]

    def _has(self, node: ast.expr, is_reward: bool) -> bool:
        plain = self._plain(node)
        known = is_reward or is_of_steps(written(plain)) or is_of_steps(_key(plain))
        match plain:
            case ast.BinOp(left=left, right=right):
                sides = (left, right)
                has_column = any(map(self._columns.has, sides))
                return not has_column and any(self.has(one, is_reward) for one in sides)
            case ast.Name():
                made = self._assigned(plain)
                return bool(made) and all(self._has_part(one, at, known) for one, at in made)
            case ast.Attribute(value=ast.Name() as owner):
                return known and self._is_batched(owner)
            case ast.Subscript(slice=index) if self._is_index(index):
                return known and self._is_indexed(plain)
            case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
                return self._has_part(owner, key, known)
            case ast.ListComp(generators=[_], elt=ast.Attribute() | ast.Subscript() as element):
                return is_reward or is_of_steps(written(element)) or is_of_steps(_key(element))
            case _:
                return False

    def _has_part(self, node: ast.expr, key: object, known: bool) -> bool:
        """Return whether a part of a value is a row: of a tuple at a place, of a dict by its key.

        Args:
            node: the value.
            key: of the part; None for the whole.
            known: whether its name, or its use, tells that it is a number for each step.
        """
        if key is None:
            return self.has(node, known)
        for one in self._made_of(node):
            parts = _parts(one)
            if key not in parts and not (known and self._is_batched(one)):
                return False
            if key in parts and not self.has(parts[key], known):
                return False
        return True

    def _made_of(self, node: ast.expr) -> list[ast.expr]:
        """Return what a value can be: what a name is set to, what an own function returns."""
        found = [node]
        for _ in range(LONGEST_CHAIN):
            found = [new for one in found for new in self._before(one)]
        return found

    def _before(self, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.Name):
            made = [value for value, at in self._assigned(node) if at is None]
            return made or [node]
        returned = self._returned(node) if isinstance(node, ast.Call) else []
        return [one for one in returned if one is not None] or [node]

    def _plain(self, node: ast.expr) -> ast.expr:
        """Return what is converted or stacked: x of `jnp.asarray(x).astype(float)`."""
        plain = unconverted(node)
        match plain:
            case ast.Call(func=func, args=[inner, *_]) if last_word(func) in STACKED:
                return self._plain(inner) if last_word(func) == "stack" else plain
            case _:
                return plain

    def _is_batched(self, node: ast.expr) -> bool:
        """Return whether all parts of a value are of a batch: `zip(*batch)`, `Batch(*map(...))`."""
        if node not in self._known_batches:
            self._known_batches[node] = False
            self._known_batches[node] = self._has_batches(node)
        return self._known_batches[node]

    def _has_batches(self, node: ast.expr) -> bool:
        again = self._is_batched
        match node:
            case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred()]):
                return True
            case ast.GeneratorExp() | ast.ListComp() | ast.DictComp():
                element = node.value if isinstance(node, ast.DictComp) else node.elt
                return self._is_indexed(element, is_one_of_all=True) or (
                    isinstance(node, ast.GeneratorExp | ast.ListComp)
                    and _is_conversion(element)
                    and again(node.generators[0].iter)
                )
            case ast.Starred(value=inner):
                return again(inner)
            case ast.Name():
                made = self._assigned(node)
                return bool(made) and all(at is None and again(value) for value, at in made)
            case ast.Call(func=func) if last_word(func) in HELD or self._is_record(func):
                given = arguments(node)
                return bool(given) and any(map(again, given))
            case ast.Call():
                found = self._returned(node)
                return bool(found) and all(one is not None and again(one) for one in found)
            case ast.Tuple(elts=parts) | ast.Dict(values=parts):
                return bool(parts) and all(map(self._is_indexed, parts))
            case _:
                return False

    def _is_record(self, func: ast.expr) -> bool:
        """Return whether a call makes an object: `Batch(...)`."""
        return written(func)[:1].isupper()

    def _returned(self, call: ast.Call) -> list[ast.expr | None]:
        """Return what the only function of the program with this name returns."""
        own = [
            one
            for one in self._source.scopes
            if isinstance(one, FUNCTIONS) and one.name.lower() == last_word(call.func)
        ]
        nodes = walk(own[0]) if len(own) == 1 else ()
        return [one.value for one in nodes if isinstance(one, ast.Return)]

    def _is_indexed(self, node: ast.expr, is_one_of_all: bool = False) -> bool:
        """Return whether a value is `x[indices]`, or made of one; with a flat x, or each of all."""
        match unconverted(node):
            case ast.Subscript(value=store, slice=index):
                return self._is_index(index) and (is_one_of_all or self._is_flat(store))
            case _:
                return False

    def _is_index(self, node: ast.expr) -> bool:
        """Return whether an index has several places, drawn at random."""
        made = [value for value, _ in self._assigned(node)] if isinstance(node, ast.Name) else []
        return bool(made) and all(map(self._draws_many, made))

    def _draws_many(self, call: ast.expr) -> bool:
        if not isinstance(call, ast.Call):
            return False
        last, name = last_word(call.func), self._source.dotted(call.func)
        if last not in DRAWN or name.startswith("random."):
            return False
        sized = argument(call, "size") is not None or any(
            isinstance(one, ast.Tuple) for one in call.args
        )
        places = 2 if last == "choice" else 3
        return sized or last in ("permutation", "randperm") or len(call.args) >= places

    def _is_flat(self, node: ast.expr) -> bool:
        """Return whether the program makes a store, and not with several numbers for each step."""
        made = [value for value, _ in self._assigned(node)] if written(node) else []
        return bool(made) and not any(map(self._is_wide, made))

    def _is_wide(self, node: ast.expr) -> bool:
        """Return whether a value is `np.zeros((n, m))`, or comes from a package that may be so."""
        if not isinstance(node, ast.Call):
            return False
        package = self._source.imports.get(written(node.func).partition(".")[0], "numpy")
        sizes = node.args if package.startswith("torch") else node.args[:1]
        count = len(sizes[0].elts) if sizes and isinstance(sizes[0], ast.Tuple) else len(sizes)
        is_filled = last_word(node.func) in FILLED and count > 1
        return is_filled or package.partition(".")[0] not in FLAT

    def _assigned(self, node: ast.expr) -> list[tuple[ast.expr, int | None]]:
        """Return what a name is set to, and the place in that; None for the whole.

        Of a parameter it is what calls give, also by `*batch`.
        """
        name, source = written(node), self._source
        home = source.home(node, name)
        scopes = source.scopes if "." in name else [home]
        found: list[tuple[ast.expr, int | None]] = []
        for target, value, _ in (one for scope in scopes for one in assignments(scope)):
            parts = list(map(written, target.elts)) if isinstance(target, ast.Tuple) else []
            if written(target) == name and isinstance(target, ast.Name | ast.Attribute):
                found.append((value, None))
            elif name in parts:
                found.append((value, parts.index(name)))
        if isinstance(home, FUNCTIONS) and name:
            found += self._given(home, name)
        return found

    def _given(self, function: Function, name: str) -> Iterator[tuple[ast.expr, int | None]]:
        """Yield what calls give for a parameter."""
        names = [one.arg for one in parameters(function) if one.arg not in ("self", "cls")]
        for call in self._calls(function.name) if name in names else ():
            place = names.index(name)
            stars = [at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)]
            if stars and stars[0] <= place:
                yield call.args[stars[0]], place - stars[0]
            elif (given := argument(call, name, place)) is not None:
                yield given, None

    def _calls(self, name: str) -> Iterator[ast.Call]:
        """Yield the calls of a function, also as `jax.grad(f)(x)` and `g = jax.jit(f); g(x)`."""
        yield from self._source.calls_of.get(name.lower(), ())
        for call, _ in self._source.calls():
            if name in map(written, call.args) and last_word(call.func) in WRAPPERS:
                parent = self._source.parents[call]
                if isinstance(parent, ast.Call) and parent.func is call:
                    yield parent
                for target in getattr(parent, "targets", ()):
                    yield from self._source.calls_of.get(last_word(target), ())


def _is_conversion(node: ast.expr) -> bool:
    """Return whether an element of a comprehension is converted: `np.stack(c)`."""
    plain = unconverted(node)
    is_stacked = isinstance(plain, ast.Call) and last_word(plain.func) in STACKED
    return is_stacked or isinstance(plain, ast.Name)


def _parts(node: ast.expr) -> dict[object, ast.expr]:
    """Return the parts of a tuple by place, and those of a dict by key."""
    match node:
        case ast.Starred(value=inner):
            return _parts(inner)
        case ast.Tuple(elts=parts):
            return dict(enumerate(parts))
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {one.value: value for one, value in pairs if isinstance(one, ast.Constant)}
        case _:
            return {}


def _key(node: ast.expr) -> str:
    """Return the text in `batch["reward"]`; empty for others."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    is_text = isinstance(index, ast.Constant) and isinstance(index.value, str)
    return str(index.value) if isinstance(index, ast.Constant) and is_text else ""
